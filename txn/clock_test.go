package txn_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// A handClock moves only when somebody sleeps. Its timers run when a test says so.
type handClock struct {
	clock.System // goroutines
	// hasty has it move far faster than the world, for tests in which patience runs out. Where
	// it must not, the world's pace is right: ten seconds of a hasty clock's are over before
	// another machine's goroutine has run once, when the processors are busy.
	hasty atomic.Bool

	mu     sync.Mutex
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	f       func()
	stopped bool
	clock   *handClock
}

func newHandClock() *handClock { return &handClock{now: time.Unix(1_000_000, 0)} }

func newHastyClock() *handClock {
	c := newHandClock()
	c.hasty.Store(true)
	return c
}

// calm makes the clock move with the world from now on, so that closing waits for goroutines.
func (c *handClock) calm() { c.hasty.Store(false) }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Sleep(d time.Duration) {
	passes := d
	if c.hasty.Load() {
		passes, d = 20*d, time.Microsecond
	}
	c.mu.Lock()
	c.now = c.now.Add(passes)
	c.mu.Unlock()
	time.Sleep(d)
}

func (c *handClock) Uint64() uint64 { return rand.Uint64() }

func (c *handClock) AfterFunc(_ time.Duration, f func()) clock.Timer {
	t := &handTimer{f: f, clock: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, t)
	return t
}

func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := !t.stopped
	t.stopped = true
	return was
}
