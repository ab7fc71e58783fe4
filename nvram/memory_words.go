//go:build !amd64 || race

package nvram

import (
	"encoding/binary"
	"sync/atomic"
)

// Processors other than amd64 may reorder plain accesses, and the race detector would report them,
// so every word is an atomic access.

func copyLine(dst *[LineBytes]byte, line *[lineWords]uint64) { copyPart(dst[:], line[:]) }

func copyWordsOut(dst []byte, words []uint64) {
	for i := range words {
		binary.NativeEndian.PutUint64(dst[i*WordBytes:], atomic.LoadUint64(&words[i]))
	}
}

func copyWordsIn(words []uint64, src []byte) {
	for i := range words {
		atomic.StoreUint64(&words[i], binary.NativeEndian.Uint64(src[i*WordBytes:]))
	}
}

func clearWords(words []uint64) {
	for i := range words {
		atomic.StoreUint64(&words[i], 0)
	}
}
