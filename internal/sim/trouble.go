package sim

import (
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

var _ clock.Troubled = (*Process)(nil)

// Trouble has so many of a thousand chances for each trouble be taken from now on, and
// of a thousand waits with a bound be ended before their time.
func (w *World) Trouble(chance int) { w.options.Trouble = chance }

// Meets implements clock.Troubled.
func (p *Process) Meets(t clock.Trouble) bool {
	if !p.world.comes() {
		return false
	}
	p.world.troubles[t]++
	return true
}

// Troubles returns how often each trouble has come.
func (w *World) Troubles() [clock.Troubles]int { return w.troubles }

func (w *World) comes() bool {
	return w.options.Trouble > 0 && w.rng.IntN(1000) < w.options.Trouble
}

// early draws for how long a wait of at most d goes on.
func (w *World) early(d time.Duration) time.Duration {
	if w.comes() {
		return w.upTo(d)
	}
	return d
}
