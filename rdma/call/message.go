package call

import (
	"encoding/binary"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

// BytesMax is the longest argument and the longest reply.
const BytesMax = 30 << 10

const (
	layout      = 1
	headerBytes = 32
)

// The build fails if the longest message does not fit a datagram.
var _ = [rdma.DatagramBytesMax - BytesMax - headerBytes]struct{}{}

// messageType is the type of a datagram.
type messageType uint8

const (
	request messageType = iota + 1
	notice              // a request that wants no reply
	reply
)

// status is the result of a call, or its progress.
type status uint8

const (
	ok          status = iota
	failed             // body: code of a known error, or 0, and its text
	otherLife          // the life that was called is not the present one
	unknownKind        // nobody handles this kind here
	running            // the handler has begun, and has not returned yet
	statuses
)

// A message is one datagram, decoded.
type message struct {
	typ    messageType
	kind   uint8
	status status // only in a reply
	id     uint64 // the number of the call, counted by the sender of the request
	from   uint64 // the sender's incarnation
	to     uint64 // the addressee's, or AnyLife
	speaks protocol.Range
	body   []byte
}

func (m *message) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, headerBytes+len(m.body))
	b = append(b, layout, byte(m.typ), m.kind, byte(m.status), byte(m.speaks.Min), byte(m.speaks.Max), 0, 0)
	b = le.AppendUint64(b, m.id)
	b = le.AppendUint64(b, m.from)
	b = le.AppendUint64(b, m.to)
	return append(b, m.body...)
}

// decode reports whether b is a message. The message's body aliases b.
func decode(b []byte) (m message, isMessage bool) {
	if len(b) < headerBytes || len(b) > headerBytes+BytesMax || b[0] != layout {
		return m, false
	}
	le := binary.LittleEndian
	m = message{
		typ: messageType(b[1]), kind: b[2], status: status(b[3]),
		speaks: protocol.Range{Min: protocol.Version(b[4]), Max: protocol.Version(b[5])},
		id:     le.Uint64(b[8:]), from: le.Uint64(b[16:]), to: le.Uint64(b[24:]), body: b[headerBytes:],
	}
	if m.typ < request || m.typ > reply || m.status >= statuses || m.from == AnyLife || !m.speaks.Stated().IsValid() {
		return m, false
	}
	return m, m.typ == reply || m.status == ok // a request has no other status
}
