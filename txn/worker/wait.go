package worker

import (
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/wait"
)

// AwaitWithin is Await bounded by n. If it returns n's error, the operations waited for are still
// pending.
func (w *Worker) AwaitWithin(wt *wait.Waiter, n *wait.Need) error {
	w.beginAwait()
	defer w.endAwait()
	for i := 0; wt.Open() > 0; i++ {
		if i > 0 || !w.m.gathers { // if the kernel carries operations, nothing has come yet
			w.kick()
		}
		if wt.Open() == 0 {
			break
		}
		if i < w.m.yields {
			w.m.cfg.Clock.Yield()
			continue
		}
		if err := n.Over(); err != nil && w.m.Gone() == nil { // if this machine is gone, its end also ends this wait
			return err
		}
		wt.SleepFor(n.Left())
	}
	return wt.Failed()
}

const (
	// spinWait is how many times a waiting goroutine processes input and yields before it sleeps:
	// passing the processor on costs 250 ns, waking an idle core 45 us. Where the kernel carries
	// operations it sleeps at once: completions need other goroutines and processes to run, a yield
	// keeps these off the processor, and the bell rings when there is input.
	spinWait = 100
	// kernelRead is the cost of a READ above which the kernel has carried it.
	kernelRead = time.Microsecond
)

// entersKernel reports whether the kernel carries operations of these costs.
func entersKernel(c rdma.Costs) bool { return c.Read > kernelRead }

// yieldsFor returns how many times a goroutine that waits for operations of these costs yields
// before it sleeps.
func yieldsFor(c rdma.Costs) int {
	if entersKernel(c) {
		return 0
	}
	return spinWait
}

// Await sleeps until all pending operations are done, and returns the first error. The worker must
// not be locked.
func (w *Worker) Await(wt *wait.Waiter) error {
	w.beginAwait()
	defer w.endAwait()
	for i := 0; wt.Open() > 0; i++ {
		if i > 0 || !w.m.gathers { // if the kernel carries operations, nothing has come yet
			w.kick()
		}
		if wt.Open() == 0 {
			break
		}
		if i < w.m.yields {
			w.m.cfg.Clock.Yield()
			continue
		}
		wt.Sleep()
	}
	return wt.Failed()
}

// AwaitLocked is Await for a caller that holds the worker's lock; it releases the lock while it
// waits.
func (w *Worker) AwaitLocked(wt *wait.Waiter) error {
	if wt.Settled() {
		return nil
	}
	w.RingPeersLocked()
	w.GatherLocked()
	w.Unlock()
	err := w.Await(wt)
	w.Lock()
	return err
}
