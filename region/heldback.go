package region

import (
	"errors"

	"github.com/farmsql/farmsql/nvram"
)

// Freeing memory may need some memory first: a table gets new structures before the old ones
// are dropped, a B-tree merges nodes into a new one. So that this does not fail when memory is
// full, a few blocks are held back, with storage at every replica; other allocations fail
// rather than use them. A backup that was added later may have no storage for these blocks; the
// storage is reserved when the blocks are taken.

// A Need says which kind of transaction allocates.
type Need uint8

const (
	Ordinary Need = iota
	// ToFree is the need of transactions that free memory: if there is no other room, they may
	// use the held-back blocks.
	ToFree
)

// heldBackShare bounds the held-back blocks: at most one in heldBackShare blocks of a region.
const heldBackShare = 32

// A heldBlock is a taken block that belongs to no slab.
type heldBlock struct {
	space *space
	block int
	was   uint8
}

// holdBack takes free blocks of sp until enough are held back. If it fails, or leaves no free
// block, ordinary allocations have no room in sp.
func (a *Allocator) holdBack(sp *space) error {
	if !a.holdsTooFew(sp) {
		return nil
	}
	a.cfg.Clock.Lock(&a.holding)
	defer a.holding.Unlock()
	for a.holdsTooFew(sp) {
		h, ok := a.takeToHold(sp)
		if !ok {
			return nil
		}
		_, err := a.reserve(&sp.tenure, uint64(h.block)<<sp.region.shift, uint64(1)<<sp.region.shift)
		if err := a.hold(h, err); err != nil {
			return err
		}
	}
	return nil
}

// hold holds back a block whose storage has been reserved, with the given result. If that failed, it
// frees the block again. The region may have left meanwhile: a block of another primary's is never
// held.
func (a *Allocator) hold(h heldBlock, reserved error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(reserved, ErrDeparted), h.space.tenure.IsOver():
		a.dropLocked(h.space)
		return ErrDeparted
	case reserved != nil:
		h.space.returnLocked(extent{head: h.block, blocks: 1}, h.was)
	default:
		a.mu.held = append(a.mu.held, h)
	}
	return reserved
}

// holdsTooFew reports whether the allocator holds back fewer blocks than it should.
func (a *Allocator) holdsTooFew(sp *space) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mu.held) < min(a.cfg.HeldBack, sp.region.Blocks()/heldBackShare)
}

// takeToHold takes a free block of sp, preferably one with storage. It never takes the block
// with the region's table.
func (a *Allocator) takeToHold(sp *space) (h heldBlock, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	blockBytes := uint64(1) << sp.region.shift
	first := int((sp.region.first + blockBytes - 1) >> sp.region.shift) // the first block after the table
	for _, kind := range []uint8{spaceDirty, spaceClean, spaceBare} {
		for i := first; i < len(sp.blocks); i++ {
			if sp.blocks[i] == kind {
				return heldBlock{sp, i, sp.takeLocked(extent{head: i, blocks: 1})[0]}, true
			}
		}
	}
	return h, false
}

// orHeld returns a slab with room for n objects of class c on a held-back block. err says why there
// is no other room. orHeld returns it if need is not ToFree, or if no held-back block has room for
// the objects.
func (a *Allocator) orHeld(need Need, c Class, n int, err error) (*slab, error) {
	isFull := errors.Is(err, ErrFull) || errors.Is(err, nvram.ErrNoSpace)
	if need != ToFree || !isFull {
		return nil, err
	}
	a.mu.Lock()
	h, e, ok := a.popHeldLocked(c, n)
	a.mu.Unlock()
	if !ok {
		return nil, err
	}
	return a.slabOn(h.space, e, []uint8{h.was})
}

// popHeldLocked takes the last held-back block, if n objects of class c fit into it.
func (a *Allocator) popHeldLocked(c Class, n int) (h heldBlock, e extent, ok bool) {
	last := len(a.mu.held) - 1
	if last < 0 {
		return h, e, false
	}
	h = a.mu.held[last]
	e = h.space.region.extentOf(h.block, 1, c)
	if e.slots < n {
		return h, e, false // n objects do not fit into one block
	}
	a.mu.held = a.mu.held[:last]
	return h, e, true
}
