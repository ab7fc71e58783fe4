package region

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// holds reports the blocks that p holds back, and checks that there is storage for them.
func (p *scarcePair) holds(t *testing.T) (blocks []int) {
	t.Helper()
	for _, h := range p.a.mu.held {
		blocks = append(blocks, h.block)
		for off := uint64(h.block) << p.primary.shift; off < uint64(h.block+1)<<p.primary.shift; off += scarcePage {
			if !p.storage[0].has[off/scarcePage] || !p.storage[1].has[off/scarcePage] {
				t.Errorf("block %d has no storage at %#x", h.block, off)
			}
		}
	}
	return blocks
}

// fillUp leaves no block free, and no storage for one.
func (p *scarcePair) fillUp(t *testing.T) (ptrs []Ptr, full error) {
	ptrs, _ = p.fill(t, 5000)
	rest, full := p.fill(t, 300) // one block at a time
	return append(ptrs, rest...), full
}

// When others find no room any more, a transaction that frees memory does: in blocks that are held
// back, until there are none. Others find no room before these blocks are held back again.
func TestHeldBack(t *testing.T) {
	for name, pages := range map[string]int{"no storage": 128, "no blocks": 1000} {
		t.Run(name, func(t *testing.T) {
			p := newHoldingPair(t, pages, 2)
			p.a.Advance(1)
			ptrs, full := p.fillUp(t)
			if !errors.Is(full, nvram.ErrNoSpace) && !errors.Is(full, ErrFull) || len(ptrs) < 50 {
				t.Fatalf("%d objects have room: %v", len(ptrs), full)
			}
			if got := p.holds(t); len(got) != 2 {
				t.Fatalf("blocks %v are held back", got)
			}
			for _, payload := range []int{100, 1000} { // each takes one block
				if _, _, _, err := p.a.Alloc(Ordinary, 0, payload, 0); err == nil {
					t.Errorf("%d bytes have room", payload)
				}
				ptr, v, _, err := p.a.Alloc(ToFree, 0, payload, 0)
				if err != nil {
					t.Fatalf("%d bytes for who frees: %v", payload, err)
				}
				p.commit(t, ptr, v, []byte("some payload"))
				ptrs = append(ptrs, ptr)
			}
			if _, _, _, err := p.a.Alloc(ToFree, 0, 2000, 0); !errors.Is(err, nvram.ErrNoSpace) && !errors.Is(err, ErrFull) {
				t.Errorf("nothing is held back: %v", err)
			}
			p.same(t)
			p.freeAll(t, ptrs)
			for epoch := range uint64(3) {
				p.a.Advance(2 + epoch)
			}
			again, _ := p.fill(t, 2000)
			if got := p.holds(t); len(got) != 2 || len(again) < 100 {
				t.Errorf("blocks %v are held back, %d objects have room", got, len(again))
			}
			for _, fs := range [][]Fault{p.a.Check(), p.primary.Check(slices.Values(again))} {
				if len(fs) > 0 {
					t.Error(fs)
				}
			}
		})
	}
}

// An array finds room in a held-back block if it fits into one.
func TestArrayInHeldBack(t *testing.T) {
	p := newHoldingPair(t, 128, 2)
	if _, full := p.fillUp(t); full == nil {
		t.Fatal("it is not full")
	}
	if _, _, _, err := p.a.AllocArray(Ordinary, 0, 200, 6, 0); !errors.Is(err, nvram.ErrNoSpace) {
		t.Errorf("an array: %v", err)
	}
	if _, _, _, err := p.a.AllocArray(ToFree, 0, 60_000, 1, 0); !errors.Is(err, nvram.ErrNoSpace) || len(p.holds(t)) != 2 {
		t.Errorf("an object larger than a block: %v, %v are left", err, p.holds(t))
	}
	if _, _, _, err := p.a.AllocArray(ToFree, 0, 200, 1000, 0); !errors.Is(err, nvram.ErrNoSpace) {
		t.Errorf("an array that does not fit a block: %v", err)
	}
	if _, _, _, err := p.a.AllocArray(ToFree, 0, 200, 6, 0); err != nil {
		t.Errorf("an array for who frees: %v", err)
	}
	p.same(t)
}

// A region whose primary is elsewhere holds nothing back here.
func TestDroppedHoldsNothing(t *testing.T) {
	p := newHoldingPair(t, 256, 2)
	mustAlloc(t, p.a, 0, 100, 0)
	if got := p.holds(t); len(got) != 2 {
		t.Fatalf("blocks %v are held back", got)
	}
	leave(p.a, p.primary.id)
	if got := p.holds(t); len(got) > 0 {
		t.Errorf("blocks %v are held back", got)
	}
}

// A block that cannot be held back, or be used, is as free as it was before.
func TestHoldBackFails(t *testing.T) {
	p := newHoldingPair(t, 128, 2)
	sp := p.a.dir.Load().list[0]
	unused := sp.unused
	reserve := p.a.cfg.Reserve
	p.a.cfg.Reserve = func(*Tenure, uint64, uint64) (uint32, error) { return 0, errHook }
	if _, _, _, err := p.a.Alloc(Ordinary, 0, 100, 0); !errors.Is(err, errHook) || sp.unused != unused {
		t.Errorf("%v, %d blocks are free, %d before", err, sp.unused, unused)
	}
	p.a.cfg.Reserve = reserve
	if _, full := p.fillUp(t); full == nil || len(p.holds(t)) != 2 {
		t.Fatalf("%v, %v are held back", full, p.holds(t))
	}
	p.a.cfg.Reserve = func(*Tenure, uint64, uint64) (uint32, error) { return 0, nvram.ErrNoSpace }
	unused = sp.unused
	if _, _, _, err := p.a.Alloc(ToFree, 0, 100, 0); !errors.Is(err, nvram.ErrNoSpace) || sp.unused != unused+1 {
		t.Errorf("%v, %d blocks are free, %d before", err, sp.unused, unused)
	}
}
