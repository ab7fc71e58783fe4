package hash

import (
	"slices"

	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/txn/worker"
)

// LookupMany looks up many keys, each as Lookup does, and calls visit for each
// with its index, in any order. Each answer is right for some moment during the
// call, but not all for the same moment. The value is valid until visit returns.
//
// Lookups overlap their waiting: for cache misses where this machine is the primary, and
// for READs where another one is. So LookupMany takes a fraction of the time of as many
// calls of Lookup (Storm section 5: requests are pipelined), and a smaller fraction for more
// keys. On networks where READs cost more than that, one message to each primary asks for all of
// its keys (Options.Lookups). If it fails, visit has been called for some of the keys.
func (tb *Table) LookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	o, err := tb.open()
	if err != nil {
		return err
	}
	l := o.pipelines.Get().(*pipeline)
	l.serve(tb, o, visit)
	for len(keys) > 0 && err == nil {
		n := min(keysOfOperation, len(keys))
		err = l.run(keys[:n])
		keys = keys[n:]
	}
	l.visit = nil
	o.pipelines.Put(l)
	return err
}

const (
	// groupKeys is the largest number of lookups in a group. The lines that all of them need
	// for the next step are prefetched together (prefetch.Batch).
	groupKeys = 8
	// groups is the number of groups under way, each at another step.
	groups = 4
	// keysOfOperation is the largest number of keys that are looked up in one operation:
	// freed memory that they could reach is not reused before the operation ends.
	keysOfOperation = 512
	// readsAtOnce is the largest number of READs of other machines that wait together.
	readsAtOnce = 32
)

// A pipeline looks up the keys of LookupMany in groups. Each step of a group prefetches the
// lines that the group's next step reads; in between the other groups take their steps. So no
// step waits, if memory answers within the time of the other groups' steps. A key that a pipeline
// cannot answer is looked up by Lookup.
type pipeline struct {
	tb    *Table
	o     *opened
	op    worker.Operation
	visit func(i int, value []byte, ok bool)
	next  int // the index of the next key
	looks int // objects looked at in this operation

	groups [groups]group
	turns  uint // the number of groups that have entered
	batch  prefetch.Batch
	// pages hold copies of the lines that may contain a group's keys. The values passed to
	// visit are in these copies.
	pages [groupKeys][]byte
	// far are the keys of other machines, if they may be looked up by messages.
	far []elsewhere
	// reads[i] reads the buckets of elsewhere[i] from the primary.
	elsewhere []elsewhere
	reads     []worker.PairRead
}

// A group is up to groupKeys lookups that take their steps together.
type group struct {
	keys    [][]byte
	first   int // the index of keys[0]
	lookups [groupKeys]pendingLookup
}

// pending returns the lookups of the group's keys.
func (g *group) pending() []pendingLookup { return g.lookups[:len(g.keys)] }

// A pendingLookup is a lookup under way.
type pendingLookup struct {
	sight
	entrance *entrance
	outlook  outlook
}

// An outlook says where a key can be, by the control words of its buckets.
type outlook uint8

const (
	unclear     outlook = iota
	likely              // a slot has the tag of its hash
	chainedOnly         // the key is in the chain of its home, or not in the table
	absent
)

// elsewhere is a lookup of a key whose buckets are read from another machine.
type elsewhere struct {
	i    int
	key  []byte
	h    uint64
	s    *shard
	pair []byte // two buckets
}

func newPipeline(o *opened) *pipeline {
	l := &pipeline{}
	n := 0
	for _, e := range o.extents {
		n = max(n, e.lines.Len())
	}
	memory := make([]byte, groupKeys*n)
	for i := range l.pages {
		l.pages[i] = memory[i*n:][:n:n]
	}
	return l
}

// serve prepares l for keys of tb.
func (l *pipeline) serve(tb *Table, o *opened, visit func(i int, value []byte, ok bool)) {
	l.tb, l.o, l.next, l.visit = tb, o, 0, visit
}

// run looks keys up in one operation.
func (l *pipeline) run(keys [][]byte) error {
	l.begin()
	defer l.end()
	size := groupKeys
	if len(keys) <= groupKeys {
		size /= 2 // two groups of half the size: one takes steps while the other waits
	}
	for len(keys) > 0 {
		n := min(size, len(keys))
		if err := l.turn(keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return l.drain()
}

// begin begins an operation, with no lookup under way.
func (l *pipeline) begin() {
	l.op = l.tb.m.Start()
	l.looks = 0
	l.elsewhere, l.reads = l.elsewhere[:0], l.reads[:0]
}

// end ends the operation and drops the caller's keys. Only here does it count the objects that were
// read: an atomic addition at each read would delay all loads after it.
func (l *pipeline) end() {
	for i := range l.groups {
		l.groups[i].keys = nil
	}
	clear(l.far)
	l.far = l.far[:0]
	l.op.CountReads(l.looks)
	l.op.End()
}

// turn starts keys, at most groupKeys, as the next group; the groups before it take their
// next steps.
func (l *pipeline) turn(keys [][]byte) error {
	g := l.group(0)
	g.keys, g.first = keys, l.next
	l.next += len(keys)
	// fetchBuckets requests the most lines, and most of them should have arrived before look
	// requests more: so enter is between the two.
	l.fetchBuckets(l.group(1))
	l.enter(g)
	l.look(l.group(2))
	err := l.answerGroup(l.group(3))
	l.turns++
	return err
}

// drain finishes all lookups under way.
func (l *pipeline) drain() error {
	for range groups - 1 {
		if err := l.turn(nil); err != nil {
			return err
		}
	}
	if err := l.askPrimaries(); err != nil {
		return err
	}
	return l.readElsewhere()
}

// group returns the group that entered the given number of turns ago.
func (l *pipeline) group(ago uint) *group { return &l.groups[(l.turns-ago)%groups] }

// enter hashes the keys of a group and prefetches their entries of the directory.
func (l *pipeline) enter(g *group) {
	o, routes := l.o, l.o.dir.table.Load()
	lookups := g.pending()
	for i, key := range g.keys {
		f := &lookups[i]
		f.h = sum(o.seed, key)
		f.entrance = routes.entrance(f.h)
		prefetch.Of(&l.batch, f.entrance)
	}
	l.batch.Fetch()
}

// fetchBuckets prefetches the first lines of the home buckets and of the buckets after them. A
// third of all keys are in the second bucket: fetching it only for these would cost a further
// wait, which is more expensive than fetching lines that are not needed.
func (l *pipeline) fetchBuckets(g *group) {
	o, lookups := l.o, g.pending()
	for i := range lookups {
		f := &lookups[i]
		prefix, first := f.entrance.way(f.h, o.class)
		f.prefix = prefix
		l.op.Aim(&f.buckets, first.Element(bucketOf(f.h, o.buckets)))
		f.buckets.Gather(&l.batch)
	}
	l.batch.Fetch()
}

// look reads the control words in both first lines, and prefetches the lines of the first
// slot that may have the key, or the first block of the chain.
func (l *pipeline) look(g *group) {
	o, lookups := l.o, g.pending()
	for i := range lookups {
		f := &lookups[i]
		f.outlook = unclear
		switch {
		case o.slots > glanceSlots || !f.buckets.Look() || !o.narrow(&f.sight):
			continue
		case f.slots == 0:
			l.followUp(f)
		default:
			f.outlook = likely
			v, i := f.candidate()
			v.Gather(&l.batch, o.extents[i].lines)
		}
		l.looks += len(f.buckets.Views)
	}
	l.batch.Fetch()
}

// followUp decides where to look next if neither bucket has the key. If the two buckets were read at
// different moments, the outlook stays unclear.
func (l *pipeline) followUp(f *pendingLookup) {
	isChained := f.buckets.Views[0].Word(linkWord) != 0
	switch {
	case !areJoint(f.buckets.Views[0], f.buckets.Views[1]): // unclear
	case isChained:
		block, _ := chainOf(f.buckets.Views[0])
		l.op.Gather(&l.batch, block)
		f.outlook = chainedOnly
	default:
		f.outlook = absent
	}
}

// answerGroup answers the keys of a group. It first loads the lines, then confirms that this machine
// is a member, and then checks that no bucket has changed: so the lines were loaded while the machine
// was a member.
func (l *pipeline) answerGroup(g *group) error {
	o, lookups := l.o, g.pending()
	for k := range lookups { // load all first: reading a page that is still in the store buffer would stall
		if f := &lookups[k]; f.outlook == likely {
			v, i := f.candidate()
			v.LoadLines(l.pages[k], o.extents[i].lines)
		}
	}
	if err := l.tb.m.Confirm(); err != nil {
		return err
	}
	for k := range lookups {
		if f := &lookups[k]; f.outlook == likely {
			v, i := f.candidate()
			s, data := slotIn(*v, i), l.pages[k][o.extents[i].place:]
			ofKey, ofValue := s.lengths()
			if !s.outside() && ofKey+ofValue <= o.dataBytes && equalKeys(data[:ofKey], g.keys[k]) && f.buckets.Valid() {
				l.visit(g.first+k, data[ofKey:][:ofValue], true)
				continue
			}
		}
		if err := l.settle(g, k); err != nil {
			return err
		}
	}
	return nil
}

// settle answers the k-th key of a group, for which answerGroup found no answer in the first slot
// that may have the key. It confirms membership again, because it reads further memory.
func (l *pipeline) settle(g *group, k int) error {
	i, f, key, page := g.first+k, &g.lookups[k], g.keys[k], l.pages[k]
	var value []byte
	at := undecided
	switch f.outlook {
	case absent:
		l.visit(i, nil, false)
		return nil
	case likely:
		value, at = l.o.seek(&f.sight, key, page)
	case chainedOnly:
		at = chained
	}
	if at == chained {
		value, at = l.o.seekChain(l.op, f.buckets.Views[0], f.h, key, page)
	}
	if at == undecided {
		return l.ask(i, f.h, key, page)
	}
	err := l.tb.m.Confirm()
	if err == nil {
		l.answer(i, value, at.isFound())
	}
	return err
}

// ask looks up a key with hash h that the pipeline could not decide: here, by a READ of
// its primary's buckets, or with the other keys of its primary by a message.
func (l *pipeline) ask(i int, h uint64, key, page []byte) error {
	e := elsewhere{i: i, key: key, h: h, s: l.o.dir.find(h)}
	if l.tb.m.IsPrimary(e.s.first.Addr) {
		return l.lookup(i, key, page)
	}
	if l.tb.asksFrom < keysOfOperation {
		l.far = append(l.far, e)
		return nil
	}
	return l.read(e)
}

// read looks a key up by a READ of its primary's buckets, together with others.
func (l *pipeline) read(e elsewhere) error {
	l.post(e)
	if len(l.reads) == readsAtOnce {
		return l.readElsewhere()
	}
	return nil
}

func (l *pipeline) readAll(keys []elsewhere) error {
	for _, e := range keys {
		if err := l.read(e); err != nil {
			return err
		}
	}
	return nil
}

// lookup looks a key up by itself, into buf if that is large enough.
func (l *pipeline) lookup(i int, key, buf []byte) error {
	value, ok, err := l.tb.Lookup(key, buf[:0])
	if err == nil {
		l.answer(i, value, ok)
	}
	return err
}

func (l *pipeline) answer(i int, value []byte, ok bool) {
	if !ok {
		value = nil
	}
	l.visit(i, value, ok)
}

// post adds the buckets of a key to the buckets to be read from other machines.
func (l *pipeline) post(e elsewhere) {
	n := len(l.elsewhere)
	if n == cap(l.elsewhere) {
		l.elsewhere = slices.Grow(l.elsewhere, readsAtOnce)
	}
	l.elsewhere = l.elsewhere[:n+1]
	e.pair = l.elsewhere[n].pair
	if e.pair == nil {
		e.pair = make([]byte, 2*l.o.class.Capacity())
	}
	l.elsewhere[n] = e
	l.reads = append(l.reads, worker.PairRead{P: e.s.first.Element(bucketOf(e.h, l.o.buckets)), Dst: e.pair})
}

// readElsewhere reads the posted buckets of other machines, all at once, and answers their
// keys.
func (l *pipeline) readElsewhere() error {
	if len(l.reads) == 0 {
		return nil
	}
	l.op.ReadPairs(l.reads)
	buf := l.o.buffers.Get().(*buffer)
	defer l.o.buffers.Put(buf)
	for k := range l.elsewhere {
		e := &l.elsewhere[k]
		if err := l.answerElsewhere(e, l.reads[k].Err, buf); err != nil {
			return err
		}
		e.key = nil
	}
	l.elsewhere, l.reads = l.elsewhere[:0], l.reads[:0]
	return nil
}

// answerElsewhere answers e's key from its buckets. failed is the error of reading them, or
// nil.
func (l *pipeline) answerElsewhere(e *elsewhere, failed error, buf *buffer) error {
	if failed == nil {
		value, ok, err := l.tb.inPair(l.op, l.o, buf, e.pair, e.s, e.h, e.key, buf.value)
		switch {
		case err == nil:
			l.answer(e.i, value, ok)
			return nil
		case !overtaken(err):
			return err
		}
	}
	return l.lookup(e.i, e.key, buf.value)
}
