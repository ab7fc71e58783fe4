package txn_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/worker"
)

// silences records the machines that are reported as silent.
type silences struct {
	sync.Mutex
	told []rdma.MachineID
}

func (s *silences) add(m rdma.MachineID) {
	s.Lock()
	defer s.Unlock()
	s.told = append(s.told, m)
}

func (s *silences) list() []rdma.MachineID {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.told)
}

// A primary that does not answer LOCK, VALIDATE or a function that takes no time is reported after
// so many beats, and again after as many more. It is not reported earlier, nor once it has
// answered.
func TestSilentPeersAreTold(t *testing.T) {
	for name, try := range map[string]func(r *rig) error{
		"LOCK": func(r *rig) error {
			return r.Machine(0).Run(ctx, func(x *txn.Tx) error { return write(x, r.ptrs[1], 1) })
		},
		"VALIDATE": func(r *rig) error {
			return r.Machine(0).Run(ctx, func(x *txn.Tx) error {
				for i := 1; i < len(r.ptrs); i += 3 { // more than one asks with READs
					if _, err := read(x, r.ptrs[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"function": func(r *rig) error {
			_, err := r.Machine(0).ShipTo(ctx, 1, 7, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dear := func(n rdma.NIC) rdma.NIC { return costlyNIC{n, rdma.Costs{Read: 1, Message: 1}} }
			r := open(t, txntest.Config{Machines: 3, Replicas: 1, Wrap: dear}, 21)
			r.Machine(1).Handle(7, func(_ context.Context, _ []byte) ([]byte, error) { return nil, nil })
			var s silences
			r.Machine(0).OnSilent(s.add)
			hear := r.deaf(1)
			done := make(chan error, 1)
			go func() { done <- try(r) }()
			for deadline := time.Now().Add(time.Minute); !r.Machine(0).Waits() && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			bound := worker.OverdueBeats
			if name == "function" {
				bound *= 2 // it may take its time: it is asked something else then
			}
			for range bound - 1 {
				r.Machine(0).Beat()
			}
			if told := s.list(); len(told) > 0 {
				t.Errorf("told too early: %v", told)
			}
			for range bound + 1 {
				r.Machine(0).Beat()
			}
			if told := s.list(); len(told) < 2 || slices.ContainsFunc(told, func(m rdma.MachineID) bool { return m != 1 }) {
				t.Errorf("told of %v, want of machine 1, twice", told)
			}
			hear()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(time.Minute); r.Machine(0).Waits() && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // what it was asked besides is answered, too
			}
			before := len(s.list())
			for range 3 * worker.OverdueBeats {
				r.Machine(0).Beat()
			}
			if told := s.list(); len(told) > before {
				t.Errorf("who has answered is told: %v", told[before:])
			}
		})
	}
}

// A function that takes long is no silence, for its machine answers meanwhile.
func TestLongFunctionIsNotSilence(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1}, 0)
	var s silences
	r.Machine(0).OnSilent(s.add)
	runs, end := make(chan bool), make(chan bool)
	r.Machine(1).Handle(7, func(context.Context, []byte) ([]byte, error) {
		close(runs)
		<-end
		return nil, nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := r.Machine(0).ShipTo(ctx, 1, 7, nil)
		done <- err
	}()
	<-runs
	for range 5 * worker.OverdueBeats {
		r.Machine(0).Beat()
		time.Sleep(time.Millisecond)
	}
	if told := s.list(); len(told) > 0 {
		t.Errorf("told: %v", told)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Beat returns when every worker has let it pass, and not before: one that is stuck
// holds it up.
func TestBeatPassesEveryWorker(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 3}, 0)
	m := r.Machine(1)
	m.Beat()
	for w := range m.Workers() {
		stuck, free := make(chan bool), make(chan bool)
		go m.Locked(w, func() {
			close(stuck)
			<-free
		})
		<-stuck
		passed := make(chan bool)
		go func() {
			m.Beat()
			close(passed)
		}()
		select {
		case <-passed:
			t.Errorf("worker %d is stuck, and Beat returns", w)
		case <-time.After(50 * time.Millisecond):
		}
		close(free)
		<-passed
	}
}
