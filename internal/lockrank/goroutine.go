//go:build invariants && (amd64 || arm64)

package lockrank

// goroutine returns the address of the calling goroutine's state, which is unique while
// the goroutine runs.
func goroutine() uintptr
