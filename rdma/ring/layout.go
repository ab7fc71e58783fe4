package ring

import (
	"fmt"

	"github.com/farmsql/farmsql/nvram"
)

const (
	wordBytes    = nvram.WordBytes
	frameBytes   = 2 * wordBytes
	controlBytes = nvram.LineBytes

	// Words of the control line, by offset.
	magicAt = 0
	bytesAt = 8
	nonceAt = 16
	headAt  = 24

	// magic names the layout. Creating a ring stores it last.
	magic = 0x31676e694d526146 // "FaRMing1"

	// BytesMin and BytesMax bound the memory that a ring may take.
	BytesMin = controlBytes + 2*nvram.LineBytes
	BytesMax = 1 << 31

	// noRecord is the length in the state of a frame that no record follows.
	noRecord = 1<<32 - 1
)

var _ = [1]struct{}{}[BytesMax/(noRecord+1)] // no length equals noRecord

// Space returns the space that a record with n bytes of payload takes in a ring.
func Space(n int) uint64 { return frameBytes + padded(n) }

// MemoryFor returns how much memory a ring needs to have room for one record with n bytes of payload:
// the control line, the record, and the frame that always follows the last record, in whole lines.
func MemoryFor(n int) uint64 {
	records := Space(n) + frameBytes
	return max(BytesMin, controlBytes+((records+nvram.LineBytes-1)&^(nvram.LineBytes-1)))
}

// padded returns n rounded up to whole words.
func padded(n int) uint64 { return (uint64(n) + wordBytes - 1) &^ (wordBytes - 1) }

// seal returns the word that says that everything before position p has been written. With one
// nonce, different positions have different seals (the function is a bijection). With random
// nonces, nothing else in the ring can predict a seal: the finalizer is SplitMix64's.
func seal(nonce, p uint64) uint64 {
	x := nonce + p*0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// stateOf returns the state of a frame with the given seal. length is that of the payload that
// follows, or noRecord. The upper half of the state is a check, which lengthOf verifies.
func stateOf(seal, length uint64) uint64 { return check(seal) | length }

// lengthOf returns the length in a state; ok is false if the state does not belong to the seal. noRecord,
// the largest length, is the mask of the lower half.
func lengthOf(seal, state uint64) (length uint64, ok bool) {
	return state & noRecord, state&^noRecord == check(seal)
}

// check returns the upper half of the states of a frame with the given seal; the lower half is 0.
func check(seal uint64) uint64 { return ^seal &^ noRecord }

// A State tells a Sender about a ring at another machine. The receiver's machine sends it when the
// two connect.
type State struct {
	Nonce uint64
	Bytes uint64 // the length of the ring's data
	Head  uint64 // everything before it has been freed
	Tail  uint64 // the position of the next record
}

// checkBytes checks the memory of a ring: size bytes at off of m.
func checkBytes(m *nvram.Memory, off, size uint64) error {
	if size < BytesMin || size > BytesMax || (off|size)%nvram.LineBytes != 0 || off > m.Size() || size > m.Size()-off {
		return fmt.Errorf("%w: %d bytes at offset %d of %d", ErrBytes, size, off, m.Size())
	}
	return nil
}
