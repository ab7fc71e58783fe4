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
	// groupKeys, a power of two, is how many lookups take a step one after the other.
	groupKeys = 4
	// groups is how many are under way, each at another step.
	groups = 5
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

// A group is lookups that take their steps together. Which of them take a step is
// in lists, since a processor cannot foresee it of each by itself.
type group struct {
	flights [groupKeys]flight
	n       int
	// found are those of which a slot of the bucket that was looked at last may have
	// the key, others those of which none of the home has, chained those whose key is
	// in the home's chain or nowhere.
	found, others, chained list
	looks                  int
}

// A list is of flights of a group, by index.
type list struct {
	n  int
	at [groupKeys]uint8
}

// put appends i if yes is 1, and does nothing if it is 0.
func (l *list) put(i, yes int) {
	l.at[l.n%groupKeys] = uint8(i)
	l.n += yes
}

func (l *list) all() []uint8 { return l.at[:l.n] }

// of returns the flight with index i.
func (g *group) of(i uint8) *flight { return &g.flights[i%groupKeys] }

// A flight is a lookup under way.
type flight struct {
	key      []byte
	h        uint64
	entrance *entrance
	prefix   uint64
	first    region.Ptr // the home
	aim      region.Aim
	home     region.View
	bucket   region.View // that was looked at last
	slots    uint        // of bucket that may have the key
	outcome  outcome
	value    []byte
	// page is where lines that may have the key are copied to; value is in it.
	page []byte
}

// An outcome is what has become of a lookup.
type outcome uint8

const (
	unclear outcome = iota
	present         // value is the key's
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
			l.lookHome(l.group(at))
		}
		if at := g - 3; at >= 0 && at < n {
			l.lookNext(l.group(at))
		}
		if at := g - 4; at >= 0 {
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
	for i, key := range keys {
		f := &g.flights[i%groupKeys]
		f.key, f.h = key, sum(o.seed, key)
		f.entrance = routes.entrance(f.h)
		f.entrance.fetch()
	}
}

// depart has the first lines of the homes fetched.
func (l *pipeline) depart(g *group) {
	o, flights := l.o, g.flights[:g.n]
	for i := range flights {
		f := &flights[i]
		prefix, first := f.entrance.way(f.h, o.class)
		f.prefix, f.first = prefix, first.Element(bucketOf(f.h, o.buckets))
		f.aim, f.outcome = l.op.Fetch(f.first), unclear
	}
}

// lookHome looks at the first lines of the homes, and has the slots fetched that
// may have the keys, or the first lines of the buckets after the homes.
func (l *pipeline) lookHome(g *group) {
	g.found.n, g.others.n, g.chained.n = 0, 0, 0
	if l.o.slots <= glanceSlots {
		l.sort(g)
	}
	g.looks = g.found.n + g.others.n
	for _, i := range g.found.all() {
		l.o.touch(g.of(i))
	}
	for _, i := range g.others.all() {
		f := g.of(i)
		f.aim = l.op.Fetch(f.first.Element(1))
	}
}

// sort lists the flights by what their homes say.
func (l *pipeline) sort(g *group) {
	o, flights := l.o, g.flights[:g.n]
	for i := range flights {
		f := &flights[i]
		home, err := f.aim.Look()
		if err != nil || !livesIn(home, f.prefix, f.h) {
			continue
		}
		f.slots = o.wanting(home, wanted(f.h, false))
		f.home, f.bucket = home, home
		none := int(uint64(f.slots-1) >> 63)
		g.found.put(i, 1-none)
		g.others.put(i, none)
	}
}

// touch has the lines of the first slot fetched that may have the key.
func (o *opened) touch(f *flight) {
	at := o.dataOffset(bits.TrailingZeros(f.slots))
	f.bucket.Touch(at, at+o.dataBytes)
}

// lookNext takes the values out of the homes that may have them, and looks at the
// buckets after the others, of which it has the slots fetched, or the blocks of the
// homes' chains.
func (l *pipeline) lookNext(g *group) {
	for _, i := range g.found.all() {
		l.o.take(g.of(i))
	}
	g.found.n = 0
	for _, i := range g.others.all() {
		f := g.of(i)
		next, err := f.aim.Look()
		if err != nil || !f.home.Valid() {
			continue
		}
		g.looks++
		f.bucket, f.slots = next, l.o.wanting(next, wanted(f.h, true))
		isChained := f.home.Word(linkWord) != 0
		switch {
		case f.slots != 0:
			l.o.touch(f)
			g.found.put(int(i), 1)
		case !areJoint(f.home, next):
		case !isChained:
			f.outcome = absent
		default:
			block, _ := chainOf(f.home)
			l.op.FetchAll(block)
			g.chained.put(int(i), 1)
		}
	}
}

// take copies the value of f's key from the bucket that it has looked at, unless
// the key is not there, or is not inline.
func (o *opened) take(f *flight) {
	for ; f.slots != 0; f.slots &= f.slots - 1 {
		i := bits.TrailingZeros(f.slots)
		s := slot{control: uint32(f.bucket.Word(controlWord+i/2) >> (i % 2 * 32))}
		k, n := s.lengths()
		if s.outside() || k+n > o.dataBytes {
			return
		}
		at := o.dataOffset(i)
		f.bucket.Load(f.page, at, at+k+n)
		if string(f.page[at:at+k]) != string(f.key) {
			continue
		}
		if f.bucket.Valid() {
			f.value, f.outcome = f.page[at+k:at+k+n], present
		}
		return
	}
}

// land answers the keys of group i.
func (l *pipeline) land(i int) error {
	g := l.group(i)
	for _, i := range g.found.all() {
		l.o.take(g.of(i))
	}
	for _, i := range g.chained.all() {
		l.takeChained(g.of(i))
	}
	l.op.CountReads(g.looks)
	if err := l.tb.m.Confirm(); err != nil {
		return err
	}
	first, flights := l.first+i*groupKeys, g.flights[:g.n]
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

// takeChained copies the value of f's key from its home's chain.
func (l *pipeline) takeChained(f *flight) {
	value, at := l.o.seekChain(l.op, f.home, f.h, f.key, f.page)
	switch {
	case at.isFound():
		f.value, f.outcome = value, present
	case at == nowhere:
		f.outcome = absent
	}
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
