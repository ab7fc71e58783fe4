package hash

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Create makes an empty table in transaction t, near hint, and returns the
// pointer to its anchor. t can use the table immediately, other transactions after t has committed.
func Create(t *txn.Tx, cfg Config, hint region.Addr) (region.Ptr, error) {
	lay, err := cfg.layout()
	if err != nil {
		return region.Ptr{}, err
	}
	at := hint
	if len(cfg.Places) > 0 {
		at = cfg.Places[0]
	}
	a := anchor{layout: lay, seed: cfg.Seed, places: cfg.Places}
	if cfg.Buckets == 0 {
		a.fitLog(t.Machine().WriteBytesMax())
	}
	a.root, err = createShard(t, &a, at, &header{state: whole})
	for cfg.Buckets == 0 && a.buckets > bucketsMin && errors.Is(err, region.ErrTooLarge) {
		a.buckets /= 2 // small regions have small blocks
		a.root, err = createShard(t, &a, at, &header{state: whole})
	}
	if err != nil {
		return region.Ptr{}, err
	}
	ptr, b, err := t.Alloc(anchorBytes, hint)
	if err != nil {
		return region.Ptr{}, err
	}
	a.encode(b)
	for i := range a.buckets {
		b, err := t.Write(a.root.first.Element(i))
		if err != nil {
			return region.Ptr{}, err
		}
		lay.bucket(b).setDepth(0)
	}
	return ptr, nil
}

// createShard makes the objects of an empty shard with header h, whose buckets are not in use
// yet.
func createShard(t *txn.Tx, a *anchor, hint region.Addr, h *header) (s shardPtr, err error) {
	if s.first, err = t.AllocArray(a.bucketBytes(), a.buckets+1, hint); err != nil {
		return s, err
	}
	var b []byte
	if s.header, b, err = t.Alloc(headerBytes, s.first.Addr); err == nil {
		h.encode(b)
	}
	return s, err
}

// Options are the settings of one machine's handle on a table.
type Options struct {
	// Lookups says how many READs a lookup at another machine makes before it asks the shard's primary (Storm,
	// one-two-sided operations). If Serve has not been called there, lookups only READ. LookupMany asks once for all keys of a
	// primary: with TwoSided always, and with Measured where that costs less than READs.
	Lookups lookup.Way
}

// A Table is one machine's handle on a hash table, with its cache of the
// directory. It is safe for concurrent use. A machine should have only one handle on
// a table: a transaction has an overlay per handle, and the changes in one overlay are
// not seen through another handle.
//
// A handle must not be used after the end of the epoch in which the table was
// destroyed: the table's memory may be in use for something else by then.
type Table struct {
	m      *txn.Machine
	anchor region.Ptr
	client *lookup.Client
	// asksFrom is how many keys of one primary LookupMany looks up by a message.
	asksFrom int
	opened   atomic.Pointer[opened]
	stats    counters

	here, there combining
}

// opened is the state of a table whose anchor has been read.
type opened struct {
	*anchor
	dir    *directory
	growth growth
	// buffers are for single lookups, pipelines for many lookups together.
	buffers, pipelines sync.Pool
	// extents say where the data of a bucket's slots is, for the first glanceSlots slots.
	extents [secondBucket]extent
	// lines are all lines of a bucket.
	lines region.Lines
	// slotBits has a bit for each slot of two buckets, as sight.slots has.
	slotBits uint
}

// An extent says on which lines of a bucket a slot's data is, and where in a copy of these lines
// it begins (region.Lines.Place).
type extent struct {
	lines region.Lines
	place int
}

// Open returns machine m's handle on the table with this anchor. It reads nothing; the
// first operation reads the anchor.
func Open(m *txn.Machine, anchor region.Ptr) *Table { return OpenWith(m, anchor, Options{}) }

// OpenWith is like Open, but with options.
func OpenWith(m *txn.Machine, anchor region.Ptr, opt Options) *Table {
	n := m.Clock().Processors()
	return &Table{
		m: m, anchor: anchor, client: lookup.NewClient(m, handlerLookup, opt.Lookups), asksFrom: asksFrom(opt.Lookups, m.Costs()),
		here: newCombining(n), there: newCombining(n),
	}
}

// Anchor returns the pointer that identifies the table.
func (tb *Table) Anchor() region.Ptr { return tb.anchor }

// Home returns an address in the shard that key belongs to, as far as the handle knows:
// operations on the key can be shipped to that address's primary (txn.Machine.Ship). If the
// shard has been split since and the key is in another shard, that machine can still do them,
// by remote reads.
func (tb *Table) Home(key []byte) (region.Addr, error) {
	o, err := tb.open()
	if err != nil {
		return 0, err
	}
	return o.dir.find(sum(o.seed, key)).first.Addr, nil
}

// open returns the state of the table, for which it reads the anchor the first time.
func (tb *Table) open() (*opened, error) {
	if o := tb.opened.Load(); o != nil {
		return o, nil
	}
	if tb.anchor.IsNil() || tb.anchor.Capacity() < anchorBytes {
		return nil, fmt.Errorf("%w: anchor %v", ErrCorrupt, tb.anchor)
	}
	b := make([]byte, tb.anchor.Capacity())
	if _, err := tb.m.Read(tb.anchor, b); err != nil {
		return nil, asDestroyed(err)
	}
	o, err := tb.decode(b)
	if err != nil {
		return nil, err
	}
	if !tb.opened.CompareAndSwap(nil, o) {
		return tb.opened.Load(), nil
	}
	return o, nil
}

// decode returns the initial state of a table from its anchor.
func (tb *Table) decode(b []byte) (*opened, error) {
	a, err := decodeAnchor(b)
	if err != nil {
		return nil, err
	}
	o := &opened{anchor: a, dir: newDirectory(&shard{shardPtr: a.root})}
	o.growth.most = tb.m.Clock().Processors() // once: it takes the scheduler's lock
	o.buffers.New = func() any { return newBuffer(&a.layout) }
	o.pipelines.New = func() any { return newPipeline(o) }
	o.slotBits = (1<<o.slots - 1) * (1 + 1<<secondBucket) // the same bits for both buckets
	o.lines = o.class.Lines(0, o.bucketBytes())
	for i := range min(o.slots, glanceSlots) {
		at := o.dataOffset(i)
		lines := o.class.Lines(at, at+o.dataBytes)
		o.extents[i] = extent{lines, lines.Place(at)}
	}
	return o, nil
}

// asDestroyed converts errors of reading an object that exists as long as the table. If the object
// has been freed, the table has been destroyed. If the object stays locked, as it may during a
// recovery, asDestroyed returns a conflict.
func asDestroyed(err error) error {
	if errors.Is(err, region.ErrLocked) {
		return fmt.Errorf("%w: %w", outcome.ErrConflict, err)
	}
	if errors.Is(err, region.ErrFreed) || errors.Is(err, region.ErrBadPtr) {
		return fmt.Errorf("%w: %w", ErrDestroyed, err)
	}
	return err
}

// follow is called when the home of hash h in shard s does not cover h: h does not begin with the
// home's prefix of depth bits, or the home is not in use (live is false). follow returns a shard to
// which a key with hash h may belong instead.
func (tb *Table) follow(o *opened, s *shard, h uint64, depth int, live bool) (*shard, error) {
	if !live {
		// The directory points to a shard only once all of it is in use.
		return nil, errOvertaken
	}
	bit := firstDifference(h, s.prefix)
	if bit < s.initialDepth || bit >= depth {
		return nil, fmt.Errorf("%w: shard of prefix %#x/%d asked for hash %#x at depth %d", ErrCorrupt, s.prefix, s.initialDepth, h, depth)
	}
	if next := o.nextShard(s, h, bit); next != nil {
		return next, nil
	}
	tb.stats.refreshes.Add(1)
	if tb.m.Meets(clock.StaleCache) {
		return nil, errOvertaken
	}
	if _, err := tb.refresh(o, s); err != nil {
		return nil, err
	}
	if next := o.nextShard(s, h, bit); next != nil {
		return next, nil
	}
	return nil, errOvertaken
}

// nextShard returns a known shard that is nearer than s to the shard of hash h: the directory's, if
// it is younger than s, or the one split from s at bit. It returns nil if it knows neither.
func (o *opened) nextShard(s *shard, h uint64, bit int) *shard {
	if next := o.dir.find(h); next.initialDepth > s.initialDepth {
		return next
	}
	if c := s.child.Load(); c != nil && c.initialDepth == bit+1 {
		return c
	}
	return nil
}

// refresh reads the header of s and adds the shards split from s to the directory.
func (tb *Table) refresh(o *opened, s *shard) (*header, error) {
	b := make([]byte, s.header.Capacity())
	if _, err := tb.m.Read(s.header, b); err != nil {
		return nil, asDestroyed(err)
	}
	h, err := decodeHeader(b, &o.layout)
	if err != nil {
		return nil, err
	}
	if h.initialDepth != s.initialDepth || h.prefix != s.prefix {
		return nil, fmt.Errorf("%w: header %v is that of prefix %#x/%d, not %#x/%d", ErrCorrupt, s.header, h.prefix, h.initialDepth, s.prefix, s.initialDepth)
	}
	o.learn(s, h)
	return h, nil
}

// learn adds the shards that the header of s names to the directory, and stores in s.child the
// child of a split in progress.
func (o *opened) learn(s *shard, h *header) {
	if h.state == splitting {
		if c := s.child.Load(); c == nil || c.initialDepth != h.depth+1 {
			s.child.CompareAndSwap(c, h.childShard(h.depth))
		}
	}
	for i := h.initialDepth; i < h.depth; i++ {
		if h.children[i].header.IsNil() || o.dir.has(h.childPrefix(i), i+1) {
			continue
		}
		c := s.child.Load()
		if c == nil || c.initialDepth != i+1 {
			c = h.childShard(i)
		}
		o.dir.add(c)
	}
}

func (h *header) childShard(i int) *shard {
	return &shard{shardPtr: h.children[i], prefix: h.childPrefix(i), initialDepth: i + 1}
}

// Stats holds the counters of one handle.
type Stats struct {
	// Shards is the number of shards in the directory.
	Shards int
	// Splits counts the shards whose split this handle completed. Refreshes counts the times that
	// this handle noticed that its directory was stale.
	Splits, Refreshes uint64
	// Restarts counts lookups that a change overtook.
	Restarts uint64
	// Combined counts the single operations that shared the transaction of another one.
	// Shipped counts the requests sent to a shard's primary: transactions of single operations, and
	// lookups.
	Combined, Shipped uint64
}

type counters struct {
	splits, refreshes, restarts, combined, shipped atomic.Uint64
}

// Stats returns the handle's counters.
func (tb *Table) Stats() Stats {
	s := Stats{
		Splits: tb.stats.splits.Load(), Refreshes: tb.stats.refreshes.Load(), Restarts: tb.stats.restarts.Load(),
		Combined: tb.stats.combined.Load(), Shipped: tb.stats.shipped.Load() + tb.client.Asked(),
	}
	if o := tb.opened.Load(); o != nil {
		s.Shards = o.dir.size()
	}
	return s
}
