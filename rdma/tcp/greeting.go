package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/farmsql/farmsql/rdma"
)

// A connection begins with a greeting of the side that has opened it, and a reply:
//
//	greeting:  | magic 4 | format 1 | purpose 1 | from 2 | to 2 | worker 2 | dial 4 | life 8 | cluster 16 | address, its length before it 1 |
//	reply:     | magic 4 | format 1 | refusal 1 | reserved 2 | life 8 |, for keysOfDatagrams | key's number 8 | key 32 |, for keysOfLine | key's number 8 | key 16 |
const (
	magic  = 0x74637266 // "frct"
	format = 1          // of everything this package sends

	greetingBytes = 41 // without the address
	addressMax    = 255
	replyBytes    = 16
	keyBytes      = 32
)

// A purpose is what a connection is for.
type purpose uint8

const (
	operations purpose = iota
	keysOfDatagrams
	keysOfLine // unknown to versions without a line
)

// A greeting is the first message over a connection.
type greeting struct {
	purpose  purpose
	from, to rdma.MachineID
	worker   uint16
	dial     uint32 // numbers the connections that a life has opened
	life     uint64
	cluster  [16]byte
	address  string // Config.Advertise of the sender, at most addressMax bytes
}

func (g *greeting) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, greetingBytes+len(g.address)), magic)
	b = append(b, format, byte(g.purpose))
	b = le.AppendUint16(b, uint16(g.from))
	b = le.AppendUint16(b, uint16(g.to))
	b = le.AppendUint16(b, g.worker)
	b = le.AppendUint32(b, g.dial)
	b = le.AppendUint64(b, g.life)
	b = append(b, g.cluster[:]...)
	return append(append(b, byte(len(g.address))), g.address...)
}

func readGreeting(r io.Reader) (g greeting, err error) {
	var b [greetingBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return g, err
	}
	le := binary.LittleEndian
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
	address := make([]byte, b[greetingBytes-1])
	if _, err = io.ReadFull(r, address); err != nil {
		return g, err
	}
	g.address = string(address)
	return g, nil
}

// A refusal says why a machine does not accept a connection.
type refusal uint8

const (
	accepted refusal = iota
	otherFormat
	otherCluster
	otherMachine
	noWorker
	notAuthorized
	leaving
	unknownPurpose
	outdated
	twin
	noLine
)

var errGarbage = errors.New("tcp: not a connection of a farmsql machine")

var refusals = map[refusal]error{
	otherFormat:    errors.New("tcp: the other machine speaks another format"),
	otherCluster:   errors.New("tcp: the other machine belongs to another cluster"),
	otherMachine:   errors.New("tcp: another machine has the address"),
	noWorker:       errors.New("tcp: the other machine has no such worker"),
	notAuthorized:  errors.New("tcp: the certificate does not authorize this machine"),
	leaving:        errors.New("tcp: the other machine leaves the network"),
	unknownPurpose: fmt.Errorf("tcp: the other machine does not know the purpose of the connection: %w", errors.ErrUnsupported),
	outdated:       errors.New("tcp: the other machine knows a later life of this machine, or a later connection"),
	noLine:         errors.New("tcp: the other machine does not use its line yet, or any more"),
	twin:           errors.New("tcp: another process, at another address, has the number of this machine and is connected"),
}

// A reply answers a greeting.
type reply struct {
	refusal refusal
	life    uint64
}

func (r *reply) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, replyBytes), magic)
	b = append(b, format, byte(r.refusal), 0, 0)
	return le.AppendUint64(b, r.life)
}

func readReply(r io.Reader) (life uint64, err error) {
	var b [replyBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	why, known := refusals[refusal(b[5])]
	switch {
	case le.Uint32(b[:]) != magic:
		return 0, errGarbage
	case b[4] != format:
		return 0, refusals[otherFormat]
	case refusal(b[5]) != accepted && !known:
		return 0, fmt.Errorf("tcp: refused for reason %d", b[5])
	}
	return le.Uint64(b[8:]), why
}
