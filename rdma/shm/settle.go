package shm

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"golang.org/x/sys/unix"
)

// settle waits until operations that are in progress when it is called have ended: all operations of
// this machine, and those operations of other machines for which concerns returns true. The caller
// must first change a word that these operations check, so that none begins later. If patience is not
// 0, settle gives up after that time.
//
// A stopped process may be in the middle of any operation. Because settle waits only for operations
// that can touch the removed memory, the other machines go on without that process.
func (nic *NIC) settle(patience time.Duration, concerns func(active uint64) bool) error {
	expired := func() bool { return false }
	if patience > 0 {
		deadline := time.Now().Add(patience)
		expired = func() bool { return time.Now().After(deadline) }
	}
	states, err := nic.states()
	for err != nil { // out of descriptors or memory; no machine may be left out
		if expired() {
			return err
		}
		time.Sleep(retryAfter)
		states, err = nic.states()
	}
	for _, s := range states {
		// A machine whose own state faults has died.
		if err := guard(func() error { return nic.settleMachine(s, concerns, expired) }); errors.Is(err, ErrStuck) {
			return err
		}
	}
	return nil
}

// settleMachine is settle for the operations of one machine.
func (nic *NIC) settleMachine(s *state, concerns func(active uint64) bool, expired func() bool) error {
	if s == nic.state {
		concerns = allOperations
	}
	for worker := range s.workers() {
		if !nic.settleWorker(s, worker, concerns, expired) {
			return fmt.Errorf("%w: process %d, machine %d, worker %d", ErrStuck, s.process(), s.machine, worker)
		}
	}
	return nil
}

// retryAfter is the pause before a system call that failed for lack of a resource is repeated.
const retryAfter = 10 * time.Millisecond

// states returns the newest known life of each machine. It fails only for lack of resources.
func (nic *NIC) states() ([]*state, error) {
	machines, err := nic.folder.machines()
	if err != nil {
		return nil, err
	}
	nic.mu.Lock()
	defer nic.mu.Unlock()
	for _, m := range machines {
		if _, err := nic.stateOfLocked(m); isShortage(err) {
			return nil, err
		}
	}
	return slices.Collect(maps.Values(nic.mu.states)), nil
}

// isShortage reports whether an error may go away by itself. Any other error for a state file means
// that the file is gone, or is not a state file.
func isShortage(err error) bool {
	for _, shortage := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EAGAIN} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}

// stateOfLocked maps the state file of a machine, unless it has mapped it before. If it cannot look for the
// file, for instance because that is gone, it returns the error together with the newest state that it knows.
func (nic *NIC) stateOfLocked(m rdma.MachineID) (*state, error) {
	path := nic.folder.file(m, "state")
	if known := nic.mu.states[m]; known != nil {
		// While the known file is mapped no other file can have its inode.
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

// settleWorker waits until the operation of a worker has ended, by itself or with its process. It
// returns false if the patience ends first.
func (nic *NIC) settleWorker(s *state, worker int, concerns func(active uint64) bool, expired func() bool) bool {
	active := s.active(worker)
	began := active.Load()
	if began%2 == 0 || !concerns(began) { // an even count means: between operations
		return true
	}
	// This machine's own operations may go on after Close has marked it as not alive.
	for spins := 0; active.Load() == began && (s == nic.state || s.isAlive()); spins++ {
		runtime.Gosched()
		if spins < 1000 {
			continue
		}
		if nic.folder.isGone(s.machine) {
			s.died()
			return true
		}
		if expired() {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}
