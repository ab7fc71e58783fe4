package region

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// before is a region of format 1, as programs of that format have written it: region 7 of 1 MB.
// Block 1 is a slab of objects of 128 bytes; the second object is allocated, at version 3. Block 2
// is dirty. All other words are zero.
var before = map[uint64]uint64{
	0:  0x6e6f69676572_4d46,
	8:  7<<32 | 13<<16 | 1,
	16: 1 << 20,
	24: 0x5f4ac02aee0e1852,
	// The block table.
	64 + 8*1: 0xb10c_0000_0001_01_01,
	64 + 8*2: 0xb10c_0000_0000_03_00,
	// The object: its header, incarnation, first and last word.
	8192 + 128:      1<<62 | 3,
	8192 + 128 + 8:  5,
	8192 + 128 + 16: 0x1111,
	8192 + 128 + 64: 0x2222_0003,
}

func memoryOf(words map[uint64]uint64) *nvram.Memory {
	m := nvram.NewMemory(1 << 20)
	for off, w := range words {
		m.Store(off, w)
	}
	return m
}

// opensBefore reports whether programs of format 1 accept the header.
func opensBefore(m *nvram.Memory) bool {
	shape, size := m.Load(8), m.Load(16)
	return m.Load(24) == headerSum(shape, size) && uint16(shape) == 1
}

// A region of the format before can be opened with all that it holds. It then has this format, and
// programs of the format before refuse it. After a crash at any step it can still be opened.
func TestFormatBefore(t *testing.T) {
	halfway := memoryOf(before)
	halfway.Store(8, 7<<32|13<<16|2)
	for what, m := range map[string]*nvram.Memory{"before": memoryOf(before), "halfway": halfway} {
		if isBefore := opensBefore(m); isBefore != (what == "before") {
			t.Errorf("%s: a program of the format before opens it: %v", what, isBefore)
		}
		for range 2 {
			r, err := Open(7, m)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			p := MakePtr(MakeAddr(7, 8192+128), 1, 5)
			payload := make([]byte, p.Capacity())
			h, err := r.ReadObject(p, payload)
			if err != nil || h != MakeHeader(3, true) || payload[0] != 0x11 || payload[firstPayload] != 0x22 {
				t.Errorf("%s: object is %v %x: %v", what, h, payload, err)
			}
			if faults := r.Check(slices.Values([]Ptr{p})); len(faults) > 0 {
				t.Errorf("%s: %v", what, faults)
			}
			if g := r.block(1).generation(); g != 0 {
				t.Errorf("%s: generation %d", what, g)
			}
			if opensBefore(m) || m.Load(8) != 7<<32|13<<16|2 {
				t.Errorf("%s: shape %#x, a program of the format before opens it", what, m.Load(8))
			}
		}
	}
}

// changeClass frees all objects, and makes their blocks serve another size.
func changeClass(t *testing.T, p *pair, a *Allocator, epoch *uint64, old []Ptr, payload int) []Ptr {
	t.Helper()
	for _, ptr := range old {
		p.free(t, a, ptr)
	}
	if _, _, _, err := a.Alloc(Ordinary, 0, payload, 0); !errors.Is(err, ErrFull) {
		t.Fatalf("reused before its time: %v", err)
	}
	*epoch += 2
	a.Advance(*epoch)
	return fillWith(t, p, a, payload)
}

// The generation shows that a block has belonged to another slab meanwhile, even one of the same
// class.
func TestGenerations(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	epoch := uint64(1)
	a.Advance(epoch)
	first := fillWith(t, p, a, 1000)
	was := p.primary.block(5)
	p.free(t, a, first[0])
	again, v := mustAlloc(t, a, 0, 1000, 0)
	p.commit(t, again, v, nil)
	if p.primary.block(5) != was {
		t.Errorf("block is %v, was %v, with the same slab", p.primary.block(5), was)
	}
	first[0] = again
	second := changeClass(t, p, a, &epoch, first, 2000)
	changeClass(t, p, a, &epoch, second, 1000)
	if now := p.primary.block(5); now.withGeneration(0) != was.withGeneration(0) || now.generation() != was.generation()+2 {
		t.Errorf("block is %#x after two changes of class, was %#x", uint64(now), uint64(was))
	}
	p.same(t)
}

// Before a generation wraps around, every replica counts that.
func TestGenerationsBeginAnew(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	for _, r := range []*Region{p.primary, p.backup} {
		for i := range r.Blocks() {
			r.setBlocks(i, []uint64{uint64(makeBlock(blockDirt, 0, 0).withGeneration(0xffff))})
		}
	}
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	mustAlloc(t, a, 0, 1000, 0)
	i := 0
	for ; p.primary.block(i).kind() != blockHead; i++ {
	}
	if p.primary.block(i).generation() != 0 || p.primary.m.Load(wrapsOffset) != 1 || p.backup.m.Load(wrapsOffset) != 1 {
		t.Errorf("generation %d, wrapped around %d times, %d at the backup", p.primary.block(i).generation(), p.primary.m.Load(wrapsOffset), p.backup.m.Load(wrapsOffset))
	}
	p.same(t)
	p.failAt = 1 // of the next block, which another class takes
	if _, _, _, err := a.Alloc(Ordinary, 0, 5000, 0); !errors.Is(err, errHook) || p.primary.m.Load(wrapsOffset) != 1 {
		t.Errorf("with a hook that fails: %v, wrapped around %d times", err, p.primary.m.Load(wrapsOffset))
	}
}

// Blocks that a crash has left between two slabs keep their generations, so that the next slab has
// later ones.
func TestRepairKeepsGenerations(t *testing.T) {
	r := newRegion(t, 1, 1<<20)
	r.setBlocks(3, []uint64{uint64(makeBlock(blockTail, 0, 1).withGeneration(7))})
	r.Repair()
	if b := r.block(3); b.kind() != blockDirt || b.generation() != 7 {
		t.Errorf("block is %#x", uint64(b))
	}
}

// The hook may fail at any time while replicas enter a slab of several blocks. The table is then
// not broken, neither here nor at a backup that takes over, and the next attempt takes the blocks.
// The same is true of blocks of former slabs.
func TestRunIsLeftHalfWritten(t *testing.T) {
	for failAt := 1; failAt < 6; failAt++ {
		p := newPair(t, 1, 1<<20)
		a := newAllocator(t, AllocatorConfig{Replicate: p.replicateAll}, p.primary)
		epoch := uint64(1)
		a.Advance(epoch)
		sound := func(when string, used []Ptr) {
			t.Helper()
			if faults := p.primary.Check(slices.Values(used)); len(faults) > 0 {
				t.Errorf("the hook's call %d fails, %s: %v", failAt, when, faults)
			}
		}
		p.failAt = failAt
		_, _, _, err := a.Alloc(Ordinary, 0, 20000, 0)
		sound("at first", nil)
		if failed := errors.Is(err, errHook); failed != (failAt <= 2) {
			t.Fatalf("the hook's call %d fails: %v", failAt, err)
		}
		p.failAt = 0
		first := fillWith(t, p, a, 20000)
		sound("full", first)
		p.same(t)
		for _, ptr := range first {
			p.free(t, a, ptr)
		}
		if _, _, _, err := a.Alloc(Ordinary, 0, 50000, 0); !errors.Is(err, ErrFull) {
			t.Fatalf("reused before its time: %v", err)
		}
		epoch += 2
		a.Advance(epoch)
		p.failAt = failAt
		if _, _, _, err := a.Alloc(Ordinary, 0, 50000, 0); !errors.Is(err, errHook) {
			t.Errorf("the hook's call %d fails: %v", failAt, err)
		}
		sound("over former slabs", nil)
		p.failAt = 0
		p.backup.Repair()
		if faults := p.backup.Check(slices.Values[[]Ptr](nil)); len(faults) > 0 {
			t.Errorf("the hook's call %d fails, at the backup: %v", failAt, faults)
		}
		sound("in the end", fillWith(t, p, a, 50000))
		p.same(t)
	}
}
