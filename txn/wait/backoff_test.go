package wait

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// sleepClock is a clock in which only Sleep passes time.
type sleepClock struct {
	clock.System
	now    time.Time
	sleeps []time.Duration
	draw   uint64
}

func (c *sleepClock) Now() time.Time { return c.now }
func (c *sleepClock) Uint64() uint64 { c.draw += 0x9e3779b97f4a7c15; return c.draw }
func (c *sleepClock) Sleep(d time.Duration) {
	c.sleeps = append(c.sleeps, d)
	c.now = c.now.Add(d)
}

func TestBackoff(t *testing.T) {
	c := &sleepClock{now: time.Unix(1, 0)}
	var l Lease
	Start(&l, Config{Clock: c})
	b := Backoff{Lease: &l, Patience: 100 * time.Millisecond}
	begin := c.now
	tries := 0
	for b.Again() {
		tries++
		if tries > 10_000 {
			t.Fatal("does not end")
		}
	}
	if waited := c.now.Sub(begin); waited < 100*time.Millisecond || waited > 100*time.Millisecond+backoffSleepMax {
		t.Errorf("waited %v of 100 ms", waited)
	}
	if tries != len(c.sleeps)+backoffYields {
		t.Errorf("%d tries, %d of them asleep", tries, len(c.sleeps))
	}
	for i, d := range c.sleeps {
		if limit := min(backoffSleepMin<<min(i+1, 20), backoffSleepMax); d >= limit {
			t.Errorf("sleep %d of %v, limit %v", i, d, limit)
		}
	}
	if b.Again() {
		t.Error("goes on after the end")
	}
	impatient := Backoff{Lease: &l, Patience: 0}
	for tries = 0; impatient.Again(); tries++ {
	}
	if tries < backoffYields || tries > backoffYields+2 {
		t.Errorf("without patience %d tries", tries)
	}
}
