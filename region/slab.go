package region

import (
	"math/bits"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// slab hands out the slots of one extent. Its state is volatile: one bit for each slot, which
// can be rebuilt from the objects' headers.
//
// Any goroutine may take and give back slots, by atomic operations on the bits; a slab belongs
// to one worker for speed only. A slab has at most one home: it is the current slab of a worker
// or of a region, or on a list of slabs with room. A full slab has no home; it is listed once
// enough of its slots are free.
type slab struct {
	extent
	space *space

	// free has a bit per slot, set while the slot can be taken. A retired slab,
	// whose blocks may get another class, has none set.
	free []uint64
	// count is the number of bits set in free. It is updated a moment after the bits.
	count atomic.Int32
	// cursor is the word where the next search begins.
	cursor atomic.Uint32
	// housed says that the slab has a home.
	housed atomic.Bool
	// scanned is the number of slots whose headers the rebuilding scan has read. Until it has
	// read all of them, no slot is taken.
	scanned atomic.Int32
}

// newSlab returns a slab without free slots.
func newSlab(sp *space, e extent) *slab {
	return &slab{extent: e, space: sp, free: make([]uint64, (e.slots+63)/64)}
}

// full returns the value that word i of free has if every slot is free.
func (s *slab) full(i int) uint64 {
	if rest := s.slots - i*64; rest < 64 {
		return 1<<rest - 1
	}
	return ^uint64(0)
}

// freeAll makes every slot free. No one else may be using the slab.
func (s *slab) freeAll() {
	for i := range s.free {
		atomic.StoreUint64(&s.free[i], s.full(i))
	}
	s.scanned.Store(int32(s.slots))
	s.addFree(s.slots)
}

// addFree adds n to the number of free slots, and updates the space's count of idle blocks. It
// reports whether every slot is free now.
func (s *slab) addFree(n int) (emptied bool) {
	after := int(s.count.Add(int32(n)))
	before := after - n
	if after == s.slots {
		s.space.idle.Add(int32(s.blocks))
		return true
	}
	if before == s.slots {
		s.space.idle.Add(int32(-s.blocks))
	}
	return false
}

// take reserves a free slot and returns its number, or false if it found none.
func (s *slab) take() (int, bool) {
	if s.count.Load() <= 0 {
		return 0, false
	}
	start := int(s.cursor.Load())
	i := start
	for range s.free {
		word := atomic.LoadUint64(&s.free[i])
		for word != 0 {
			bit := word & -word
			if atomic.CompareAndSwapUint64(&s.free[i], word, word&^bit) {
				s.addFree(-1)
				if i != start {
					s.cursor.Store(uint32(i))
				}
				return i*64 + bits.TrailingZeros64(bit), true
			}
			word = atomic.LoadUint64(&s.free[i])
		}
		if i++; i == len(s.free) {
			i = 0
		}
	}
	return 0, false
}

// give makes slot i free. given is false if the slot was free already. emptied is true if it was
// the last slot in use.
func (s *slab) give(i int) (given, emptied bool) {
	bit := uint64(1) << (i % 64)
	if atomic.OrUint64(&s.free[i/64], bit)&bit != 0 {
		return false, false
	}
	return true, s.addFree(1)
}

// hold takes slot i again, if it was released before the scan reached it.
func (s *slab) hold(i int) {
	bit := uint64(1) << (i % 64)
	if atomic.AndUint64(&s.free[i/64], ^bit)&bit != 0 {
		s.addFree(-1)
	}
}

// isFree reports whether slot i is free.
func (s *slab) isFree(i int) bool {
	return (atomic.LoadUint64(&s.free[i/64])>>(i%64))&1 != 0
}

// empty reports whether all slots seem to be free.
func (s *slab) empty() bool { return int(s.count.Load()) == s.slots }

// roomy reports whether enough slots are free for the slab to be listed.
func (s *slab) roomy() bool { return int(s.count.Load()) > s.slots/64 }

// rehouse marks a slab as having a home if it has none and enough slots are free. If rehouse
// returns true, the caller must give the slab a home.
func (s *slab) rehouse() bool { return s.roomy() && s.housed.CompareAndSwap(false, true) }

// unhouse marks the slab as having no home. A later release sees that, and lists the slab. If
// enough slots have been released before, unhouse returns true, and the caller must give the slab
// another home.
func (s *slab) unhouse() bool {
	s.housed.Store(false)
	return s.rehouse()
}

// takeAll reserves every slot, or none if not all of them are free.
func (s *slab) takeAll() bool {
	for i := range s.free {
		if !atomic.CompareAndSwapUint64(&s.free[i], s.full(i), 0) {
			for k := range i {
				atomic.StoreUint64(&s.free[k], s.full(k))
			}
			return false
		}
	}
	s.addFree(-s.slots)
	return true
}

// scan looks at up to n more slots and frees the slots without an object. It keeps locked slots,
// which belong to transactions that recovery has yet to decide. It returns how many slots it looked
// at.
func (s *slab) scan(n int) int {
	from := int(s.scanned.Load())
	to := min(from+n, s.slots)
	for i := from; i < to; i++ {
		if _, h := s.space.region.slot(s.extent, i); !h.Allocated() && (!h.Locked() || sabotage.ScanLocked.Skipped()) {
			s.give(i)
		}
	}
	s.scanned.Store(int32(to))
	return to - from
}

// ready reports whether the scan is over.
func (s *slab) ready() bool { return int(s.scanned.Load()) == s.slots }

// alloc reserves a slot and returns its present incarnation and version; false if the slab is missing, not ready or
// full, or another machine is the primary by now.
func (s *slab) alloc() (Ptr, Version, bool) {
	if s == nil || !s.ready() || s.space.tenure.IsOver() {
		return Ptr{}, 0, false
	}
	i, ok := s.take()
	if !ok {
		return Ptr{}, 0, false
	}
	p, h := s.space.region.slot(s.extent, i)
	if h.Allocated() {
		invariant.Violated("a slot on the free list holds no object", p, h)
	}
	return p, h.Version(), true
}

// release frees the slot at p, and reports whether it was the slab's last slot in use.
func (s *slab) release(p Ptr) (emptied bool) {
	off := uint64(p.Addr.Offset())
	if s.class != p.Class() || !s.holds(off) {
		invariant.Violated("release of a slot", p, s.class.Size())
	}
	i := s.index(off)
	if _, h := s.space.region.slot(s.extent, i); h.Allocated() {
		invariant.Violated("a released slot holds no object", p, h)
	}
	ready := s.ready() // a slab that is not ready is being scanned, and the scan may have freed the slot
	given, emptied := s.give(i)
	if !given && ready {
		invariant.Violated("a slot is released once", p, "free already")
	}
	return emptied
}
