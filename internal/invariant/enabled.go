//go:build invariants || race

package invariant

// Enabled reports whether expensive checks run.
const Enabled = true
