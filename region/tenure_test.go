package region

import (
	"errors"
	"testing"
)

// What a former primary still does to the block table does not reach its replica, which is a backup of
// another primary by now: not even if the machine is the primary once more, whose table may differ. The
// tenure ends at every call of a hook in turn.
func TestBlocksOfAnEarlierTenure(t *testing.T) {
	for endAt := 1; ; endAt++ {
		p := newPair(t, 1, MinSize)
		calls := 0
		var a *Allocator
		var table []byte
		hook := func() {
			if calls++; calls != endAt {
				return
			}
			leave(a, 1)
			off, n := p.primary.Table()
			table = make([]byte, n)
			p.primary.m.CopyOut(table, off)
			a.Keep(func(ID) (isOurs, goesOn bool) { return true, false })
			a.Attach(p.primary)
		}
		a = newAllocator(t, AllocatorConfig{
			Workers: 1, HeldBack: 2,
			Reserve: func(*Tenure, uint64, uint64) (uint32, error) { hook(); return 0, nil },
			Replicate: func(of *Tenure, off uint64, data []byte, _ uint32) error {
				hook() // the WRITEs have arrived, and then the tenure ends
				return of.During(func() { p.primary.m.CopyIn(off, data) })
			},
		}, p.primary)
		sp := a.dir.Load().byID[1]
		_, err := a.takeBlocks(sp, 3)
		if calls < endAt {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if err == nil && sp.tenure.IsOver() && calls > 2 { // the first calls reserve blocks to be held back
			t.Errorf("the tenure ends at call %d: a slab is made", endAt)
		}
		if err != nil && !errors.Is(err, ErrDeparted) {
			t.Errorf("the tenure ends at call %d: %v", endAt, err)
		}
		off, n := p.primary.Table()
		now := make([]byte, n)
		p.primary.m.CopyOut(now, off)
		if string(now) != string(table) {
			t.Errorf("the tenure ends at call %d: the block table is written to afterwards", endAt)
		}
	}
}

// The same holds for blocks of a former slab, which are marked dirty, and cleared in pieces, before
// they are a slab again, and for the count of generations that wrap around. The end of a tenure waits for one
// piece at most: the one before is cleared here when the next is sent.
func TestClearingOfAnEarlierTenure(t *testing.T) {
	const size = 1 << 27
	pieces := 0
	for endAt := 1; ; endAt++ {
		p := newPair(t, 1, size)
		calls, isArmed := 0, false
		var a *Allocator
		var e extent
		var then []byte
		all := func() []byte {
			b := make([]byte, uint64(e.head+e.blocks)<<p.primary.shift)
			p.primary.m.CopyOut(b, 0) // the block table, too
			return b
		}
		hook := func() {
			if calls++; calls != endAt {
				return
			}
			leave(a, 1)
			then = all()
			a.Keep(func(ID) (isOurs, goesOn bool) { return true, false })
			a.Attach(p.primary)
		}
		a = newAllocator(t, AllocatorConfig{
			Workers: 1,
			Replicate: func(_ *Tenure, off uint64, data []byte, _ uint32) error {
				if !isArmed {
					return nil
				}
				if n := uint64(len(zeroes)); len(data) == len(zeroes) && off > e.base+n {
					if pieces++; endAt > calls && p.primary.m.Load(off-n) != 0 {
						t.Errorf("the piece before %#x is not cleared yet", off)
					}
				}
				hook()
				return nil
			},
		}, p.primary)
		sp := a.dir.Load().byID[1]
		s, err := a.takeBlocks(sp, 8)
		if err != nil {
			t.Fatal(err)
		}
		e = s.extent
		begin, end := e.base, uint64(e.head+e.blocks)<<p.primary.shift
		for off := begin; off < end; off += 4096 {
			p.primary.m.Store(off, 1)
		}
		wrapNext(p.primary, e)
		isArmed = true
		err = a.prepare(&sp.tenure, e, true)
		if calls < endAt {
			if err != nil || p.primary.m.Load(wrapsOffset) != 1 {
				t.Errorf("%v; %d generations have wrapped around", err, p.primary.m.Load(wrapsOffset))
			}
			break
		}
		if !errors.Is(err, ErrDeparted) || string(all()) != string(then) {
			t.Errorf("the tenure ends at call %d: %v, and the memory is changed: %v", endAt, err, string(all()) != string(then))
		}
	}
	if pieces < 3 {
		t.Errorf("cleared in %d pieces", pieces)
	}
}

// wrapNext makes the generation of a slab's first block wrap around when it is used next.
func wrapNext(r *Region, e extent) {
	r.setBlocks(e.head, []uint64{uint64(r.block(e.head).withGeneration(0xffff))})
}

// A tenure that has been interrupted is another one: slots that were reserved in the former are free.
func TestAnotherTenure(t *testing.T) {
	a := newAllocator(t, AllocatorConfig{Workers: 1}, newRegion(t, 1, 1<<20))
	was := a.dir.Load().byID[1]
	first, _ := mustAlloc(t, a, 0, 100, 0)
	a.Keep(func(ID) (isOurs, goesOn bool) { return true, true })
	if a.dir.Load().byID[1] != was || was.tenure.IsOver() {
		t.Error("a tenure that goes on has ended")
	}
	a.Keep(func(ID) (isOurs, goesOn bool) { return true, false })
	if a.Has(1) || !was.tenure.IsOver() {
		t.Error("the tenure goes on")
	}
	a.Add(was.region)
	if again, _ := mustAlloc(t, a, 0, 100, 0); again.Addr != first.Addr {
		t.Errorf("%v, though %v is free", again, first)
	}
}

// The lock bit that a former primary has left goes, and with it nothing else.
func TestDropLock(t *testing.T) {
	p := newPair(t, 1, MinSize)
	a := newAllocator(t, AllocatorConfig{Workers: 1, Replicate: p.replicate}, p.primary)
	ptr, v := mustAlloc(t, a, 0, 200, 0)
	p.commit(t, ptr, v, []byte("what stays"))
	before := p.primary.Header(ptr.Addr.Offset())
	if p.primary.DropLock(ptr) {
		t.Error("a lock bit where none was")
	}
	mustLock(t, p.primary, ptr, before.Version())
	if !p.primary.DropLock(ptr) || p.primary.Header(ptr.Addr.Offset()) != before {
		t.Errorf("%v, was %v", p.primary.Header(ptr.Addr.Offset()), before)
	}
	if p.primary.DropLock(MakePtr(MakeAddr(1, 8), 0, 0)) {
		t.Error("where there is no slot")
	}
}
