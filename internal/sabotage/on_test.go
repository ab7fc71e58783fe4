//go:build sabotage

package sabotage

import "testing"

func TestSkip(t *testing.T) {
	for s := range Step(Steps) {
		undo := Skip(s)
		if !s.Skipped() {
			t.Errorf("%v is not left out", s)
		}
		if undo(); s.Skipped() {
			t.Errorf("%v is still left out", s)
		}
	}
}
