package shm

import (
	"fmt"
	"runtime"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// settle waits until every operation that any machine had under way when it was
// called has ended. Callers have changed a word before that operations look at.
// With a patience it gives up after that, with ErrStuck; 0 is endless.
func (nic *NIC) settle(patience time.Duration) error {
	machines, err := nic.folder.machines()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for _, m := range machines {
		s := nic.stateOf(m)
		if s == nil {
			continue
		}
		for worker := range s.workers() {
			if !nic.settleWorker(s, worker, patience, deadline) {
				return fmt.Errorf("%w: process %d, machine %d, worker %d", ErrStuck, s.process(), m, worker)
			}
		}
	}
	return nil
}

// stateOf returns the present life's state of a machine, or nil.
func (nic *NIC) stateOf(m rdma.MachineID) *state {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	s, err := nic.stateOfLocked(m)
	if err != nil {
		return nil
	}
	return s
}

// stateOfLocked maps the state file of a machine, unless it has mapped it before.
func (nic *NIC) stateOfLocked(m rdma.MachineID) (*state, error) {
	path := nic.folder.file(m, "state")
	if known := nic.mu.states[m]; known != nil {
		// While it is mapped no other file can have its inode.
		if _, inode, err := identity(path); err != nil || inode == known.inode {
			return known, err
		}
	}
	s, err := openState(path, m)
	if err == nil {
		nic.mu.states[m] = s
	}
	return s, err
}

// settleWorker reports whether the operation of a worker has ended: in time, or
// with its process.
func (nic *NIC) settleWorker(s *state, worker int, patience time.Duration, deadline time.Time) bool {
	active := s.active(worker)
	began := active.Load()
	if began%2 == 0 {
		return true
	}
	for spins := 0; active.Load() == began && (s == nic.state || s.isAlive()); spins++ {
		runtime.Gosched()
		if spins < 1000 {
			continue
		}
		if nic.folder.isGone(s.machine) {
			s.alive.Store(0)
			return true
		}
		if patience > 0 && time.Now().After(deadline) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}
