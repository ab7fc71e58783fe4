package hash

import (
	"math/bits"
	"slices"

	"github.com/farmsql/farmsql/region"
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
	l.tb, l.o, l.visit = tb, o, visit
	for first := 0; first < len(keys) && err == nil; first += keysOfOperation {
		l.first, l.keys = first, keys[first:min(first+keysOfOperation, len(keys))]
		err = l.run()
	}
	l.visit, l.keys = nil, nil
	o.pipelines.Put(l)
	return err
}

const (
	// groupKeys is how many lookups take a step one after the other.
	groupKeys = 4
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
	keys  [][]byte
	first int // the index of keys[0]
	visit func(i int, value []byte, ok bool)

	groups [groups]group
	// reads are of what other machines are the primaries of, for elsewhere.
	elsewhere []elsewhere
	reads     []txn.PairRead
}

// A group is lookups that take their steps together.
type group struct {
	flights [groupKeys]flight
	n       int
	looks   int // objects looked at
}

// A flight is a lookup under way.
type flight struct {
	key      []byte
	h        uint64
	entrance *entrance
	prefix   uint64
	first    region.Ptr // the home
	// Of the home and the bucket after it: where they are, how they look, and which
	// of their slots may have the key.
	aims    [2]region.Aim
	views   [2]region.View
	slots   [2]uint
	outcome outcome
	value   []byte
	// page is where lines that may have the key are copied to; value is in it.
	page []byte
}

// An outcome is what has become of a lookup.
type outcome uint8

const (
	unclear outcome = iota
	present         // value is the key's
	absent
	chainedOnly // the key is in the chain of its home, or nowhere
)

// elsewhere is a lookup that another machine is asked for.
type elsewhere struct {
	i    int
	key  []byte
	h    uint64
	s    *shard
	pair []byte // two buckets
}

func newPipeline(lay *layout) *pipeline {
	l := &pipeline{}
	n := max(lay.class.Capacity(), lay.blockBytes())
	pages := make([]byte, groups*groupKeys*n)
	for g := range l.groups {
		for i := range l.groups[g].flights {
			l.groups[g].flights[i].page, pages = pages[:n:n], pages[n:]
		}
	}
	return l
}

// run looks the pipeline's keys up in one operation.
func (l *pipeline) run() error {
	l.op = l.tb.m.Start()
	defer l.op.End()
	l.elsewhere, l.reads = l.elsewhere[:0], l.reads[:0]
	n := (len(l.keys) + groupKeys - 1) / groupKeys
	for g := range n + groups - 1 {
		if g < n {
			l.enter(g)
		}
		if at := g - 1; at >= 0 && at < n {
			l.depart(l.group(at))
		}
		if at := g - 2; at >= 0 && at < n {
			l.look(l.group(at))
		}
		if at := g - 3; at >= 0 {
			if err := l.land(at); err != nil {
				return err
			}
		}
	}
	return l.readElsewhere()
}

func (l *pipeline) group(i int) *group { return &l.groups[i%groups] }

// enter makes group i of the next keys, and has the ways to their shards fetched.
func (l *pipeline) enter(i int) {
	o, g, routes := l.o, l.group(i), l.o.dir.table.Load()
	keys := l.keys[i*groupKeys : min((i+1)*groupKeys, len(l.keys))]
	g.n = len(keys)
	flights := g.flights[:len(keys)]
	for i := range flights {
		f := &flights[i]
		f.key, f.h = keys[i], sum(o.seed, keys[i])
		f.entrance = routes.entrance(f.h)
		f.entrance.fetch()
	}
}

// depart has the first lines of the homes fetched, and of the buckets after them:
// a third of all keys is there, and to wait for each of those once more would cost
// more than lines that are not needed.
func (l *pipeline) depart(g *group) {
	o, flights := l.o, g.flights[:g.n]
	for i := range flights {
		f := &flights[i]
		prefix, first := f.entrance.way(f.h, o.class)
		f.prefix, f.first = prefix, first.Element(bucketOf(f.h, o.buckets))
		f.aims[0], f.aims[1] = l.op.FetchPair(f.first)
	}
}

// look looks at both first lines, and has the lines fetched of the first slot that
// may have the key, or the first block of the chain.
func (l *pipeline) look(g *group) {
	o, flights := l.o, g.flights[:g.n]
	g.looks = 0
	for i := range flights {
		f := &flights[i]
		f.outcome = unclear
		if o.slots > glanceSlots || !o.lookPair(f) {
			f.slots = [2]uint{}
			continue
		}
		g.looks += len(f.views)
		if f.slots[0]|f.slots[1] == 0 {
			l.leadOn(f)
			continue
		}
		k := f.nearest()
		at := o.dataOffset(bits.TrailingZeros(f.slots[k]))
		f.views[k].Touch(at, at+o.dataBytes)
	}
}

// lookPair looks at the two buckets, if they can be looked at and the first is the home.
func (o *opened) lookPair(f *flight) bool {
	home, err := f.aims[0].Look()
	next, errNext := f.aims[1].Look()
	if err != nil || errNext != nil || !livesIn(home, f.prefix, f.h) {
		return false
	}
	f.views[0], f.views[1] = home, next
	f.slots[0], f.slots[1] = o.wanting(home, wanted(f.h, false)), o.wanting(next, wanted(f.h, true))
	return true
}

// nearest returns which bucket is the first with slots that may have the key. It has no
// branch, which a processor could not foresee.
func (f *flight) nearest() int { return int(uint64(f.slots[0]-1) >> 63) }

// leadOn is what follows if neither bucket has the key.
func (l *pipeline) leadOn(f *flight) {
	isChained := f.views[0].Word(linkWord) != 0
	switch {
	case !areJoint(f.views[0], f.views[1]):
	case isChained:
		block, _ := chainOf(f.views[0])
		l.op.FetchAll(block)
		f.outcome = chainedOnly
	default:
		f.outcome = absent
	}
}

// take copies the value of f's key from a bucket, unless the key is in neither, or
// not inline.
func (o *opened) take(f *flight) {
	for k := f.nearest(); k < len(f.slots); k++ {
		v := &f.views[k]
		for found := f.slots[k]; found != 0; found &= found - 1 {
			i := bits.TrailingZeros(found)
			s := slot{control: uint32(v.Word(controlWord+i/2) >> (i % 2 * 32))}
			key, value := s.lengths()
			if s.outside() || key+value > o.dataBytes {
				return
			}
			at := o.dataOffset(i)
			v.Load(f.page, at, at+key+value)
			if string(f.page[at:at+key]) != string(f.key) {
				continue
			}
			if f.views[0].Valid() && v.Valid() {
				f.value, f.outcome = f.page[at+key:at+key+value], present
			}
			return
		}
	}
}

// takeChained copies the value of f's key from its home's chain.
func (l *pipeline) takeChained(f *flight) {
	value, at := l.o.seekChain(l.op, f.views[0], f.h, f.key, f.page)
	switch {
	case at.isFound():
		f.value, f.outcome = value, present
	case at == nowhere:
		f.outcome = absent
	default:
		f.outcome = unclear
	}
}

// land takes the values of group i and answers its keys.
func (l *pipeline) land(i int) error {
	g := l.group(i)
	first, flights := l.first+i*groupKeys, g.flights[:g.n]
	for i := range flights {
		f := &flights[i]
		switch f.outcome {
		case unclear:
			l.o.take(f)
		case chainedOnly:
			l.takeChained(f)
		}
	}
	l.op.CountReads(g.looks)
	if err := l.tb.m.Confirm(); err != nil {
		return err
	}
	for i := range flights {
		f := &flights[i]
		switch f.outcome {
		case present:
			l.visit(first+i, f.value, true)
		case absent:
			l.visit(first+i, nil, false)
		default:
			if err := l.ask(first+i, f); err != nil {
				return err
			}
		}
		f.key = nil
	}
	return nil
}

// ask has a key looked up that the pipeline could not.
func (l *pipeline) ask(i int, f *flight) error {
	if !l.tb.m.IsPrimary(f.first.Addr) {
		l.post(i, f)
		if len(l.reads) == readsAtOnce {
			return l.readElsewhere()
		}
		return nil
	}
	return l.lookup(i, f.key, f.page)
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
func (l *pipeline) post(i int, f *flight) {
	n := len(l.elsewhere)
	if n == cap(l.elsewhere) {
		l.elsewhere = slices.Grow(l.elsewhere, readsAtOnce)
	}
	l.elsewhere = l.elsewhere[:n+1]
	e := &l.elsewhere[n]
	if e.pair == nil {
		e.pair = make([]byte, 2*l.o.class.Capacity())
	}
	e.i, e.key, e.h, e.s = i, f.key, f.h, l.o.dir.find(f.h)
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
