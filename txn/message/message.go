// Package message defines the messages that sibling workers send each other through message queues:
// replies to LOCK records, validation, and calls of functions with their replies. It also defines
// the arguments of package txn's own functions, and the greeting, with which a machine shows a peer
// where to write.
package message

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A Kind is the type of a message between sibling workers (SOSP'15 table 2). The
// last two kinds are for allocation and function shipping.
type Kind uint8

const (
	LockReply Kind = iota + 1
	Validate
	ValidateReply
	Request // calls a handler
	Reply
	kinds
)

var kindNames = [kinds]string{"", "LOCK-REPLY", "VALIDATE", "VALIDATE-REPLY", "REQUEST", "REPLY"}

func (k Kind) String() string { return kindNames[k] }

// IsOfStep reports whether a worker sends messages of a kind while it works through what peers have
// written. It may then send several to one peer, and rings it once for all of them.
func (k Kind) IsOfStep() bool { return k == LockReply || k == ValidateReply }

// ErrBad means that bytes taken from a message queue are not a message.
var ErrBad = errors.New("txn: bad message")

// A Message is one word, its tag, and a body that depends on the kind:
//
//	| kind 8 | a 8 | b 16 | c 32 | tag 64 | body ...
//
// A reply has the tag of the request that it answers.
type Message struct {
	Kind Kind
	A    uint8
	B    uint16
	C    uint32
	Tag  uint64
	Body []byte
}

// HeaderBytes is the length of a message without its body.
const HeaderBytes = 16

// AppendHeader appends a message without its body to b.
func (m *Message) AppendHeader(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Kind)<<56|uint64(m.A)<<48|uint64(m.B)<<32|uint64(m.C))
	return binary.LittleEndian.AppendUint64(b, m.Tag)
}

// Decode decodes b; the body aliases it.
func Decode(b []byte) (Message, error) {
	if len(b) < HeaderBytes {
		return Message{}, fmt.Errorf("%w: %d bytes", ErrBad, len(b))
	}
	h := binary.LittleEndian.Uint64(b)
	m := Message{
		Kind: Kind(h >> 56), A: uint8(h >> 48), B: uint16(h >> 32), C: uint32(h),
		Tag: binary.LittleEndian.Uint64(b[8:]), Body: b[HeaderBytes:],
	}
	if m.Kind == 0 || m.Kind >= kinds {
		return Message{}, fmt.Errorf("%w: kind %d", ErrBad, m.Kind)
	}
	return m, nil
}

// A Verdict is a primary's answer about an object at an expected version.
type Verdict uint8

const (
	Same    Verdict = iota // the object is unlocked and has the expected version
	Locked                 // the object has the expected version, but is locked
	Changed                // the object has another version
)

// Judge compares a header with the version that a transaction saw.
func Judge(h region.Header, v region.Version) Verdict {
	switch {
	case h.Version() != v:
		return Changed
	case h.Locked():
		return Locked
	}
	return Same
}
