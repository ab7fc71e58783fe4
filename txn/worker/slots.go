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
	p, v, err := m.cfg.Allocator.Alloc(a.Need, int(a.Worker)%m.cfg.Workers, a.Payload, a.Hint)
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
	return message.Slot{Ptr: p, Version: v, Config: m.config.Load()}.Encode(), nil
}

func (m *Machine) handleRelease(_ context.Context, arg []byte) ([]byte, error) {
	p, err := region.DecodePtr(arg)
	if err != nil || !m.Replicas.Loans.Take(p) {
		return nil, fmt.Errorf("%w: release of %v, which was not lent: %v", message.ErrBad, p, err)
	}
	m.cfg.Allocator.Release(p)
	return nil, nil
}

// lend records a loan. It returns false if the borrower has left the configuration, or the
// connection has ended.
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
	return m.Replicas.Loans.Add(p, to)
}
