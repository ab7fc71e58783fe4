package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/farmsql/farmsql/rdma"
)

// A TCP connection begins with a greeting of the side that has opened it, and a reply. An address is where the queue pair
// of the one who speaks is found:
//
//	greeting:  | magic 4 | format 1 | purpose 1 | from 2 | to 2 | worker 2 | dial 4 | life 8 | cluster 16 | address 32 |
//	reply:     | magic 4 | format 1 | refusal 1 | reserved 2 | life 8 | address 32 |
//	address:   | pair 4 | first packet 4 | GID 16 | LID 2 | MTU 1 | READs 1 | Q_Key 4 |
//
// Over a connection for operations, the opener then asks for keys of memory, and the other side answers, in order, and tells of registrations that have ended:
//
//	question:  | key 8 |
//	answer:    | kind 1 | reserved 3 | the card's key 4 | key 8 | address 8 | bytes 8 |
const (
	magic  = 0x76637266 // "frcv"
	format = 1

	addressBytes  = 32
	greetingBytes = 40 + addressBytes
	replyBytes    = 16 + addressBytes
	questionBytes = 8
	answerBytes   = 32
)

// A purpose is what a connection is for.
type purpose uint8

const (
	operations purpose = iota
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
		return a, fmt.Errorf("%w: queue pair %#x, packet %#x, MTU %d", errGarbage, a.pair, a.first, a.mtu)
	}
	return a, nil
}

// A greeting is the first message over a connection.
type greeting struct {
	purpose  purpose
	from, to rdma.MachineID
	worker   uint16
	dial     uint32 // numbers the connections that a life has opened
	life     uint64
	cluster  [16]byte
	address  address
}

func (g *greeting) encode() []byte {
	b := le.AppendUint32(make([]byte, 0, greetingBytes), magic)
	b = append(b, format, byte(g.purpose))
	b = le.AppendUint16(b, uint16(g.from))
	b = le.AppendUint16(b, uint16(g.to))
	b = le.AppendUint16(b, g.worker)
	b = le.AppendUint32(b, g.dial)
	b = le.AppendUint64(b, g.life)
	return g.address.append(append(b, g.cluster[:]...))
}

func readGreeting(r io.Reader) (g greeting, err error) {
	var b [greetingBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return g, err
	}
	if m := le.Uint32(b[:]); m != magic {
		return g, fmt.Errorf("%w: begins with %#x", errGarbage, m)
	}
	if b[4] != format {
		return g, refusals[otherFormat]
	}
	g = greeting{
		purpose: purpose(b[5]),
		from:    rdma.MachineID(le.Uint16(b[6:])),
		to:      rdma.MachineID(le.Uint16(b[8:])),
		worker:  le.Uint16(b[10:]),
		dial:    le.Uint32(b[12:]),
		life:    le.Uint64(b[16:]),
	}
	copy(g.cluster[:], b[24:])
	g.address, err = decodeAddress(b[40:])
	return g, err
}

// A refusal says why a machine does not accept a connection.
type refusal uint8

const (
	accepted refusal = iota
	otherFormat
	otherCluster
	otherMachine
	noWorker
	leaving
	unknownPurpose
	outdated
	cardBroken
)

var errGarbage = errors.New("verbs: not a connection of a farmsql machine")

var refusals = map[refusal]error{
	otherFormat:    errors.New("the other machine speaks another format"),
	otherCluster:   errors.New("the other machine belongs to another cluster"),
	otherMachine:   errors.New("another machine has the address"),
	noWorker:       errors.New("the other machine has no such worker"),
	leaving:        errors.New("the other machine leaves the network, or is cut off"),
	unknownPurpose: errors.New("the other machine does not know the purpose of the connection"),
	outdated:       errors.New("the other machine knows a later life of this machine, or a later connection"),
	cardBroken:     errors.New("the other machine's card cannot make a queue pair"),
}

// A reply answers a greeting.
type reply struct {
	refusal refusal
	life    uint64
	address address
}

func (r *reply) encode() []byte {
	b := le.AppendUint32(make([]byte, 0, replyBytes), magic)
	b = append(b, format, byte(r.refusal), 0, 0)
	b = le.AppendUint64(b, r.life)
	return r.address.append(b)
}

// readReply returns the life and the address of the other side, or why it refuses.
func readReply(r io.Reader) (life uint64, a address, err error) {
	var b [replyBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return 0, a, err
	}
	why, known := refusals[refusal(b[5])]
	switch {
	case le.Uint32(b[:]) != magic:
		return 0, a, errGarbage
	case b[4] != format:
		return 0, a, refusals[otherFormat]
	case known:
		return 0, a, why
	case refusal(b[5]) != accepted:
		return 0, a, fmt.Errorf("refused for reason %d", b[5])
	}
	a, err = decodeAddress(b[16:])
	return le.Uint64(b[8:]), a, err
}

// An answerKind is what an answer says.
type answerKind uint8

const (
	registered answerKind = iota // here is the memory of the key
	unknown                      // no memory has the key
	ended                        // the memory of the key, which was told before, has it no more
)

// An answer says where the memory of a key is.
type answer struct {
	kind answerKind
	key  rdma.Key
	target
}

// A target is memory of another machine.
type target struct {
	rkey    uint32
	address uint64
	bytes   uint64
}

func (a *answer) encode() []byte {
	b := append(make([]byte, 0, answerBytes), byte(a.kind), 0, 0, 0)
	b = le.AppendUint32(b, a.rkey)
	b = le.AppendUint64(b, uint64(a.key))
	b = le.AppendUint64(b, a.address)
	return le.AppendUint64(b, a.bytes)
}

func decodeAnswer(b []byte) (a answer, err error) {
	a = answer{kind: answerKind(b[0]), key: rdma.Key(le.Uint64(b[8:]))}
	a.rkey, a.address, a.bytes = le.Uint32(b[4:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	if a.kind > ended || a.address+a.bytes < a.address {
		return a, fmt.Errorf("%w: answer %d, %#x bytes at %#x", errGarbage, a.kind, a.bytes, a.address)
	}
	return a, nil
}
