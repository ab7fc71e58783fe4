// Package invariant states what must hold, always.
//
// Cheap checks run in every build, written as an if around Violated so that a
// check that passes costs one comparison. Walks and other expensive checks are
// guarded by Enabled, which is true in builds with the invariants tag or the
// race detector.
package invariant

import "fmt"

// Violated reports a broken invariant by panicking: the program's own state is
// wrong, and going on could spread it. what names the invariant, got and want
// the two sides of it.
func Violated(what string, got, want any) {
	panic(fmt.Sprintf("invariant violated: %s: got %v, want %v", what, got, want))
}
