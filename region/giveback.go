package region

import (
	"context"
	"errors"
	"fmt"
)

// A block that became free may not be needed again soon. GiveBack returns its storage to the file
// system, at every replica, until the block is taken again.
//
//	free, dirty --> taken, dirty in every replica's table --> storage given back --> free, bare
//
// Meanwhile no one reads or writes the block: epochs have ended since it last belonged to a
// slab, and a dirty block has no slots that a replica would copy, sum or forget. A replica that is
// being filled keeps the storage: it clears the block when the block is taken, like any dirty
// block.

// giveBackMax bounds the number of blocks whose storage is given back together, because these
// blocks cannot be taken meanwhile.
const giveBackMax = 16

// A doubt is a run of blocks whose storage a replica was asked to give back, without an answer. The
// blocks stay taken until the replica can no longer carry out the request.
type doubt struct {
	extent
	config uint32 // the configuration in which the replica was asked; 0 if it was not asked before
}

// GiveBack gives the storage of all dirty blocks back, until ctx is done. The caller of
// Advance calls it when blocks have become available; only one call may run at a time. The memory of
// regions that leave the allocator meanwhile must stay mapped until GiveBack has returned.
func (a *Allocator) GiveBack(ctx context.Context) {
	for _, sp := range a.dir.Load().list {
		for _, d := range a.takeDoubts(sp) {
			a.giveBack(sp, d)
		}
		answered := true
		for from := 0; answered && !sp.tenure.IsOver() && ctx.Err() == nil; {
			e, ok := a.takeDirty(sp, from)
			if !ok {
				break
			}
			answered = a.giveBack(sp, doubt{extent: e}) // stop at a doubt: at most one run waits for a replica
			from = e.head + e.blocks                    // the next GiveBack retries blocks that failed
		}
	}
}

// takeDoubts removes the doubts of sp and returns them.
func (a *Allocator) takeDoubts(sp *space) []doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	ds := sp.doubts
	sp.doubts = nil
	return ds
}

// takeDirty takes the first run of dirty blocks of sp, of at most giveBackMax blocks. It begins to
// search at the given block.
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

// giveBack gives back the storage of d's blocks, and then frees the blocks. The caller has taken the
// blocks. They stay taken, as a doubt, while a replica may still carry out an unanswered request.
// answered is false if a replica has not answered this request.
func (a *Allocator) giveBack(sp *space, d doubt) (answered bool) {
	config, err := a.discard(&sp.tenure, d.extent)
	a.mu.Lock()
	defer a.mu.Unlock()
	isDone := err == nil && (d.config == 0 || config > d.config) // no earlier request can be carried out any more
	switch {
	case errors.Is(err, ErrDoubt):
		d.config = max(d.config, config)
		sp.doubts = append(sp.doubts, d)
		return false
	case isDone:
		sp.returnLocked(d.extent, spaceBare)
	case d.config != 0: // the earlier request may still be carried out
		sp.doubts = append(sp.doubts, d)
	default:
		sp.returnLocked(d.extent, spaceDirty)
	}
	return true
}

// discard marks the blocks of e dirty at every replica, and then gives back their storage. It keeps
// the storage of the region's header and block table. It returns the result of the hook Discard.
func (a *Allocator) discard(t *Tenure, e extent) (config uint32, err error) {
	if err := a.markDirty(t, e); err != nil {
		return 0, err
	}
	begin, end := max(uint64(e.head)<<t.shift, t.first), uint64(e.head+e.blocks)<<t.shift
	if a.cfg.Discard == nil {
		return 0, t.Discard(begin, end-begin)
	}
	return a.cfg.Discard(t, begin, end-begin)
}

// Discard gives back this replica's storage of n bytes at off. While the replica is being filled it
// keeps the storage, because its room has recorded that these blocks have storage. Discard fails
// unless all blocks there are free.
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
