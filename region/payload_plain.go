//go:build amd64 && !race

package region

import "unsafe"

// On amd64 loads keep their order among loads and stores among stores, so only
// the compiler must be held back. It keeps plain accesses on their side of an
// atomic one and of a call; but it drops the first of two plain stores to one
// place within a block. Hence one function per step of a write, never inlined.

// loadPayload copies the payload of an object of the class whose capacity dst
// has, without regard for writers: the caller compares headers.
func loadPayload(dst []byte, object unsafe.Pointer) {
	to := unsafe.Pointer(unsafe.SliceData(dst))
	*(*[firstPayload]byte)(to) = *(*[firstPayload]byte)(unsafe.Add(object, HeaderBytes))
	to = unsafe.Add(to, firstPayload)
	for n := len(dst) - firstPayload; n > 0; n -= linePayload {
		object = unsafe.Add(object, lineBytes)
		*(*[linePayload]byte)(to) = *(*[linePayload]byte)(unsafe.Add(object, versionBytes))
		to = unsafe.Add(to, linePayload)
	}
}

// storePayload writes payload and line versions of a locked object.
func (r *Region) storePayload(off uint64, c Class, payload []byte, v Version) {
	lines := c.lines()
	base := r.m.Pointer(off, uint64(lines)*lineBytes)
	markLines(base, lines, lineVersion(v)^writing)
	fillLines(base, lines, payload)
	markLines(base, lines, lineVersion(v))
}

//go:noinline
func markLines(base unsafe.Pointer, lines int, version uint16) {
	for range lines - 1 {
		base = unsafe.Add(base, lineBytes)
		*(*uint16)(base) = version
	}
}

//go:noinline
func fillLines(base unsafe.Pointer, lines int, payload []byte) {
	payload = fillLine(unsafe.Slice((*byte)(unsafe.Add(base, HeaderBytes)), firstPayload), payload)
	for range lines - 1 {
		base = unsafe.Add(base, lineBytes)
		dst := unsafe.Add(base, versionBytes)
		if len(payload) >= linePayload {
			*(*[linePayload]byte)(dst) = *(*[linePayload]byte)(payload)
			payload = payload[linePayload:]
		} else {
			payload = fillLine(unsafe.Slice((*byte)(dst), linePayload), payload)
		}
	}
}

// fillLine copies as much of payload as fits, clears the rest of dst, and
// returns what is left of payload.
func fillLine(dst, payload []byte) []byte {
	n := copy(dst, payload)
	clear(dst[n:])
	return payload[n:]
}
