package wait

import (
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Waiter is where a transaction's goroutine waits: for the completions of RDMA operations that it
// posted, and for replies. Each of them decrements the waiter's count once.
type Waiter struct {
	open atomic.Int32
	// parked is 1 while the goroutine sleeps on wake.
	parked atomic.Int32
	wake   clock.Event
	err    atomic.Pointer[error]
}

// NewWaiter returns a waiter for nothing yet.
func NewWaiter(c clock.Clock) Waiter { return Waiter{wake: c.NewEvent()} }

// Add adds n to the number of operations waited for.
func (w *Waiter) Add(n int) { w.open.Add(int32(n)) }

// Open returns the number of operations that are pending.
func (w *Waiter) Open() int { return int(w.open.Load()) }

// Settled reports whether nothing is pending and nothing has failed.
func (w *Waiter) Settled() bool { return w.open.Load() == 0 && w.err.Load() == nil }

// DoneLocked decrements the count for one operation. It needs the lock that guards the operation.
func (w *Waiter) DoneLocked(err error) {
	if err != nil {
		kept := err // a variable of its own, so that err, mostly nil, stays off the heap
		w.err.CompareAndSwap(nil, &kept)
	}
	if w.open.Add(-1) == 0 && w.parked.CompareAndSwap(1, 0) && !sabotage.Wakeup.Skipped() {
		w.wake.Set()
	}
}

// Sleep sleeps until nothing is pending.
func (w *Waiter) Sleep() {
	if w.park() {
		w.wake.Wait()
	}
}

// SleepFor is Sleep for at most d.
func (w *Waiter) SleepFor(d time.Duration) {
	if w.park() && !w.wake.WaitFor(d) && !w.parked.CompareAndSwap(1, 0) {
		w.wake.Wait() // wake is being set
	}
}

// park announces that the goroutine is going to sleep on wake, unless nothing is pending.
func (w *Waiter) park() bool {
	w.parked.Store(1)
	return w.open.Load() > 0 || !w.parked.CompareAndSwap(1, 0)
}

// Failed returns the first error, and forgets it.
func (w *Waiter) Failed() error {
	if p := w.err.Swap(nil); p != nil {
		return *p
	}
	return nil
}
