//go:build invariants && (amd64 || arm64)

package lockrank

// goroutine returns the address of the calling goroutine's state, which no other one has
// as long as this one runs.
func goroutine() uintptr
