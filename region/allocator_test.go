package region

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// pair is a primary and its backup, written by the allocator's hook.
type pair struct {
	primary, backup *Region
	failAt          int // the hook call that fails, counted down; 0 is none
}

func newPair(t testing.TB, id ID, size int64) *pair {
	return &pair{primary: newRegion(t, id, size), backup: newRegion(t, id, size)}
}

var errHook = errors.New("backup is gone")

func (p *pair) replicate(t *Tenure, off uint64, data []byte, _ uint32) error {
	if p.failAt > 0 {
		if p.failAt--; p.failAt == 0 {
			half := len(data) / 16 * 8
			p.backup.m.CopyIn(off, data[:half]) // part of it arrived
			return errHook
		}
	}
	if t.Region != p.primary {
		return fmt.Errorf("hook called for region %d", t.id)
	}
	p.backup.m.CopyIn(off, data)
	return nil
}

// replicateAll replicates as a machine does: the primary gets the data once all backups have them.
func (p *pair) replicateAll(t *Tenure, off uint64, data []byte, in uint32) error {
	err := p.replicate(t, off, data, in)
	if err == nil {
		p.primary.m.CopyIn(off, data)
	}
	return err
}

// same compares block tables.
func (p *pair) same(t *testing.T) {
	t.Helper()
	for i := range p.primary.Blocks() {
		if got, want := p.backup.block(i), p.primary.block(i); got != want {
			t.Errorf("block %d: backup has %v, primary %v", i, got, want)
		}
	}
}

// commit makes the reserved slot an object, on both replicas.
func (p *pair) commit(t testing.TB, ptr Ptr, v Version, payload []byte) {
	t.Helper()
	mustLock(t, p.primary, ptr, v)
	p.primary.Write(ptr, payload, v+1, true, ptr.Incarnation())
	if p.backup != nil && !p.backup.ApplyBackup(ptr, payload, v+1, true, ptr.Incarnation()) {
		t.Fatalf("backup refused %v at version %d, has %v", ptr, v+1, p.backup.Header(ptr.Addr.Offset()))
	}
}

// free frees the object.
func (p *pair) free(t testing.TB, a *Allocator, ptr Ptr) {
	t.Helper()
	v := p.primary.Header(ptr.Addr.Offset()).Version()
	mustLock(t, p.primary, ptr, v)
	p.primary.Write(ptr, nil, v+1, false, ptr.Incarnation()+1)
	if p.backup != nil && !p.backup.ApplyBackup(ptr, nil, v+1, false, ptr.Incarnation()+1) {
		t.Fatal("backup refused a free")
	}
	a.Release(ptr)
}

func mustAlloc(t testing.TB, a *Allocator, worker, payload int, hint Addr) (Ptr, Version) {
	t.Helper()
	p, v, _, err := a.Alloc(Ordinary, worker, payload, hint)
	if err != nil {
		t.Fatal(err)
	}
	return p, v
}

func newAllocator(t testing.TB, cfg AllocatorConfig, rs ...*Region) *Allocator {
	t.Helper()
	a := NewAllocator(cfg)
	for _, r := range rs {
		a.Add(r)
	}
	return a
}

func TestAllocEveryClass(t *testing.T) {
	p := newPair(t, 1, 8<<20)
	a := newAllocator(t, AllocatorConfig{Workers: 1, Replicate: p.replicate}, p.primary)
	for c := 0; c < Classes; c += 5 {
		ptr, v, _, err := a.Alloc(Ordinary, 0, Class(c).Capacity(), 0)
		if errors.Is(err, ErrFull) {
			continue // 8 MB do not hold a slab of each
		}
		if err != nil || ptr.Class() != Class(c) || v != 0 || ptr.Incarnation() != 0 {
			t.Fatalf("class %d: %v %d %v", c, ptr, v, err)
		}
		p.commit(t, ptr, v, []byte{byte(c)})
	}
	p.same(t)
}

func TestAllocLargest(t *testing.T) {
	for _, size := range []int64{2 << 20, 8 << 20, 128 << 20} {
		a := newAllocator(t, AllocatorConfig{Workers: 1}, newRegion(t, 1, size))
		if ptr, _ := mustAlloc(t, a, 0, MaxPayload, 0); ptr.Class().Size() != MaxObject {
			t.Error(ptr)
		}
	}
	a := newAllocator(t, AllocatorConfig{Workers: 1}, newRegion(t, 1, 1<<20))
	if _, _, _, err := a.Alloc(Ordinary, 0, MaxPayload, 0); !errors.Is(err, ErrFull) {
		t.Errorf("1 MB in a region of 1 MB: %v", err)
	}
	if _, _, _, err := a.Alloc(Ordinary, 0, MaxPayload+1, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the largest class: %v", err)
	}
}

func TestSlotsDoNotOverlap(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Workers: 2}, r)
	rng := rand.New(rand.NewPCG(1, 2))
	owner := make([]Ptr, r.size/lineBytes)
	var used uint64
	for n := 0; ; n++ {
		ptr, _, _, err := a.Alloc(Ordinary, n%2, rng.IntN(900), 0)
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		from := uint64(ptr.Addr.Offset())
		if from < r.first || from+uint64(ptr.Class().Size()) > r.size {
			t.Fatalf("%v outside", ptr)
		}
		for off := from; off < from+uint64(ptr.Class().Size()); off += lineBytes {
			if other := owner[off/lineBytes]; !other.IsNil() {
				t.Fatalf("%v overlaps %v", ptr, other)
			}
			owner[off/lineBytes] = ptr
		}
		used += uint64(ptr.Class().Size())
	}
	if used < r.size*3/4 {
		t.Errorf("full with %d of %d bytes in use", used, r.size)
	}
}

// TestAgainstModel runs random operations on two replicas, ending epochs and
// rebuilding the allocator now and then, and compares every object with a model.
func TestAgainstModel(t *testing.T) {
	seeds := uint64(6)
	if raceEnabled {
		seeds = 1 // nothing runs at once here
	}
	for seed := range seeds {
		runModel(t, seed)
	}
}

func runModel(t *testing.T, seed uint64) {
	const workers, steps = 3, 6000
	rng := rand.New(rand.NewPCG(seed, 7))
	p := newPair(t, 1, 1<<20)
	cfg := AllocatorConfig{Workers: workers, Replicate: p.replicate}
	a := newAllocator(t, cfg, p.primary)
	live := map[Ptr]byte{}
	var order []Ptr
	epoch := uint64(0)
	full := 0
	phase := 1.0 // share of the class range in use: phases want other classes
	for step := range steps {
		switch k := rng.IntN(100); {
		case k < 55:
			var hint Addr
			if len(order) > 0 && k%3 == 0 {
				hint = order[rng.IntN(len(order))].Addr
			}
			ptr, v, _, err := a.Alloc(Ordinary, rng.IntN(workers), int(phase*float64(rng.IntN(3000))), hint)
			if errors.Is(err, ErrFull) {
				full++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := live[ptr]; twice {
				t.Fatalf("%v allocated twice", ptr)
			}
			if k%7 == 0 {
				a.Release(ptr) // aborted
				continue
			}
			live[ptr] = byte(step)
			order = append(order, ptr)
			p.commit(t, ptr, v, []byte{byte(step)})
		case k < 97:
			if len(order) == 0 {
				continue
			}
			i := rng.IntN(len(order))
			p.free(t, a, order[i])
			delete(live, order[i])
			order[i] = order[len(order)-1]
			order = order[:len(order)-1]
		case k < 99:
			epoch++
			a.Advance(epoch)
		default:
			a = newAllocator(t, cfg, p.primary)
			a.Advance(epoch)
		}
		if step%1500 == 1499 { // empty the region, so that classes can change
			for _, ptr := range order {
				p.free(t, a, ptr)
			}
			order, live = nil, map[Ptr]byte{}
			phase = []float64{0.05, 1, 0.3}[rng.IntN(3)]
		}
	}
	p.same(t)
	for _, r := range []*Region{p.primary, p.backup} {
		compareObjects(t, r, live)
	}
	if full == 0 {
		t.Logf("seed %d never filled the region", seed)
	}
}

func compareObjects(t *testing.T, r *Region, live map[Ptr]byte) {
	t.Helper()
	found := 0
	for ptr, h := range r.Objects {
		if !h.Allocated() {
			continue
		}
		found++
		want, ok := live[ptr]
		if !ok {
			t.Fatalf("%v is allocated, the model does not know it", ptr)
		}
		dst := make([]byte, ptr.Capacity())
		if _, err := r.ReadObject(ptr, dst); err != nil || dst[0] != want {
			t.Fatalf("%v: %v, %d, want %d", ptr, err, dst[0], want)
		}
	}
	if found != len(live) {
		t.Fatalf("%d objects, model has %d", found, len(live))
	}
}

// TestAllocConcurrently lets goroutines allocate, commit, free and release in
// few slabs at once.
func TestAllocConcurrently(t *testing.T) {
	r := newRegion(t, 1, 4<<20)
	a := newAllocator(t, AllocatorConfig{Workers: 2}, r)
	p := &pair{primary: r}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			var mine []Ptr
			for range 3000 {
				if len(mine) > 0 && rng.IntN(2) == 0 {
					i := rng.IntN(len(mine))
					p.free(t, a, mine[i])
					mine = append(mine[:i], mine[i+1:]...)
					continue
				}
				var hint Addr
				if len(mine) > 0 && rng.IntN(2) == 0 {
					hint = mine[0].Addr
				}
				ptr, v, _, err := a.Alloc(Ordinary, g%2, rng.IntN(400), hint)
				if err != nil {
					t.Error(err)
					return
				}
				if rng.IntN(4) == 0 {
					a.Release(ptr)
					continue
				}
				p.commit(t, ptr, v, nil)
				mine = append(mine, ptr)
			}
			for _, ptr := range mine {
				p.free(t, a, ptr)
			}
		})
	}
	for e := range uint64(50) {
		a.Advance(e)
	}
	wg.Wait()
	for ptr, h := range r.Objects {
		if h.Allocated() || h.Locked() {
			t.Fatalf("%v is %v", ptr, h)
		}
	}
}

func TestHints(t *testing.T) {
	grown := 0
	cfg := AllocatorConfig{
		Workers:   2,
		Colocated: func(a, b ID) bool { return a%2 == b%2 },
		Grow: func(near ID) (*Region, error) {
			grown++
			return Format(100+near, nvram.NewMemory(1<<20))
		},
	}
	a := newAllocator(t, cfg, newRegion(t, 1, 1<<20), newRegion(t, 2, 1<<20), newRegion(t, 3, 1<<20))
	first, _ := mustAlloc(t, a, 0, 100, 0)
	same, _ := mustAlloc(t, a, 1, 100, first.Addr)
	if same.Addr.Region() != first.Addr.Region() || same.Addr.Offset()/8192 != first.Addr.Offset()/8192 {
		t.Errorf("%v is not in the block of %v", same, first)
	}
	in3 := MakeAddr(3, uint32(a.dir.Load().byID[3].region.first))
	other, _ := mustAlloc(t, a, 0, 500, in3)
	if other.Addr.Region() != 3 {
		t.Errorf("%v is not in region 3", other)
	}
	want := []ID{3, 1, 103, 2} // the hint's, the co-located, a new one; another only if that fails
	var order []ID
	for range 5000 {
		ptr, _, _, err := a.Alloc(Ordinary, 0, 1000, in3)
		if err != nil {
			break
		}
		if id := ptr.Addr.Region(); len(order) == 0 || order[len(order)-1] != id {
			order = append(order, id)
		}
	}
	if fmt.Sprint(order) != fmt.Sprint(want) || grown == 0 {
		t.Errorf("regions in order %v, want %v; grown %d times", order, want, grown)
	}
	if ptr, _, _, err := a.Alloc(Ordinary, 0, 64, MakeAddr(77, 4096)); err != nil {
		t.Errorf("hint into a foreign region: %v %v", ptr, err)
	}
}

// TestAllocatorIsSmall: the state of 10 million objects in a region of 1 GB must
// not weigh on the Go heap.
func TestAllocatorIsSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("race builds keep the region itself on the heap")
	}
	r := newRegion(t, 1, 1<<30)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := newAllocator(t, AllocatorConfig{Workers: 2}, r)
	for i := range 10_000_000 {
		if _, _, _, err := a.Alloc(Ordinary, i%2, 40, 0); err != nil {
			t.Fatal(i, err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("10 M objects: %.1f MB", float64(grown)/1e6)
	if grown > 4<<20 {
		t.Errorf("heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(a)
}

func TestCanHold(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	for off, want := range map[uint32]bool{0: false, 64: false, uint32(r.first): true, uint32(r.first) + 8: false, 1<<20 - 64: true, 1 << 20: false, 1<<32 - 64: false} {
		if r.CanHold(off) != want {
			t.Errorf("offset %#x: %v", off, !want)
		}
	}
}

// TestPaper5_5_FreesWaitForTheFreeList: objects that are freed before a slab's free list is
// recovered stay out of the list until then, whether the scan has seen them or not. Then each of
// their slots can be allocated once.
func TestPaper5_5_FreesWaitForTheFreeList(t *testing.T) {
	old := newPair(t, 1, MinSize)
	a := newAllocator(t, AllocatorConfig{Workers: 1, Replicate: old.replicate}, old.primary)
	var objects []Ptr
	for range 20 { // in one slab
		p, v := mustAlloc(t, a, 0, 200, 0)
		old.commit(t, p, v, []byte("x"))
		objects = append(objects, p)
	}

	taken := &pair{primary: old.backup} // the primary has failed
	a = NewAllocator(AllocatorConfig{Workers: 1})
	a.Attach(taken.primary)
	if !a.Scan(10) {
		t.Fatal("the scan is over")
	}
	s := a.dir.Load().byID[1].slabAt(objects[0].Addr.Offset())
	freed := map[Addr]bool{}
	for _, p := range []Ptr{objects[3], objects[15]} {
		seen := s.index(uint64(p.Addr.Offset())) < int(s.scanned.Load())
		if seen != (len(freed) == 0) {
			t.Errorf("%v has been scanned: %v", p, seen)
		}
		taken.free(t, a, p)
		freed[p.Addr] = true
	}
	if p, _, ok := s.alloc(); ok {
		t.Errorf("%v is allocated before the free list is recovered", p)
	}
	for a.Scan(10) {
	}
	inUse := map[Addr]bool{}
	for _, p := range objects {
		inUse[p.Addr] = !freed[p.Addr]
	}
	n := 0
	for p, _, ok := s.alloc(); ok; p, _, ok = s.alloc() {
		if inUse[p.Addr] {
			t.Fatalf("%v is in use", p)
		}
		inUse[p.Addr] = true
		delete(freed, p.Addr)
		n++
	}
	if n != s.slots-len(objects)+2 || len(freed) > 0 {
		t.Errorf("%d of %d slots were free, never %v", n, s.slots, freed)
	}
}

// Two recoveries may attach a region, the first of them in an earlier configuration. The second
// must not free slots that were taken after the first.
func TestAttachAgain(t *testing.T) {
	p := newPair(t, 1, MinSize)
	a := NewAllocator(AllocatorConfig{Replicate: p.replicate})
	a.Attach(p.primary)
	ptr, v := mustAlloc(t, a, 0, 200, 0)
	slab := a.dir.Load().byID[1].slabAt(ptr.Addr.Offset())
	a.cfg.Replicate = func(_ *Tenure, off uint64, data []byte, _ uint32) error {
		t.Errorf("%d bytes at %#x are written to the backups", len(data), off)
		return nil
	}
	a.Attach(p.primary)
	if a.dir.Load().byID[1].slabAt(ptr.Addr.Offset()) != slab || !p.primary.CanHold(ptr.Addr.Offset()) {
		t.Error("the slab is another, or none")
	}
	p.commit(t, ptr, v, []byte("x"))
}

// Recovery may lock a free slot before the scan reaches it. The scan then counts the slot as in
// use, and recovery must release it. Recovery need not release a slot that it locks after the scan.
func TestHold(t *testing.T) {
	p := newPair(t, 1, MinSize)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	var ptrs []Ptr
	for range 3 {
		ptr, v := mustAlloc(t, a, 0, 200, 0)
		p.commit(t, ptr, v, []byte("x"))
		ptrs = append(ptrs, ptr)
	}
	for _, ptr := range ptrs[:2] {
		p.free(t, a, ptr)
	}
	b := NewAllocator(AllocatorConfig{})
	b.Attach(p.primary)
	hold := func(ptr Ptr, want bool) {
		t.Helper()
		if got := b.Hold(ptr, func() { p.primary.SetLock(ptr) }); got != want || !p.primary.Header(ptr.Addr.Offset()).Locked() {
			t.Errorf("%v: the scan is to come: %v, want %v", ptr, got, want)
		}
	}
	// An earlier recovery has held the slot too, and released it: the slot is in use again.
	hold(ptrs[0], true)
	b.Release(ptrs[0])
	p.primary.ClearLock(ptrs[0])
	hold(ptrs[0], true)
	for b.Scan(100) {
	}
	hold(ptrs[1], false)
	for _, ptr := range ptrs[:2] {
		p.primary.ClearLock(ptr)
	}
	b.Release(ptrs[0])
	offered := map[Addr]int{}
	s := b.dir.Load().byID[1].slabAt(ptrs[0].Addr.Offset())
	for ptr, _, ok := s.alloc(); ok; ptr, _, ok = s.alloc() {
		offered[ptr.Addr]++
	}
	if offered[ptrs[0].Addr] != 1 || offered[ptrs[1].Addr] != 1 || offered[ptrs[2].Addr] != 0 {
		t.Errorf("offered %d, %d and %d times", offered[ptrs[0].Addr], offered[ptrs[1].Addr], offered[ptrs[2].Addr])
	}
	if !b.Hold(MakePtr(MakeAddr(7, 640), 3, 0), func() {}) {
		t.Error("of a region that is not attached")
	}
}

// If the backups change while a block is taken, the new backups have storage for the block before
// it is in their tables.
func TestBackupsChange(t *testing.T) {
	for changeAt := 1; changeAt < 12; changeAt++ {
		p := newPair(t, 1, MinSize)
		backups, calls := uint32(1), 0
		reserved := map[uint32]map[uint64]bool{}
		a := newAllocator(t, AllocatorConfig{
			Reserve: func(_ *Tenure, off, n uint64) (uint32, error) {
				if reserved[backups] == nil {
					reserved[backups] = map[uint64]bool{}
				}
				for i := off >> p.primary.shift; i<<p.primary.shift < off+n; i++ {
					reserved[backups][i] = true
				}
				return backups, nil
			},
			Replicate: func(of *Tenure, off uint64, data []byte, in uint32) error {
				if calls++; calls == changeAt {
					backups++
				}
				if in != 0 && in != backups {
					return ErrBackups
				}
				if off >= p.primary.first && !reserved[backups][off>>p.primary.shift] {
					t.Errorf("change at call %d: %d bytes at %#x without storage", changeAt, len(data), off)
				}
				return p.replicate(of, off, data, in)
			},
		}, p.primary)
		ptr, v := mustAlloc(t, a, 0, 200, 0)
		p.commit(t, ptr, v, []byte("x"))
		for i := range p.primary.Blocks() {
			if p.primary.block(i) != 0 && !reserved[backups][uint64(i)] && backups > 1 && calls >= changeAt {
				t.Errorf("change at call %d: block %d is in a table without storage", changeAt, i)
			}
		}
		p.same(t)
		if calls < changeAt {
			break
		}
	}
}

// A region that has got another primary hands out nothing, even from a slab that a worker has kept as
// its current one at the same moment.
func TestDropWhileASlabIsKept(t *testing.T) {
	a := newAllocator(t, AllocatorConfig{Workers: 1}, newRegion(t, 1, 1<<20))
	p, _ := mustAlloc(t, a, 0, 100, 0)
	kept := a.workers[0].current[p.Class()].Load()
	leave(a, 1)
	a.workers[0].current[p.Class()].Store(kept) // as slow does, which has found the slab before
	if p, _, _, err := a.Alloc(Ordinary, 0, 100, 0); !errors.Is(err, ErrFull) {
		t.Errorf("%v is reserved, though the region is elsewhere: %v", p, err)
	}
	a.Release(p) // has no effect, either
}

// A region may leave at any moment while a slot is reserved. The slot then lies in another region, and
// nothing is held back in the one that has left.
func TestLeavesWhileASlabIsMade(t *testing.T) {
	const arrays = 3
	for n := 1; n <= arrays; n++ {
		for leaveAt := 1; ; leaveAt++ {
			calls := 0
			var a *Allocator
			hook := func(t *Tenure) error {
				if calls++; calls == leaveAt {
					leave(a, 1)
				}
				if calls >= leaveAt && t.id == 1 {
					return ErrDeparted
				}
				return nil
			}
			a = newAllocator(t, AllocatorConfig{
				Workers: 1, HeldBack: 2,
				Reserve:   func(t *Tenure, _, _ uint64) (uint32, error) { return 0, hook(t) },
				Replicate: func(t *Tenure, _ uint64, _ []byte, _ uint32) error { return hook(t) },
			}, newRegion(t, 1, 1<<20))
			a.Add(newRegion(t, 2, 1<<20))
			p, err := reserve(a, n)
			if err != nil {
				t.Fatal(err)
			}
			if calls < leaveAt {
				break
			}
			if p.Addr.Region() != 2 {
				t.Errorf("%d slots, region 1 leaves at call %d: %v", n, leaveAt, p)
			}
			for _, h := range a.mu.held {
				if h.space.region.id == 1 {
					t.Errorf("%d slots, region 1 leaves at call %d: block %d is held back", n, leaveAt, h.block)
				}
			}
		}
	}
}

// reserve reserves n slots, as an array if there are several.
func reserve(a *Allocator, n int) (p Ptr, err error) {
	if n == 1 {
		p, _, _, err = a.Alloc(Ordinary, 0, 100, 0)
	} else {
		p, _, _, err = a.AllocArray(Ordinary, 0, 100, n, 0)
	}
	return p, err
}

// The configuration that takes a region away begins just after a slot was reserved there: the slot is
// none of that configuration's.
func TestLeavesBeforeTheConfigurationIsKnown(t *testing.T) {
	for n := 1; n <= 2; n++ {
		config := uint32(5)
		var a *Allocator
		a = newAllocator(t, AllocatorConfig{Workers: 1, Config: func() uint32 {
			if config == 5 {
				leave(a, 1)
				config = 6
			}
			return config
		}}, newRegion(t, 1, 1<<20))
		a.Add(newRegion(t, 2, 1<<20))
		p, err := reserve(a, n)
		if err != nil || p.Addr.Region() != 2 || config != 6 {
			t.Errorf("%d slots at %v of configuration %d, %v", n, p, config, err)
		}
	}
}
