package prefetch

import (
	"testing"
	"unsafe"
)

// TestHarmless: a fetch does not change memory.
func TestHarmless(t *testing.T) {
	var lines [4 * LineBytes]byte
	for i := range lines {
		lines[i] = byte(i)
	}
	Lines(unsafe.Pointer(&lines[0]), 3)
	var b Batch
	b.Fetch()                           // of nothing
	for i := range 3 * batchLines / 2 { // more than it holds
		b.Add(unsafe.Pointer(&lines[i%len(lines)]))
	}
	b.Fetch()
	b.Add(nil)
	b.Fetch()
	for i := range lines {
		if lines[i] != byte(i) {
			t.Fatalf("byte %d has become %d", i, lines[i])
		}
	}
}
