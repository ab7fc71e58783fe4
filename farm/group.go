package farm

import (
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// A group runs goroutines, and waits for all of them.
type group struct {
	clock clock.Clock
	idle  clock.Event
	mu    struct {
		lockrank.Mutex[lockrank.Leaf] // never held across a wait
		running                       int
		closed                        bool
	}
}

func (g *group) init(c clock.Clock) { g.clock, g.idle = c, c.NewEvent() }

// run runs f on a goroutine of its own, unless wait has been called.
func (g *group) run(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return
	}
	g.mu.running++
	g.clock.Go(func() {
		defer g.ended()
		f()
	})
}

func (g *group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.running--
	if g.mu.running == 0 && g.mu.closed {
		g.idle.Set()
	}
}

// wait refuses new goroutines and returns when all have ended.
func (g *group) wait() {
	g.mu.Lock()
	g.mu.closed = true
	running := g.mu.running
	g.mu.Unlock()
	if running > 0 {
		g.idle.Wait()
	}
}
