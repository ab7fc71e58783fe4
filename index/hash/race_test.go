//go:build race

package hash

// Tests do less where everything takes ten times as long.
const (
	raceEnabled = true
	scale       = 8
)
