package region

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/nvram"
)

// find returns a slab of class c with room, as near to hint as possible. The caller must give the
// slab a home. If no region has room, find adds a region and returns nil: the caller then searches
// again.
func (a *Allocator) find(c Class, hint Addr) (*slab, error) {
	dir := a.dir.Load()
	s, err := a.findNear(dir, c, hint)
	if s != nil || endsSearch(err) {
		return s, err
	}
	if err == nil { // not for ErrNoSpace: a new region would have no storage either
		err = a.addRegion(dir, c, hint.Region())
	}
	if err == nil {
		return nil, nil
	}
	// Search all regions: the hint is not binding, and there may be room by now.
	s, errElsewhere := a.findIn(dir.list, c)
	if s == nil {
		return nil, a.orReclaiming(cmp.Or(errElsewhere, err))
	}
	return s, nil
}

// findNear searches hint's region, then the regions that are co-located with it; without a hint,
// all regions.
func (a *Allocator) findNear(dir *directory, c Class, hint Addr) (*slab, error) {
	hinted := dir.byID[hint.Region()]
	if hint == 0 || hinted == nil {
		return a.findIn(dir.list, c)
	}
	near := a.colocated(dir, hinted)
	s, err := a.findIn(near[:1], c)
	if s == nil && !endsSearch(err) {
		var errNear error
		s, errNear = a.findIn(near[1:], c)
		err = cmp.Or(err, errNear)
	}
	return s, err
}

// colocated returns hinted and the spaces co-located with it.
func (a *Allocator) colocated(dir *directory, hinted *space) []*space {
	near := []*space{hinted}
	for _, sp := range dir.list {
		if sp != hinted && (a.cfg.Colocated == nil || a.cfg.Colocated(hinted.region.id, sp.region.id)) {
			near = append(near, sp)
		}
	}
	return near
}

// addRegion asks for a region near the given one that can hold class c, unless
// the directory has changed since dir was loaded.
func (a *Allocator) addRegion(dir *directory, c Class, near ID) error {
	a.cfg.Clock.Lock(&a.grow)
	defer a.grow.Unlock()
	if a.dir.Load() != dir {
		return nil
	}
	if a.cfg.Grow == nil {
		return ErrFull
	}
	r, err := a.cfg.Grow(near)
	if err != nil {
		return err
	}
	if a.dir.Load() == dir {
		if dir.byID[r.id] != nil {
			return ErrFull
		}
		a.Attach(r)
	}
	if r.first+uint64(c.Size()) > r.size {
		return fmt.Errorf("%w: %d bytes do not fit into a region of %d", ErrTooLarge, c.Size(), r.size)
	}
	return nil
}

// endsSearch reports whether err is an error other than ErrNoSpace. ErrNoSpace does not end a search,
// because another region may have room.
func endsSearch(err error) bool { return err != nil && !errors.Is(err, nvram.ErrNoSpace) }

// findIn returns a slab of class c with room in one of spaces. It tries listed and retired slabs
// first, then free blocks, then the last free slots (scrape).
func (a *Allocator) findIn(spaces []*space, c Class) (*slab, error) {
	a.mu.Lock()
	for _, sp := range spaces {
		s := sp.popLocked(c)
		if s == nil {
			s = sp.reviveLocked(c)
		}
		if s != nil {
			a.mu.Unlock()
			return s, nil
		}
	}
	a.mu.Unlock()
	var full error
	for _, sp := range spaces {
		s, err := a.takeBlocks(sp, c)
		if s != nil || endsSearch(err) {
			return s, err
		}
		full = cmp.Or(full, err)
	}
	for _, sp := range spaces {
		if s := a.scrape(sp, c); s != nil {
			return s, nil
		}
		sp.closed[c].Store(true)
	}
	return nil, full
}

// scrape searches a space without free blocks for any free slot of class c. If it finds none it
// retires empty slabs of other classes, so that there will be free blocks.
func (a *Allocator) scrape(sp *space, c Class) *slab {
	if s := sp.sweep(c); s != nil {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(sp.unready) - 1; i >= 0; i-- {
		if s := sp.unready[i]; s.class == c {
			a.scanLocked(sp, i, s.slots)
		}
	}
	if s := sp.popLocked(c); s != nil {
		return s
	}
	if s := sp.sweep(c); s != nil {
		return s
	}
	a.retireLocked(sp, true)
	return nil
}

// takeBlocks makes a slab of class c from free blocks of sp, on every replica. It prefers clean
// blocks to others. If a replica has no storage left, it takes dirty blocks, which have storage.
// It returns nil if no blocks are free. First it replenishes the held-back blocks.
func (a *Allocator) takeBlocks(sp *space, c Class) (*slab, error) {
	if err := a.holdBack(sp); err != nil {
		return nil, err
	}
	s, err := a.takeBlocksOf(sp, c, spaceClean, spaceClean|spaceDirty|spaceBare)
	if errors.Is(err, nvram.ErrNoSpace) {
		if stored, _ := a.takeBlocksOf(sp, c, spaceDirty); stored != nil {
			return stored, nil
		}
	}
	return s, err
}

// takeBlocksOf makes a slab of class c from free blocks: if possible from blocks in the states of the
// first set, otherwise of the next. It returns nil if there are none.
func (a *Allocator) takeBlocksOf(sp *space, c Class, sets ...uint8) (*slab, error) {
	a.mu.Lock()
	e, was, ok := sp.reserveLocked(c, sets...)
	a.mu.Unlock()
	if !ok {
		return nil, nil
	}
	return a.slabOn(sp, e, was)
}

// slabOn makes a slab from the blocks of e, which the caller has taken. was holds the blocks'
// states before that. If slabOn fails, it frees the blocks again. With ErrDeparted it drops sp, so
// that the next search does not meet it.
func (a *Allocator) slabOn(sp *space, e extent, was []uint8) (*slab, error) {
	err := a.prepare(&sp.tenure, e, slices.Max(was) != spaceClean)
	if errors.Is(err, ErrDeparted) {
		a.drop(sp)
		return nil, err
	}
	if err != nil {
		if !errors.Is(err, nvram.ErrNoSpace) { // ErrNoSpace means that prepare has changed no block
			was = []uint8{spaceDirty}
		}
		a.mu.Lock()
		sp.returnLocked(e, was...)
		a.mu.Unlock()
		return nil, err
	}
	s := newSlab(sp, e)
	s.freeAll()
	s.housed.Store(true)
	sp.settle(s)
	return s, nil
}

// prepare makes the blocks of e ready for a new slab, on every replica, in this order:
//
//  1. It reserves storage for them.
//  2. It marks the blocks of former slabs dirty, so that no replica takes them for the former slab
//     after another replica has cleared them.
//  3. It clears these blocks, so that no header there is taken for one of the new class.
//  4. It writes the new slab's words of the block table, at the backups first.
//
// If the backups change meanwhile, the new backups may have no storage there, so prepare begins
// again.
func (a *Allocator) prepare(t *Tenure, e extent, dirty bool) error {
	for {
		err := a.tryPrepare(t, e, dirty)
		if !errors.Is(err, ErrBackups) {
			return err
		}
	}
}

// tryPrepare performs the steps of prepare once. It returns ErrBackups if the backups have changed.
func (a *Allocator) tryPrepare(t *Tenure, e extent, dirty bool) error {
	begin, end := max(uint64(e.head)<<t.shift, t.first), uint64(e.head+e.blocks)<<t.shift
	config, err := a.reserve(t, begin, end-begin)
	if err != nil {
		return err
	}
	if dirty {
		if err := a.markDirty(t, e); err != nil {
			return err
		}
		if err := a.clear(t, begin, end, config); err != nil {
			return err
		}
	}
	words, hasWrapped := t.nextGeneration(e.head, runWords(e.blocks, e.class))
	if hasWrapped {
		if err := a.countWrap(t); err != nil {
			return err
		}
	}
	return a.setRun(t, e.head, words, config)
}

// countWrap counts on every replica that the generation of a block wraps around to zero. It is
// called before the block gets that generation.
func (a *Allocator) countWrap(t *Tenure) error {
	a.cfg.Clock.Lock(&a.dirty)
	defer a.dirty.Unlock()
	n := t.m.Load(wrapsOffset) + 1
	if err := a.replicate(t, wrapsOffset, encodeWords([]uint64{n}), 0); err != nil {
		return err
	}
	return t.During(func() { t.m.Store(wrapsOffset, n) })
}

// markDirty marks dirty all blocks of every former slab that overlaps e, including blocks outside
// e. Another call may be taking those blocks for another new slab, so both calls hold a.dirty.
func (a *Allocator) markDirty(t *Tenure, e extent) error {
	a.cfg.Clock.Lock(&a.dirty)
	defer a.dirty.Unlock()
	for i := e.head; i < e.head+e.blocks; i++ {
		if former, ok := t.slabOf(i); ok {
			if err := a.setRun(t, former.head, t.sameGeneration(former.head, dirtyWords(former.blocks)), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

var zeroes [64 << 10]byte

// clear zeroes the bytes from begin to end on every replica, piece by piece. Its writes to this machine's replica are
// as short: the end of the tenure waits for one piece at most, and not until a long range of memory is mapped.
func (a *Allocator) clear(t *Tenure, begin, end uint64, config uint32) error {
	for off := begin; off < end; off += uint64(len(zeroes)) {
		n := min(uint64(len(zeroes)), end-off)
		if err := a.replicate(t, off, zeroes[:n], config); err != nil {
			return err
		}
		if err := t.During(func() { t.m.Zero(off, n) }); err != nil {
			return err
		}
	}
	return nil
}

// setRun sets the block table's words from block i on, on every replica. It writes the first
// word last, because Repair takes only a complete run for a slab. If a write fails, setRun makes
// the blocks dirty here, as Repair would at the replicas where the run is incomplete.
func (a *Allocator) setRun(t *Tenure, i int, words []uint64, config uint32) error {
	off, data := tableOffset+uint64(i)*8, encodeWords(words)
	if len(words) > 1 {
		if err := a.replicate(t, off+8, data[8:], config); err != nil {
			return err
		}
	}
	err := a.replicate(t, off, data[:8], config)
	switch {
	case err == nil:
		err = t.During(func() { t.setBlocks(i, words) })
	case len(words) > 1:
		_ = t.During(func() { t.setBlocks(i, t.sameGeneration(i, dirtyWords(len(words)))) }) // err says more
	}
	return err
}

// reviveLocked takes a retired slab of class c back into use. It need not wait for epochs:
// pointers that readers may hold are no danger to objects of the same class.
func (sp *space) reviveLocked(c Class) *slab {
	for i, x := range sp.retired {
		if x.slab.class == c {
			sp.retired = slices.Delete(sp.retired, i, i+1)
			x.slab.freeAll()
			x.slab.housed.Store(true)
			return x.slab
		}
	}
	return nil
}
