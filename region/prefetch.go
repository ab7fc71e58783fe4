//go:build amd64 || arm64

package region

import "unsafe"

// prefetch has the processor fetch the line at p. Unlike a load whose result
// nobody uses, it leaves the reorder buffer at once: of loads only as many are
// under way as the instructions between them leave room for.
//
//go:noescape
func prefetch(p unsafe.Pointer)
