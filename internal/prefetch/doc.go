// Package prefetch asks for memory before it is needed: who knows several places to
// look at next waits for all of them as long as for one.
package prefetch

import "unsafe"

// LineBytes is the length of a cache line.
const LineBytes = 64

// Of has the processor fetch the line in which *p begins, and does not wait for it.
func Of[T any](p *T) { Lines(unsafe.Pointer(p), 1) }
