package wait

import (
	"cmp"
	"context"
	"time"

	"github.com/farmsql/farmsql/region"
)

// A Backoff spaces out attempts. Between the first attempts it only yields; then
// it sleeps for a random time below a limit that doubles. Patience bounds the
// whole.
type Backoff struct {
	Lease    *Lease
	Patience time.Duration
	tries    int
	deadline time.Time
}

const (
	backoffYields   = 8
	backoffSleepMin = 20 * time.Microsecond
	backoffSleepMax = 4 * time.Millisecond
)

// Tries returns the number of attempts since the beginning, or since Restart.
func (b *Backoff) Tries() int { return b.tries }

// Restart makes the pauses as short again as those between the first attempts.
func (b *Backoff) Restart() { b.tries = 0 }

// Again waits, and reports false once Patience is used up. The first backoffYields calls only yield;
// Patience begins with the first call that may sleep.
func (b *Backoff) Again() bool {
	b.tries++
	clock := b.Lease.cfg.Clock
	if b.tries <= backoffYields {
		clock.Yield()
		return true
	}
	now := clock.Now()
	if b.deadline.IsZero() {
		b.deadline = now.Add(b.Patience)
	}
	if now.After(b.deadline) {
		return false
	}
	limit := min(backoffSleepMin<<min(b.tries-backoffYields, 20), backoffSleepMax)
	clock.Sleep(time.Duration(clock.Uint64() % uint64(limit)))
	return true
}

// Locked pauses because an object is locked. It returns an error when the caller should wait no
// longer: after Patience, or when the machine has been evicted, after which locks are never
// released. If the machine has no lease, the error says so, since locks cannot be released
// meanwhile.
func (b *Backoff) Locked(ctx context.Context) error {
	if err := cmp.Or(b.Lease.cfg.Gone(), ctx.Err()); err != nil {
		return err
	}
	if !b.Again() {
		return cmp.Or(b.Lease.ConfirmWithin(ctx), region.ErrLocked)
	}
	return nil
}
