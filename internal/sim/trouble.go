package sim

import (
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

var _ clock.Troubled = (*Process)(nil)

// Trouble has so many of a thousand chances for each trouble be taken from now on, and
// of a thousand waits with a bound be ended before their time. Stale caches and small logs
// have a chance of their own.
func (w *World) Trouble(chance int) { w.options.Trouble = chance }

// Stale has so many of a thousand refreshes of a cache be lost from now on.
func (w *World) Stale(chance int) { w.options.Stale = chance }

// Small has so many of a thousand transactions that may be large be so from now on.
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

// Troubles returns how often each trouble has come.
func (w *World) Troubles() [clock.Troubles]int { return w.troubles }

// comes draws whether something comes that does so in chance of a thousand cases.
func (w *World) comes(chance int) bool { return chance > 0 && w.rng.IntN(1000) < chance }

// early draws for how long a wait of at most d goes on.
func (w *World) early(d time.Duration) time.Duration {
	if w.comes(w.options.Trouble) {
		return w.upTo(d)
	}
	return d
}
