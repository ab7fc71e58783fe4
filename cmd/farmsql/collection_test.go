package main

import (
	"runtime/debug"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 800, 16 << 20: 800, 32 << 20: 400, 64 << 20: 200, 128 << 20: 100, 8 << 30: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MB in use: %d %%, want %d", live>>20, got, want)
		}
	}
}

// The percentage is set, unless the environment sets it.
func TestCollectionPace(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "100")
	var c collectionPace
	c.set()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC: %d", got)
	}
	t.Setenv("GOGC", "")
	c.set()
	if got := debug.SetGCPercent(100); got != c.percent || got < 100 {
		t.Errorf("without GOGC: %d, want %d", got, c.percent)
	}
}
