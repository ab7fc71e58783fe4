package sabotage

import "testing"

func TestSkip(t *testing.T) {
	for s := range Step(Steps) {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
		if s.Skipped() {
			t.Errorf("%v is left out", s)
		}
		undo := Skip(s)
		if !s.Skipped() {
			t.Errorf("%v is not left out", s)
		}
		if undo(); s.Skipped() {
			t.Errorf("%v is still left out", s)
		}
	}
}
