package store

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/myerr"
)

// pausedClock is a clock that stands still except while somebody sleeps.
type pausedClock struct {
	clock.Clock
	now   time.Time
	slept time.Duration
}

func (c *pausedClock) Now() time.Time { return c.now }

func (c *pausedClock) Sleep(d time.Duration) {
	c.now = c.now.Add(d)
	c.slept += d
}

// A statement that finds the heap full just after a garbage collection waits for the next one: the memory may have been
// another statement's, which has ended.
func TestMemoryOfTheStatementBefore(t *testing.T) {
	c := &pausedClock{Clock: clock.System{}, now: time.Unix(1000, 0)}
	m := NewMemory(c, 0, 64<<20)
	full, isEnded := int64(60<<20), false
	m.Limit = func() int64 { return 64 << 20 }
	m.Live = func() int64 {
		if isEnded && c.slept > 0 {
			return 0
		}
		return full
	}
	h := &Holding{memory: m}
	if err := h.Take(1 << 20); myerr.Of(err) == nil || c.slept != 0 {
		t.Errorf("%v after %v, want an error at once: a garbage collection has found the heap full", err, c.slept)
	}
	isEnded = true
	c.now = c.now.Add(300 * time.Millisecond)
	if err := h.Take(1 << 20); err != nil || c.slept != 700*time.Millisecond {
		t.Errorf("%v after %v, want none after 700ms", err, c.slept)
	}
	isEnded, c.slept = false, 0
	if err := h.Take(1 << 20); myerr.Of(err) == nil || c.slept > time.Second {
		t.Errorf("%v after %v, want an error after a second at most", err, c.slept)
	}
}
