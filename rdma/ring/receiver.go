package ring

import (
	"fmt"
	"unsafe"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Record is one record of a ring.
type Record struct {
	// Pos is the position of the record, End the position of the next.
	Pos, End uint64
	// Payload is a view of the ring's memory (a copy only if the record wraps
	// around its end). It must not be modified, and not be read after a Free
	// beyond Pos, a Reset, or the end of the ring's memory.
	Payload []byte
}

// A Receiver takes records out of a ring. It is not safe for concurrent use.
type Receiver struct {
	memory *nvram.Memory
	base   uint64 // the offset of the control line
	bytes  uint64 // the length of the data
	nonce  uint64

	head uint64 // the same as the head in the ring's memory
	next cursor // the place of the record that Poll waits for

	credit   credit
	reported uint64 // the head last written to the sender
}

// A cursor is a place in the stream, with the seal that its frame must have.
type cursor struct {
	pos    uint64
	offset uint64 // pos modulo the bytes of data
	seal   uint64
}

// credit is the word at the sender to which report writes the head.
type credit struct {
	queue rdma.Queue // nil: there is no sender to tell
	to    rdma.MachineID
	key   rdma.Key
	off   uint64
}

// Create makes an empty ring of size bytes at off of m, both multiples of 64. nonce is random.
// The memory's former content is lost. Fails with ErrBytes.
func Create(m *nvram.Memory, off, size, nonce uint64) (*Receiver, error) {
	if err := checkBytes(m, off, size); err != nil {
		return nil, err
	}
	r := &Receiver{memory: m, base: off, bytes: size - controlBytes}
	r.format(nonce, 0)
	return r, nil
}

// Open opens a ring that Create once made at the same place. Poll begins at the head again. It
// fails with ErrUnformatted, ErrCorrupt or ErrBytes.
func Open(m *nvram.Memory, off, size uint64) (*Receiver, error) {
	if err := checkBytes(m, off, size); err != nil {
		return nil, err
	}
	if m.Load(off+magicAt) != magic {
		return nil, fmt.Errorf("%w: offset %d", ErrUnformatted, off)
	}
	r := &Receiver{memory: m, base: off, bytes: size - controlBytes}
	if b := m.Load(off + bytesAt); b != r.bytes {
		return nil, &CorruptError{What: "size", Word: b}
	}
	r.nonce = m.Load(off + nonceAt)
	r.head = m.Load(off + headAt)
	if r.head%wordBytes != 0 {
		return nil, &CorruptError{What: "head", Word: r.head}
	}
	r.Rewind()
	if s := r.load(r.wrap(r.next.offset + wordBytes)); s != r.next.seal {
		return nil, &CorruptError{What: "seal at the head", Position: r.head, Word: s}
	}
	r.reported = r.head
	return r, nil
}

// Feedback names the word at the sender to which Free writes the head. The word must be the credit
// of the Sender's Link. The owner of q flushes it after Free.
func (r *Receiver) Feedback(q rdma.Queue, to rdma.MachineID, k rdma.Key, off uint64) {
	r.credit = credit{queue: q, to: to, key: k, off: off}
}

// Poll returns the next record, if it has been written. Its only error is ErrCorrupt, and then the
// receiver stays at the same position.
func (r *Receiver) Poll() (rec Record, ok bool, err error) {
	next, length, err := r.after(r.next)
	if err != nil || next.pos == r.next.pos {
		return Record{}, false, err
	}
	rec = Record{Pos: r.next.pos, End: next.pos, Payload: r.payload(r.next, length)}
	r.next = next
	return rec, true, nil
}

// after returns the cursor behind the record at c and the length of its payload. If the record is
// not there yet it returns c.
func (r *Receiver) after(c cursor) (next cursor, length uint64, err error) {
	state := r.load(c.offset)
	if state == stateOf(c.seal, noRecord) {
		return c, 0, nil
	}
	length, ok := lengthOf(c.seal, state)
	if !ok {
		return c, 0, &CorruptError{What: "state", Position: c.pos, Word: state}
	}
	space := frameBytes + padded(int(length))
	if c.pos-r.head+space+frameBytes > r.bytes { // with its next frame, the record would reach beyond the head
		return c, 0, &CorruptError{What: "length", Position: c.pos, Word: length}
	}
	next = r.cursor(c.pos+space, r.wrap(c.offset+space))
	if r.load(r.wrap(next.offset+wordBytes)) != next.seal && !sabotage.Seal.Skipped() {
		return c, 0, nil // still being written
	}
	return next, length, nil
}

// payload returns the payload of the record whose frame is at c.
func (r *Receiver) payload(c cursor, length uint64) []byte {
	from := r.wrap(c.offset + frameBytes)
	n := padded(int(length))
	if n == 0 {
		return nil
	}
	if from+n <= r.bytes {
		p := r.memory.Pointer(r.base+controlBytes+from, n)
		return unsafe.Slice((*byte)(p), n)[:length:length]
	}
	b := make([]byte, n)
	first := r.bytes - from
	r.memory.CopyOut(b[:first], r.base+controlBytes+from)
	r.memory.CopyOut(b[first:], r.base+controlBytes)
	return b[:length:length]
}

// Extent returns the place of a polled record's payload in the ring's memory: n bytes are at off. If
// the record wraps around the end of the data, more bytes follow at rest, the beginning of the data.
// Other machines read the payload there with READs.
func (r *Receiver) Extent(rec Record) (off, n, rest, more uint64) {
	from := r.wrap(rec.Pos%r.bytes + frameBytes)
	length := padded(len(rec.Payload))
	data := r.base + controlBytes
	n = min(length, r.bytes-from)
	return data + from, n, data, length - n
}

// Free frees the space of all records before pos, which is the End of a polled record, or the head.
// A ring that is opened again no longer returns freed records. If the head cannot be written to the
// sender now, a later Free writes it, or the sender reads it by Refresh.
func (r *Receiver) Free(pos uint64) {
	if pos < r.head || pos > r.next.pos || pos%wordBytes != 0 {
		invariant.Violated("ring: freed position is between head and next record", pos, r.next.pos)
	}
	if invariant.Enabled {
		r.checkSealed(pos)
	}
	r.head = pos
	r.memory.Store(r.base+headAt, pos)
	if r.credit.queue != nil && !sabotage.Credit.Skipped() && pos-r.reported >= r.bytes/2 {
		r.report()
	}
}

// checkSealed checks that a record begins at pos.
func (r *Receiver) checkSealed(pos uint64) {
	c := r.cursor(pos, pos%r.bytes)
	if s := r.load(r.wrap(c.offset + wordBytes)); s != c.seal {
		invariant.Violated("ring: freed position is where a record begins", s, c.seal)
	}
}

// report writes the head to the sender.
func (r *Receiver) report() {
	var word [wordBytes]byte
	putWord(word[:], r.head)
	if _, err := r.credit.queue.Write(r.credit.to, r.credit.key, r.credit.off, word[:], rdma.Unsignalled); err == nil {
		r.reported = r.head
	}
}

// Head returns the position before which everything has been freed.
func (r *Receiver) Head() uint64 { return r.head }

// Reported returns the head that was last written to the sender. When it has moved, the caller must
// wake a sender that waits for room.
func (r *Receiver) Reported() uint64 { return r.reported }

// Next returns the position of the record that Poll waits for.
func (r *Receiver) Next() uint64 { return r.next.pos }

// Bytes returns the space that the records of the ring can take together.
func (r *Receiver) Bytes() uint64 { return r.bytes - frameBytes }

// Spare calls part for each stretch of the ring's memory, n bytes at off, that holds no record and
// that Poll does not read: its content does not matter. A sender, if the ring still has one, will
// write there next.
func (r *Receiver) Spare(part func(off, n uint64)) error {
	s, err := r.State()
	if err != nil {
		return err
	}
	data := r.base + controlBytes
	used := s.Tail - r.head + frameBytes
	if used >= r.bytes {
		return nil
	}
	begin := r.wrap(s.Tail%r.bytes + frameBytes)
	n := r.bytes - used
	first := min(n, r.bytes-begin)
	part(data+begin, first)
	if n > first {
		part(data, n-first)
	}
	return nil
}

// Rewind makes Poll begin at the head again.
func (r *Receiver) Rewind() { r.next = r.cursor(r.head, r.head%r.bytes) }

// State returns the State with which a new Sender attaches to the ring. The ring's earlier sender must
// be gone, for instance after a restart. The tail is the end of the last complete record. Poll is not
// affected. State fails with ErrCorrupt.
func (r *Receiver) State() (State, error) {
	tail := r.next
	for {
		next, _, err := r.after(tail)
		if err != nil {
			return State{}, err
		}
		if next.pos == tail.pos {
			return State{Nonce: r.nonce, Bytes: r.bytes, Head: r.head, Tail: tail.pos}, nil
		}
		tail = next
	}
}

// Reset empties the ring and gives it a new random nonce, so that late writes of the earlier sender
// do not count as records. Positions go on from Next: no head that was written to a credit is higher, so a
// new Sender ignores such a head if it arrives late. If Reset is interrupted, the ring is left unformatted.
func (r *Receiver) Reset(nonce uint64) {
	r.memory.Store(r.base+magicAt, 0)
	if sabotage.Nonce.Skipped() {
		nonce = r.nonce
	}
	r.format(nonce, r.next.pos)
}

// format makes an empty ring that begins at pos.
func (r *Receiver) format(nonce, pos uint64) {
	m := r.memory
	m.Store(r.base+magicAt, 0)
	r.nonce, r.head, r.reported = nonce, pos, pos
	r.Rewind()
	r.store(r.next.offset, stateOf(r.next.seal, noRecord))
	r.store(r.wrap(r.next.offset+wordBytes), r.next.seal)
	m.Store(r.base+bytesAt, r.bytes)
	m.Store(r.base+nonceAt, nonce)
	m.Store(r.base+headAt, pos)
	m.Store(r.base+magicAt, magic)
}

func (r *Receiver) cursor(pos, offset uint64) cursor {
	return cursor{pos: pos, offset: offset, seal: seal(r.nonce, pos)}
}

// wrap maps an offset to its place in the data. The offset may be past the end of the data by less
// than one lap.
func (r *Receiver) wrap(offset uint64) uint64 {
	if offset >= r.bytes {
		offset -= r.bytes
	}
	return offset
}

func (r *Receiver) load(offset uint64) uint64 { return r.memory.Load(r.base + controlBytes + offset) }
func (r *Receiver) store(offset, v uint64)    { r.memory.Store(r.base+controlBytes+offset, v) }
