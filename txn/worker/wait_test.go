package worker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// Waiters are woken whichever way operations end, and keep the first error.
func TestWaiter(t *testing.T) {
	m := &Machine{cfg: Config{Clock: clock.System{}}}
	w := newWorker(m, 0)
	w.stopped = true // has nothing to step through
	wt := wait.NewWaiter(m.cfg.Clock)
	for i := range 3000 {
		const n = 3
		wt.Add(n)
		var left atomic.Int32
		left.Store(n)
		var wg sync.WaitGroup
		for k := range n {
			wg.Go(func() {
				if i%3 == 0 {
					time.Sleep(time.Microsecond * time.Duration(i%50))
				}
				var err error
				if i%5 == 4 && k == 1 {
					err = outcome.ErrClosed
				}
				left.Add(-1)
				wt.DoneLocked(err)
			})
		}
		err := w.Await(&wt)
		if left.Load() != 0 {
			t.Fatal("did not wait for all")
		}
		if (err != nil) != (i%5 == 4) {
			t.Fatalf("round %d: %v", i, err)
		}
		if !wt.Settled() {
			t.Fatal("not settled")
		}
		wg.Wait()
	}
}
