package verbs

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
)

// pieceBytes is how much memory a card knows by one of its keys. It is part of the format: a request lies in one piece.
const pieceBytes = 1 << 20

// A registration is memory that other machines may use. The card registers it in pieces: the
// first at once, and each other when a machine first asks for it. So memory that no other
// machine uses, such as most memory without a block, is not pinned. A piece stays pinned until
// the registration ends; memory that is given back to the system meanwhile is cleared in place
// (nvram.Memory.Pin).
type registration struct {
	memory *nvram.Memory
	mu     struct {
		lockrank.Mutex[lockrank.Later]          // held while the card pins
		pieces                         []region // nil for what nobody has asked for
		ended                          bool
	}
}

// newRegistration registers the first piece, so that memory which no card could register is
// refused at once.
func (nic *NIC) newRegistration(m *nvram.Memory) (*registration, error) {
	r := &registration{memory: m}
	r.mu.pieces = make([]region, (m.Size()+pieceBytes-1)/pieceBytes)
	_, err := r.piece(nic, 0)
	return r, err
}

// bounds returns where a piece is.
func (r *registration) bounds(i uint32) (off, bytes uint64) {
	off = uint64(i) * pieceBytes
	return off, min(pieceBytes, r.memory.Size()-off)
}

// errNoPiece says that there is no such piece, or that the registration has been removed.
var errNoPiece = errors.New("verbs: no such piece of memory")

// piece returns the card's registration of a piece, which it makes if there is none.
func (r *registration) piece(nic *NIC, i uint32) (region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.ended || uint64(i) >= uint64(len(r.mu.pieces)) {
		return nil, errNoPiece
	}
	if r.mu.pieces[i] != nil {
		return r.mu.pieces[i], nil
	}
	off, n := r.bounds(i)
	if err := r.memory.Reserve(off, n); err != nil { // a page that the file system has no room for cannot be pinned
		return nil, fmt.Errorf("verbs: %w", err)
	}
	r.memory.Pin(off, n)
	piece, err := nic.registerPart(r.memory, off, n)
	if err != nil {
		r.memory.Unpin(off, n)
		return nil, err
	}
	r.mu.pieces[i] = piece
	return piece, nil
}

// end ends the registration of all pieces. When it returns, the card does not touch the memory any more.
func (r *registration) end() (first error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.ended = true
	for i, piece := range r.mu.pieces {
		if piece != nil {
			first = cmp.Or(first, piece.close())
			off, n := r.bounds(uint32(i))
			r.memory.Unpin(off, n)
		}
	}
	r.mu.pieces = nil
	return first
}

// A remote is what this machine knows of another machine's memory: where it is, and the card's
// keys of the pieces that have been asked for.
type remote struct {
	address uint64
	bytes   uint64
	pieces  []remotePiece
}

type remotePiece struct {
	rkey    uint32
	isKnown bool
}

// has reports whether a place lies in the memory.
func (m *remote) has(off uint64, n int) bool { return off <= m.bytes && uint64(n) <= m.bytes-off }

// knows reports whether a place can be reached: it lies in the memory, in pieces that are known.
func (m *remote) knows(off uint64, n int) bool {
	if m == nil || !m.has(off, n) {
		return false
	}
	for i := off / pieceBytes; i*pieceBytes < off+uint64(n); i++ {
		if i >= uint64(len(m.pieces)) || !m.pieces[i].isKnown {
			return false
		}
	}
	return true
}

// learn notes the card's key of a piece.
func (m *remote) learn(i, rkey uint32) {
	for uint64(i) >= uint64(len(m.pieces)) {
		m.pieces = append(m.pieces, remotePiece{})
	}
	m.pieces[i] = remotePiece{rkey, true}
}
