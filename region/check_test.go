package region

import (
	"slices"
	"strings"
	"testing"
)

// checked returns a region with three objects, in which Check finds no fault.
func checked(t *testing.T) (*Region, *Allocator, []Ptr) {
	t.Helper()
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	p := &pair{primary: r}
	var ptrs []Ptr
	for range 3 {
		ptr, v := mustAlloc(t, a, 0, 300, 0)
		p.commit(t, ptr, v, []byte("payload"))
		ptrs = append(ptrs, ptr)
	}
	return r, a, ptrs
}

func TestCheckFindsEveryFault(t *testing.T) {
	r, a, ptrs := checked(t)
	all := append(slices.Clone(ptrs), ptrs[0], MakePtr(MakeAddr(2, 64), 0, 0)) // twice, and elsewhere
	if fs := append(r.Check(slices.Values(all)), a.Check()...); len(fs) > 0 {
		t.Fatal(fs)
	}
	for _, c := range []struct {
		kind FaultKind
		text string
		at   func(p Ptr) Ptr // what the fault names
		harm func(r *Region, a *Allocator, p Ptr) (reachable []Ptr)
	}{
		{Leak, "nothing points", nil, func(*Region, *Allocator, Ptr) []Ptr { return nil }},
		{Orphan, "slot is free@2, incarnation 1", nil, func(r *Region, a *Allocator, p Ptr) []Ptr {
			(&pair{primary: r}).free(t, a, p)
			return []Ptr{p}
		}},
		{Orphan, "incarnation 0", func(p Ptr) Ptr { return MakePtr(p.Addr, p.Class(), 5) }, func(_ *Region, _ *Allocator, p Ptr) []Ptr {
			return []Ptr{p, MakePtr(p.Addr, p.Class(), 5)}
		}},
		{Orphan, "no slab", func(p Ptr) Ptr { return MakePtr(MakeAddr(1, 1<<19), 0, 0) }, func(_ *Region, _ *Allocator, p Ptr) []Ptr {
			return []Ptr{p, MakePtr(MakeAddr(1, 1<<19), 0, 0)}
		}},
		{Overlap, "slab of", func(p Ptr) Ptr { return MakePtr(p.Addr, 0, 0) }, func(_ *Region, _ *Allocator, p Ptr) []Ptr {
			return []Ptr{p, MakePtr(p.Addr, 0, 0)}
		}},
		{Overlap, "slab of", func(p Ptr) Ptr { return MakePtr(p.Addr+64, p.Class(), 0) }, func(_ *Region, _ *Allocator, p Ptr) []Ptr {
			return []Ptr{p, MakePtr(p.Addr+64, p.Class(), 0)}
		}},
		{Locked, "locked@1", nil, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.Lock(p, 1)
			return []Ptr{p}
		}},
		{Torn, "line 2 at 9", nil, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.m.Store(uint64(p.Addr.Offset())+128, 9)
			return []Ptr{p}
		}},
		{Damaged, "header", nil, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.m.Store(uint64(p.Addr.Offset()), uint64(MakeHeader(1, true))|1<<60)
			return []Ptr{p}
		}},
		{Damaged, "incarnation 0x100000000000000", nil, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.m.Store(uint64(p.Addr.Offset())+incarnationOffset, 1<<56) // in no pointer, so that none leads here
			return []Ptr{p}
		}},
		{Damaged, "block 9: invalid", func(Ptr) Ptr { return Ptr{} }, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.setBlocks(9, []uint64{77})
			return []Ptr{p}
		}},
		{Damaged, "block 9: tail +1, 64 B, without a head", func(Ptr) Ptr { return Ptr{} }, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.setBlocks(9, []uint64{uint64(makeBlock(blockTail, 0, 1))})
			return []Ptr{p}
		}},
		{Damaged, "block 9: head of 2, 64 B, but not all", func(Ptr) Ptr { return Ptr{} }, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.setBlocks(9, []uint64{uint64(makeBlock(blockHead, 0, 2))})
			return []Ptr{p}
		}},
		{Damaged, "block 10: head of 1, 64 B, inside", func(Ptr) Ptr { return Ptr{} }, func(r *Region, _ *Allocator, p Ptr) []Ptr {
			r.setBlocks(9, []uint64{uint64(makeBlock(blockHead, 0, 2)), uint64(makeBlock(blockHead, 0, 1))})
			return []Ptr{p}
		}},
		{DoubleAllocation, "allocated@1", nil, func(_ *Region, a *Allocator, p Ptr) []Ptr {
			s := a.dir.Load().byID[1].slabAt(p.Addr.Offset())
			s.give(s.index(uint64(p.Addr.Offset())))
			return []Ptr{p}
		}},
		{LostSlot, "free@0", func(p Ptr) Ptr { return p.Element(3) }, func(_ *Region, a *Allocator, p Ptr) []Ptr {
			mustAlloc(t, a, 0, 300, 0) // and neither commit nor release
			return []Ptr{p}
		}},
	} {
		r, a, ptrs := checked(t)
		reachable := append(c.harm(r, a, ptrs[0]), ptrs[1:]...)
		at := ptrs[0]
		if c.at != nil {
			at = c.at(at)
		}
		named := func(f Fault) bool { return f.Kind == c.kind && f.Ptr == at && strings.Contains(f.Text, c.text) }
		fs := append(r.Check(slices.Values(reachable)), a.Check()...)
		if !slices.ContainsFunc(fs, named) {
			t.Errorf("want %v of %v with %q, got %v", c.kind, at, c.text, fs)
		}
		if len(fs) > 2 {
			t.Errorf("%v: %d faults for one: %v", c.kind, len(fs), fs)
		}
	}
}

func TestCheckIsBounded(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	p := &pair{primary: r}
	for range 2 * faultsMax {
		ptr, v := mustAlloc(t, a, 0, 10, 0)
		p.commit(t, ptr, v, nil)
	}
	if fs := r.Check(slices.Values([]Ptr(nil))); len(fs) != faultsMax || fs[0].Kind.String() != "leak" {
		t.Errorf("%d faults", len(fs))
	}
}
