package nvram

import "unsafe"

// asBytes and asWords return the same memory in the other unit.
func asBytes(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*WordBytes)
}

func asWords(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/WordBytes)
}

// allZero reports whether b, whose length is a multiple of 8, holds only zeroes. Its callers make
// sure that nothing writes to b. The race detector would make it too slow to use.
//
//go:norace
func allZero(b []byte) bool {
	for _, w := range asWords(b) {
		if w != 0 {
			return false
		}
	}
	return true
}
