package region

import (
	"slices"
	"sync/atomic"
)

// States of a block in the block allocator.
const (
	spaceClean = 1 << iota // free and zero on every replica
	spaceDirty             // free, still holds the bytes of its former slab
	spaceBare              // free, was dirty, and its storage has been given back
	spaceTaken
)

// idleMax bounds the bytes of empty slabs that a region keeps for their own classes.
const idleMax = 8 << 20

// spanMax bounds the blocks of a slab, as a multiple of the least number for its class: with
// more blocks, a slab wastes less at its end.
const spanMax = 8

// space is one region, as the block allocator sees it.
type space struct {
	region *Region
	// tenure is over when the region has another primary: no slot is handed out any more.
	tenure Tenure
	// slabs has, for each block, the slab that it belongs to, nil if the block is free.
	slabs []atomic.Pointer[slab]
	// current has one slab for each class. Workers whose own slab lies in another region use it for
	// allocations with a hint into this region.
	current [Classes]atomic.Pointer[slab]
	// closed is set, for a class, after a search has found no room here.
	closed [Classes]atomic.Bool
	// idle is the number of blocks of empty slabs.
	idle atomic.Int32
	// kept is the number of idle blocks that were left when slabs were last retired, or the
	// smallest number since. isIdle does not count them: workers are about to fill these slabs
	// again.
	kept atomic.Int32
	// The rest is guarded by Allocator.mu.

	blocks  []uint8 // a space constant for each block
	unused  int     // number of blocks not taken
	listed  [Classes][]*slab
	retired []retiree
	unready []*slab // slabs that the scan has not finished
	doubts  []doubt
}

// newSpace makes a space from r's block table, which Repair has repaired. Slabs are unready
// until scanned.
func newSpace(r *Region) *space {
	sp := &space{
		region: r,
		tenure: Tenure{Region: r},
		slabs:  make([]atomic.Pointer[slab], r.Blocks()),
		blocks: make([]uint8, r.Blocks()),
	}
	for i := range sp.blocks {
		sp.blocks[i] = spaceClean
		if r.block(i).kind() == blockDirt {
			sp.blocks[i] = spaceDirty
		}
	}
	for e := range r.slabs {
		s := newSlab(sp, e)
		sp.settle(s)
		sp.unready = append(sp.unready, s)
	}
	for i := range sp.blocks {
		switch {
		case sp.slabs[i].Load() != nil, !r.block(i).valid(i, r.Blocks()):
			sp.blocks[i] = spaceTaken // the block is in a slab, or invalid, which Check reports
		default:
			sp.unused++
		}
	}
	return sp
}

// isIdle reports whether the empty slabs, without the kept blocks, have more than idleMax bytes,
// or more than an eighth of a small region. Then they should be available to other classes, and
// their storage to other programs. isIdle lowers kept if fewer blocks are idle by now.
func (sp *space) isIdle() bool {
	idle := max(sp.idle.Load(), 0) // negative for a moment if updates arrive out of order
	kept := min(sp.kept.Load(), idle)
	sp.kept.Store(kept)
	return uint64(idle-kept)<<sp.region.shift > min(idleMax, sp.region.size/8)
}

// settle makes s the slab of its blocks.
func (sp *space) settle(s *slab) {
	for i := s.head; i < s.head+s.blocks; i++ {
		sp.slabs[i].Store(s)
	}
}

// slabAt returns the slab that off lies in, or nil.
func (sp *space) slabAt(off uint32) *slab {
	if i := int(uint64(off) >> sp.region.shift); i < len(sp.slabs) {
		return sp.slabs[i].Load()
	}
	return nil
}

// spanFor returns two numbers of blocks for a slab of class c. The number least is the fewest
// blocks that hold an object. The number best is the fewest blocks that waste at most an eighth of
// their bytes after the last object, or least if that would be more than spanMax times least, or more
// than 1/spanMax of the region. A slab takes the best number if that many adjacent blocks are free.
func (r *Region) spanFor(c Class) (least, best int) {
	size, block := c.Size(), r.BlockSize()
	least = (size + block - 1) / block
	for n := least; n <= least*spanMax && n <= r.Blocks()/spanMax; n++ {
		if wasted := (n * block) % size; wasted*8 <= n*block {
			return least, n
		}
	}
	return least, least
}

// reserveLocked takes free blocks for a slab of class c, and returns their former states. It tries the
// best number of blocks before the least number (see spanFor), and for each number the sets of states in
// the given order.
func (sp *space) reserveLocked(c Class, sets ...uint8) (e extent, was []uint8, ok bool) {
	least, best := sp.region.spanFor(c)
	if sp.unused < least {
		return extent{}, nil, false
	}
	for _, n := range []int{best, least} {
		for _, states := range sets {
			if e, ok := sp.findLocked(c, n, states); ok {
				return e, sp.takeLocked(e), true
			}
		}
	}
	return extent{}, nil, false
}

// takeLocked takes the free blocks of e and returns their former states.
func (sp *space) takeLocked(e extent) (was []uint8) {
	was = slices.Clone(sp.blocks[e.head : e.head+e.blocks])
	for i := e.head; i < e.head+e.blocks; i++ {
		sp.blocks[i] = spaceTaken
	}
	sp.unused -= e.blocks
	return was
}

// findLocked returns the first run of n blocks, each in one of the given states, that can hold an object
// of class c.
func (sp *space) findLocked(c Class, n int, states uint8) (extent, bool) {
	run := 0
	for i, b := range sp.blocks {
		if b&states == 0 {
			run = 0
			continue
		}
		run++
		if run >= n {
			if e := sp.region.extentOf(i+1-n, n, c); e.slots > 0 {
				return e, true
			}
		}
	}
	return extent{}, false
}

// returnLocked frees the blocks of e. states are their new states: one for all of them, or one
// for each.
func (sp *space) returnLocked(e extent, states ...uint8) {
	for k := range e.blocks {
		sp.blocks[e.head+k] = states[min(k, len(states)-1)]
		sp.slabs[e.head+k].Store(nil)
	}
	sp.unused += e.blocks
	for c := range sp.closed {
		sp.closed[c].Store(false)
	}
}

// listLocked puts s onto the list of its class. The list becomes the home of s.
func (sp *space) listLocked(s *slab) {
	sp.listed[s.class] = append(sp.listed[s.class], s)
	sp.closed[s.class].Store(false)
}

// popLocked takes a slab with room from the list of class c, or returns nil. Slabs that
// allocations with hints have filled meanwhile lose their home.
func (sp *space) popLocked(c Class) *slab {
	for n := len(sp.listed[c]); n > 0; n-- {
		s := sp.listed[c][n-1]
		sp.listed[c][n-1] = nil
		sp.listed[c] = sp.listed[c][:n-1]
		if s.count.Load() > 0 || s.unhouse() {
			return s
		}
	}
	return nil
}

// sweep returns a slab of class c that has a free slot and no home, or nil. The caller becomes
// its home.
func (sp *space) sweep(c Class) *slab {
	for i := range sp.slabs {
		s := sp.slabs[i].Load()
		if s != nil && s.class == c && s.ready() && s.count.Load() > 0 && s.housed.CompareAndSwap(false, true) {
			return s
		}
	}
	return nil
}
