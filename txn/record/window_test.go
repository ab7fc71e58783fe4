package record

import (
	"math/rand/v2"
	"testing"
)

// The window against a set of open sequence numbers.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 50 {
		w := NewWindow(1)
		open := map[uint64]bool{}
		var list []uint64
		for range 500 {
			if n := len(list); n == 0 || rng.IntN(100) < 52 {
				seq := w.Begin()
				if open[seq] || seq != w.Next-1 {
					t.Fatalf("begin returned %d", seq)
				}
				open[seq] = true
				list = append(list, seq)
			} else {
				i := rng.IntN(n)
				if rng.IntN(2) == 0 {
					i = n - 1 // leave the low bound behind
				}
				w.Finish(list[i])
				delete(open, list[i])
				list[i] = list[n-1]
				list = list[:n-1]
			}
			low := w.Next
			for seq := range open {
				low = min(low, seq)
			}
			if w.Low != low {
				t.Fatalf("low bound %d, want %d", w.Low, low)
			}
			for seq := NewWindow(1).Low; seq < w.Next+3; seq++ {
				if w.Finished(seq) != (seq < w.Next && !open[seq]) {
					t.Fatalf("finished(%d) is %v", seq, w.Finished(seq))
				}
			}
		}
	}
}

func TestWindowRefusesNonsense(t *testing.T) {
	for name, after := range map[string]uint64{"twice": 0, "never begun": 2} {
		w := NewWindow(1)
		first := w.Begin()
		w.Finish(first)
		w.Begin()
		mustPanic(t, name, func() { w.Finish(first + after) })
	}
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: accepted", name)
		}
	}()
	f()
}
