//go:build !amd64 || race

package region

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// Where plain accesses may be reordered, and where the race detector watches,
// payload moves in atomic words through a line on the stack.

// copyFirst copies the payload of an object's first line.
func copyFirst(to, object unsafe.Pointer) {
	line := wordsOf(object)
	copy(unsafe.Slice((*byte)(to), firstPayload), line[HeaderBytes:])
}

// copyLine copies the payload of a line other than the first.
func copyLine(to, from unsafe.Pointer) {
	line := wordsOf(unsafe.Add(from, -versionBytes))
	copy(unsafe.Slice((*byte)(to), linePayload), line[versionBytes:])
}

// loadLines copies n lines without their versions.
func loadLines(to, line unsafe.Pointer, n int) {
	for i := range n {
		copyLine(unsafe.Add(to, i*linePayload), unsafe.Add(line, i*lineBytes+versionBytes))
	}
}

// loadBytes copies bytes of one line to dst.
func loadBytes(dst []byte, from unsafe.Pointer) {
	at := int(uintptr(from) % lineBytes)
	line := wordsOf(unsafe.Add(from, -at))
	copy(dst, line[at:])
}

// equalBytes compares b with bytes of one line.
func equalBytes(b []byte, with unsafe.Pointer) bool {
	at := int(uintptr(with) % lineBytes)
	line := wordsOf(unsafe.Add(with, -at))
	return bytes.Equal(b, line[at:at+len(b)])
}

func wordsOf(line unsafe.Pointer) (copied [lineBytes]byte) {
	for i := 0; i < lineBytes; i += 8 {
		binary.LittleEndian.PutUint64(copied[i:], atomic.LoadUint64((*uint64)(unsafe.Add(line, i))))
	}
	return copied
}

// storePayload writes payload and line versions of a locked object. It first marks all lines as being
// written, and removes the marks with the last loop.
func (r *Region) storePayload(off uint64, c Class, payload []byte, v Version) {
	for i := 1; i < c.lines(); i++ {
		at := off + uint64(i)*lineBytes
		r.m.Store(at, (r.m.Load(at)&^0xffff)|uint64(lineVersion(v)^writingMark))
	}
	var line [lineBytes]byte
	payload = fillLine(line[HeaderBytes:], payload)
	r.m.CopyIn(off+HeaderBytes, line[HeaderBytes:])
	rest := payload
	for i := 1; i < c.lines(); i++ {
		rest = fillLine(line[versionBytes:], rest)
		r.m.CopyIn(off+uint64(i)*lineBytes+8, line[8:])
	}
	// The first word of a line holds its version and the payload's first bytes.
	for i := 1; i < c.lines(); i++ {
		payload = fillLine(line[versionBytes:], payload)
		binary.LittleEndian.PutUint16(line[:], lineVersion(v))
		r.m.Store(off+uint64(i)*lineBytes, binary.LittleEndian.Uint64(line[:8]))
	}
}

// fillLine copies as much of payload as fits, clears the rest of dst, and returns the rest of
// payload.
func fillLine(dst, payload []byte) []byte {
	n := copy(dst, payload)
	clear(dst[n:])
	return payload[n:]
}
