package region

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// A primary reserves storage at every replica before it takes a block. A replica that is added
// later has no storage for blocks that were taken before: while it is being filled, a room
// records which blocks have storage. Storage is reserved at the first write to a block. If the
// file system is full the write is skipped; filling brings the object later, once there is room.
type room struct {
	blocks []atomic.Bool
	missed []atomic.Bool // for each block, whether a write has been skipped

	// making serializes reservations, so that a reservation that failed cannot mark a block as
	// missed after a later one has succeeded.
	making lockrank.Mutex[lockrank.Leaf]
}

// BeginFill begins the filling of r: until EndFill, r need not have storage for all blocks that
// are taken. Blocks without storage are new at this replica, and all their chunks are stale.
func (r *Region) BeginFill() {
	r.filling.Store(&room{blocks: make([]atomic.Bool, r.Blocks()), missed: make([]atomic.Bool, r.Blocks())})
}

// EndFill ends the filling of r, which now has all objects.
func (r *Region) EndFill() { r.filling.Store(nil) }

// Missed reports whether a write to the blocks of p has been skipped since BeginFill. After
// MakeRoom no more are skipped.
func (r *Region) Missed(p Piece) bool {
	f := r.filling.Load()
	if f == nil {
		return false
	}
	for i := p.Offset >> r.shift; i<<r.shift < p.Offset+uint64(p.Bytes); i++ {
		if f.missed[i].Load() {
			return true
		}
	}
	return false
}

// MakeRoom reserves storage for a piece before it is read at the primary, so that no later
// write to it is skipped. The error is nvram.ErrNoSpace.
func (r *Region) MakeRoom(p Piece) error { return r.makeRoom(p.Offset, uint64(p.Bytes), false) }

// hasRoom reports whether n bytes at off have storage for a write, which it reserves if needed.
func (r *Region) hasRoom(off, n uint64) bool {
	return r.filling.Load() == nil || r.makeRoom(off, n, true) == nil
}

// makeRoom reserves storage for those blocks of a range that lack it, while the replica is being
// filled. isWrite says that the caller skips its write if this fails: the block is then marked as
// missed.
func (r *Region) makeRoom(off, n uint64, isWrite bool) error {
	f := r.filling.Load()
	if f == nil {
		return nil
	}
	for i := off >> r.shift; i<<r.shift < off+n; i++ {
		if f.blocks[i].Load() {
			continue
		}
		if err := r.makeBlock(f, i, isWrite); err != nil {
			return err
		}
	}
	return nil
}

// makeBlock does the work of makeRoom for block i.
func (r *Region) makeBlock(f *room, i uint64, isWrite bool) error {
	f.making.Lock()
	defer f.making.Unlock()
	err := r.m.Reserve(i<<r.shift, 1<<r.shift)
	switch {
	case err == nil:
		f.blocks[i].Store(true)
	case isWrite:
		f.missed[i].Store(true)
	}
	return err
}
