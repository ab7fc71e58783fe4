// Package clock passes time and randomness in, so that the simulator can
// replace both. Nothing below the root package asks the operating system for
// either by itself; internal/lint holds it to that.
package clock

import (
	"math/rand/v2"
	"time"
)

// A Clock tells time and runs functions later. It is safe for concurrent use.
type Clock interface {
	// Now is monotonic: differences of two of its values are durations.
	Now() time.Time
	// AfterFunc runs f once, on a goroutine of its own, no earlier than d from
	// now. Stop on the result keeps a run that has not begun from beginning,
	// and reports whether it did.
	AfterFunc(d time.Duration, f func()) Timer
	// Sleep pauses the calling goroutine for at least d.
	Sleep(d time.Duration)
	// Uint64 draws 64 random bits.
	Uint64() uint64
}

// A Timer is one pending AfterFunc.
type Timer interface{ Stop() bool }

// System is the operating system's clock and randomness.
type System struct{}

func (System) Now() time.Time                            { return time.Now() }
func (System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
func (System) Sleep(d time.Duration)                     { time.Sleep(d) }
func (System) Uint64() uint64                            { return rand.Uint64() }
