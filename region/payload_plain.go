//go:build amd64 && !race

package region

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// amd64 reorders neither loads with loads nor stores with stores, so only the
// compiler's reordering matters. The compiler does not move plain accesses across
// atomic ones or calls, but within a basic block it drops the first of two plain
// stores to the same place. So each step of a write is a function that is never
// inlined.

// loadLines copies n lines, at least one, without their versions. It copies a single line twice,
// in place of a branch for n = 1: the processor cannot predict n, and a mispredicted branch would
// cost more.
func loadLines(to, line unsafe.Pointer, n int) {
	from := unsafe.Add(line, versionBytes)
	for ; n > 2; n-- {
		loadLine(to, from)
		to, from = unsafe.Add(to, linePayload), unsafe.Add(from, lineBytes)
	}
	loadLine(to, from)
	loadLine(unsafe.Add(to, (n-1)*linePayload), unsafe.Add(from, (n-1)*lineBytes))
}

// loadLine is copyLine, not inlined: inlined, it would compute the address of each part again.
//
//go:noinline
func loadLine(to, from unsafe.Pointer) { copyLine(to, from) }

// loadBytes copies bytes of one line to dst.
func loadBytes(dst []byte, from unsafe.Pointer) { copy(dst, unsafe.Slice((*byte)(from), len(dst))) }

// equalBytes compares b with bytes of one line. It makes no function call for the lengths that most
// keys have.
func equalBytes(b []byte, with unsafe.Pointer) bool {
	if n := len(b); n >= 8 && n <= 16 {
		return binary.NativeEndian.Uint64(b) == *(*uint64)(with) &&
			binary.NativeEndian.Uint64(b[n-8:]) == *(*uint64)(unsafe.Add(with, n-8))
	}
	return bytes.Equal(b, unsafe.Slice((*byte)(with), len(b)))
}

// A part is copied by one move instruction. For longer copies the compiler emits calls.
type part = [16]byte

// copyFirst copies the payload of an object's first line.
func copyFirst(to, object unsafe.Pointer) {
	dst, src := (*[firstPayload]byte)(to), (*[firstPayload]byte)(unsafe.Add(object, HeaderBytes))
	*(*part)(dst[:]) = *(*part)(src[:])
	*(*part)(dst[16:]) = *(*part)(src[16:])
	*(*part)(dst[32:]) = *(*part)(src[32:])
}

// copyLine copies the payload of a line other than the first. The last two parts overlap.
func copyLine(to, from unsafe.Pointer) {
	const last = linePayload - len(part{})
	dst, src := (*[linePayload]byte)(to), (*[linePayload]byte)(from)
	*(*part)(dst[:]) = *(*part)(src[:])
	*(*part)(dst[16:]) = *(*part)(src[16:])
	*(*part)(dst[32:]) = *(*part)(src[32:])
	*(*part)(dst[last:]) = *(*part)(src[last:])
}

// storePayload writes payload and line versions of a locked object.
func (r *Region) storePayload(off uint64, c Class, payload []byte, v Version) {
	lines := c.lines()
	object := r.m.Pointer(off, uint64(lines)*lineBytes)
	markLines(object, lines, lineVersion(v)^writingMark)
	fillLines(object, lines, payload)
	markLines(object, lines, lineVersion(v))
}

//go:noinline
func markLines(object unsafe.Pointer, lines int, version uint16) {
	for range lines - 1 {
		object = unsafe.Add(object, lineBytes)
		*(*uint16)(object) = version
	}
}

//go:noinline
func fillLines(object unsafe.Pointer, lines int, payload []byte) {
	first := (*[firstPayload]byte)(unsafe.Add(object, HeaderBytes))
	if len(payload) >= firstPayload {
		*first = [firstPayload]byte(payload)
		payload = payload[firstPayload:]
	} else {
		payload = fillLine(first[:], payload)
	}
	for range lines - 1 {
		object = unsafe.Add(object, lineBytes)
		line := (*[linePayload]byte)(unsafe.Add(object, versionBytes))
		if len(payload) >= linePayload {
			*line = [linePayload]byte(payload)
			payload = payload[linePayload:]
		} else {
			payload = fillLine(line[:], payload)
		}
	}
}

// fillLine copies as much of payload as fits, clears the rest of line, and returns the rest of
// payload.
func fillLine(line, payload []byte) []byte {
	n := copy(line, payload)
	clear(line[n:])
	return payload[n:]
}
