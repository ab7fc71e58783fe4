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
	s          *shard
	first      region.Ptr
	home, next region.View
	inView     bool
	value      []byte // of the same memory every time, unless it is too long
	ok         bool
	decided    bool
	pair       []byte // two buckets, once a lookup has needed it
}

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
	for i := range all {
		one := &all[i]
		one.key, one.h, one.decided, one.ok = keys[i], sum(o.seed, keys[i]), false, false
		one.s = o.dir.find(one.h)
		one.first = one.s.first.Element(bucketOf(one.h, o.buckets))
		op.Fetch(one.first)
		op.Fetch(one.first.Element(1))
	}
	tb.glances(op, o, all)
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

// glances decides what can be at a glance.
func (tb *Table) glances(op txn.Operation, o *opened, all []oneLookup) {
	if o.slots > glanceSlots {
		for i := range all {
			all[i].inView = false
		}
		return
	}
	for i := range all {
		one := &all[i]
		if one.home, one.next, one.inView = op.LookPair(one.first); one.inView {
			o.touch(one.home, one.next, one.h)
		}
	}
	for i := range all {
		if one := &all[i]; one.inView {
			value, ok, decided := o.decide(one.home, one.next, one.s, one.h, one.key, one.value)
			if one.decided, one.ok = decided, ok; ok && decided {
				one.value = value
			}
		}
	}
}

// touch has the processor fetch the slots that may hold a key with hash h.
func (o *opened) touch(home, next region.View, h uint64) {
	o.touchSlots(home, o.wanting(home, wanted(h, false)))
	o.touchSlots(next, o.wanting(next, wanted(h, true)))
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
