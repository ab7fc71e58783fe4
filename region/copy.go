package region

import (
	"encoding/binary"
	"iter"

	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Piece is a range of a region that holds whole slots of one slab and nothing
// else. A new backup reads one piece from the primary at a time.
type Piece struct {
	Offset uint64
	Bytes  int
	// IsSettled makes Take return false while an object is locked at the primary, because this
	// replica may lack the writes of the transaction that locked the object.
	IsSettled bool
	slab      extent
	first     int // the index of the first slot of the piece
}

// Pieces yields the pieces that a new backup has to read: together they cover all slots of all
// slabs in the present block table. A piece has at most n bytes, or one slot if that is longer.
// Slabs made later hold nothing that would have to be read.
func (r *Region) Pieces(n int) iter.Seq[Piece] {
	return r.pieces(0, r.size, n)
}

// pieces yields the pieces for the slots that begin between the offsets begin and end.
func (r *Region) pieces(begin, end uint64, n int) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		for s := range r.slots(begin, end) {
			slots := max(1, n/s.class.Size())
			for i := s.first; i < s.last; i += slots {
				p := Piece{Offset: s.slot(i), Bytes: min(slots, s.last-i) * s.class.Size(), slab: s.extent, first: i}
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Take copies to a backup those objects in raw that are newer than the backup's. raw is piece p as
// a NIC has just read it at the primary. Take returns false if an object was being changed there:
// the piece must be read again (SOSP'15 section 5.4). Others may write to the backup meanwhile.
//
// The caller must hold an epoch open from making the piece until Take returns, so that the slab is
// not freed meanwhile.
func (r *Region) Take(p Piece, raw []byte) (whole bool) {
	whole = true
	size := p.slab.class.Size()
	payload := make([]byte, p.slab.class.Capacity())
	for i := 0; len(raw) >= size; i++ {
		if p.IsSettled && Header(binary.LittleEndian.Uint64(raw)).Locked() {
			whole = false
		} else {
			whole = r.takeSlot(p.slab, p.first+i, raw[:size], payload) && whole
		}
		raw = raw[size:]
	}
	return whole
}

// takeSlot takes slot i, unless the backup has the same version or a newer one. It returns false if the
// slot has to be read again.
func (r *Region) takeSlot(s extent, i int, raw, payload []byte) bool {
	h := Header(binary.LittleEndian.Uint64(raw))
	off := s.slot(i)
	if h.Version() <= r.Header(uint32(off)).Version() && !(sabotage.FillNewer.Skipped() && h.readable()) {
		return true // even if the object is locked: its transaction will write to this backup too
	}
	incarnation := binary.LittleEndian.Uint64(raw[incarnationOffset:])
	p := MakePtr(MakeAddr(r.id, uint32(off)), s.class, incarnation)
	if h.Locked() {
		return sabotage.FillLocked.Skipped()
	}
	if !h.Allocated() {
		r.ApplyBackup(p, nil, h.Version(), false, incarnation)
		return true
	}
	if _, err := Unpack(payload, raw, p); err != nil {
		return false
	}
	if sabotage.FillNewer.Skipped() {
		r.write(off, s.class, payload, h.Version(), true, incarnation, 0)
		return true
	}
	r.ApplyBackup(p, payload, h.Version(), true, incarnation)
	return true
}
