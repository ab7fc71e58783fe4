package farm

import "testing"

// Logs take at most 1 GB together, and 32 MB each, but never less than 1 MB each.
func TestDefaultLogBytes(t *testing.T) {
	for _, c := range []struct {
		machines, workers int
		want              int64
	}{{1, 1, 32 << 20}, {4, 8, 32 << 20}, {5, 8, 16 << 20}, {1, 64, 16 << 20}, {3, 64, 4 << 20}, {10, 64, 1 << 20}, {1000, 256, 1 << 20}} {
		if got := DefaultLogBytes(c.machines, c.workers); got != c.want {
			t.Errorf("%d machines with %d workers: logs of %d bytes, want %d", c.machines, c.workers, got, c.want)
		}
	}
}
