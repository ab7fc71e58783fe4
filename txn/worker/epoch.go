package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"weak"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/wait"
)

// An Operation brackets lock-free reads that follow pointers (NSDI'14:
// lockFreeStart, lockFreeEnd). Memory that its reads could reach is not reused
// for objects of another size until End. It is for one goroutine at a time, since it counts without a
// read-modify-write. It must not be used after End, because another operation may use its bracket
// by then.
type Operation struct{ b *bracket }

// Start begins an operation.
func (m *Machine) Start() Operation { return m.Stripe().enter(0) }

// Epoch returns the machine's epoch. When it is two further, all operations and transactions have
// ended that had begun before the call.
func (m *Machine) Epoch() uint64 { return m.epoch.Load() }

// OnEpoch registers a function that clears cached pointers. The machine calls the function at the end
// of each epoch, until Cancel. A pointer may be put into a cache only in the operation or transaction that read
// it.
func (m *Machine) OnEpoch(fn func()) EpochHook {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEpoch = append(m.onEpoch, &fn)
	return EpochHook{weak.Make(m), &fn}
}

// An EpochHook is a function that the machine calls at the end of each epoch. The hook refers to the
// machine only weakly. The machine may refer to the object whose cleanup cancels the hook, and a
// strong pointer would keep that object alive.
type EpochHook struct {
	m  weak.Pointer[Machine]
	fn *func()
}

// Cancel ends the calls of the function.
func (h EpochHook) Cancel() {
	m := h.m.Value()
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEpoch = slices.DeleteFunc(m.onEpoch, func(other *func()) bool { return other == h.fn })
}

// enterEpoch moves this machine to the given epoch, if that is the next one and nothing that began
// before the present epoch is still open. A machine that joined while something was open (joinEpoch)
// may be further behind; it follows when nothing is open. enterEpoch returns the machine's epoch, and
// whether everything that began before that epoch has ended.
func (m *Machine) enterEpoch(epoch uint64) (current uint64, done bool) {
	current = m.epoch.Load()
	// To skip an epoch, a machine needs the present one closed, too.
	if epoch > current && m.epochClosed(current-1) && (epoch == current+1 || m.epochClosed(current)) {
		m.mu.Lock()
		hooks := slices.Clone(m.onEpoch)
		m.mu.Unlock()
		for _, fn := range hooks { // the hooks must run before any transaction begins in the new epoch
			(*fn)()
		}
		if m.epoch.CompareAndSwap(current, epoch) {
			current = epoch
		} else {
			current = m.epoch.Load() // another caller was faster, and may be further ahead: epochs never go back
		}
	}
	return current, m.epochClosed(current - 1)
}

// epochClosed reports whether no operation or transaction of an epoch is open at this machine.
func (m *Machine) epochClosed(epoch uint64) bool {
	if sabotage.OpenOperations.Skipped() {
		return true
	}
	for i := range m.stripes {
		if m.stripes[i].open(epoch) != 0 {
			return false
		}
	}
	return true
}

// EndEpoch ends the current epoch at every machine, when all operations and transactions of the epoch
// before it have ended. It waits for that up to patience, and reports whether it ended the epoch.
// Before the epoch ends it calls advance with the epoch that is safe now, in the terms of
// region.Allocator.Advance; if advance fails, so does EndEpoch. Only one caller in the instance may run
// it at a time. The caller may have a transaction of its own open.
//
//	caches cleared:  v          v          v          v
//	epoch:           | 2k       | 2k+1     | 2k+2     | 2k+3     |
//	                       P read, cached        P found in the cache
//	                                             and used
//
// A pointer P that was read in one epoch may be in a cache until the end of the next epoch. A
// reader that found it in the cache may use it until the end of the epoch after that. This is
// why Advance counts two of these epochs as one. Machines are at most one epoch apart: no
// machine enters an epoch before all have left the epoch before the last.
func (m *Machine) EndEpoch(ctx context.Context, machines []rdma.MachineID, patience time.Duration, advance func(epoch uint64) error) (bool, error) {
	latest := uint64(0)
	for _, machine := range machines {
		current, _, err := m.shipEpoch(ctx, machine, 0)
		if err != nil {
			return false, err
		}
		latest = max(latest, current)
	}
	b := wait.Backoff{Lease: &m.Lease, Patience: patience}
	for _, machine := range machines {
		// A machine that an earlier call did not reach, because it was interrupted, catches up
		// here.
		for {
			current, done, err := m.shipEpoch(ctx, machine, latest)
			if err != nil {
				return false, err
			}
			if current == latest && done {
				break
			}
			if !b.Again() {
				return false, nil
			}
		}
	}
	if err := advance((latest - 1) / 2); err != nil {
		return false, err
	}
	for _, machine := range machines {
		if _, _, err := m.shipEpoch(ctx, machine, latest+1); err != nil {
			return false, err
		}
	}
	return true, nil
}

// shipEpoch calls enterEpoch at a machine.
func (m *Machine) shipEpoch(ctx context.Context, machine rdma.MachineID, epoch uint64) (current uint64, done bool, err error) {
	reply, err := m.ShipTo(ctx, machine, handlerEpoch, binary.LittleEndian.AppendUint64(nil, epoch))
	if err == nil && len(reply) != 9 {
		err = fmt.Errorf("%w: reply about an epoch of %d bytes", message.ErrBad, len(reply))
	}
	if err != nil {
		return 0, false, err
	}
	return binary.LittleEndian.Uint64(reply), reply[8] != 0, nil
}

func (m *Machine) handleEpoch(_ context.Context, arg []byte) ([]byte, error) {
	if len(arg) != 8 {
		return nil, fmt.Errorf("%w: epoch of %d bytes", message.ErrBad, len(arg))
	}
	current, done := m.enterEpoch(binary.LittleEndian.Uint64(arg))
	reply := append(binary.LittleEndian.AppendUint64(nil, current), 0)
	if done {
		reply[8] = 1
	}
	return reply, nil
}
