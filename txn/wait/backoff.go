package wait

import (
	"cmp"
	"context"
	"time"

	"github.com/farmsql/farmsql/region"
)

// A Backoff spaces out attempts: at first it only yields, then it sleeps for a
// random time from a range that doubles, until Patience is used up.
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

// Restart makes the next attempts follow each other as the first ones did.
func (b *Backoff) Restart() { b.tries = 0 }

// Again waits, and reports false once Patience is used up.
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

// Locked waits for the holder of an object's lock, and returns an error when it has waited long
// enough. At an evicted machine locks are never released, and at one without a lease they cannot be
// for the time being.
func (b *Backoff) Locked(ctx context.Context) error {
	if err := cmp.Or(b.Lease.cfg.Gone(), ctx.Err()); err != nil {
		return err
	}
	if !b.Again() {
		return cmp.Or(b.Lease.ConfirmWithin(ctx), region.ErrLocked)
	}
	return nil
}
