//go:build !race

package hash

const (
	raceEnabled = false
	scale       = 1
)
