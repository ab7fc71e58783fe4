package farm

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// A manualClock stands still until it is told otherwise, and draws the same
// random numbers every time.
type manualClock struct {
	clock.System // goroutines

	mu     sync.Mutex
	now    time.Time
	rng    *rand.Rand
	timers []*manualTimer
	// small has every transaction be large that may be.
	small bool
}

var _ clock.Troubled = (*manualClock)(nil)

// Meets has no other troubles come.
func (c *manualClock) Meets(t clock.Trouble) bool { return c.small && t == clock.SmallLog }

type manualTimer struct {
	clock *manualClock
	f     func()
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Unix(1_000_000, 0), rng: rand.New(rand.NewPCG(7, 7))}
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep is what moves time on.
func (c *manualClock) Sleep(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d + time.Microsecond)
	c.mu.Unlock()
	if c.small { // annexes are given back by goroutines that need a real moment
		time.Sleep(time.Microsecond)
	}
	runtime.Gosched()
}

func (c *manualClock) Uint64() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.Uint64()
}

func (c *manualClock) AfterFunc(_ time.Duration, f func()) clock.Timer {
	t := &manualTimer{c, f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, t)
	return t
}

// fire runs everything that waits for a time, on this goroutine.
func (c *manualClock) fire() {
	c.mu.Lock()
	timers := c.timers
	c.timers = nil
	c.mu.Unlock()
	for _, t := range timers {
		t.f()
	}
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	for i, other := range t.clock.timers {
		if other == t {
			t.clock.timers = append(t.clock.timers[:i:i], t.clock.timers[i+1:]...)
			return true
		}
	}
	return false
}
