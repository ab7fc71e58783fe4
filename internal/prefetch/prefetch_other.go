//go:build !amd64 && !arm64

package prefetch

import (
	"sync/atomic"
	"unsafe"
)

// Lines loads a word of each of n lines from p on, because this processor's prefetch
// instruction is not available here.
func Lines(p unsafe.Pointer, n int) {
	for i := range n {
		atomic.LoadUint64((*uint64)(unsafe.Add(p, i*LineBytes)))
	}
}

// each does nothing: there is no prefetch here, and a load could fault, because the memory may
// have been unmapped.
func each(*uintptr, int) {}
