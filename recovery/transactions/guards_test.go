package transactions_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// These tests make operations wait for the recovery of transactions. An operation is known to wait once
// it has been sent back several times.

// held begins f, whose commits are machine m's, and returns when f has been sent back n times. It is an
// error if f ends before. The result of f comes to ended.
func (s *stage) held(m rdma.MachineID, n uint64, what string, f func() error) (ended chan error) {
	ended = make(chan error, 1)
	before := s.nodes[m].m.Stats().Retries
	go func() { ended <- f() }()
	for deadline := time.Now().Add(quiesce); s.nodes[m].m.Stats().Retries < before+n; time.Sleep(100 * time.Microsecond) {
		if len(ended) > 0 {
			s.t.Errorf("%s did not wait", what)
			return ended
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%s was sent back %d times", what, s.nodes[m].m.Stats().Retries-before)
			return ended
		}
	}
	return ended
}

// A signal is set once and waited for.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() *signal { return &signal{c: make(chan struct{})} }

func (x *signal) set() { x.once.Do(func() { close(x.c) }) }

func (s *stage) await(what string, x *signal) {
	select {
	case <-x.c:
	case <-time.After(quiesce):
		s.t.Errorf("not so: %s", what)
	}
}

// A region whose primary is as before can be read while its recovering transactions'
// locks are being recovered, but nothing commits there: LOCK records that their primary
// had not looked at yet are locks only when it has (section 5.3 steps 1 and 4).
func TestPaper5_3_NoCommitsBeforeLocksAreRecovered(t *testing.T) {
	s := newUntimed(t, 5, 3)
	const object, victim = 1, 0
	primary, coordinator := s.placement(object).Primary, rdma.MachineID(4)
	resumed, once := newSignal(), new(sync.Once)
	var ended chan error
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		switch {
		case m == coordinator && step == recovery.StepNeedRecovery:
			resumed.set()
		case m == primary && step == recovery.StepFetched:
			once.Do(func() {
				s.await("the coordinator has resumed", resumed)
				if !s.nodes[primary].sees(s.ptrs[object]) {
					t.Error("the region cannot be read")
				}
				ended = s.held(coordinator, 5, "a commit", func() error { return s.write(coordinator, []int{object}, 9) })
			})
		}
	})
	s.kill(victim)
	s.reconfigure()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.want(9, object)
}

// Validation waits for blocked regions, too: a new primary may not have applied yet
// what has been reported to have replaced what was read.
func TestPaper5_3_NoValidationInBlockedRegions(t *testing.T) {
	s := newUntimed(t, 5, 3)
	const victim, coordinator = 0, 4
	before := s.nodes[coordinator].m.Begin()
	for _, i := range []int{victim, victim + 5} {
		if _, err := before.Read(s.ptrs[i]); err != nil {
			t.Fatal(err)
		}
	}
	primary, once := s.replacement(victim, victim), new(sync.Once)
	var ended chan error
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		if m == primary && step == recovery.StepDrained {
			once.Do(func() {
				ended = s.held(coordinator, 5, "a validation", func() error { return before.Commit(context.Background()) })
			})
		}
	})
	s.kill(victim)
	s.reconfigure()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.check(nil)
}

// A machine begins no commit before it has drained its logs, in whatever region, though
// that may be active already: what its own log holds of the new configuration would
// count as evidence of a transaction that recovers (step 2).
func TestPaper5_3_CommitsBeginAfterTheDrain(t *testing.T) {
	s := newUntimed(t, 7, 3)
	object, victim, late := s.farFrom()
	primary, once := s.placement(object).Primary, new(sync.Once)
	active := newSignal()
	var ended chan error
	s.onRecovery.set(func(m rdma.MachineID, step recovery.Step) {
		switch {
		case m == primary && step == recovery.StepActive:
			active.set()
		case m == late && step == recovery.StepDrained:
			once.Do(func() {
				s.await("the other machine's region is active", active)
				ended = s.held(late, 40, "a commit", func() error { return s.write(late, []int{object}, 9) })
			})
		}
	})
	s.kill(victim)
	s.reconfigure()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.want(9, object)
}

// farFrom returns an object, a machine whose failure leaves the object's primary with its
// own region only, and another one that this primary does not wait for then.
func (s *stage) farFrom() (object int, victim, late rdma.MachineID) {
	s.t.Helper()
	for _, victim := range s.c.Machines {
		next, _ := s.c.Without([]rdma.MachineID{victim}, s.c.CM)
		for object := range len(s.c.Machines) {
			p, ok := next.Placement(s.ptrs[object].Addr.Region())
			if !ok || p.Primary != s.placement(object).Primary || next.PrimaryOf(p.Primary) != 1 {
				continue
			}
			for _, late := range next.Machines {
				if !slices.Contains(p.Replicas(), late) {
					return object, victim, late
				}
			}
		}
	}
	s.t.Fatal("there are none")
	return 0, 0, 0
}
