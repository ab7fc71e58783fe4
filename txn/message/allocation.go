package message

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// An Allocation is a coordinator's request to a primary: reserve a slot for Payload bytes near the
// object at Hint.
type Allocation struct {
	Hint    region.Addr
	Need    region.Need
	Payload int
	// Machine and Worker are the borrower, and Connection the connection over which it asks.
	Machine    rdma.MachineID
	Worker     uint16
	Connection uint32
}

const allocationBytes = 20

// needShift is the position of the need in the word that holds the length.
const needShift = 31

// Encode encodes the request.
func (a Allocation) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(a.Hint))
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Payload)|uint32(a.Need)<<needShift)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Worker)|uint32(a.Machine)<<16)
	return binary.LittleEndian.AppendUint32(b, a.Connection)
}

// DecodeAllocation decodes the result of Allocation.Encode.
func DecodeAllocation(b []byte) (a Allocation, err error) {
	if len(b) != allocationBytes {
		return a, fmt.Errorf("%w: allocation of %d bytes", ErrBad, len(b))
	}
	le := binary.LittleEndian
	size, who := le.Uint32(b[8:]), le.Uint32(b[12:])
	return Allocation{
		Hint: region.Addr(le.Uint64(b)), Need: region.Need(size >> needShift), Payload: int(size & (1<<needShift - 1)),
		Machine: rdma.MachineID(who >> 16), Worker: uint16(who), Connection: le.Uint32(b[16:]),
	}, nil
}

// A Slot is room for an object at its primary.
type Slot struct {
	Ptr     region.Ptr
	Version region.Version
	// Config is the primary's configuration when it reserved the slot. It may be later than the
	// configuration of the request, if the primary had to wait for a new region.
	Config uint32
}

const slotBytes = region.PtrBytes + 12

// Encode encodes the slot, which is the reply to an allocation.
func (s Slot) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(s.Ptr.Append(nil), uint64(s.Version))
	return binary.LittleEndian.AppendUint32(b, s.Config)
}

// DecodeSlot decodes the result of Slot.Encode.
func DecodeSlot(b []byte) (s Slot, err error) {
	if len(b) != slotBytes {
		return s, fmt.Errorf("%w: reply to an allocation of %d bytes", ErrBad, len(b))
	}
	s.Ptr, err = region.DecodePtr(b)
	b = b[region.PtrBytes:]
	s.Version, s.Config = region.Version(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])
	return s, err
}

// A Release returns a slot, unused, to the machine that has lent it.
type Release struct {
	Ptr region.Ptr
	// Config is the Slot's Config: in another configuration, the same slot may have been lent
	// to another machine. 0 comes from a sender whose version does not send it.
	Config uint32
}

const releaseBytes = region.PtrBytes + 4

// Encode encodes the release. Before protocol.Handovers it has no configuration.
func (r Release) Encode(version protocol.Version) []byte {
	b := r.Ptr.Append(nil)
	if version < protocol.Handovers {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, r.Config)
}

// DecodeRelease decodes the result of Release.Encode in any version: the sender may be in a
// configuration of another version than the receiver's.
func DecodeRelease(b []byte) (r Release, err error) {
	switch len(b) {
	case region.PtrBytes:
	case releaseBytes:
		r.Config = binary.LittleEndian.Uint32(b[region.PtrBytes:])
	default:
		return r, fmt.Errorf("%w: release of %d bytes", ErrBad, len(b))
	}
	r.Ptr, err = region.DecodePtr(b)
	return r, err
}
