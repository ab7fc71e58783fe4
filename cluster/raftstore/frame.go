package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/farmsql/farmsql/rdma"
)

// A connection of a machine of the store carries messages from the machine that has opened it.
// The other machine answers asks, which shows that it is there even if it has nothing to say.
// On a connection of a client, calls and their results alternate; from is 0.
//
//	greeting:  | magic 4 | format 1 | kind 1 | knows 1 | zero 1 | from 2 | to 2 | zeros 4 | cluster 8 | founding 8 |
//	reply:     | magic 4 | format 1 | refusal 1 | knows 1 | zero 1 |
//	frame:     | kind 1 | zeros 3 | payload's bytes 4 | payload's CRC 4 | payload |
//	answer:    one byte, of any value
const (
	wireMagic     = 0x73636672 // "rfcs"
	wireFormat    = 1          // the format of everything that is sent
	greetingBytes = 32
	replyBytes    = 8
	// knowsFormat is what this program knows of founders, as it tells others. Programs that
	// know 4 do not know of calm (calm.go), and refuse its frames. Programs that know 3 do not
	// know Want. Programs that know 2 do not know Founders with Wanted, or of a Refounding, and
	// would drop a part of these. Earlier programs say 0, and know no changes of the founders.
	knowsFormat    = 5
	knowsChanges   = 2
	knowsRefounded = 3
	knowsWant      = 4
	knowsCalm      = 5
	headerBytes    = 12
	// payloadBytesMax is how long a message can be: one configuration, or several small ones.
	payloadBytesMax = configurationBytesMax + appendBytesMax + 64<<10
	// appendBytesMax is how many bytes of entries one message carries, but at least one entry.
	appendBytesMax = 1 << 20
)

// The kinds of frames.
const (
	frameMessage = 1 // a raftpb.Message
	frameAsk     = 2 // no payload; demands an answer
	frameCall    = 3 // a call of a client
	frameResult  = 4 // the result of a call
	frameCalm    = 5 // a raftpb.Message: a heartbeat of a leader that is calm
	frameStir    = 6 // no payload; the receiver must not be calm
)

// The kinds of connections.
const (
	ofMachine = 0
	ofClient  = 1
)

var errGarbage = errors.New("cluster: not a connection of the configuration store")

// A greeting is what a connection begins with.
type greeting struct {
	kind     byte
	from, to rdma.MachineID
	cluster  uint64
	founding uint64 // the digest of the founding
}

// greeting returns what a connection from f.Machine to another one begins with.
func (f *Founding) greeting(to rdma.MachineID) greeting {
	return greeting{from: f.Machine, to: to, cluster: f.Cluster, founding: f.digest()}
}

func (g greeting) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, greetingBytes), wireMagic)
	b = append(b, wireFormat, g.kind, knowsFormat, 0)
	b = le.AppendUint16(b, uint16(g.from))
	b = le.AppendUint16(b, uint16(g.to))
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint64(b, g.cluster)
	return le.AppendUint64(b, g.founding)
}

func readGreeting(r io.Reader) (g greeting, err error) {
	var b [greetingBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return g, err
	}
	le := binary.LittleEndian
	if le.Uint32(b[:]) != wireMagic {
		return g, errGarbage
	}
	if b[4] != wireFormat {
		return g, refusals[otherFormat]
	}
	return greeting{
		kind: b[5],
		from: rdma.MachineID(le.Uint16(b[8:])), to: rdma.MachineID(le.Uint16(b[10:])),
		cluster: le.Uint64(b[16:]), founding: le.Uint64(b[24:]),
	}, nil
}

// A refusal says why a machine does not accept a connection.
type refusal uint8

const (
	accepted refusal = iota
	otherFormat
	otherCluster
	otherFounding
	otherMachine
	stranger
	otherKind
	notAuthorized
	removed
)

// refusals has the error for each refusal, at both sides of a connection.
var refusals = map[refusal]error{
	otherFormat:   errors.New("cluster: the other machine's configuration store speaks another format"),
	otherCluster:  errors.New("cluster: the other machine's configuration store belongs to another cluster"),
	otherFounding: errors.New("cluster: the other machine's configuration store was founded with other machines or addresses"),
	otherMachine:  errors.New("cluster: the address belongs to another machine of the configuration store"),
	stranger:      errors.New("cluster: the machine that connects is not one of the configuration store"),
	otherKind:     errors.New("cluster: the other machine's configuration store does not know this kind of connection"),
	removed:       ErrRemoved,
	notAuthorized: errors.New("cluster: the certificate is not that of the machine that connects to the configuration store"),
}

func (r refusal) encode() []byte {
	return append(binary.LittleEndian.AppendUint32(nil, wireMagic), wireFormat, byte(r), knowsFormat, 0)
}

// readReply returns the error of a refusal, or nil if the connection is accepted. knows is what the other side
// knows, of knowsFormat.
func readReply(r io.Reader) (knows byte, err error) {
	var b [replyBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	reason, isKnown := refusals[refusal(b[5])]
	switch {
	case binary.LittleEndian.Uint32(b[:]) != wireMagic:
		return 0, errGarbage
	case b[4] != wireFormat:
		return 0, refusals[otherFormat]
	case refusal(b[5]) != accepted && !isKnown:
		return 0, fmt.Errorf("cluster: the other machine's configuration store refuses for reason %d", b[5])
	}
	return b[6], reason
}

// askFrame and stirFrame are whole frames.
var (
	askFrame  = appendHeader(nil, frameAsk, nil)
	stirFrame = appendHeader(nil, frameStir, nil)
)

func appendHeader(b []byte, kind byte, payload []byte) []byte {
	b = append(b, kind, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return binary.LittleEndian.AppendUint32(b, checksum(payload))
}

// messageFrame returns the frame of a message; kind is frameMessage or frameCalm.
func messageFrame(kind byte, m *raftpb.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, headerBytes), m)
	if err != nil {
		return nil, err
	}
	appendHeader(b[:0], kind, b[headerBytes:])
	return b, nil
}

// payloadFrame returns a frame with a payload.
func payloadFrame(kind byte, payload []byte) []byte {
	return append(appendHeader(make([]byte, 0, headerBytes+len(payload)), kind, payload), payload...)
}

// readArrival returns what the next frame of another machine has, and whether the frame is an ask.
func readArrival(r io.Reader) (a arrival, isAsk bool, err error) {
	kind, payload, err := readAnyFrame(r)
	switch {
	case err != nil:
		return a, false, err
	case kind == frameAsk && len(payload) == 0:
		return a, true, nil
	case kind == frameStir && len(payload) == 0:
		return a, false, nil
	case kind != frameMessage && kind != frameCalm:
		return a, false, fmt.Errorf("%w: a frame of kind %d", errGarbage, kind)
	}
	a = arrival{message: new(raftpb.Message), calm: kind == frameCalm}
	if err := proto.Unmarshal(payload, a.message); err != nil {
		return a, false, fmt.Errorf("%w: %w", errGarbage, err)
	}
	if a.calm && a.message.GetType() != raftpb.MsgHeartbeat {
		return a, false, fmt.Errorf("%w: a calm message of type %v", errGarbage, a.message.GetType())
	}
	return a, false, nil
}

// readFrameOf returns the payload of the next frame, which must be of a kind.
func readFrameOf(want byte, r io.Reader) (payload []byte, err error) {
	kind, payload, err := readAnyFrame(r)
	if err == nil && kind != want {
		err = fmt.Errorf("%w: a frame of kind %d, not %d", errGarbage, kind, want)
	}
	return payload, err
}

// readAnyFrame reads the next frame, and checks its length and its checksum.
func readAnyFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	kind, n := header[0], binary.LittleEndian.Uint32(header[4:])
	if n > payloadBytesMax {
		return 0, nil, fmt.Errorf("%w: a frame of kind %d and %d bytes", errGarbage, kind, n)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	if checksum(payload) != binary.LittleEndian.Uint32(header[8:]) {
		return 0, nil, fmt.Errorf("%w: a frame has been altered on its way", errGarbage)
	}
	return kind, payload, nil
}
