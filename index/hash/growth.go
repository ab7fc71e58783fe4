package hash

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A table grows by splitting shards, in bounded transactions of their own:
//
//  1. Start: the child shard is created, its buckets not in use yet. The header of the old
//     shard gets the pointer to the child and the state splitting; the child's header gets the
//     state filling.
//  2. Moves: home by home, in order, splitHomes at a time, the keys whose next
//     hash bit is set move to the same home of the child, and both buckets get
//     the new depth. A lookup whose home bucket is deeper than the directory says
//     continues in the child if its hash has that bit set.
//  3. The last move sets both headers to whole.
//
// The table is complete between any two of these transactions, however long a split is
// interrupted; after a crash the next machine that changes the shard continues the split. No
// transaction waits for a split: each transaction that changes the table does one step, once
// changes have overflowed into chains and the shard has turned out to be full enough. A machine
// does steps of several shards at the same time, as many as it had processors when it opened the
// table. It does no step of a shard in a blocked region, because that would keep the step's caller
// until the region is recovered. A transaction whose buckets move while it is open asks its
// questions again and gets the same answers.
//
// There is a Pad at both ends, because lookups load the neighbouring fields of opened.
type growth struct {
	_ prefetch.Pad
	// startable is the number of steps that may begin now: one for each queued shard, but no more
	// than the maximum (the field most) less the steps in progress. Every transaction that has
	// changed the table loads it.
	startable atomic.Int32
	_         prefetch.Pad

	// reserving is held while the table grows for a given number of pairs.
	reserving lockrank.Mutex[lockrank.Growing]

	mu    lockrank.Mutex[lockrank.Leaf]
	most  int // the largest number of steps at the same time
	queue []*shard
	// steps are the steps in progress, at most one for each shard.
	steps []growthStep
	_     prefetch.Pad
}

// A growthStep is a step in progress. wanted says that want was called for the shard during the
// step, perhaps after the step had counted the shard's load.
type growthStep struct {
	shard  *shard
	wanted bool
}

const (
	// splitHomes is the number of homes that one transaction moves. Fewer homes make a
	// conflict with another transaction less likely.
	splitHomes = 16
	// queueMax bounds the queue. A shard that does not fit is queued again by its next
	// overflow.
	queueMax = 256
	// looksPerShard is about how many times the load of a shard is counted while it fills. Counting
	// reads the whole shard.
	looksPerShard = 16
	// stepPoll is the interval at which Reserve checks whether the step of another transaction is
	// over.
	stepPoll = 20 * time.Microsecond
	// overflowsAgain is a number of overflows so large that the next overflow queues the shard.
	overflowsAgain = 1 << 30
	// chainWeight is the weight of an overflow into a chain of two blocks or more; other
	// overflows have weight 1.
	chainWeight = 4
)

// want queues a shard to be split. It returns false if the queue is full.
func (g *growth) want(s *shard) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wantLocked(s)
}

func (g *growth) wantLocked(s *shard) bool {
	if i := g.stepOfLocked(s); i >= 0 {
		g.steps[i].wanted = true
		return true
	}
	if slices.Contains(g.queue, s) {
		return true
	}
	if len(g.queue) == queueMax {
		return false
	}
	g.queue = append(g.queue, s)
	g.countLocked()
	return true
}

func (g *growth) stepOfLocked(s *shard) int {
	return slices.IndexFunc(g.steps, func(x growthStep) bool { return x.shard == s })
}

func (g *growth) countLocked() {
	g.startable.Store(int32(max(0, min(len(g.queue), g.most-len(g.steps)))))
}

// begin takes the first shard from the queue, for a step that ends with end. It returns nil if no
// step may begin. A shard that is blocked goes to the end of the queue instead, so that the next
// caller looks at another one.
func (g *growth) begin(isBlocked func(*shard) bool) *shard {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 || len(g.steps) >= g.most {
		return nil
	}
	s := g.queue[0]
	g.queue = slices.Delete(g.queue, 0, 1)
	if isBlocked(s) {
		g.queue = append(g.queue, s)
		return nil
	}
	g.steps = append(g.steps, growthStep{shard: s})
	g.countLocked()
	return s
}

// beginOf begins a step of s, regardless of the number of steps in progress. It returns false if
// one of these is a step of s.
func (g *growth) beginOf(s *shard) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stepOfLocked(s) >= 0 {
		return false
	}
	i := slices.Index(g.queue, s)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	g.steps = append(g.steps, growthStep{shard: s, wanted: i >= 0})
	g.countLocked()
	return true
}

// end ends a step, and queues the shard if more steps are to follow (hasMore), or if it was wanted
// meanwhile. If the queue is full, the shard's next overflow queues it.
func (g *growth) end(s *shard, hasMore bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.stepOfLocked(s)
	isWanted := g.steps[i].wanted
	g.steps = slices.Delete(g.steps, i, i+1)
	g.countLocked()
	if (hasMore || isWanted) && !g.wantLocked(s) { // the queue is full
		s.overflows.Store(overflowsAgain)
	}
}

// note records pairs that e put into chains, and queues the shard if that happens often. If the
// queue is full, the shard's next overflow tries again. note may be called for preparations that are
// thrown away, because it only decides when the load is counted.
func (o *opened) note(e *editor) {
	if e.overflowed == 0 {
		return
	}
	weight := e.overflowed
	if e.chained > 1 {
		weight *= chainWeight
	}
	if n := e.shard.overflows.Add(uint32(weight)); n >= o.overflowsMost() && o.growth.want(e.shard) {
		e.shard.overflows.Store(0)
	}
}

// overflowsMost returns the number of overflows after which the load of a shard is counted.
func (l *layout) overflowsMost() uint32 { return uint32(max(1, l.slots*l.buckets/(8*looksPerShard))) }

// maintain does one step of growth if one may begin.
func (tb *Table) maintain(o *opened) {
	if o.growth.startable.Load() == 0 {
		return
	}
	if s := o.growth.begin(tb.isBlocked); s != nil {
		tb.stepOnce(o, s)
	}
}

// isBlocked reports whether a step of s would wait for the recovery of a region.
func (tb *Table) isBlocked(s *shard) bool {
	if tb.m.IsBlocked(s.header.Addr) || tb.m.IsBlocked(s.first.Addr) {
		return true
	}
	child := s.child.Load()
	return child != nil && tb.m.IsBlocked(child.first.Addr)
}

// stepOnce does the step of s that has begun, and ends it. It ignores the step's error: the table works
// without the step, and later overflows try again.
func (tb *Table) stepOnce(o *opened, s *shard) {
	again := false
	defer func() { o.growth.end(s, again) }()
	more, err := tb.step(context.Background(), o, s, false)
	again = (more && err == nil) || errors.Is(err, outcome.ErrConflict)
}

// perShard returns the number of pairs that a shard holds when it splits.
func (l *layout) perShard() int { return max(1, l.slots*l.buckets*l.maxLoad/100) }

// reserve grows the table for a transaction whose puts are half of what the table can hold, or
// more. The puts themselves cannot cause splits, because no shard is split while a transaction
// is applied. reserve looks at every 64th put only, and does nothing while another caller grows the table.
func (tb *Table) reserve(o *opened, puts int) {
	if puts%64 != 0 || o.dir.size()*o.perShard() > 2*puts {
		return
	}
	if o.growth.reserving.TryLock() {
		defer o.growth.reserving.Unlock()
		// An error is ignored: the table works without growing.
		_ = tb.grow(context.Background(), o, 2*puts)
	}
}

// Reserve splits shards until the table has room for the given number of pairs. It makes loading
// faster where the number of pairs is known.
func (tb *Table) Reserve(ctx context.Context, pairs int) error {
	o, err := tb.open()
	if err != nil {
		return err
	}
	tb.m.Clock().Lock(&o.growth.reserving)
	defer o.growth.reserving.Unlock()
	return tb.grow(ctx, o, pairs)
}

// grow splits shards until each prefix of depth bits has a shard of its own; so many shards have room for
// the given number of pairs.
func (tb *Table) grow(ctx context.Context, o *opened, pairs int) error {
	depth := bits.Len(uint(max(0, (pairs-1)/o.perShard())))
	if depth > depthMax/2 {
		return fmt.Errorf("%w: room for %d pairs in shards of %d", ErrFull, pairs, o.perShard())
	}
	for i := range uint64(1) << depth {
		// In the order of reversed prefixes a shard comes before its children, so that it is split first.
		if err := tb.deepen(ctx, o, bits.Reverse64(i), depth); err != nil {
			return err
		}
	}
	return nil
}

// deepen splits the shard that begins at prefix until its prefix has depth bits.
func (tb *Table) deepen(ctx context.Context, o *opened, prefix uint64, depth int) error {
	for {
		s := o.dir.find(prefix)
		h, err := tb.refresh(o, s)
		if err != nil {
			return err
		}
		if next := o.dir.find(prefix); next != s { // refresh has found a shard nearer to prefix
			continue
		}
		if h.depth >= depth || s.prefix != prefix { // a shard is split only for its own prefix
			return nil
		}
		if err := tb.force(ctx, o, s); err != nil && !errors.Is(err, outcome.ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// force does the next step of the split of s, however full s is. If a step of s is in progress
// already, force waits for a moment instead.
func (tb *Table) force(ctx context.Context, o *opened, s *shard) error {
	if !o.growth.beginOf(s) {
		tb.m.Clock().Sleep(stepPoll)
		return nil
	}
	defer o.growth.end(s, false)
	_, err := tb.step(ctx, o, s, true)
	return err
}

// step does the next step of a shard's growth and reports whether more steps are left. A whole
// shard begins to split if it is full, or if force is set.
func (tb *Table) step(ctx context.Context, o *opened, s *shard, force bool) (again bool, err error) {
	h, err := tb.refresh(o, s)
	if err != nil {
		return false, err
	}
	switch h.state {
	case splitting:
		return true, tb.move(ctx, o, s)
	case filling:
		// The shard can split once its parent's split is complete. The first overflow after that
		// queues it again.
		s.overflows.Store(overflowsAgain)
		o.growth.want(o.parent(s))
		return force, nil // with force, the caller tries again until then
	case destroying:
		return false, ErrDestroyed
	}
	if !force {
		full, err := tb.full(o, s)
		if err != nil || !full || h.depth >= tb.depthLimit(o) {
			return false, err
		}
	} else if h.depth >= depthMax {
		return false, ErrFull
	}
	return true, tb.startSplit(ctx, o, s, h.depth)
}

// parent returns the shard that s was split from.
func (o *opened) parent(s *shard) *shard {
	return o.dir.find(s.prefix &^ (1 << (64 - s.initialDepth)))
}

// depthLimit bounds the depth of shards, so that a shard does not split for ever if an attacker
// has chosen keys with the same hash: to 8 more than if all shards had the same depth.
func (tb *Table) depthLimit(o *opened) int { return min(depthMax, bits.Len(uint(o.dir.size()))+8) }

// full counts the taken slots of a shard, and reports whether they exceed the load at which
// it splits.
func (tb *Table) full(o *opened, s *shard) (bool, error) {
	buf := o.buffers.Get().(*buffer)
	defer o.buffers.Put(buf)
	n, taken := s.first.Capacity(), 0
	for i := 0; i < o.buckets; i += 2 {
		if _, _, err := tb.m.ReadPair(s.first.Element(i), buf.pair); err != nil {
			return false, asDestroyed(err)
		}
		taken += o.bucket(buf.pair[:n]).usedSlots() + o.bucket(buf.pair[n:]).usedSlots()
	}
	return taken*100 >= o.buckets*o.slots*o.maxLoad, nil
}

// startSplit starts the split of s. The machine at which the table places the child creates the
// child.
func (tb *Table) startSplit(ctx context.Context, o *opened, s *shard, depth int) error {
	hint := o.place(s, depth)
	if tb.m.IsPrimary(hint) {
		return beginSplit(ctx, tb.m, o.anchor, s.header, depth, hint)
	}
	arg := appendSplit(nil, tb.anchor, s.header, depth, hint)
	_, err := tb.m.Ship(ctx, hint, handlerSplit, arg)
	var shipped *outcome.ShippedError
	if errors.As(err, &shipped) && !errors.Is(err, outcome.ErrConflict) {
		// The other machine refuses: create the child here instead.
		return beginSplit(ctx, tb.m, o.anchor, s.header, depth, s.first.Addr)
	}
	return err
}

// place returns the address near which the child of s at depth is created. Shards take the
// table's places in turn, in the order of their reversed prefixes: in this order the shards that
// the next doubling creates come after all present ones.
func (o *opened) place(s *shard, depth int) region.Addr {
	if len(o.places) == 0 {
		return s.first.Addr
	}
	ordinal := bits.Reverse64(s.prefix | 1<<(63-depth))
	return o.places[ordinal%uint64(len(o.places))]
}

// beginSplit runs the transaction that begins a split.
func beginSplit(ctx context.Context, m *txn.Machine, a *anchor, parent region.Ptr, depth int, hint region.Addr) error {
	t := m.Begin()
	defer t.Abort()
	b, err := t.Write(parent)
	if err != nil {
		return asDestroyed(err)
	}
	h, err := decodeHeader(b, &a.layout)
	if err != nil {
		return err
	}
	if h.state != whole || h.depth != depth {
		return nil // another machine has begun this split
	}
	child := header{initialDepth: depth + 1, depth: depth + 1, state: filling, prefix: h.childPrefix(depth)}
	if h.children[depth], err = createShard(t, a, hint, &child); err != nil {
		return err
	}
	h.state, h.cursor = splitting, 0
	h.encode(b)
	return t.Commit(ctx)
}

// move moves the next homes of a split in one transaction, fewer of them if they do not fit
// into a log.
func (tb *Table) move(ctx context.Context, o *opened, s *shard) error {
	for homes := splitHomes; ; homes /= 2 {
		err := tb.moveHomes(ctx, o, s, homes)
		if homes == 1 || !errors.Is(err, outcome.ErrTooLarge) {
			return asStale(err)
		}
	}
}

// moveHomes runs one transaction of a split: it moves keys from the next homes of s to its child, and
// completes the split with the last home. It does nothing if s is not splitting any more.
func (tb *Table) moveHomes(ctx context.Context, o *opened, s *shard, homes int) error {
	t := tb.m.Begin()
	defer t.Abort()
	b, err := t.Write(s.header)
	if err != nil {
		return asDestroyed(err)
	}
	h, err := decodeHeader(b, &o.layout)
	if err != nil || h.state != splitting {
		return err
	}
	to := min(h.cursor+homes, o.buckets)
	old, young := o.editor(t, s), o.editor(t, h.childShard(h.depth))
	for home := h.cursor; home < to; home++ {
		if err := divide(old, young, home, h.depth); err != nil {
			return err
		}
	}
	if err := errors.Join(old.seal(), young.seal()); err != nil {
		return err
	}
	h.cursor = to
	if to == o.buckets {
		if err := complete(t, o, h); err != nil {
			return err
		}
	}
	h.encode(b)
	if err := t.Commit(ctx); err != nil {
		return err
	}
	o.learn(s, h)
	if h.state == whole {
		tb.stats.splits.Add(1)
	}
	return nil
}

// divide moves the pairs of one home whose hash has bit depth set.
func divide(old, young *editor, home, depth int) error {
	pairs, err := old.take(home, func(h uint64) bool { return bitOf(h, depth) == 1 })
	if err != nil {
		return err
	}
	for _, s := range pairs {
		if err := young.add(home, s); err != nil {
			return err
		}
	}
	for _, e := range []*editor{old, young} {
		p, err := e.editBucket(home)
		if err != nil {
			return err
		}
		p.setDepth(depth + 1)
	}
	return nil
}

// complete ends a split: h is the header of the old shard.
func complete(t *txn.Tx, o *opened, h *header) error {
	b, err := t.Write(h.children[h.depth].header)
	if err != nil {
		return err
	}
	child, err := decodeHeader(b, &o.layout)
	if err != nil {
		return err
	}
	child.state = whole
	child.encode(b)
	h.state, h.cursor = whole, 0
	h.depth++
	return nil
}
