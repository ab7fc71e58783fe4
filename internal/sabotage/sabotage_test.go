package sabotage

import "testing"

func TestSteps(t *testing.T) {
	for s := range Step(Steps) {
		if s.String() == "" || s.Text() == "" {
			t.Errorf("step %d, %q, has no name or no text", s, s)
		}
		if found, ok := Named(s.String()); !ok || found != s {
			t.Errorf("%q is the name of step %d, and of %d", s, s, found)
		}
		if s.Skipped() {
			t.Errorf("%v is left out", s)
		}
	}
	if _, ok := Named("nonsense"); ok {
		t.Error("nonsense is a step")
	}
}
