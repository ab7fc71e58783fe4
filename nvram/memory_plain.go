//go:build amd64 && !race

package nvram

import (
	"sync/atomic"
	"unsafe"
)

// On amd64 aligned moves of 8 bytes and more never tear a word, loads are not
// reordered with loads nor stores with stores, and the compiler keeps plain
// copies on their side of an atomic access. So the copies are plain.

func copyLine(dst *[LineBytes]byte, line *[lineWords]uint64) {
	for {
		before := atomic.LoadUint64(&line[0])
		*dst = *(*[LineBytes]byte)(unsafe.Pointer(line))
		if first := *(*uint64)(unsafe.Pointer(dst)); first == before && atomic.LoadUint64(&line[0]) == before {
			return
		}
	}
}

func copyWordsOut(dst []byte, words []uint64) { copy(dst, asBytes(words)) }

func copyWordsIn(words []uint64, src []byte) { copy(asBytes(words), src) }

func clearWords(words []uint64) { clear(words) }
