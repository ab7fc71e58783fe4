package region

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
)

// scarce is storage for a bounded number of pages. Memory without storage must not be used.
type scarce struct {
	has  map[uint64]bool
	left int
}

const scarcePage = 4096

func (s *scarce) Reserve(off, n uint64) error {
	var missing []uint64
	for p := off / scarcePage; p*scarcePage < off+n; p++ {
		if !s.has[p] {
			missing = append(missing, p)
		}
	}
	if len(missing) > s.left {
		return nvram.ErrNoSpace
	}
	s.left -= len(missing)
	for _, p := range missing {
		s.has[p] = true
	}
	return nil
}

func (s *scarce) Discard(off, n uint64) {
	for p := off / scarcePage; p*scarcePage < off+n; p++ {
		if s.has[p] {
			s.left++
		}
		delete(s.has, p)
	}
}

// scarcePair is a pair of replicas with scarce storage.
type scarcePair struct {
	*pair
	storage [2]*scarce // the primary's, the backup's
	discard error      // what Discard fails with at the backup, which has done it
	in      uint32
	emptied int
	now     time.Time
	a       *Allocator
}

type stoppedClock struct {
	clock.System
	now *time.Time
}

func (c stoppedClock) Now() time.Time { return *c.now }

func newScarcePair(t *testing.T, pages int) *scarcePair { return newHoldingPair(t, pages, 0) }

// newHoldingPair is newScarcePair with heldBack blocks held back.
func newHoldingPair(t *testing.T, pages, heldBack int) *scarcePair {
	t.Helper()
	p := &scarcePair{pair: &pair{}, in: 7, now: time.Now()}
	for i, r := range []**Region{&p.primary, &p.backup} {
		p.storage[i] = &scarce{has: map[uint64]bool{}, left: pages}
		m := nvram.NewMemory(1 << 20)
		m.Keep(p.storage[i])
		var err error
		if *r, err = Format(1, m); err != nil {
			t.Fatal(err)
		}
	}
	p.a = newAllocator(t, AllocatorConfig{
		HeldBack:  heldBack,
		Clock:     stoppedClock{now: &p.now},
		Replicate: p.replicateAll,
		Reserve:   func(_ *Tenure, off, n uint64) (uint32, error) { return 0, p.backup.m.Reserve(off, n) },
		Discard: func(_ *Tenure, off, n uint64) (uint32, error) {
			if err := errors.Join(p.backup.Discard(off, n), p.discard); err != nil {
				return p.in, err
			}
			return p.in, p.primary.Discard(off, n)
		},
		Emptied: func() { p.emptied++ },
	}, p.primary)
	return p
}

// fill allocates objects until there is no room. It returns them, and the error.
func (p *scarcePair) fill(t *testing.T, payload int) (ptrs []Ptr, full error) {
	t.Helper()
	for {
		ptr, v, _, err := p.a.Alloc(Ordinary, 0, payload, 0)
		if err != nil {
			return ptrs, err
		}
		p.commit(t, ptr, v, []byte("some payload"))
		ptrs = append(ptrs, ptr)
	}
}

func (p *scarcePair) freeAll(t *testing.T, ptrs []Ptr) {
	t.Helper()
	for _, ptr := range ptrs {
		p.free(t, p.a, ptr)
	}
}

func (p *scarcePair) used() string {
	return fmt.Sprint(len(p.storage[0].has), " and ", len(p.storage[1].has))
}

// Every replica gives back the storage of freed memory, and later allocations can use the memory.
func TestStorageIsGivenBack(t *testing.T) {
	p := newScarcePair(t, 200) // of 256
	epoch := uint64(1)
	p.a.Advance(epoch)
	for _, payload := range []int{1000, 5000, 60000, 100, 1000} {
		ptrs, full := p.fill(t, payload)
		if !errors.Is(full, nvram.ErrNoSpace) {
			t.Fatalf("objects of %d bytes: %v", payload, full)
		}
		if len(p.storage[0].has) < 180 {
			t.Errorf("objects of %d bytes have %s pages", payload, p.used())
		}
		p.same(t)
		before := p.emptied
		p.freeAll(t, ptrs)
		if p.emptied == before {
			t.Errorf("nobody is told that all objects of %d bytes are freed", payload)
		}
		for range 2 {
			epoch++
			p.a.Advance(epoch)
		}
		p.a.GiveBack(t.Context())
		// Slabs in use by allocations remain, and up to an eighth of the region.
		if n := max(len(p.storage[0].has), len(p.storage[1].has)); n > 256/8+256/8 {
			t.Errorf("%s pages are left of those for objects of %d bytes", p.used(), payload)
		}
		for _, r := range []*Region{p.primary, p.backup} {
			if fs := r.Check(slices.Values([]Ptr{})); len(fs) > 0 {
				t.Error(fs)
			}
		}
		if fs := p.a.Check(); len(fs) > 0 {
			t.Error(fs)
		}
	}
}

// A replica that has not answered may still give storage back. Nobody gets the blocks before the
// replica has reported a later configuration.
func TestDoubtfulBlocksStayTaken(t *testing.T) {
	p := newScarcePair(t, 256)
	epoch := uint64(1)
	p.a.Advance(epoch)
	sp := p.a.dir.Load().list[0]
	use := func(when string, doubts int) {
		t.Helper()
		if len(sp.doubts) != doubts {
			t.Fatalf("%s, %d runs of blocks are in doubt, want %d", when, len(sp.doubts), doubts)
		}
		ptrs, _ := p.fill(t, 5000)
		for _, ptr := range ptrs {
			i := int(ptr.Addr.Offset()) >> p.primary.shift
			if doubts > 0 && i >= sp.doubts[0].head && i < sp.doubts[0].head+sp.doubts[0].blocks {
				t.Fatalf("%s, %v is allocated in a block that is in doubt", when, ptr)
			}
		}
		if len(ptrs) < 50 {
			t.Errorf("%s, %d objects have room", when, len(ptrs))
		}
		p.freeAll(t, ptrs)
		for range 2 {
			epoch++
			p.a.Advance(epoch)
		}
	}
	use("at first", 0)
	p.discard = ErrDoubt
	p.a.GiveBack(t.Context())
	use("without an answer", 1)
	p.discard = nil
	p.a.GiveBack(t.Context())
	use("when it has answered, in the same configuration", 1)
	p.in++
	p.discard = errHook
	p.a.GiveBack(t.Context())
	use("when another has refused", 1)
	p.discard = nil
	p.a.GiveBack(t.Context())
	use("when it has answered in a later one", 0)
	p.same(t)
}

// If a replica refuses, the blocks can be used again.
func TestRefusedBlocksAreFree(t *testing.T) {
	p := newScarcePair(t, 256)
	p.a.Advance(1)
	ptrs, _ := p.fill(t, 1000)
	p.freeAll(t, ptrs)
	p.a.Advance(3)
	p.discard = errHook
	p.a.GiveBack(t.Context())
	if got, _ := p.fill(t, 5000); len(got) < 100 {
		t.Errorf("%d objects have room", len(got))
	}
}

// Without storage, allocations take blocks that still have some first.
func TestStoredBlocksAreTaken(t *testing.T) {
	p := newScarcePair(t, 128)
	p.a.Advance(1)
	ptrs, _ := p.fill(t, 1000)
	p.freeAll(t, ptrs)
	p.a.Advance(3) // and nothing is given back
	if got, full := p.fill(t, 5000); len(got) < 50 {
		t.Errorf("%d objects have room: %v", len(got), full)
	}
}

// An allocation without room gets ErrReclaiming for a while if room is about to be available.
func TestAboutToBeAvailable(t *testing.T) {
	p := newScarcePair(t, 128)
	p.a.Advance(1)
	ptrs, full := p.fill(t, 1000)
	if errors.Is(full, ErrReclaiming) {
		t.Errorf("nothing is freed: %v", full)
	}
	p.freeAll(t, ptrs)
	_, _, _, err := p.a.Alloc(Ordinary, 0, 5000, 0)
	if !errors.Is(err, ErrReclaiming) || !errors.Is(err, nvram.ErrNoSpace) || p.emptied == 0 {
		t.Errorf("freed a moment ago: %v, told %d times", err, p.emptied)
	}
	if _, _, _, err := p.a.AllocArray(Ordinary, 0, 5000, 2, 0); !errors.Is(err, ErrReclaiming) {
		t.Errorf("an array: %v", err)
	}
	p.now = p.now.Add(reclaimPatience)
	if _, _, _, err := p.a.Alloc(Ordinary, 0, 5000, 0); errors.Is(err, ErrReclaiming) || !errors.Is(err, nvram.ErrNoSpace) {
		t.Errorf("freed long ago: %v", err)
	}
	p.a.Advance(2)
	p.a.Advance(3)
	if _, _, _, err := p.a.Alloc(Ordinary, 0, 5000, 0); err != nil {
		t.Error(err)
	}
}

// Only free blocks are given back, and no part of the region's header.
func TestDiscardRefuses(t *testing.T) {
	p := newScarcePair(t, 256)
	ptr, _ := mustAlloc(t, p.a, 0, 1000, 0)
	block := uint64(ptr.Addr.Offset()) &^ (1<<p.primary.shift - 1)
	for name, c := range map[string]struct{ off, n uint64 }{
		"a slab":                    {block, 1 << p.primary.shift},
		"a slab and free blocks":    {block, 8 << p.primary.shift},
		"the header":                {0, 1 << p.primary.shift},
		"what is beyond the region": {1 << 20, 4096},
		"what ends beyond it":       {1<<20 - 4096, 8192},
		"a number that overflows":   {1<<20 - 4096, ^uint64(0)},
	} {
		if err := p.primary.Discard(max(c.off, 0), c.n); !errors.Is(err, ErrBadPtr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Slabs that a new allocator has retired wait for two epochs from the first one that it hears of:
// the instance's epochs began long ago.
func TestFirstAdvance(t *testing.T) {
	p := newScarcePair(t, 256)
	ptrs, _ := p.fill(t, 1000)
	p.freeAll(t, ptrs)
	for epoch := uint64(1000); epoch < 1002; epoch++ {
		if p.a.Advance(epoch); p.a.Waiting() == 0 {
			t.Fatalf("nothing waits in epoch %d", epoch)
		}
	}
	if p.a.Advance(1002); p.a.Waiting() != 0 {
		t.Errorf("%d blocks wait", p.a.Waiting())
	}
}

// Slabs that workers are about to fill again are kept. They do not make Advance retire every slab
// that is empty for a moment.
func TestIdleSlabsAreKept(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Workers: 4, Replicate: p.replicate}, p.primary)
	for worker := range 4 {
		for _, payload := range []int{100, 300, 500, 700, 900, 1100, 1300, 1500} {
			ptr, v, _, err := a.Alloc(Ordinary, worker, payload, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.commit(t, ptr, v, nil)
			p.free(t, a, ptr)
		}
	}
	if n := a.Waiting(); n > 0 {
		t.Errorf("%d blocks of current slabs wait", n)
	}
	if a.dir.Load().list[0].isIdle() {
		t.Error("much is idle beyond what is kept")
	}
}
