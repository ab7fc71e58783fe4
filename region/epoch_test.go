package region

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// fillWith allocates and commits objects until the region is full.
func fillWith(t *testing.T, p *pair, a *Allocator, payload int) (ptrs []Ptr) {
	t.Helper()
	for {
		ptr, v, _, err := a.Alloc(Ordinary, 0, payload, 0)
		if errors.Is(err, ErrFull) {
			return ptrs
		}
		if err != nil {
			t.Fatal(err)
		}
		p.commit(t, ptr, v, []byte("some payload"))
		ptrs = append(ptrs, ptr)
	}
}

// TestClassChangeWaitsForEpochs: freed memory serves its own class at once, and another class only
// after two epochs (NSDI'14 section 3.5).
func TestClassChangeWaitsForEpochs(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	a.Advance(5)
	old := fillWith(t, p, a, 1000)
	for _, ptr := range old {
		p.free(t, a, ptr)
	}
	tryOther := func() (Ptr, Version, error) {
		p, v, _, err := a.Alloc(Ordinary, 0, 5000, 0)
		return p, v, err
	}
	if _, _, err := tryOther(); !errors.Is(err, ErrFull) {
		t.Fatal("reused at once:", err)
	}
	if a.Waiting() == 0 {
		t.Error("nothing waits")
	}
	a.Advance(6)
	if _, _, err := tryOther(); !errors.Is(err, ErrFull) {
		t.Fatal("reused after one epoch:", err)
	}
	again, v := mustAlloc(t, a, 0, 1000, 0) // revived
	if v != 2 || again.Incarnation() != 1 {
		t.Errorf("slot of the same class: %v at version %d", again, v)
	}
	p.commit(t, again, v, nil)
	a.Advance(6) // is no news
	if _, _, err := tryOther(); !errors.Is(err, ErrFull) {
		t.Fatal("reused after the same epoch twice:", err)
	}
	a.Advance(7)
	ptr, v, err := tryOther()
	if err != nil || v != 0 || ptr.Incarnation() != 0 {
		t.Fatalf("after two epochs: %v %d %v", ptr, v, err)
	}
	p.commit(t, ptr, v, []byte("other class"))
	p.same(t)
	live := []Ptr{again, ptr}
	for _, r := range []*Region{p.primary, p.backup} {
		if fs := r.Check(slices.Values(live)); len(fs) > 0 {
			t.Error(fs)
		}
	}
	if fs := a.Check(); len(fs) > 0 {
		t.Error(fs)
	}
	// The block of the old class has its headers cleared, on both replicas.
	for _, r := range []*Region{p.primary, p.backup} {
		for q, h := range r.Objects {
			if q.Class() == ptr.Class() && q != ptr && (h != 0 || q.Incarnation() != 0) {
				t.Fatalf("%v is %v", q, h)
			}
		}
	}
}

// TestLowMemoryRetires: if few blocks are free, Advance retires empty slabs before anybody needs
// them.
func TestLowMemoryRetires(t *testing.T) {
	p := &pair{primary: newRegion(t, 1, 1<<20)}
	a := newAllocator(t, AllocatorConfig{Workers: 2}, p.primary)
	ptrs := fillWith(t, p, a, 500)
	kept := ptrs[0]
	for _, ptr := range ptrs[1:] {
		p.free(t, a, ptr)
	}
	a.Advance(1)
	waiting := a.Waiting()
	if waiting == 0 || waiting >= p.primary.Blocks() {
		t.Fatalf("%d of %d blocks wait", waiting, p.primary.Blocks())
	}
	a.Advance(3)
	if a.Waiting() != 0 || a.dir.Load().list[0].unused != waiting {
		t.Errorf("%d wait, %d free, want %d", a.Waiting(), a.dir.Load().list[0].unused, waiting)
	}
	mustAlloc(t, a, 1, 100000, 0) // a run of blocks that were many slabs
	if fs := p.primary.Check(slices.Values([]Ptr{kept})); len(fs) > 0 {
		t.Error(fs)
	}
}

// TestFailedReplication lets each call of the hook fail in turn while a block
// changes class, then goes on from the primary, and from the backup.
func TestFailedReplication(t *testing.T) {
	step := 1
	if raceEnabled {
		step = 5 // nothing runs at once here
	}
	for failAt := 1; ; failAt += step {
		p := newPair(t, 1, 1<<20)
		cfg := AllocatorConfig{Replicate: p.replicate}
		a := newAllocator(t, cfg, p.primary)
		kept, v := mustAlloc(t, a, 0, 7000, 0)
		p.commit(t, kept, v, []byte("kept"))
		for _, ptr := range fillWith(t, p, a, 1000) {
			p.free(t, a, ptr)
		}
		a.Advance(1)
		a.Advance(3)
		p.failAt = failAt
		_, _, _, err := a.Alloc(Ordinary, 0, 60000, 0)
		if err == nil {
			if failAt < 4 {
				t.Errorf("only %d calls of the hook", failAt)
			}
			return
		}
		if !errors.Is(err, errHook) {
			t.Fatal(err)
		}
		p.failAt = 0
		promoted := &pair{primary: cloneRegion(t, p.backup), backup: cloneRegion(t, p.primary)}
		goOn(t, p, a, kept)
		goOn(t, promoted, newAllocator(t, AllocatorConfig{Replicate: promoted.replicate}, promoted.primary), kept)
		restarted := &pair{primary: cloneRegion(t, p.primary), backup: cloneRegion(t, p.backup)}
		goOn(t, restarted, newAllocator(t, AllocatorConfig{Replicate: restarted.replicate}, restarted.primary), kept)
	}
}

// goOn uses the region for all kinds of objects and compares the replicas.
func goOn(t *testing.T, p *pair, a *Allocator, kept Ptr) {
	t.Helper()
	a.Advance(100)
	a.Advance(102) // an allocator that was rebuilt has retired the empty slabs anew
	live := []Ptr{kept}
	for _, payload := range []int{60000, 50, 1000, 3000, 60000, 20000} {
		ptr, v, _, err := a.Alloc(Ordinary, 0, payload, 0)
		if errors.Is(err, ErrFull) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p.commit(t, ptr, v, []byte("new"))
		live = append(live, ptr)
	}
	if len(live) < 6 {
		t.Errorf("room for %d objects only", len(live))
	}
	p.same(t)
	for _, r := range []*Region{p.primary, p.backup} {
		reachable := live
		for q, h := range r.Objects { // an earlier goOn left objects
			if h.Allocated() && !slices.Contains(live, q) {
				reachable = append(reachable, q)
			}
		}
		if fs := r.Check(slices.Values(reachable)); len(fs) > 0 {
			t.Error(fs)
		}
	}
}

// cloneRegion returns a copy, as another process would find it.
func cloneRegion(t *testing.T, r *Region) *Region {
	t.Helper()
	m := nvram.NewMemory(int64(r.size))
	b := make([]byte, r.size)
	r.m.CopyOut(b, 0)
	m.CopyIn(0, b)
	c, err := Open(r.id, m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAttachAndScan(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	ptrs := fillWith(t, p, a, 2000)
	for i, ptr := range ptrs {
		if i%2 == 0 {
			p.free(t, a, ptr)
		}
	}
	mustLock(t, p.primary, ptrs[0], 2) // a transaction that recovery has not decided

	b := NewAllocator(AllocatorConfig{Replicate: p.replicate})
	b.Attach(p.primary)
	p.free(t, b, ptrs[1]) // before the scan has been there
	steps := 0
	for b.Scan(100) {
		steps++
	}
	if want := len(ptrs)/100 - 1; steps < want {
		t.Errorf("%d steps, want %d", steps, want)
	}
	free := map[Addr]bool{ptrs[1].Addr: true}
	for i := 2; i < len(ptrs); i += 2 {
		free[ptrs[i].Addr] = true
	}
	for _, ptr := range fillWith(t, p, b, 2000) {
		if !free[ptr.Addr] {
			t.Fatalf("%v was not free", ptr)
		}
		delete(free, ptr.Addr)
	}
	if len(free) > 0 {
		t.Errorf("%d free slots were not found", len(free))
	}
	p.primary.Unlock(ptrs[0], 2)
	b.Release(ptrs[0])
	if ptr, _ := mustAlloc(t, b, 0, 2000, 0); ptr.Addr != ptrs[0].Addr {
		t.Error("the released slot was not found")
	}
}

// TestAllocScansWhatItNeeds: an allocation that finds no other room does not
// wait for the paced scan.
func TestAllocScansWhatItNeeds(t *testing.T) {
	p := &pair{primary: newRegion(t, 1, 1<<20)}
	a := newAllocator(t, AllocatorConfig{}, p.primary)
	ptrs := fillWith(t, p, a, 2000)
	p.free(t, a, ptrs[7])
	b := NewAllocator(AllocatorConfig{})
	b.Attach(p.primary)
	if ptr, _ := mustAlloc(t, b, 0, 2000, 0); ptr.Addr != ptrs[7].Addr {
		t.Error(ptr)
	}
}

func TestKeep(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	ptr, _ := mustAlloc(t, a, 0, 100, 0)
	leave(a, 1)
	a.Release(ptr) // another machine's business
	a.Add(r)       // as if r had been made just before
	if _, _, _, err := a.Alloc(Ordinary, 0, 100, 0); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	a.Keep(func(ID) (isOurs, goesOn bool) { return true, true })
	a.Add(r)
	mustAlloc(t, a, 0, 100, 0)
}

// leave makes a region leave the allocator, as if the next configuration gave it another primary.
func leave(a *Allocator, id ID) {
	a.Keep(func(other ID) (isOurs, goesOn bool) { return other != id, true })
}

func TestGrow(t *testing.T) {
	next, errCM := ID(0), errors.New("no configuration manager")
	a := NewAllocator(AllocatorConfig{Grow: func(ID) (*Region, error) {
		if next++; next > 2 {
			return nil, errCM
		}
		return Format(next, nvram.NewMemory(1<<20))
	}})
	if _, _, _, err := a.Alloc(Ordinary, 0, MaxPayload, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("1 MB in regions of 1 MB: %v", err)
	}
	ids := map[ID]bool{}
	for {
		ptr, _, _, err := a.Alloc(Ordinary, 0, 20000, 0)
		if err != nil {
			if !errors.Is(err, errCM) {
				t.Error(err)
			}
			break
		}
		ids[ptr.Addr.Region()] = true
	}
	if len(ids) != 2 {
		t.Error(ids)
	}
	same := newRegion(t, 9, 1<<20)
	a = newAllocator(t, AllocatorConfig{Grow: func(ID) (*Region, error) { return same, nil }}, same)
	for err := error(nil); ; {
		if _, _, _, err = a.Alloc(Ordinary, 0, 20000, 0); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Error(err)
			}
			break
		}
	}
}

func TestBrokenPromisesPanic(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{}, r)
	p := &pair{primary: r}
	live, v := mustAlloc(t, a, 0, 100, 0)
	p.commit(t, live, v, nil)
	reserved, v := mustAlloc(t, a, 0, 100, 0)
	other, _ := mustAlloc(t, a, 0, 100, 0)
	a.Release(reserved)
	mustLock(t, r, other, 0)
	mustLock(t, r, live, 1)
	for what, fn := range map[string]func(){
		"release of an object":        func() { a.Release(live) },
		"release twice":               func() { a.Release(reserved) },
		"release inside a slot":       func() { a.Release(MakePtr(live.Addr+64, live.Class(), 0)) },
		"release in a free block":     func() { a.Release(MakePtr(MakeAddr(1, 1<<19), 0, 0)) },
		"write without a lock":        func() { r.Write(reserved, nil, v+1, true, 0) },
		"write of an older version":   func() { r.Write(live, nil, 1, true, 0) },
		"write outside":               func() { r.Write(MakePtr(0, 0, 0), nil, 1, true, 0) },
		"write of too long a payload": func() { r.Write(other, make([]byte, 4096), 1, true, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			fn()
		}()
	}
}

// A slab is not retired during the scan, even if a release has made it empty: its slot would be
// handed out twice.
func TestUnscannedSlabIsNotRetired(t *testing.T) {
	p := newPair(t, 1, MinSize)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	var ptrs []Ptr
	for {
		ptr, v, _, err := a.Alloc(Ordinary, 0, 6930, 0) // one to a slab
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p.commit(t, ptr, v, []byte("x"))
		ptrs = append(ptrs, ptr)
	}
	b := NewAllocator(AllocatorConfig{Replicate: p.replicate})
	b.Attach(p.primary)
	p.free(t, b, ptrs[0])
	for epoch := range uint64(4) {
		b.Advance(epoch + 1)
	}
	for b.Scan(100) {
	}
	got := map[Addr]bool{}
	for {
		ptr, _, _, err := b.Alloc(Ordinary, 0, 6930, 0)
		if err != nil {
			break
		}
		if got[ptr.Addr] {
			t.Fatalf("%v is handed out twice", ptr)
		}
		got[ptr.Addr] = true
	}
	if !got[ptrs[0].Addr] {
		t.Errorf("the slot that was freed is not handed out, but %v", got)
	}
}
