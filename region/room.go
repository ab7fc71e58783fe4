package region

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// A primary reserves storage at every replica before it takes a block. A replica that is added
// later has no storage for blocks that were taken before: while it is being filled, a room
// says which blocks have some. Storage is reserved at the first write to a block. If the file
// system is full the write is skipped; filling brings the object later, once there is room.
type room struct {
	blocks []atomic.Bool
	missed []atomic.Bool // by block: a write has been left out

	// making is held while storage is being reserved, so that a block whose storage is there
	// is not found without it by a call that began earlier.
	making lockrank.Mutex[lockrank.Leaf]
}

// BeginFill says that r is to be filled: until EndFill it need not have storage for all
// blocks that are taken. Those for which it has none are new here, and all of them is stale.
func (r *Region) BeginFill() {
	r.filling.Store(&room{blocks: make([]atomic.Bool, r.Blocks()), missed: make([]atomic.Bool, r.Blocks())})
}

// EndFill says that all is there.
func (r *Region) EndFill() { r.filling.Store(nil) }

// Missed says whether a write to the blocks of p has been left out since BeginFill. After
// MakeRoom none will be any more.
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

// hasRoom says whether n bytes at off, which somebody writes, have storage.
func (r *Region) hasRoom(off, n uint64) bool {
	return r.filling.Load() == nil || r.makeRoom(off, n, true) == nil
}

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
