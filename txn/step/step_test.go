package step

import (
	"testing"
)

func TestNamesOfSteps(t *testing.T) {
	for s := Step(0); s <= kinds; s++ {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
}
