package region

import "fmt"

// Version counts the commits that changed an object. It has 60 bits.
type Version uint64

// Header is word 0 of an object:
//
//	| lock 1b | allocated 1b | reserved 2b, zero | version 60b |
//
// Word 1 is the incarnation.
type Header uint64

const (
	// HeaderBytes is the length of an object's header: the Header word and the
	// incarnation.
	HeaderBytes = 16
	// VersionMax is the last version; at a million commits a second, one object
	// reaches it after 36,000 years.
	VersionMax Version = 1<<versionBits - 1

	versionBits  = 60
	lockBit      = Header(1) << 63
	allocatedBit = Header(1) << 62

	incarnationOffset = 8
	versionBytes      = 2 // the length of a line version
	// writingMark is XORed into a line's version while the line is being written.
	writingMark = 0x8000
)

// The build fails if the header's parts overlap or leave its two words.
var (
	_ = [1]struct{}{}[(lockBit&allocatedBit)|((lockBit|allocatedBit)&Header(VersionMax))]
	_ = [1]struct{}{}[incarnationOffset+8-HeaderBytes]
	_ = [1]struct{}{}[(lineBytes-HeaderBytes)%8]
	_ = [1]struct{}{}[maxLines*lineBytes-MaxObject]
)

// MakeHeader returns the header of an unlocked object.
func MakeHeader(v Version, allocated bool) Header {
	h := Header(v & VersionMax)
	if allocated {
		h |= allocatedBit
	}
	return h
}

// Locked reports whether a transaction holds the object.
func (h Header) Locked() bool { return h&lockBit != 0 }

// Allocated reports whether the slot holds an object.
func (h Header) Allocated() bool { return h&allocatedBit != 0 }

// readable reports whether the slot holds an object that is not locked.
func (h Header) readable() bool { return h&(lockBit|allocatedBit) == allocatedBit }

// Version returns the object's version.
func (h Header) Version() Version { return Version(h) & VersionMax }

func (h Header) String() string {
	state := "free"
	if h.Allocated() {
		state = "allocated"
	}
	if h.Locked() {
		state += ",locked"
	}
	return fmt.Sprintf("%s@%d", state, h.Version())
}
