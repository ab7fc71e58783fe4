package nvram

import (
	"slices"
	"testing"
)

// The folder reports each step once, and again only after the file system was well below the step.
func TestFullnessIsTold(t *testing.T) {
	var told []int
	w := watch{tell: func(f Fullness) { told = append(told, f.Percent) }}
	for _, percent := range []int{10, 79, 80, 81, 79, 80, 94, 95, 100, 91, 96, 89, 95, 74, 85, 10, 97, 99} {
		w.see(Fullness{Percent: percent})
	}
	if want := []int{80, 95, 95, 85, 97}; !slices.Equal(told, want) {
		t.Errorf("told at %v, want %v", told, want)
	}
}

// Storage that only root may use does not count as free.
func TestFullness(t *testing.T) {
	if f := fullness(95, 5, 4096); f != (Fullness{95, 5 * 4096, 100 * 4096}) {
		t.Errorf("%+v", f)
	}
	if f := fullness(0, 0, 4096); f != (Fullness{}) {
		t.Errorf("an empty file system: %+v", f)
	}
	if f, err := FullnessOf(t.TempDir()); err != nil || f.Percent < 0 || f.Percent > 100 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := FullnessOf("/nowhere"); err == nil {
		t.Error("a folder that is not there is somehow full")
	}
}
