package hosts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/farmsql/farmsql/rdma"
)

// A connection begins with a greeting of the side that has opened it, and a reply. Providers
// decide what follows:
//
//	greeting:  | magic 4 | format 1 | purpose 1 | from 2 | to 2 | worker 2 | dial 4 | life 8 | cluster 16 | address, its length before it 1 |
//	reply:     | magic 4 | format 1 | refusal 1 | reserved 2 | life 8 |
const (
	greetingBytes = 41 // the length of a greeting without its address
	// AddressMax is the length of the longest address in a greeting.
	AddressMax = 255
	replyBytes = 16
)

// A Protocol tells the connections of a provider from others: they begin with it.
type Protocol struct {
	Magic  uint32
	Format byte
}

// A Greeting is the first message over a connection.
type Greeting struct {
	Purpose  uint8 // what the connection is for; each provider has its own values
	From, To rdma.MachineID
	Worker   uint16
	Dial     uint32 // numbers the connections that a life has opened
	Life     uint64
	Cluster  [16]byte
	Address  string // where the sender is reached, at most AddressMax bytes
}

// EncodeGreeting encodes a greeting.
func (p Protocol) EncodeGreeting(g Greeting) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, greetingBytes+len(g.Address)), p.Magic)
	b = append(b, p.Format, g.Purpose)
	b = le.AppendUint16(b, uint16(g.From))
	b = le.AppendUint16(b, uint16(g.To))
	b = le.AppendUint16(b, g.Worker)
	b = le.AppendUint32(b, g.Dial)
	b = le.AppendUint64(b, g.Life)
	b = append(b, g.Cluster[:]...)
	return append(append(b, byte(len(g.Address))), g.Address...)
}

// ReadGreeting reads a greeting. It fails with ErrGarbage, and if the sender speaks another format.
func (p Protocol) ReadGreeting(r io.Reader) (g Greeting, err error) {
	var b [greetingBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return g, err
	}
	le := binary.LittleEndian
	if m := le.Uint32(b[:]); m != p.Magic {
		return g, fmt.Errorf("%w: begins with %#x", ErrGarbage, m)
	}
	if b[4] != p.Format {
		return g, Refusals[OtherFormat]
	}
	g = Greeting{
		Purpose: b[5],
		From:    rdma.MachineID(le.Uint16(b[6:])),
		To:      rdma.MachineID(le.Uint16(b[8:])),
		Worker:  le.Uint16(b[10:]),
		Dial:    le.Uint32(b[12:]),
		Life:    le.Uint64(b[16:]),
	}
	copy(g.Cluster[:], b[24:])
	address := make([]byte, b[greetingBytes-1])
	if _, err = io.ReadFull(r, address); err != nil {
		return g, err
	}
	g.Address = string(address)
	return g, nil
}

// IsBefore reports whether the greeting's connection was opened before connection number dial
// of the same life. Numbers wrap.
func (g *Greeting) IsBefore(dial uint32) bool { return int32(g.Dial-dial) < 0 }

// A Refusal says why a machine does not accept a connection.
type Refusal uint8

// The reasons. Their numbers go over the network.
const (
	Accepted Refusal = iota
	OtherFormat
	OtherCluster
	OtherMachine
	NoWorker
	NotAuthorized
	Leaving
	UnknownPurpose
	Outdated
	Twin
	NoLine
	CardBroken
)

// ErrGarbage says that the other side is no machine, or uses another provider.
var ErrGarbage = errors.New("not a connection of a farmsql machine")

// Refusals are the errors of the reasons.
var Refusals = map[Refusal]error{
	OtherFormat:    errors.New("the other machine speaks another format"),
	OtherCluster:   errors.New("the other machine belongs to another cluster"),
	OtherMachine:   errors.New("another machine has the address"),
	NoWorker:       errors.New("the other machine has no such worker"),
	NotAuthorized:  errors.New("the certificate does not authorize this machine"),
	Leaving:        errors.New("the other machine leaves the network, or is cut off"),
	UnknownPurpose: fmt.Errorf("the other machine does not know the purpose of the connection: %w", errors.ErrUnsupported),
	Outdated:       errors.New("the other machine knows a later life of this machine, or a later connection"),
	NoLine:         errors.New("the other machine does not use its line: not yet, or it has stopped"),
	Twin:           errors.New("another process, at another address, has the number of this machine and is connected"),
	CardBroken:     errors.New("the other machine's card cannot make a queue pair"),
}

// A Reply answers a greeting.
type Reply struct {
	Refusal Refusal
	Life    uint64
}

// EncodeReply encodes a reply.
func (p Protocol) EncodeReply(r Reply) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, replyBytes), p.Magic)
	b = append(b, p.Format, byte(r.Refusal), 0, 0)
	return le.AppendUint64(b, r.Life)
}

// ReadReply returns the life of the other side, or why it refuses.
func (p Protocol) ReadReply(r io.Reader) (life uint64, err error) {
	var b [replyBytes]byte
	if _, err = io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	why, known := Refusals[Refusal(b[5])] // nil for Accepted
	switch {
	case le.Uint32(b[:]) != p.Magic:
		return 0, ErrGarbage
	case b[4] != p.Format:
		return 0, Refusals[OtherFormat]
	case Refusal(b[5]) != Accepted && !known:
		return 0, fmt.Errorf("refused for reason %d", b[5])
	}
	return le.Uint64(b[8:]), why
}
