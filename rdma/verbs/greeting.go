package verbs

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A TCP connection begins with a greeting of the side that has opened it, and a reply, as
// package hosts has them. After each comes the address of its sender's queue pair:
//
//	address:   | pair 4 | first packet 4 | GID 16 | LID 2 | MTU 1 | READs 1 | Q_Key 4 |
//
// Over a connection for operations, the opener then asks for pieces of the memory of keys, and the other side answers, in order, and tells of registrations that have ended:
//
//	question:  | key 8 | piece 4 | reserved 4 |
//	answer:    | kind 1 | reserved 3 | the card's key 4 | key 8 | piece 4 | reserved 4 | address 8 | bytes 8 |, the last two of all of the memory
const (
	magic  = 0x76637266 // "frcv"
	format = 1

	addressBytes  = 32
	questionBytes = 16
	answerBytes   = 40
)

var protocol = hosts.Protocol{Magic: magic, Format: format}

// The purposes of connections.
const (
	operations uint8 = iota
	datagrams
)

var le = binary.LittleEndian

func (a *address) append(b []byte) []byte {
	b = le.AppendUint32(b, a.pair)
	b = le.AppendUint32(b, a.first)
	b = append(b, a.gid[:]...)
	b = le.AppendUint16(b, a.lid)
	b = append(b, a.mtu, a.reads)
	return le.AppendUint32(b, a.key)
}

// decodeAddress reads an address of addressBytes. It refuses what no card would take.
func decodeAddress(b []byte) (a address, err error) {
	a = address{pair: le.Uint32(b), first: le.Uint32(b[4:]), lid: le.Uint16(b[24:]), mtu: b[26], reads: b[27], key: le.Uint32(b[28:])}
	copy(a.gid[:], b[8:])
	if a.pair >= 1<<24 || a.first >= 1<<24 || mtuBytes(a.mtu) == 0 {
		return a, fmt.Errorf("%w: queue pair %#x, packet %#x, MTU %d", hosts.ErrGarbage, a.pair, a.first, a.mtu)
	}
	return a, nil
}

func readAddress(r io.Reader) (address, error) {
	var b [addressBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return address{}, err
	}
	return decodeAddress(b[:])
}

// A greeting is the first message over a connection.
type greeting struct {
	hosts.Greeting
	at address // the address of the sender's queue pair
}

func (g *greeting) encode() []byte { return g.at.append(protocol.EncodeGreeting(g.Greeting)) }

func readGreeting(r io.Reader) (g greeting, err error) {
	if g.Greeting, err = protocol.ReadGreeting(r); err == nil {
		g.at, err = readAddress(r)
	}
	return g, err
}

// A reply answers a greeting.
type reply struct {
	hosts.Reply
	at address // the address of the sender's queue pair
}

func (r *reply) encode() []byte { return r.at.append(protocol.EncodeReply(r.Reply)) }

// readReply returns the life and the address of the other side, or why it refuses.
func readReply(r io.Reader) (life uint64, at address, err error) {
	if life, err = protocol.ReadReply(r); err == nil {
		at, err = readAddress(r)
	}
	return life, at, err
}

// A question asks for a piece of the memory of a key.
type question struct {
	key   rdma.Key
	piece uint32
}

func (q question) append(b []byte) []byte {
	b = le.AppendUint64(b, uint64(q.key))
	return le.AppendUint64(b, uint64(q.piece))
}

func decodeQuestion(b []byte) question {
	return question{rdma.Key(le.Uint64(b)), le.Uint32(b[8:])}
}

// An answerKind is what an answer says.
type answerKind uint8

const (
	registered answerKind = iota // here is the piece
	unknown                      // no memory has the key
	ended                        // the registration of the key, which the other side was told before, has ended
	outside                      // the memory has no such piece
	unpinned                     // the card cannot register the piece
)

// An answer says where the memory of a key is, and the card's key of a piece.
type answer struct {
	kind answerKind
	rkey uint32
	question
	address uint64
	bytes   uint64
}

// memoryBytesMax bounds the size of memory that a peer may claim: no region has more, nor
// anything else.
const memoryBytesMax = 1 << 40

func (a *answer) encode() []byte {
	b := append(make([]byte, 0, answerBytes), byte(a.kind), 0, 0, 0)
	b = a.question.append(le.AppendUint32(b, a.rkey))
	b = le.AppendUint64(b, a.address)
	return le.AppendUint64(b, a.bytes)
}

func decodeAnswer(b []byte) (a answer, err error) {
	a = answer{kind: answerKind(b[0]), rkey: le.Uint32(b[4:]), question: decodeQuestion(b[8:]), address: le.Uint64(b[24:]), bytes: le.Uint64(b[32:])}
	isInside := a.kind != registered || uint64(a.piece)*pieceBytes < a.bytes
	if a.kind > unpinned || a.address+a.bytes < a.address || a.bytes > memoryBytesMax || !isInside {
		return a, fmt.Errorf("%w: answer %d, piece %d, %#x bytes at %#x", hosts.ErrGarbage, a.kind, a.piece, a.bytes, a.address)
	}
	return a, nil
}
