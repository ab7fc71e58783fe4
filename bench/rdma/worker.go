package rdma

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

const (
	// looks is how often a worker checks a condition before it sleeps until its bell rings.
	looks = 50
	// looksAtTime is how many batches a worker posts between two readings of the clock, which take as
	// long as a memory copy.
	looksAtTime = 16
	// patience is how long a worker waits for an operation.
	patience = 10 * time.Second
)

// A worker posts operations of machine 0.
type worker struct {
	q        rdma.Queue
	bell     chan struct{} // has a value if the bell has rung since the last receive
	patience time.Duration
	cs       [64]rdma.Completion
}

func newWorker(nic rdma.NIC, number int) (*worker, error) {
	w := &worker{bell: make(chan struct{}, 1), patience: patience}
	var err error
	w.q, err = nic.Open(number, w.ring)
	return w, err
}

func (w *worker) ring() {
	select {
	case w.bell <- struct{}{}:
	default: // there is a value already
	}
}

var (
	// errSilent means that the network has lost an operation: neither a completion nor an error has come.
	errSilent = errors.New("nothing has come, nor is it there without a bell")
	// errUnrung means that the provider has lost a wake-up: the completion is there, but a sleeping
	// program would never learn of it.
	errUnrung = errors.New("it has come, but the bell has not rung")
	// errTwice means that the sequencer has given out a number twice, or skipped one.
	errTwice = errors.New("bench/rdma: not the next number")
)

// await waits until hasCome returns true, or an error, which it returns. It calls hasCome several times,
// and then whenever the bell has rung. If the bell is silent for w.patience, await returns errUnrung or
// errSilent.
func (w *worker) await(hasCome func() (bool, error)) error {
	for looked := 0; ; looked++ {
		if came, err := hasCome(); came || err != nil {
			return err
		}
		if looked < looks {
			runtime.Gosched()
			continue
		}
		select {
		case <-w.bell:
			looked = 0
		case <-time.After(w.patience):
			if len(w.bell) == 0 {
				return w.whySilent(hasCome)
			}
		}
	}
}

// whySilent distinguishes a lost wake-up from a lost operation: it checks once more, although no bell has rung.
func (w *worker) whySilent(hasCome func() (bool, error)) error {
	came, err := hasCome()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUnrung, err)
	case came:
		return errUnrung
	}
	return errSilent
}

// A load describes how a worker posts operations.
type load struct {
	// post posts operation i. It returns true if the operation is done, and no completion will come.
	post        func(q rdma.Queue, i uint64, tag uint64) (done bool, err error)
	batch       int    // operations for each Flush
	outstanding int    // operations that may be under way, at least a batch
	wanted      uint64 // one in this number of operations is signalled
}

// run posts operations for the time turn, waits for all completions, and
// returns the number of operations.
func (w *worker) run(l load, turn time.Duration) (posted uint64, err error) {
	pending := 0 // completions to come
	poll := func() (bool, error) {
		n := w.q.Poll(w.cs[:])
		pending -= n
		for _, c := range w.cs[:n] {
			if c.Err != nil {
				return false, fmt.Errorf("bench/rdma: %w", c.Err)
			}
		}
		return n > 0, nil
	}
	end := time.Now().Add(turn)
	for batches := 0; batches%looksAtTime != 0 || time.Now().Before(end); batches++ {
		for range l.batch {
			tag := rdma.Unsignalled
			if (posted+1)%l.wanted == 0 {
				tag = 1
			}
			done, err := l.post(w.q, posted, tag)
			if err != nil {
				return 0, fmt.Errorf("bench/rdma: %w", err)
			}
			if posted++; !done && tag == 1 {
				pending++
			}
		}
		w.q.Flush()
		// Each completion to come stands for l.wanted operations. Wait until the next batch fits.
		for pending > 0 && uint64(pending)*l.wanted+uint64(l.batch) > uint64(l.outstanding) {
			if err := w.await(poll); err != nil {
				return 0, err
			}
		}
	}
	for pending > 0 {
		if err := w.await(poll); err != nil {
			return 0, err
		}
	}
	return posted, nil
}
