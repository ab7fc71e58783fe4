package wait

import (
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Waiter counts the pending operations of a transaction's goroutine, which sleeps on it: RDMA
// operations until their completion, and requests until their reply. Each of these decrements the
// count once.
type Waiter struct {
	open atomic.Int32
	// parked is 1 while the goroutine sleeps on wake.
	parked atomic.Int32
	wake   clock.Event
	err    atomic.Pointer[error]
}

// NewWaiter returns a waiter with nothing pending.
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
		kept := err // taking the address of err itself would move it to the heap in every call
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

// SleepFor is like Sleep, for at most d.
func (w *Waiter) SleepFor(d time.Duration) {
	// After d has passed, the compare-and-swap withdraws park's announcement.
	if w.park() && !w.wake.WaitFor(d) && !w.parked.CompareAndSwap(1, 0) {
		w.wake.Wait() // DoneLocked has seen parked, and is about to set wake: take that, too
	}
}

// park announces that the goroutine is going to sleep on wake. If nothing is pending, park
// withdraws the announcement and returns false. But if DoneLocked has already seen the
// announcement, it sets wake, so park returns true.
func (w *Waiter) park() bool {
	w.parked.Store(1)
	return w.open.Load() > 0 || !w.parked.CompareAndSwap(1, 0)
}

// Failed returns the first error since the last call, and forgets it.
func (w *Waiter) Failed() error {
	if p := w.err.Swap(nil); p != nil {
		return *p
	}
	return nil
}
