package region

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// Element returns the pointer to element i of an array, given the pointer p to its first element:
// the elements lie side by side, and all began with the same incarnation.
func (p Ptr) Element(i int) Ptr {
	return Ptr{p.Addr + Addr(i)*Addr(p.Class().Size()), p.tail}
}

// AllocArray reserves n slots for payload bytes each, side by side. It returns the pointer to the
// first element, the version that each slot has now, and the configuration in which they were
// reserved, as Alloc does; Element returns the pointers to the others. Each element is an object like any other, committed, released and freed by itself.
// Errors are those of Alloc; an array must fit into one slab.
func (a *Allocator) AllocArray(need Need, worker, payload, n int, hint Addr) (p Ptr, versions []Version, config uint32, err error) {
	c, ok := ClassFor(payload)
	if !ok {
		return Ptr{}, nil, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, payload, MaxPayload)
	}
	w := &a.workers[worker]
	a.cfg.Clock.Lock(&w.refill)
	defer w.refill.Unlock()
	for {
		dir := a.dir.Load()
		near := dir.list
		if hinted := dir.byID[hint.Region()]; hint != 0 && hinted != nil {
			near = a.colocated(dir, hinted)
		}
		s, first, err := a.findRun(w, near, c, n, hint)
		if s == nil && err == nil {
			if err = a.orReclaiming(a.addRegion(dir, c, hint.Region())); err == nil {
				continue
			}
		}
		if err != nil {
			s, first, err = a.orHeldRun(need, w, c, n, hint, err)
		}
		if errors.Is(err, ErrDeparted) {
			continue // search again without the region
		}
		if err != nil {
			return Ptr{}, nil, 0, err
		}
		p, versions = s.array(first, n)
		if config, ok := a.reservedIn(s); ok {
			return p, versions, config, nil
		} // the region has another primary by now: search elsewhere
	}
}

// findRun reserves n adjacent slots in one of spaces, in an existing slab or in a new one. It
// returns the slab and the number of the first slot; no slab and no error if there is no room, and a
// further region would help.
func (a *Allocator) findRun(w *worker, spaces []*space, c Class, n int, hint Addr) (*slab, int, error) {
	for _, sp := range spaces {
		for i := range sp.slabs {
			s := sp.slabs[i].Load()
			if s == nil || s.head != i || s.class != c || !s.ready() {
				continue
			}
			if first, ok := s.takeRun(n); ok {
				return s, first, nil
			}
		}
	}
	var full error
	for _, sp := range spaces {
		s, err := a.takeBlocks(sp, c)
		if endsSearch(err) {
			return nil, 0, err
		}
		full = cmp.Or(full, err)
		if s == nil {
			continue
		}
		if n > s.slots {
			a.leave(s)
			return nil, 0, fmt.Errorf("%w: array of %d objects of %d bytes, at most %d", ErrTooLarge, n, c.Size(), s.slots)
		}
		first, ok := s.takeRun(n)
		a.keep(w, hint, s)
		if ok {
			return s, first, nil
		}
	}
	if full != nil {
		a.retireAll(spaces)
	}
	return nil, 0, a.orReclaiming(full)
}

// orHeldRun does the work of findRun, which has failed with err, in a block that is held back.
func (a *Allocator) orHeldRun(need Need, w *worker, c Class, n int, hint Addr, err error) (*slab, int, error) {
	s, errHeld := a.orHeld(need, c, n, err)
	if errHeld != nil {
		return nil, 0, errHeld
	}
	first, ok := s.takeRun(n)
	a.keep(w, hint, s)
	if !ok {
		return nil, 0, err
	}
	return s, first, nil
}

// retireAll retires all empty slabs of spaces.
func (a *Allocator) retireAll(spaces []*space) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sp := range spaces {
		a.retireLocked(sp, true)
	}
}

// takeRun reserves n adjacent free slots and returns the number of the first.
func (s *slab) takeRun(n int) (first int, ok bool) {
	for first+n <= s.slots {
		taken := s.takeUpTo(first, n)
		if taken == n {
			return first, true
		}
		for i := range taken {
			s.give(first + i)
		}
		first = s.nextFree(first + taken + 1)
	}
	return 0, false
}

// takeUpTo reserves up to n slots from first on, and stops at a slot that is not free. It returns
// how many it has reserved.
func (s *slab) takeUpTo(first, n int) int {
	for i := range n {
		slot := first + i
		bit := uint64(1) << (slot % 64)
		if atomic.AndUint64(&s.free[slot/64], ^bit)&bit == 0 {
			return i
		}
		s.addFree(-1)
	}
	return n
}

// nextFree returns the first slot from i on that is free, or the number of slots.
func (s *slab) nextFree(i int) int {
	for i < s.slots {
		if word := atomic.LoadUint64(&s.free[i/64]) >> (i % 64); word != 0 {
			return i + bits.TrailingZeros64(word)
		}
		i = (i/64 + 1) * 64
	}
	return s.slots
}

// array returns the pointer to the n reserved slots from first on and their versions. All elements
// get the largest of the slots' incarnations: a slot may skip incarnations, but must never repeat
// one.
func (s *slab) array(first, n int) (Ptr, []Version) {
	versions := make([]Version, n)
	var incarnation uint64
	for i := range versions {
		p, h := s.space.region.slot(s.extent, first+i)
		versions[i] = h.Version()
		incarnation = max(incarnation, p.Incarnation())
	}
	p, _ := s.space.region.slot(s.extent, first)
	return MakePtr(p.Addr, s.class, incarnation), versions
}

// CanHold reports whether off can be the offset of an object, so that Header may
// be asked about it. Offsets that come from another machine must be checked with it.
func (r *Region) CanHold(off uint32) bool {
	return off%lineBytes == 0 && uint64(off) >= r.first && uint64(off) < r.size
}
