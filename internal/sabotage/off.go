//go:build !sabotage

package sabotage

// Skipped reports whether the step is left out. In this build no step is.
func (Step) Skipped() bool { return false }
