//go:build amd64 && !race

package nvram

import (
	"sync/atomic"
	"unsafe"
)

// On amd64 aligned moves of 8 bytes or more never tear a word, the processor reorders neither loads
// with loads nor stores with stores, and the compiler does not move plain copies across an atomic
// access. So the copies are plain.

// copyLine copies a line, and retries until the first word was the same before the copy, in the
// copy and after it.
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
