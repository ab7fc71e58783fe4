package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A messageKind is the type of a message between sibling workers (SOSP'15,
// table 2, and what allocation and function shipping need).
type messageKind uint8

const (
	messageLockReply messageKind = iota + 1
	messageValidate
	messageValidateReply
	messageRequest // calls a handler
	messageReply
	messageKinds
)

var messageKindNames = [messageKinds]string{"", "LOCK-REPLY", "VALIDATE", "VALIDATE-REPLY", "REQUEST", "REPLY"}

func (k messageKind) String() string { return messageKindNames[k] }

// ErrBadMessage means that bytes taken from a message queue are no message.
var ErrBadMessage = errors.New("txn: bad message")

// A message is one word, its tag, and a body that depends on the kind:
//
//	| kind 8 | a 8 | b 16 | c 32 | tag 64 | body ...
//
// The tag tells the receiver of a reply which request it answers.
type message struct {
	kind messageKind
	a    uint8
	b    uint16
	c    uint32
	tag  uint64
	body []byte
}

const messageHeaderBytes = 16

func (m *message) header(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.kind)<<56|uint64(m.a)<<48|uint64(m.b)<<32|uint64(m.c))
	return binary.LittleEndian.AppendUint64(b, m.tag)
}

// decodeMessage decodes b; the body aliases it.
func decodeMessage(b []byte) (message, error) {
	if len(b) < messageHeaderBytes {
		return message{}, fmt.Errorf("%w: %d bytes", ErrBadMessage, len(b))
	}
	h := binary.LittleEndian.Uint64(b)
	m := message{
		kind: messageKind(h >> 56), a: uint8(h >> 48), b: uint16(h >> 32), c: uint32(h),
		tag: binary.LittleEndian.Uint64(b[8:]), body: b[messageHeaderBytes:],
	}
	if m.kind == 0 || m.kind >= messageKinds {
		return message{}, fmt.Errorf("%w: kind %d", ErrBadMessage, m.kind)
	}
	return m, nil
}

// A verdict is what a primary says about an object at an expected version.
type verdict uint8

const (
	verdictSame    verdict = iota // unlocked, the version expected
	verdictLocked                 // the version expected, but locked
	verdictChanged                // another version
)

// judge compares a header with the version that a transaction saw.
func judge(h region.Header, v region.Version) verdict {
	switch {
	case h.Version() != v:
		return verdictChanged
	case h.Locked():
		return verdictLocked
	}
	return verdictSame
}
