//go:build amd64 || arm64

package prefetch

import "unsafe"

// Lines has the processor fetch n lines from p on, at least one, and does not wait
// for them. Unlike a load whose result nobody uses, a prefetch leaves the reorder
// buffer at once: of loads only as many are under way as the instructions between
// them leave room for.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)

// each prefetches the lines of n addresses, the first of them *at.
//
//go:noescape
func each(at *uintptr, n int)
