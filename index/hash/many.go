package hash

import (
	"slices"

	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/txn"
)

// LookupMany looks up many keys, each as Lookup does, and calls visit for each
// with its index, in any order. They are not looked up at one point in time: each
// answer is right for some moment of the call. The value is valid until visit
// returns.
//
// What lookups wait for they wait for together, cache misses where this machine
// is the primary and READs where another one is, so that it takes a fraction of
// the time of as many calls of Lookup (Storm section 5: requests are pipelined);
// the more keys, the smaller a fraction. If it fails visit has been called for some
// keys.
func (tb *Table) LookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	o, err := tb.open()
	if err != nil {
		return err
	}
	l := o.pipelines.Get().(*pipeline)
	l.serve(tb, o, 0, visit)
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
	// groupKeys is at most how many lookups take a step one after the other. What all of
	// them need for the next step is asked for together (prefetch.Batch).
	groupKeys = 8
	// groups is how many are under way, each at another step.
	groups = 4
	// keysOfOperation is how many keys are looked up in one operation: memory that
	// they could reach is not given to others before it ends.
	keysOfOperation = 512
	// readsAtOnce is how many READs of other machines wait together.
	readsAtOnce = 32
)

// A pipeline is what LookupMany looks keys up with, in groups. Each step of a
// group has the processor fetch what its next step looks at, and between the two
// the other groups take theirs, so that nobody waits while memory is as fast as
// the steps of all of them. What a pipeline cannot decide Lookup does.
type pipeline struct {
	tb    *Table
	o     *opened
	op    txn.Operation
	visit func(i int, value []byte, ok bool)
	next  int // the index of the next key
	looks int // objects looked at in this operation

	groups [groups]group
	turns  uint // how many groups have entered
	batch  prefetch.Batch
	// pages are where a group's lines that may have its keys are copied to; its values
	// are in them.
	pages [groupKeys][]byte
	// reads are of what other machines are the primaries of, for elsewhere.
	elsewhere []elsewhere
	reads     []txn.PairRead
}

// A group is lookups of up to groupKeys keys that take their steps together.
type group struct {
	keys    [][]byte
	first   int // the index of keys[0]
	flights [groupKeys]flight
}

// underWay returns the flights of the group's keys.
func (g *group) underWay() []flight { return g.flights[:len(g.keys)] }

// A flight is a lookup under way.
type flight struct {
	sight
	entrance *entrance
	outlook  outlook
}

// An outlook is what control words say about a key.
type outlook uint8

const (
	unclear     outlook = iota
	likely              // a slot may have it
	chainedOnly         // it is in the chain of its home, or nowhere
	absent
)

// elsewhere is a lookup that another machine is asked for.
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

// serve makes keys of tb what comes next, the first of which has the index first.
func (l *pipeline) serve(tb *Table, o *opened, first int, visit func(i int, value []byte, ok bool)) {
	l.tb, l.o, l.next, l.visit = tb, o, first, visit
}

// run looks keys up in one operation.
func (l *pipeline) run(keys [][]byte) error {
	l.begin()
	defer l.end()
	size := groupKeys
	if len(keys) <= groupKeys {
		size /= 2 // so that one group takes steps while the other waits
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

// begin begins an operation, with nothing under way.
func (l *pipeline) begin() {
	l.op = l.tb.m.Start()
	l.looks = 0
	l.elsewhere, l.reads = l.elsewhere[:0], l.reads[:0]
}

// end ends the operation, and forgets the caller's keys. The objects looked at are counted
// at last: an atomic addition keeps all loads waiting that follow it.
func (l *pipeline) end() {
	for i := range l.groups {
		l.groups[i].keys = nil
	}
	l.op.CountReads(l.looks)
	l.op.End()
}

// turn has keys, at most groupKeys, enter as the next group, while the groups before it
// take their next steps.
func (l *pipeline) turn(keys [][]byte) error {
	g := l.group(0)
	g.keys, g.first = keys, l.next
	l.next += len(keys)
	// What depart asks for is most, and should have come for the most part before look asks
	// for more: enter is between the two.
	l.depart(l.group(1))
	l.enter(g)
	l.look(l.group(2))
	err := l.land(l.group(3))
	l.turns++
	return err
}

// drain answers all that is under way.
func (l *pipeline) drain() error {
	for range groups - 1 {
		if err := l.turn(nil); err != nil {
			return err
		}
	}
	return l.readElsewhere()
}

// group returns the group that has entered so many turns ago.
func (l *pipeline) group(ago uint) *group { return &l.groups[(l.turns-ago)%groups] }

// enter has the ways fetched to the shards of a group's keys.
func (l *pipeline) enter(g *group) {
	o, routes := l.o, l.o.dir.table.Load()
	flights := g.underWay()
	for i, key := range g.keys {
		f := &flights[i]
		f.h = sum(o.seed, key)
		f.entrance = routes.entrance(f.h)
		prefetch.Of(&l.batch, f.entrance)
	}
	l.batch.Fetch()
}

// depart has the first lines of the homes fetched, and of the buckets after them:
// a third of all keys is there, and to wait for each of those once more would cost
// more than lines that are not needed.
func (l *pipeline) depart(g *group) {
	o, flights := l.o, g.underWay()
	for i := range flights {
		f := &flights[i]
		prefix, first := f.entrance.way(f.h, o.class)
		f.prefix = prefix
		l.op.Aim(&f.buckets, first.Element(bucketOf(f.h, o.buckets)))
		f.buckets.Gather(&l.batch)
	}
	l.batch.Fetch()
}

// look looks at both first lines, and has the lines fetched of the first slot that
// may have the key, or the first block of the chain.
func (l *pipeline) look(g *group) {
	o, flights := l.o, g.underWay()
	for i := range flights {
		f := &flights[i]
		f.outlook = unclear
		switch {
		case o.slots > glanceSlots || !f.buckets.Look() || !o.narrow(&f.sight):
			continue
		case f.slots == 0:
			l.leadOn(f)
		default:
			f.outlook = likely
			v, i := f.candidate()
			v.Gather(&l.batch, o.extents[i].lines)
		}
		l.looks += len(f.buckets.Views)
	}
	l.batch.Fetch()
}

// leadOn is what follows if neither bucket has the key.
func (l *pipeline) leadOn(f *flight) {
	isChained := f.buckets.Views[0].Word(linkWord) != 0
	switch {
	case !areJoint(f.buckets.Views[0], f.buckets.Views[1]):
	case isChained:
		block, _ := chainOf(f.buckets.Views[0])
		l.op.Gather(&l.batch, block)
		f.outlook = chainedOnly
	default:
		f.outlook = absent
	}
}

// land answers the keys of a group. What it has loaded was so when this machine was a
// member, for that is confirmed before no bucket is found to have changed.
func (l *pipeline) land(g *group) error {
	o, flights := l.o, g.underWay()
	for k := range flights { // all, so that nobody looks at what is in the store buffer still
		if f := &flights[k]; f.outlook == likely {
			v, i := f.candidate()
			v.LoadLines(l.pages[k], o.extents[i].lines)
		}
	}
	if err := l.tb.m.Confirm(); err != nil {
		return err
	}
	for k := range flights {
		if f := &flights[k]; f.outlook == likely {
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

// settle answers the k-th key of a group, if land cannot by the first slot that may have
// it. Membership is confirmed again, for this is looked at after others have been answered.
func (l *pipeline) settle(g *group, k int) error {
	i, f, key, page := g.first+k, &g.flights[k], g.keys[k], l.pages[k]
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

// ask has a key with hash h looked up that the pipeline could not.
func (l *pipeline) ask(i int, h uint64, key, page []byte) error {
	e := elsewhere{i: i, key: key, h: h, s: l.o.dir.find(h)}
	if l.tb.m.IsPrimary(e.s.first.Addr) {
		return l.lookup(i, key, page)
	}
	l.post(e)
	if len(l.reads) == readsAtOnce {
		return l.readElsewhere()
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

// post adds the buckets of a key to what is read from other machines.
func (l *pipeline) post(e elsewhere) {
	n := len(l.elsewhere)
	if n == cap(l.elsewhere) {
		l.elsewhere = slices.Grow(l.elsewhere, readsAtOnce)
	}
	l.elsewhere = l.elsewhere[:n+1]
	if e.pair = l.elsewhere[n].pair; e.pair == nil {
		e.pair = make([]byte, 2*l.o.class.Capacity())
	}
	l.elsewhere[n] = e
	l.reads = append(l.reads, txn.PairRead{P: e.s.first.Element(bucketOf(e.h, l.o.buckets)), Dst: e.pair})
}

// readElsewhere reads the buckets of which other machines are the primaries, all
// at once, and answers their keys.
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

// answerElsewhere answers e's key from its buckets. failed says that they were not
// read.
func (l *pipeline) answerElsewhere(e *elsewhere, failed error, buf *buffer) error {
	if failed == nil {
		value, ok, other, err := l.tb.inPair(l.op, l.o, buf, e.pair, e.s, e.h, e.key, buf.value)
		switch {
		case err == nil && other == nil:
			l.answer(e.i, value, ok)
			return nil
		case err != nil && !overtaken(err):
			return err
		}
	}
	return l.lookup(e.i, e.key, buf.value)
}
