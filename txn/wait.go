package txn

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
)

// A waiter is the one place where a transaction's goroutine waits: for the completions of RDMA
// operations that it posted, and for replies. Each of them decrements the waiter's count once.
type waiter struct {
	open atomic.Int32
	// parked is 1 while the goroutine sleeps on wake.
	parked atomic.Int32
	wake   clock.Event
	err    atomic.Pointer[error]
}

func (m *Machine) newWaiter() waiter { return waiter{wake: m.cfg.Clock.NewEvent()} }

func (wt *waiter) add(n int) { wt.open.Add(int32(n)) }

// settled reports whether nothing is pending and nothing has failed.
func (wt *waiter) settled() bool { return wt.open.Load() == 0 && wt.err.Load() == nil }

// doneLocked decrements the count for one operation.
func (wt *waiter) doneLocked(err error) {
	if err != nil {
		kept := err // a variable of its own, so that err, mostly nil, stays off the heap
		wt.err.CompareAndSwap(nil, &kept)
	}
	if wt.open.Add(-1) == 0 && wt.parked.CompareAndSwap(1, 0) && !sabotage.Wakeup.Skipped() {
		wt.wake.Set()
	}
}

// spinWait is how often a waiter yields before it sleeps: passing the processor on costs 250 ns,
// waking an idle core 45 us.
const spinWait = 100

// awaitWithin is await bounded by n. If it returns n's error, the operations waited for are still
// pending.
func (w *worker) awaitWithin(wt *waiter, n *need) error {
	for i := 0; wt.open.Load() > 0; i++ {
		w.kick()
		if wt.open.Load() == 0 {
			break
		}
		if i < spinWait {
			w.m.cfg.Clock.Yield()
			continue
		}
		if err := n.over(); err != nil && w.m.gone() == nil { // if this machine is gone, its end also ends this wait
			return err
		}
		wt.parked.Store(1)
		if wt.open.Load() == 0 && wt.parked.CompareAndSwap(1, 0) {
			break
		}
		if !wt.wake.WaitFor(n.left()) && !wt.parked.CompareAndSwap(1, 0) {
			wt.wake.Wait() // wake is being set
		}
	}
	return wt.failed()
}

// await sleeps until all pending operations are done, and returns the first error. The worker must
// not be locked.
func (w *worker) await(wt *waiter) error {
	for i := 0; wt.open.Load() > 0; i++ {
		w.kick()
		if wt.open.Load() == 0 {
			break
		}
		if i < spinWait {
			w.m.cfg.Clock.Yield()
			continue
		}
		wt.parked.Store(1)
		if wt.open.Load() == 0 && wt.parked.CompareAndSwap(1, 0) {
			break
		}
		wt.wake.Wait()
	}
	return wt.failed()
}

// awaitLocked is await for a caller that holds the worker's lock; it releases the lock while it
// waits.
func (w *worker) awaitLocked(wt *waiter) error {
	if wt.settled() {
		return nil
	}
	w.ringPeersLocked()
	w.unlock()
	err := w.await(wt)
	w.lock()
	return err
}

// failed returns the first error.
func (wt *waiter) failed() error {
	if p := wt.err.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// A backoff spaces out attempts: at first it only yields, then it sleeps for a
// random time from a range that doubles, until patience is used up.
type backoff struct {
	w        *worker
	patience time.Duration
	tries    int
	deadline time.Time
}

const (
	backoffYields   = 8
	backoffSleepMin = 20 * time.Microsecond
	backoffSleepMax = 4 * time.Millisecond
)

// again waits, and reports false once patience is used up.
func (b *backoff) again() bool {
	b.tries++
	clock := b.w.m.cfg.Clock
	if b.tries <= backoffYields {
		clock.Yield()
		return true
	}
	now := clock.Now()
	if b.deadline.IsZero() {
		b.deadline = now.Add(b.patience)
	}
	if now.After(b.deadline) {
		return false
	}
	limit := min(backoffSleepMin<<min(b.tries-backoffYields, 20), backoffSleepMax)
	clock.Sleep(time.Duration(clock.Uint64() % uint64(limit)))
	return true
}

// locked waits for the holder of an object's lock, and returns an error when it has waited long
// enough. At an evicted machine locks are never released, and at one without a lease they cannot be
// for the time being.
func (b *backoff) locked(ctx context.Context) error {
	if err := cmp.Or(b.w.m.gone(), ctx.Err()); err != nil {
		return err
	}
	if !b.again() {
		return cmp.Or(b.w.m.ConfirmWithin(ctx), region.ErrLocked)
	}
	return nil
}
