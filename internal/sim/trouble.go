package sim

import (
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

var _ clock.Troubled = (*Process)(nil)

// Trouble sets how many of a thousand chances for trouble are taken from now on, and how many of a
// thousand bounded waits end early. Stale caches and small logs have their own chances.
func (w *World) Trouble(chance int) { w.options.Trouble = chance }

// Stale sets how many of a thousand cache updates are lost from now on.
func (w *World) Stale(chance int) { w.options.Stale = chance }

// Small sets, from now on, how many of a thousand transactions that may be treated as large are
// treated so.
func (w *World) Small(chance int) { w.options.Small = chance }

// Meets implements clock.Troubled.
func (p *Process) Meets(t clock.Trouble) bool {
	chance := p.world.options.Trouble
	switch t {
	case clock.StaleCache:
		chance = p.world.options.Stale
	case clock.SmallLog, clock.GiveWay:
		chance = p.world.options.Small
	}
	if !p.world.comes(chance) {
		return false
	}
	p.world.troubles[t]++
	return true
}

// Troubles returns how often each trouble has happened.
func (w *World) Troubles() [clock.Troubles]int { return w.troubles }

// comes draws true with a probability of chance in a thousand.
func (w *World) comes(chance int) bool { return chance > 0 && w.rng.IntN(1000) < chance }

// early draws the length of a bounded wait: d, or less if trouble comes.
func (w *World) early(d time.Duration) time.Duration {
	if w.comes(w.options.Trouble) {
		return w.upTo(d)
	}
	return d
}
