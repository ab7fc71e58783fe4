//go:build race

package hash

// Tests do less in race builds, in which everything takes ten times as long.
const (
	raceEnabled = true
	scale       = 8
)
