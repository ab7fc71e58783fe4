package region

import "testing"

// TestClassSpacing computes the waste of the 256 classes, in lines. By DESIGN and NSDI'14 section
// 3.3 it may be at most 1.8 % on average, and never more than 3.6 %.
func TestClassSpacing(t *testing.T) {
	if Class(0).Size() != 64 || Class(Classes-1).Size() != 1<<20 {
		t.Fatalf("classes from %d to %d", Class(0).Size(), Class(Classes-1).Size())
	}
	worst, sum, n := 0.0, 0.0, 0
	for lines := 1; lines <= maxLines; lines++ {
		c := classOf[lines]
		if c.lines() < lines || c > 0 && (c-1).lines() >= lines {
			t.Fatalf("%d lines in class %d of %d lines", lines, c, c.lines())
		}
		waste := float64(c.lines()-lines) / float64(c.lines())
		worst, sum, n = max(worst, waste), sum+waste, n+1
	}
	t.Logf("requests in lines: average waste %.2f %%, worst %.2f %%", 100*sum/float64(n), 100*worst)
	if worst > 0.036 || sum/float64(n) > 0.018 {
		t.Errorf("average waste %.4f, worst %.4f", sum/float64(n), worst)
	}
}

func TestClassFor(t *testing.T) {
	for c := range Classes {
		n := Class(c).Capacity()
		if got, ok := ClassFor(n); !ok || int(got) != c {
			t.Errorf("%d bytes: class %d, want %d", n, got, c)
		}
		if got, ok := ClassFor(n + 1); ok != (c < Classes-1) || ok && int(got) != c+1 {
			t.Errorf("%d bytes: class %d %v, want %d", n+1, got, ok, c+1)
		}
	}
	if c, ok := ClassFor(0); !ok || c != 0 {
		t.Errorf("no payload: class %d %v", c, ok)
	}
	if _, ok := ClassFor(-1); ok {
		t.Error("negative payload")
	}
	if MaxPayload != Class(Classes-1).Capacity() {
		t.Error("MaxPayload is", MaxPayload)
	}
}
