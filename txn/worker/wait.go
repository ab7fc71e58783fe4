package worker

import "github.com/farmsql/farmsql/txn/wait"

// AwaitWithin is Await bounded by n. If it returns n's error, the operations waited for are still
// pending.
func (w *Worker) AwaitWithin(wt *wait.Waiter, n *wait.Need) error {
	for i := 0; wt.Open() > 0; i++ {
		w.kick()
		if wt.Open() == 0 {
			break
		}
		if i < spinWait {
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

// spinWait is how often a goroutine that waits yields before it sleeps: passing the processor on
// costs 250 ns, waking an idle core 45 us.
const spinWait = 100

// Await sleeps until all pending operations are done, and returns the first error. The worker must
// not be locked.
func (w *Worker) Await(wt *wait.Waiter) error {
	for i := 0; wt.Open() > 0; i++ {
		w.kick()
		if wt.Open() == 0 {
			break
		}
		if i < spinWait {
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
