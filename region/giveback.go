package region

import (
	"context"
	"errors"
	"fmt"
)

// A block that became free may not be needed again soon: its storage goes back to the file
// system, at every replica, until the block is taken again.
//
//	free, dirty --> taken, dirty in every replica's table --> storage given back --> free, bare
//
// Nobody reads or writes there meanwhile: epochs have ended since the block was a slab's last,
// and dirty blocks have no slots that a replica would copy, sum or forget. A replica that is
// being filled gives nothing back: there the block is cleared when it is taken, as any dirty
// block is.

// giveBackMax bounds the blocks that nobody can take because their storage is being given
// back.
const giveBackMax = 16

// A doubt is a run of blocks whose storage a replica may still give back, for it was asked
// to and has not answered. They stay taken until it would not do so any more.
type doubt struct {
	extent
	in uint32 // by which configuration it was asked
}

// GiveBack gives the storage of all dirty blocks back, until ctx is done. The caller of
// Advance calls it when blocks have become available; only one call may run at a time.
func (a *Allocator) GiveBack(ctx context.Context) {
	for _, sp := range a.dir.Load().list {
		for _, d := range a.takeDoubts(sp) {
			a.giveBack(sp, d)
		}
		isSure := true
		for from := 0; isSure && ctx.Err() == nil; {
			e, ok := a.takeDirty(sp, from)
			if !ok {
				break
			}
			isSure = a.giveBack(sp, doubt{extent: e}) // a replica that does not answer has one run of blocks
			from = e.head + e.blocks                  // once: what failed waits for the next GiveBack
		}
	}
}

// takeDoubts returns the doubts of sp, which has none then.
func (a *Allocator) takeDoubts(sp *space) []doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	ds := sp.doubts
	sp.doubts = nil
	return ds
}

// takeDirty takes the first run of dirty blocks of sp from block from on.
func (a *Allocator) takeDirty(sp *space, from int) (e extent, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for from < len(sp.blocks) && sp.blocks[from] != spaceDirty {
		from++
	}
	e.head = from
	for from < len(sp.blocks) && sp.blocks[from] == spaceDirty && e.blocks < giveBackMax {
		e.blocks++
		from++
	}
	sp.takeLocked(e)
	return e, e.blocks > 0
}

// giveBack gives the storage of taken blocks back, and makes them free, unless there is
// doubt whether all replicas have done it.
func (a *Allocator) giveBack(sp *space, d doubt) (isSure bool) {
	in, err := a.discard(sp.region, d.extent)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, ErrDoubt):
		d.in = max(d.in, in)
		sp.doubts = append(sp.doubts, d)
		return false
	case err == nil && in > d.in, err == nil && d.in == 0:
		sp.returnLocked(d.extent, spaceBare) // and no replica knows an earlier configuration
	case d.in != 0:
		sp.doubts = append(sp.doubts, d)
	default:
		sp.returnLocked(d.extent, spaceDirty)
	}
	return true
}

// discard marks the blocks of e dirty at every replica, and then gives their storage back. The
// region's header, in its first block, stays.
func (a *Allocator) discard(r *Region, e extent) (in uint32, err error) {
	if err := a.markDirty(r, e); err != nil {
		return 0, err
	}
	begin, end := max(uint64(e.head)<<r.shift, r.first), uint64(e.head+e.blocks)<<r.shift
	if a.cfg.Discard == nil {
		return 0, r.Discard(begin, end-begin)
	}
	return a.cfg.Discard(r.id, begin, end-begin)
}

// Discard gives back the storage of n bytes at off of this replica, unless it is being
// filled: then storage that there is for a block stays (see room). It fails unless all
// blocks there are free.
func (r *Region) Discard(off, n uint64) error {
	if off < r.first || off+n > r.size || off+n < off {
		return fmt.Errorf("%w: %d bytes at %#x of region %d", ErrBadPtr, n, off, r.id)
	}
	for i := off >> r.shift; i<<r.shift < off+n; i++ {
		if b := r.block(int(i)); b != 0 && b.kind() != blockDirt {
			return fmt.Errorf("%w: block %d of region %d is %v", ErrBadPtr, i, r.id, r.block(int(i)))
		}
	}
	if r.filling.Load() == nil {
		r.m.Discard(off, n)
	}
	return nil
}
