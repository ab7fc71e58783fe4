package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
)

// ReleaseSlotLocked returns an unused slot to the machine that has lent it over a connection. If
// the connection has ended, the loan has ended with it.
func (w *Worker) ReleaseSlotLocked(lender rdma.MachineID, connection uint32, p region.Ptr) {
	w.releaseLocked(lender, connection, handlerRelease, p.Append(nil))
}

func (m *Machine) handleAlloc(_ context.Context, arg []byte) ([]byte, error) {
	a, err := message.DecodeAllocation(arg)
	if err != nil {
		return nil, err
	}
	defer m.Start().End() // memory of a region that leaves stays mapped meanwhile
	p, v, in, err := m.cfg.Allocator.Alloc(a.Need, int(a.Worker)%m.cfg.Workers, a.Payload, a.Hint)
	if errors.Is(err, region.ErrReclaiming) {
		return nil, region.ErrReclaiming // err may match region.ErrFull, too, which the caller must not see
	}
	if err != nil {
		return nil, err
	}
	if !m.lend(p, participant.Loan{Machine: a.Machine, Worker: a.Worker, Connection: a.Connection}) {
		m.cfg.Allocator.Release(p)
		return nil, outcome.ErrLost
	}
	return message.Slot{Ptr: p, Version: v, Config: in}.Encode(), nil
}

func (m *Machine) handleRelease(_ context.Context, arg []byte) ([]byte, error) {
	defer m.Start().End()
	p, err := region.DecodePtr(arg)
	isLent := err == nil && m.Replicas.Loans.Take(p)
	if err == nil && !isLent && !m.IsPrimary(p.Addr) {
		return nil, nil // the loan has ended with this machine's part in the region
	}
	if !isLent {
		return nil, fmt.Errorf("%w: release of %v, which was not lent: %v", message.ErrBad, p, err)
	}
	m.cfg.Allocator.Release(p)
	return nil, nil
}

// lend records a loan. It returns false if the borrower has left the configuration, the connection
// has ended, or the region has another primary by now.
func (m *Machine) lend(p region.Ptr, to participant.Loan) bool {
	if int(to.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[to.Worker]
	w.Lock() // excludes relistenLocked
	defer w.Unlock()
	if peer := w.peerLocked(to.Machine); peer == nil || peer.life != to.Connection {
		return false
	}
	if !m.Replicas.Loans.Add(p, to) {
		return false
	}
	if !m.IsPrimary(p.Addr) { // Freeze may have forgotten the loans of the region just before
		m.Replicas.Loans.Take(p)
		return false
	}
	return true
}
