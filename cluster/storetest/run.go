package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// progressMax is how long a store that can work may take to do so. It is long, because a test must not
// fail on a slow machine.
const progressMax = 2 * time.Minute

// A run is one test of a system: it does operations and keeps their history.
type run struct {
	t      *testing.T
	system *System
	moment atomic.Int64  // numbers beginnings and ends of operations, in real time
	writer atomic.Uint64 // numbers swaps

	mu      sync.Mutex
	history history
}

// first returns the configuration that a store begins with.
func first(t testing.TB) *cluster.Configuration {
	c := &cluster.Configuration{Cluster: 7, ID: 1, Revision: 1, Replicas: 2, NextRegion: 1, Workers: 2, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	for i := range 3 {
		c.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: uint64(100 + i)})
	}
	c, _, err := c.Place(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Root = region.MakePtr(region.MakeAddr(1, 640), 3, 4)
	return c
}

// next returns a successor of c that no other swap writes.
func (r *run) next(c *cluster.Configuration) *cluster.Configuration {
	if c == nil {
		c = first(r.t)
	} else {
		c = c.Revise()
	}
	c.Incarnation[0] = r.writer.Add(1)
	return c
}

func revisionOf(c *cluster.Configuration) uint64 {
	if c == nil {
		return 0
	}
	return c.Revision
}

func writerOf(c *cluster.Configuration) uint64 {
	if c == nil {
		return 0
	}
	return c.Incarnation[0]
}

func (r *run) record(o operation) {
	o.end = r.moment.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, o)
}

// load loads at a machine.
func (r *run) load(machine int) (*cluster.Configuration, error) {
	o := operation{machine: machine, begin: r.moment.Add(1)}
	c, err := r.system.Store(machine).Load()
	if err != nil {
		return nil, err // a failed load tells nothing
	}
	o.revision, o.writer = revisionOf(c), writerOf(c)
	r.record(o)
	return c, nil
}

// swap replaces old at a machine.
func (r *run) swap(machine int, old, next *cluster.Configuration) error {
	o := operation{machine: machine, isSwap: true, old: revisionOf(old), revision: next.Revision, writer: writerOf(next), begin: r.moment.Add(1)}
	err := r.system.Store(machine).CompareAndSwap(revisionOf(old), next)
	switch {
	case err == nil:
		o.outcome = done
	case errors.Is(err, cluster.ErrMoved) && !r.system.MovedMayBeDone:
		o.outcome = moved
	default:
		o.outcome = unknown
	}
	r.record(o)
	return err
}

// swapOther tries to replace a revision that is not the present one, until the store can be reached.
func (r *run) swapOther(machine int, old uint64, next *cluster.Configuration) (err error) {
	for begin := time.Now(); time.Since(begin) < progressMax; time.Sleep(time.Millisecond) {
		if err = r.system.Store(machine).CompareAndSwap(old, next); !errors.Is(err, cluster.ErrUnreachable) {
			break
		}
	}
	return err
}

// mustLoad loads at a machine that can reach the store now or soon.
func (r *run) mustLoad(machine int) *cluster.Configuration {
	r.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := r.load(machine)
		if err == nil {
			return c
		}
		r.mustWait(begin, machine, err)
	}
}

// mustMove makes a new configuration at a machine that can reach the store now or soon.
func (r *run) mustMove(machine int) *cluster.Configuration {
	r.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := r.load(machine)
		if err == nil {
			n := r.next(c)
			if err = r.swap(machine, c, n); err == nil {
				return n
			}
		}
		r.mustWait(begin, machine, err)
	}
}

// mustWait fails the test if an operation has not succeeded for long, or failed for a wrong reason.
func (r *run) mustWait(begin time.Time, machine int, err error) {
	r.t.Helper()
	if !errors.Is(err, cluster.ErrUnreachable) && !errors.Is(err, cluster.ErrMoved) {
		r.t.Fatalf("machine %d: %v", machine, err)
	}
	if time.Since(begin) > progressMax {
		r.t.Fatalf("machine %d, after %v: %v", machine, progressMax, err)
	}
}

// mustLeader waits until there is a leader that has answered.
func (r *run) mustLeader() int {
	r.t.Helper()
	for begin := time.Now(); time.Since(begin) < progressMax; time.Sleep(time.Millisecond) {
		r.mustLoad(0)
		if m, ok := r.system.Leader(); ok {
			return m
		}
	}
	r.t.Fatal("there is no leader")
	return 0
}

// work lets two goroutines of each machine load and swap, n times each. Errors other than ErrMoved are
// those of a store that cannot be reached. wait waits until all are done.
func (r *run) work(n int) (wait func()) {
	var all sync.WaitGroup
	for m := range r.system.Machines {
		for range 2 {
			all.Go(func() {
				for range n {
					c, err := r.load(m)
					if err == nil {
						err = r.swap(m, c, r.next(c))
					}
					if err != nil && !errors.Is(err, cluster.ErrMoved) && !errors.Is(err, cluster.ErrUnreachable) {
						r.t.Errorf("machine %d: %v", m, err)
					}
				}
			})
		}
	}
	return all.Wait
}

// check demands that all machines load the same, and that the history is linearizable.
func (r *run) check() {
	r.t.Helper()
	last := r.mustMove(0) // swaps whose outcome is not known cannot succeed any more
	for m := range r.system.Machines {
		if c := r.mustLoad(m); revisionOf(c) != revisionOf(last) || writerOf(c) != writerOf(last) {
			r.t.Errorf("machine %d loads revision %d of swap %d, machine 0 revision %d of swap %d", m, revisionOf(c), writerOf(c), revisionOf(last), writerOf(last))
		}
	}
	for _, problem := range r.history.problems() {
		r.t.Error(problem)
	}
}
