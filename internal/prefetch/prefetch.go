//go:build amd64 || arm64

package prefetch

import "unsafe"

// Lines prefetches n lines from p on, at least one, without waiting for them. A prefetch leaves the
// reorder buffer at once. A load stays in it, even if its result is not used. So only few loads can
// be outstanding; how many depends on the instructions between them.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)

// each prefetches the lines of n addresses. The first address is *at.
//
//go:noescape
func each(at *uintptr, n int)
