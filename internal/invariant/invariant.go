// Package invariant checks conditions that must always hold.
//
// Cheap checks run in every build, written as an if around Violated so that a
// check that passes costs one comparison. Walks and other expensive checks are
// guarded by Enabled, which is true in builds with the invariants tag or the
// race detector.
package invariant

import "fmt"

// Violated reports a broken invariant by panicking: the program's own state is
// wrong, and continuing could spread the error. The text in what names the invariant;
// got and want are its two sides.
func Violated(what string, got, want any) {
	panic(fmt.Sprintf("invariant violated: %s: got %v, want %v", what, got, want))
}
