package ring

import (
	"encoding/binary"
	"unsafe"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Link says how a sender reaches a ring at another machine.
type Link struct {
	Queue  rdma.Queue // of the worker that owns the Sender
	To     rdma.MachineID
	Key    rdma.Key // registration of the ring's memory
	Offset uint64   // of the ring within
	// Credit is memory of the sender's machine, registered there, whose word at
	// CreditOffset the receiver writes its head to (Receiver.Feedback).
	Credit       *nvram.Memory
	CreditOffset uint64
}

// A Sender appends records to a ring. It is not safe for concurrent use.
type Sender struct {
	link   Link          // for a ring at another machine
	memory *nvram.Memory // for a ring of this machine, otherwise nil
	base   uint64        // of the control line
	bytes  uint64        // of data
	nonce  uint64

	tail     cursor
	head     uint64 // as last heard
	reserved uint64
	staged   int    // bytes of payload staged
	inPlace  bool   // staged in the ring's memory, otherwise in scratch
	scratch  []byte // the piece to write: frame, payload, frame
	headWord []byte // where Refresh reads to
	err      error  // set by Fail
}

// NewSender attaches to a ring at another machine, whose receiver returned s.
func NewSender(s State, l Link) *Sender {
	l.Credit.Store(l.CreditOffset, s.Head)
	return newSender(s, Sender{link: l, base: l.Offset, headWord: make([]byte, wordBytes)})
}

// NewLocalSender attaches to the ring at off of m, memory of the same machine,
// whose receiver returned s.
func NewLocalSender(s State, m *nvram.Memory, off uint64) *Sender {
	return newSender(s, Sender{memory: m, base: off})
}

func newSender(s State, w Sender) *Sender {
	w.bytes, w.nonce, w.head = s.Bytes, s.Nonce, s.Head
	w.tail = cursor{pos: s.Tail, offset: s.Tail % s.Bytes, seal: seal(s.Nonce, s.Tail)}
	return &w
}

// Reserve sets n bytes (a sum of Space) aside for AppendReserved, and reports
// whether there were that many. It is false also after Fail.
func (s *Sender) Reserve(n uint64) bool {
	if n > s.Available() {
		return false
	}
	s.reserved += n
	return true
}

// Release gives back n bytes that were reserved and not used.
func (s *Sender) Release(n uint64) { s.reserved -= min(n, s.reserved) }

// Reserved returns how much is reserved and not used.
func (s *Sender) Reserved() uint64 { return s.reserved }

// Available returns how much is neither used nor reserved, as far as the sender
// knows; none after Fail.
func (s *Sender) Available() uint64 {
	s.hear()
	if s.err != nil {
		return 0
	}
	return s.unused() - s.reserved
}

// unused returns how much is free by what the sender knows, reserved or not.
func (s *Sender) unused() uint64 { return s.bytes - frameBytes - (s.tail.pos - s.head) }

// Bytes returns how much space the records of the ring can take together.
func (s *Sender) Bytes() uint64 { return s.bytes - frameBytes }

// Tail returns the position of the next record.
func (s *Sender) Tail() uint64 { return s.tail.pos }

// Head returns the position before which everything has been freed, as far as
// the sender knows.
func (s *Sender) Head() uint64 {
	s.hear()
	return s.head
}

// Append writes a record made of parts, one after the other, into space that is
// not reserved. It returns the record's position. done and tag are those of
// rdma.Queue.Write: when not done, one Completion with the tag follows, and if
// that is an error, Fail must be called.
//
// It fails with ErrFull, ErrTooLarge, what Fail was given, or an error of
// rdma.Queue.Write. Then no record was appended, and the call may be repeated.
func (s *Sender) Append(tag uint64, parts ...[]byte) (pos uint64, done bool, err error) {
	s.stage(parts)
	return s.Post(tag)
}

// AppendReserved is Append into reserved space, which it uses up. It fails with
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

// Stage returns a buffer of n bytes to build the payload of the next record in,
// for Post or PostReserved. Its content is undefined. It is valid until then or
// until the next call of Stage, Append or AppendReserved.
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

// place returns where in this machine's memory the next record's payload goes,
// if it can be written there already: it is free and in one piece with the
// frame after it.
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
func (s *Sender) Post(tag uint64) (pos uint64, done bool, err error) {
	space := Space(s.staged)
	if space > s.bytes-frameBytes {
		return 0, false, ErrTooLarge
	}
	if s.err != nil {
		return 0, false, s.err
	}
	if space > s.unused()-s.reserved && space > s.Available() {
		return 0, false, s.errOr(ErrFull)
	}
	return s.post(tag, space)
}

// PostReserved appends the staged record, as AppendReserved does.
func (s *Sender) PostReserved(tag uint64) (pos uint64, done bool, err error) {
	space := Space(s.staged)
	if space > s.reserved {
		return 0, false, ErrReservation
	}
	if s.err != nil {
		return 0, false, s.err
	}
	if pos, done, err = s.post(tag, space); err == nil {
		s.reserved -= space
	}
	return pos, done, err
}

// post frames the staged record and writes it.
func (s *Sender) post(tag, space uint64) (pos uint64, done bool, err error) {
	next := cursor{pos: s.tail.pos + space, offset: s.tail.offset + space}
	next.seal = seal(s.nonce, next.pos)
	if next.offset >= s.bytes {
		next.offset -= s.bytes
	}
	if s.inPlace {
		s.publish(next)
		done = true
	} else if done, err = s.send(tag, next); err != nil {
		return 0, false, err
	}
	pos, s.tail = s.tail.pos, next
	return pos, done, nil
}

// publish makes the record that was staged in place visible. It writes the state of the frame
// before the record last, so that a receiver which finds the length finds all of the record.
func (s *Sender) publish(next cursor) {
	var frame [frameBytes]byte
	putWord(frame[:], stateOf(next.seal, nothing))
	putWord(frame[wordBytes:], next.seal)
	s.memory.CopyIn(s.base+controlBytes+next.offset, frame[:])
	s.memory.Store(s.base+controlBytes+s.tail.offset, stateOf(s.tail.seal, uint64(s.staged)))
}

// send writes the record that was staged in scratch.
func (s *Sender) send(tag uint64, next cursor) (done bool, err error) {
	b := s.scratch
	end := len(b) - frameBytes
	putWord(b, stateOf(s.tail.seal, uint64(s.staged)))
	putWord(b[wordBytes:], s.tail.seal)
	putWord(b[end:], stateOf(next.seal, nothing))
	putWord(b[end+wordBytes:], next.seal)
	if first := s.bytes - s.tail.offset; first < uint64(len(b)) {
		return s.writeInTwo(tag, b[:first], b[first:])
	}
	return s.write(tag, s.tail.offset, b)
}

// writeInTwo writes around the end of the data. Only the second write is
// reported: once it is done, so is the first, and a failure of the first is
// reported in any case.
func (s *Sender) writeInTwo(tag uint64, first, second []byte) (done bool, err error) {
	if _, err := s.write(rdma.Unsignalled, s.tail.offset, first); err != nil {
		return false, err
	}
	return s.write(tag, 0, second)
}

func (s *Sender) write(tag, offset uint64, b []byte) (done bool, err error) {
	off := s.base + controlBytes + offset
	if s.memory == nil {
		return s.link.Queue.Write(s.link.To, s.link.Key, off, b, tag)
	}
	last := len(b) - wordBytes
	s.memory.CopyIn(off, b[:last])
	s.memory.Store(off+uint64(last), binary.NativeEndian.Uint64(b[last:]))
	return true, nil
}

// hear takes note of space that the receiver has freed.
func (s *Sender) hear() {
	if s.memory != nil {
		s.advance(s.memory.Load(s.base + headAt))
	} else {
		s.advance(s.link.Credit.Load(s.link.CreditOffset))
	}
}

// advance checks what the receiver said its head is.
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

// Refresh asks the receiver's memory for the head, which may have moved further
// than the receiver has told. If done, Available knows it already; otherwise
// Refreshed must be called when the Completion with the tag has come without an
// error, and Refresh not before that. err is as for rdma.Queue.Read.
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

// Refreshed takes over the head that a pending Refresh has read.
func (s *Sender) Refreshed() { s.advance(binary.NativeEndian.Uint64(s.headWord)) }

// Fail makes every further append fail with err. It is called when a pending append turns out
// to have failed, because the receiver could not find records after it. A new Sender has to be
// attached.
func (s *Sender) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Err returns the error passed to Fail, or the one with which the sender failed by itself
// (ErrCorrupt: the receiver claims to have freed more than was written).
func (s *Sender) Err() error { return s.err }

func (s *Sender) errOr(err error) error {
	if s.err != nil {
		return s.err
	}
	return err
}

func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
