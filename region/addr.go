package region

import (
	"encoding/binary"
	"fmt"
)

// ID names a region in the whole cluster.
type ID uint32

// Addr is the address of an object in the shared address space: region and
// offset. Zero is not an address, since a region begins with its header. An Addr can be passed to
// Alloc as a placement hint.
type Addr uint64

// MakeAddr returns the address of offset off in region id.
func MakeAddr(id ID, off uint32) Addr { return Addr(id)<<32 | Addr(off) }

// Region returns the number of the region that contains the address.
func (a Addr) Region() ID { return ID(a >> 32) }

// Offset returns the offset of the address in its region.
func (a Addr) Offset() uint32 { return uint32(a) }

func (a Addr) String() string { return fmt.Sprintf("%d:%#x", a.Region(), a.Offset()) }

// PtrBytes is the length of an encoded Ptr.
const PtrBytes = 16

// Ptr is the 128-bit fat pointer of NSDI'14 section 3.5: it says where an object
// is, how much to read, and which incarnation of the slot is meant. The zero Ptr
// points nowhere.
//
//	Addr: | region 32b | offset 32b |    tail: | incarnation 56b | class 8b |
//
// Incarnations count the frees of one slot, so that 56 bits never wrap.
type Ptr struct {
	Addr Addr
	tail uint64
}

// MakePtr returns the pointer to the object of class c at an address. inc is the object's
// incarnation.
func MakePtr(a Addr, c Class, inc uint64) Ptr { return Ptr{a, inc<<8 | uint64(c)} }

// Class returns the object's size class.
func (p Ptr) Class() Class { return Class(p.tail) }

// Incarnation returns the incarnation that p expects.
func (p Ptr) Incarnation() uint64 { return p.tail >> 8 }

// Capacity returns the length of the object's payload.
func (p Ptr) Capacity() int { return p.Class().Capacity() }

// IsNil reports whether p points nowhere.
func (p Ptr) IsNil() bool { return p.Addr == 0 }

func (p Ptr) String() string {
	if p.IsNil() {
		return "nil"
	}
	return fmt.Sprintf("%v/%d#%d", p.Addr, p.Class().Size(), p.Incarnation())
}

// Append appends the encoding of p, PtrBytes long, to b.
func (p Ptr) Append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(p.Addr)), p.tail)
}

// DecodePtr decodes the first PtrBytes of b. It returns ErrBadPtr if they cannot be a pointer: b is
// too short, no object can have the address, or the address is zero and the rest is not. A pointer
// that decodes may still point to no object.
func DecodePtr(b []byte) (Ptr, error) {
	if len(b) < PtrBytes {
		return Ptr{}, ErrBadPtr
	}
	p := Ptr{Addr(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}
	if p.Addr == 0 && p.tail == 0 {
		return p, nil
	}
	if p.Addr.Offset() == 0 || p.Addr.Offset()%lineBytes != 0 {
		return Ptr{}, ErrBadPtr
	}
	return p, nil
}
