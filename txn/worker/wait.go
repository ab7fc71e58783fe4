package worker

import (
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/wait"
)

// AwaitWithin is Await bounded by n. If it returns n's error, the operations waited for are still
// pending.
func (w *Worker) AwaitWithin(wt *wait.Waiter, n *wait.Need) error {
	for i := 0; wt.Open() > 0; i++ {
		w.kick()
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
	// spinWait is how many times a waiting goroutine yields before it sleeps: passing the processor
	// on costs 250 ns, waking an idle core 45 us.
	spinWait = 100
	// spinWaitKernel is the same where the kernel carries operations: their completions need other
	// goroutines and processes to run, and a goroutine that only yields keeps these off the
	// processor.
	spinWaitKernel = 4
	// kernelRead is the cost of a READ above which the kernel has carried it.
	kernelRead = time.Microsecond
)

// yieldsFor returns how many times a goroutine that waits for operations of these costs yields
// before it sleeps.
func yieldsFor(c rdma.Costs) int {
	if c.Read > kernelRead {
		return spinWaitKernel
	}
	return spinWait
}

// Await sleeps until all pending operations are done, and returns the first error. The worker must
// not be locked.
func (w *Worker) Await(wt *wait.Waiter) error {
	for i := 0; wt.Open() > 0; i++ {
		w.kick()
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
	w.Unlock()
	err := w.Await(wt)
	w.Lock()
	return err
}
