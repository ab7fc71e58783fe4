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

func loadPayload(dst []byte, object unsafe.Pointer) {
	copyFirst(unsafe.Pointer(unsafe.SliceData(dst)), object)
	if rest := dst[firstPayload:]; len(rest) > 0 {
		loadLines(unsafe.Pointer(unsafe.SliceData(rest)), unsafe.Add(object, lineBytes), len(rest)/linePayload)
	}
}

// copyFirst copies the payload of an object's first line.
func copyFirst(to, object unsafe.Pointer) {
	line := loadLine(object)
	copy(unsafe.Slice((*byte)(to), firstPayload), line[HeaderBytes:])
}

// loadLines copies n lines, as they are but for their versions.
func loadLines(to, line unsafe.Pointer, n int) {
	for dst := unsafe.Slice((*byte)(to), n*linePayload); len(dst) > 0; dst = dst[linePayload:] {
		from := loadLine(line)
		copy(dst[:linePayload], from[versionBytes:])
		line = unsafe.Add(line, lineBytes)
	}
}

// loadBytes copies bytes of one line to dst.
func loadBytes(dst []byte, from unsafe.Pointer) {
	if len(dst) == 0 {
		return // where the next object begins, or none
	}
	at := int(uintptr(from) % lineBytes)
	line := loadLine(unsafe.Add(from, -at))
	copy(dst, line[at:])
}

// equalBytes compares b with bytes of one line.
func equalBytes(b []byte, with unsafe.Pointer) bool {
	if len(b) == 0 {
		return true
	}
	at := int(uintptr(with) % lineBytes)
	line := loadLine(unsafe.Add(with, -at))
	return bytes.Equal(b, line[at:at+len(b)])
}

func loadLine(from unsafe.Pointer) (line [lineBytes]byte) {
	for i := 0; i < lineBytes; i += 8 {
		binary.LittleEndian.PutUint64(line[i:], atomic.LoadUint64((*uint64)(unsafe.Add(from, i))))
	}
	return line
}

func (r *Region) storePayload(off uint64, c Class, payload []byte, v Version) {
	for i := 1; i < c.lines(); i++ {
		at := off + uint64(i)*lineBytes
		r.m.Store(at, r.m.Load(at)&^0xffff|uint64(lineVersion(v)^writing))
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

// fillLine copies as much of payload as fits, clears the rest of dst, and
// returns what is left of payload.
func fillLine(dst, payload []byte) []byte {
	n := copy(dst, payload)
	clear(dst[n:])
	return payload[n:]
}
