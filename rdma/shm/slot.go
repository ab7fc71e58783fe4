package shm

import (
	"fmt"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// Words of a slot. The generation counts registrations and their ends: it is odd while the slot
// holds a registration, and 0 if it never held any. publish writes it last, and withdraw changes it
// alone.
const (
	generationAt = 0
	keyAt        = 8
	bytesAt      = 16
	deviceAt     = 24
	inodeAt      = 32
	pathBytesAt  = 40
	pathAt       = lineBytes
)

// A registration is the content of a slot.
type registration struct {
	slot       uint64 // offset in the state
	generation uint64
	bytes      uint64
	location   nvram.Location
}

// home returns the number of the slot at which a search for k begins. Slots are a hash table with
// linear probing: a search passes over freed slots and stops at a slot that was never used.
func home(k rdma.Key) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return uint64(k) * golden % slotsMax
}

// probe visits the slots that may hold k, until visit returns false.
func (s *state) probe(k rdma.Key, visit func(slot, generation uint64) bool) {
	for i := range uint64(slotsMax) {
		slot := slotsAt + ((home(k)+i)%slotsMax)*slotBytes
		if !visit(slot, s.memory.Load(slot+generationAt)) {
			return
		}
	}
}

// lookup finds k's registration. ok is false if there is none, or if its slot changes meanwhile.
func (s *state) lookup(k rdma.Key) (found registration, ok bool) {
	s.probe(k, func(slot, generation uint64) bool {
		if generation%2 == 1 && s.memory.Load(slot+keyAt) == uint64(k) {
			found, ok = s.read(slot, generation)
		}
		return !ok && generation != 0
	})
	return found, ok
}

// read reads a slot. ok is false if the slot changes meanwhile or holds garbage.
func (s *state) read(slot, generation uint64) (registration, bool) {
	m := s.memory
	r := registration{slot: slot, generation: generation, bytes: m.Load(slot + bytesAt)}
	r.location.Device, r.location.Inode = m.Load(slot+deviceAt), m.Load(slot+inodeAt)
	var path [pathMax]byte
	n := m.Load(slot + pathBytesAt)
	if n > pathMax {
		return r, false
	}
	m.CopyOut(path[:], slot+pathAt)
	r.location.Path = string(path[:n])
	return r, m.Load(slot+generationAt) == generation
}

// publish writes a registration into a free slot and returns that slot. Only the machine that owns
// the state calls it, under its NIC's mu.
func (s *state) publish(k rdma.Key, bytes uint64, l nvram.Location) (slot uint64, err error) {
	if len(l.Path) > pathMax {
		return 0, fmt.Errorf("%w: path %s", ErrTooMany, l.Path)
	}
	slot, generation := s.freeSlot(k)
	if slot == 0 {
		return 0, fmt.Errorf("%w: %d registrations", ErrTooMany, slotsMax)
	}
	m := s.memory
	var path [pathMax]byte
	copy(path[:], l.Path)
	m.CopyIn(slot+pathAt, path[:])
	m.Store(slot+pathBytesAt, uint64(len(l.Path)))
	m.Store(slot+keyAt, uint64(k))
	m.Store(slot+bytesAt, bytes)
	m.Store(slot+deviceAt, l.Device)
	m.Store(slot+inodeAt, l.Inode)
	m.Store(slot+generationAt, generation+1)
	return slot, nil
}

// freeSlot returns a free slot for k and its generation, or 0 if all slots are taken.
func (s *state) freeSlot(k rdma.Key) (free, generation uint64) {
	s.probe(k, func(slot, g uint64) bool {
		if g%2 == 0 {
			free, generation = slot, g
		}
		return free == 0
	})
	return free, generation
}

// withdraw ends a registration.
func (s *state) withdraw(slot uint64) { s.word(slot + generationAt).Add(1) }
