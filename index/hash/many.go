package hash

import (
	"math/bits"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// lookupsAtOnce is how many lookups wait together. A processor has 10 to 20
// cache misses under way at most.
const lookupsAtOnce = 32

// LookupMany looks up many keys, each as Lookup does, and calls visit for each
// with its index. They are not looked up at one point in time: each answer is
// right for some moment of the call. The value is valid until visit returns.
//
// What lookups wait for they wait for together, cache misses where this machine
// is the primary and READs where another one is, so that it takes a fraction of
// the time of as many calls of Lookup (Storm section 5: requests are pipelined).
// If it fails visit has been called for some keys.
func (tb *Table) LookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	o, err := tb.open()
	if err != nil {
		return err
	}
	l := o.batches.Get().(*lookups)
	defer o.batches.Put(l)
	for first := 0; first < len(keys); first += lookupsAtOnce {
		n := min(lookupsAtOnce, len(keys)-first)
		if err := tb.lookups(o, l, keys[first:first+n]); err != nil {
			return err
		}
		for i := range n {
			one := &l.all[i]
			one.key = nil
			if one.ok {
				visit(first+i, one.value, true)
			} else {
				visit(first+i, nil, false)
			}
		}
	}
	return nil
}

// lookups are those that wait together.
type lookups struct {
	all [lookupsAtOnce]oneLookup
	// reads are what is read from other machines, whose answers are for which.
	reads []txn.PairRead
	which []int
}

type oneLookup struct {
	key        []byte
	h          uint64
	entrance   *entrance
	prefix     uint64
	first      region.Ptr
	aim        region.Aim // at home, then at next
	home, next region.View
	slots      uint // of home that may hold the key, or of next if none of home does
	view       view
	value      []byte // of the same memory every time, unless it is too long
	ok         bool
	decided    bool
	s          *shard // that was read elsewhere
	pair       []byte // two buckets, once a lookup has needed it
}

// A view says which of its two buckets a lookup looks at.
type view uint8

const (
	viewNone view = iota
	viewHome
	viewBoth
)

func newLookups(lay *layout) *lookups {
	l := &lookups{}
	values := make([]byte, lookupsAtOnce*lay.dataBytes)
	for i := range l.all {
		l.all[i].value = values[i*lay.dataBytes : i*lay.dataBytes : (i+1)*lay.dataBytes]
	}
	return l
}

// lookups answers the keys, of which there are no more than lookupsAtOnce.
func (tb *Table) lookups(o *opened, l *lookups, keys [][]byte) error {
	all := l.all[:len(keys)]
	op := tb.m.Start()
	defer op.End()
	// One loop for each step: the misses of one step are under way together, and
	// one at which the processor cannot look further ahead holds up no other step.
	for i := range all {
		one := &all[i]
		one.key, one.h, one.decided, one.ok, one.view = keys[i], sum(o.seed, keys[i]), false, false, viewNone
		one.entrance = o.dir.entrance(one.h)
	}
	for i := range all {
		one := &all[i]
		prefix, first := one.entrance.way(one.h, o.class)
		one.prefix, one.first = prefix, first.Element(bucketOf(one.h, o.buckets))
		one.aim = op.Fetch(one.first)
	}
	if o.slots <= glanceSlots {
		o.glances(op, all)
	}
	if err := tb.readElsewhere(op, o, l, all); err != nil {
		return err
	}
	if err := tb.m.Confirm(); err != nil {
		return err
	}
	for i := range all {
		one := &all[i]
		if one.decided {
			continue
		}
		value, ok, err := tb.Lookup(one.key, one.value[:0])
		if err != nil {
			return err
		}
		if one.ok = ok; ok {
			one.value = value
		}
	}
	return nil
}

// glances decides what can be at a glance. Most keys are in their home: the bucket
// after that is fetched only for those of which no slot of the home can be.
func (o *opened) glances(op txn.Operation, all []oneLookup) {
	for i := range all {
		o.lookHome(op, &all[i])
	}
	looks := len(all)
	for i := range all {
		if one := &all[i]; one.view == viewHome && one.slots == 0 {
			o.lookNext(one)
			looks++
		}
	}
	op.CountReads(looks)
	for i := range all {
		if one := &all[i]; one.view != viewNone {
			o.finish(op, one)
		}
	}
}

// lookHome has the lines fetched that may have the key, or the next bucket.
func (o *opened) lookHome(op txn.Operation, one *oneLookup) {
	home, err := one.aim.Look()
	if err != nil {
		return
	}
	one.home, one.slots, one.view = home, o.wanting(home, wanted(one.h, false)), viewHome
	if one.slots == 0 {
		one.aim = op.Fetch(one.first.Element(1))
		return
	}
	o.touchSlots(home, one.slots)
}

func (o *opened) lookNext(one *oneLookup) {
	next, err := one.aim.Look()
	if err != nil {
		one.view = viewNone
		return
	}
	one.next, one.slots, one.view = next, o.wanting(next, wanted(one.h, true)), viewBoth
	o.touchSlots(next, one.slots)
}

func (o *opened) finish(op txn.Operation, one *oneLookup) {
	slots := one.slots
	if one.view == viewBoth {
		slots = 0
	}
	value, at := o.seekHome(one.home, slots, one.prefix, one.h, one.key, one.value)
	if at == nowhere && one.view == viewHome { // what looked like the key is another
		one.aim = op.Fetch(one.first.Element(1))
		o.lookNext(one)
	}
	if at == nowhere {
		if one.view == viewNone {
			return
		}
		value, at = o.seekNext(one.home, one.next, one.slots, one.key, one.value)
	}
	if at == chained {
		value, at = o.seekChain(op, one.home, one.h, one.key, one.value)
	}
	one.decided, one.ok = at != undecided, at.isFound()
	if one.ok {
		one.value = value
	}
}

func (o *opened) touchSlots(v region.View, found uint) {
	for ; found != 0; found &= found - 1 {
		at := o.dataOffset(bits.TrailingZeros(found))
		v.Touch(at, at+o.dataBytes)
	}
}

// readElsewhere reads the buckets of which another machine is the primary, all
// at once, and decides what they tell.
func (tb *Table) readElsewhere(op txn.Operation, o *opened, l *lookups, all []oneLookup) error {
	l.reads, l.which = l.reads[:0], l.which[:0]
	for i := range all {
		one := &all[i]
		if one.decided || tb.m.IsPrimary(one.first.Addr) {
			continue
		}
		one.s = o.dir.find(one.h)
		one.first = one.s.first.Element(bucketOf(one.h, o.buckets))
		if one.pair == nil {
			one.pair = make([]byte, 2*o.class.Capacity())
		}
		l.reads = append(l.reads, txn.PairRead{P: one.first, Dst: one.pair})
		l.which = append(l.which, i)
	}
	if len(l.reads) == 0 {
		return nil
	}
	op.ReadPairs(l.reads)
	buf := o.buffers.Get().(*buffer)
	defer o.buffers.Put(buf)
	for k, i := range l.which {
		if l.reads[k].Err != nil {
			continue
		}
		one := &all[i]
		value, ok, other, err := tb.inPair(op, o, buf, one.pair, one.s, one.h, one.key, one.value)
		switch {
		case err != nil && !overtaken(err):
			return err
		case err != nil || other != nil:
			continue
		}
		if one.decided, one.ok = true, ok; ok {
			one.value = value
		}
	}
	return nil
}
