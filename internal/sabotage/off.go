//go:build !sabotage

package sabotage

// Skipped says whether the step is to be left out. It is not in this build.
func (Step) Skipped() bool { return false }
