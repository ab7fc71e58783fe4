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
