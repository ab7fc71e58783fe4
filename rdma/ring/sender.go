package ring

import (
	"encoding/binary"
	"unsafe"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Link describes how a sender reaches a ring at another machine.
type Link struct {
	Queue  rdma.Queue // the queue of the worker that owns the Sender, which flushes it after appends
	To     rdma.MachineID
	Key    rdma.Key // registration of the ring's memory
	Offset uint64   // where the ring begins in the registration
	// Credit is memory of the sender's machine, registered there. The receiver writes its head to
	// the word at CreditOffset (Receiver.Feedback).
	Credit       *nvram.Memory
	CreditOffset uint64
}

// A Sender appends records to a ring. It is not safe for concurrent use.
type Sender struct {
	link   Link          // only for a ring at another machine
	memory *nvram.Memory // only for a ring of this machine; nil for one at another machine
	base   uint64        // the offset of the control line
	bytes  uint64        // the length of the data
	nonce  uint64

	tail     cursor
	head     uint64 // the last head that the receiver reported
	reserved uint64
	staged   int    // bytes of payload staged
	inPlace  bool   // the payload is staged in the ring's memory, otherwise in scratch
	scratch  []byte // the bytes to write: frame, payload, frame
	headWord []byte // buffer of Refresh's READ
	err      error  // set by Fail
}

// NewSender attaches to a ring at another machine. s is the State that the ring's receiver
// returned.
func NewSender(s State, l Link) *Sender {
	l.Credit.Store(l.CreditOffset, s.Head)
	return newSender(s, Sender{link: l, base: l.Offset, headWord: make([]byte, wordBytes)})
}

// NewLocalSender attaches to the ring at off of m, which is memory of the same machine. s is the
// State that the ring's receiver returned.
func NewLocalSender(s State, m *nvram.Memory, off uint64) *Sender {
	return newSender(s, Sender{memory: m, base: off})
}

func newSender(s State, w Sender) *Sender {
	w.bytes, w.nonce, w.head = s.Bytes, s.Nonce, s.Head
	w.tail = cursor{pos: s.Tail, offset: s.Tail % s.Bytes, seal: seal(s.Nonce, s.Tail)}
	return &w
}

// Reserve sets n bytes (a sum of Space) aside for AppendReserved, and reports whether that many
// were available. After Fail it returns false.
func (s *Sender) Reserve(n uint64) bool {
	if n > s.Available() {
		return false
	}
	s.reserved += n
	return true
}

// Release gives back n bytes that were reserved but not used.
func (s *Sender) Release(n uint64) { s.reserved -= min(n, s.reserved) }

// Reserved returns the number of bytes that are reserved but not used.
func (s *Sender) Reserved() uint64 { return s.reserved }

// Available returns the number of bytes that are neither used nor reserved, as far as the sender
// knows; 0 after Fail.
func (s *Sender) Available() uint64 {
	s.hear()
	if s.err != nil {
		return 0
	}
	return s.unused() - s.reserved
}

// unused returns the number of bytes that are free as far as the sender knows, reserved or not.
func (s *Sender) unused() uint64 { return s.bytes - frameBytes - (s.tail.pos - s.head) }

// Bytes returns the space that the records of the ring can take together.
func (s *Sender) Bytes() uint64 { return s.bytes - frameBytes }

// Tail returns the position of the next record.
func (s *Sender) Tail() uint64 { return s.tail.pos }

// Head returns the position before which the receiver has freed everything, as far as the sender
// knows.
func (s *Sender) Head() uint64 {
	s.hear()
	return s.head
}

// Append writes a record, whose payload is the concatenation of parts, into space that is not
// reserved. It returns the record's position. done and tag are those of rdma.Queue.Write: if done is
// false, one Completion with the tag follows. If that has an error, the caller must call Fail.
//
// It fails with ErrFull, ErrTooLarge, the error passed to Fail, or an error of rdma.Queue.Write.
// Then no record was appended, and the caller may repeat the call.
func (s *Sender) Append(tag uint64, parts ...[]byte) (pos uint64, done bool, err error) {
	s.stage(parts)
	return s.Post(tag)
}

// AppendRing is like Append, and rings the receiver's doorbell in the same operation. The receiver
// of a ring of this machine is not rung.
func (s *Sender) AppendRing(tag uint64, parts ...[]byte) (pos uint64, done bool, err error) {
	s.stage(parts)
	return s.append(tag, true)
}

// AppendReserved is like Append, but into reserved space, which it uses up. It fails with
// ErrReservation instead of ErrFull.
func (s *Sender) AppendReserved(tag uint64, parts ...[]byte) (pos uint64, done bool, err error) {
	s.stage(parts)
	return s.PostReserved(tag)
}

func (s *Sender) stage(parts [][]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := s.Stage(n)
	for _, p := range parts {
		b = b[copy(b, p):]
	}
}

// Stage returns a buffer of n bytes for the payload of the next record, which Post or PostReserved
// appends. Its content is undefined. It is valid until the next call of Stage, or of a method that posts or
// appends.
func (s *Sender) Stage(n int) []byte {
	s.staged = n
	if s.memory != nil {
		if b := s.place(n); b != nil {
			s.inPlace = true
			return b[:n:n]
		}
	}
	s.inPlace = false
	size := int(padded(n)) + 2*frameBytes
	if cap(s.scratch) < size {
		s.scratch = make([]byte, size, max(2*size, 1024))
	}
	s.scratch = s.scratch[:size]
	return s.scratch[frameBytes : frameBytes+n : frameBytes+n]
}

// place returns the place of the next record's payload in this machine's memory, if the payload can
// be written there already: the place must be free and in one piece with the frame after it.
// Otherwise it returns nil.
func (s *Sender) place(n int) []byte {
	space := Space(n)
	if s.tail.offset+space+frameBytes > s.bytes {
		return nil
	}
	if space > s.unused() {
		if s.hear(); space > s.unused() {
			return nil
		}
	}
	if n == 0 {
		return []byte{}
	}
	p := s.memory.Pointer(s.base+controlBytes+s.tail.offset+frameBytes, padded(n))
	return unsafe.Slice((*byte)(p), n)
}

// Post appends the staged record, as Append does.
func (s *Sender) Post(tag uint64) (pos uint64, done bool, err error) { return s.append(tag, false) }

// append appends the staged record into space that is not reserved.
func (s *Sender) append(tag uint64, rings bool) (pos uint64, done bool, err error) {
	space := Space(s.staged)
	if space > s.bytes-frameBytes {
		return 0, false, ErrTooLarge
	}
	if s.err != nil {
		return 0, false, s.err
	}
	if space > s.unused()-s.reserved && space > s.Available() { // Available hears of space freed since
		return 0, false, s.errOr(ErrFull)
	}
	return s.post(tag, space, rings)
}

// PostReserved appends the staged record, as AppendReserved does.
func (s *Sender) PostReserved(tag uint64) (pos uint64, done bool, err error) {
	return s.appendReserved(tag, false)
}

// PostReservedRing is like PostReserved, and rings as AppendRing does.
func (s *Sender) PostReservedRing(tag uint64) (pos uint64, done bool, err error) {
	return s.appendReserved(tag, true)
}

// appendReserved appends the staged record into reserved space.
func (s *Sender) appendReserved(tag uint64, rings bool) (pos uint64, done bool, err error) {
	space := Space(s.staged)
	if space > s.reserved {
		return 0, false, ErrReservation
	}
	if s.err != nil {
		return 0, false, s.err
	}
	if pos, done, err = s.post(tag, space, rings); err == nil {
		s.reserved -= space
	}
	return pos, done, err
}

// post frames the staged record and writes it.
func (s *Sender) post(tag, space uint64, rings bool) (pos uint64, done bool, err error) {
	next := cursor{pos: s.tail.pos + space, offset: s.tail.offset + space}
	next.seal = seal(s.nonce, next.pos)
	if next.offset >= s.bytes {
		next.offset -= s.bytes
	}
	if s.inPlace {
		s.publish(next)
		done = true
	} else if done, err = s.send(tag, next, rings); err != nil {
		return 0, false, err
	}
	pos, s.tail = s.tail.pos, next
	return pos, done, nil
}

// publish makes the record that was staged in place visible. It writes the state of the frame
// before the record last, so that a receiver which finds the length finds all of the record.
func (s *Sender) publish(next cursor) {
	var frame [frameBytes]byte
	putWord(frame[:], stateOf(next.seal, noRecord))
	putWord(frame[wordBytes:], next.seal)
	s.memory.CopyIn(s.base+controlBytes+next.offset, frame[:])
	s.memory.Store(s.base+controlBytes+s.tail.offset, stateOf(s.tail.seal, uint64(s.staged)))
}

// send writes the record that was staged in scratch.
func (s *Sender) send(tag uint64, next cursor, rings bool) (done bool, err error) {
	b := s.scratch
	end := len(b) - frameBytes
	putWord(b, stateOf(s.tail.seal, uint64(s.staged)))
	putWord(b[wordBytes:], s.tail.seal)
	putWord(b[end:], stateOf(next.seal, noRecord))
	putWord(b[end+wordBytes:], next.seal)
	if first := s.bytes - s.tail.offset; first < uint64(len(b)) {
		return s.writeInTwo(tag, b[:first], b[first:], rings)
	}
	return s.write(tag, s.tail.offset, b, rings)
}

// writeInTwo writes a record that wraps around the end of the data. Only the second write is
// signalled, and rings: when it is complete, so is the first, and a failure of the first is reported
// in any case.
func (s *Sender) writeInTwo(tag uint64, first, second []byte, rings bool) (done bool, err error) {
	if _, err := s.write(rdma.Unsignalled, s.tail.offset, first, false); err != nil {
		return false, err
	}
	return s.write(tag, 0, second, rings)
}

// write writes bytes into the ring, at an offset that counts from the beginning of the data. In a
// ring of this machine it stores the last word last.
func (s *Sender) write(tag, offset uint64, b []byte, rings bool) (done bool, err error) {
	off := s.base + controlBytes + offset
	switch {
	case s.memory == nil && rings:
		return s.link.Queue.WriteRing(s.link.To, s.link.Key, off, b, tag)
	case s.memory == nil:
		return s.link.Queue.Write(s.link.To, s.link.Key, off, b, tag)
	}
	last := len(b) - wordBytes
	s.memory.CopyIn(off, b[:last])
	s.memory.Store(off+uint64(last), binary.NativeEndian.Uint64(b[last:]))
	return true, nil
}

// hear takes over the head that the receiver has written: to the credit, or, in a ring of this
// machine, to the control line.
func (s *Sender) hear() {
	if s.memory != nil {
		s.advance(s.memory.Load(s.base + headAt))
	} else {
		s.advance(s.link.Credit.Load(s.link.CreditOffset))
	}
}

// advance checks the head that the receiver has reported, and takes it over.
func (s *Sender) advance(head uint64) {
	if head <= s.head {
		return // nothing new, or older than what Refresh read
	}
	if head > s.tail.pos || head%wordBytes != 0 {
		s.Fail(&CorruptError{What: "head reported by the receiver", Position: s.tail.pos, Word: head})
		return
	}
	s.head = head
}

// Refresh reads the head from the receiver's memory, because it may be further than the last one
// that the receiver has written to Credit. If done, Available knows the new head already. Otherwise
// the caller must call Refreshed when the Completion with the tag has come without an error, and
// must not call Refresh again before that. err is as for rdma.Queue.Read.
func (s *Sender) Refresh(tag uint64) (done bool, err error) {
	if s.memory != nil {
		s.hear()
		return true, nil
	}
	done, err = s.link.Queue.Read(s.link.To, s.link.Key, s.base+headAt, s.headWord, tag)
	if done {
		s.Refreshed()
	}
	return done, err
}

// Refreshed takes over the head read by a pending Refresh.
func (s *Sender) Refreshed() { s.advance(binary.NativeEndian.Uint64(s.headWord)) }

// Fail makes every further append fail with err. The owner calls it when a pending append has failed:
// the receiver cannot find records after a missing one. To go on, the owner must attach a new Sender.
func (s *Sender) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Err returns the error passed to Fail. It returns ErrCorrupt if the sender has failed by itself,
// because the receiver claims to have freed more than was written.
func (s *Sender) Err() error { return s.err }

func (s *Sender) errOr(err error) error {
	if s.err != nil {
		return s.err
	}
	return err
}

func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
