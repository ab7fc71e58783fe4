package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
)

// ReleaseSlotLocked returns an unused slot to the machine that has lent it over a connection. If
// the connection has ended, the loan has ended with it.
func (w *Worker) ReleaseSlotLocked(lender rdma.MachineID, connection uint32, s message.Slot) {
	body := message.Release{Ptr: s.Ptr, Config: s.Config}.Encode(protocol.Version(w.m.speaks.Load()))
	w.releaseLocked(lender, connection, handlerRelease, body)
}

// handleAlloc allocates a slot, and lends it to the worker that asks.
func (m *Machine) handleAlloc(_ context.Context, arg []byte) ([]byte, error) {
	a, err := message.DecodeAllocation(arg)
	if err != nil {
		return nil, err
	}
	defer m.Start().End() // memory of a region that leaves stays mapped meanwhile
	p, v, config, err := m.cfg.Allocator.Alloc(a.Need, int(a.Worker)%m.cfg.Workers, a.Payload, a.Hint)
	if errors.Is(err, region.ErrReclaiming) {
		return nil, region.ErrReclaiming // err may match region.ErrFull, too, which the caller must not see
	}
	if err != nil {
		return nil, err
	}
	if !m.lend(p, config, participant.Borrower{Machine: a.Machine, Worker: a.Worker, Connection: a.Connection}) {
		m.ReleaseSlot(p, config)
		return nil, outcome.ErrLost
	}
	return message.Slot{Ptr: p, Version: v, Config: config}.Encode(), nil
}

// handleRelease takes back a slot that was lent and not used.
func (m *Machine) handleRelease(_ context.Context, arg []byte) ([]byte, error) {
	defer m.Start().End()
	r, err := message.DecodeRelease(arg)
	if err != nil {
		return nil, fmt.Errorf("%w: release: %v", message.ErrBad, err)
	}
	m.reserving.RLock() // a slot of which the loan has ended here may be reserved anew in another tenure
	defer m.reserving.RUnlock()
	switch {
	case m.Replicas.Loans.Return(r.Ptr, r.Config):
		m.cfg.Allocator.Release(r.Ptr)
	case !m.IsPrimary(r.Ptr.Addr), r.Config != 0 && !m.isReserved(r.Ptr, r.Config): // the loan has ended with this machine's tenure
	default:
		return nil, fmt.Errorf("%w: release of %v, which was not lent in configuration %d", message.ErrBad, r.Ptr, r.Config)
	}
	return nil, nil
}

// ReleaseSlot makes a slot available that was reserved here in the given configuration. It does nothing
// if the region has another primary by now, or has had one: the allocator does not know of the
// reservation any more, and may have reserved the slot for another object.
func (m *Machine) ReleaseSlot(p region.Ptr, config uint32) {
	m.reserving.RLock()
	defer m.reserving.RUnlock()
	if m.isReserved(p, config) {
		m.cfg.Allocator.Release(p)
	}
}

// isReserved reports whether the allocator knows of a reservation that was made in the given
// configuration: this machine has been the primary since. The caller holds reserving, so that the
// region's tenure does not end meanwhile.
func (m *Machine) isReserved(p region.Ptr, config uint32) bool {
	rt := m.Route(p.Addr.Region())
	return rt != nil && rt.PrimaryHere && (config >= uint32(rt.LastPrimaryChange) || sabotage.EarlierLoans.Skipped())
}

// lend records a loan of a slot that was reserved in the given configuration. It returns false if the
// borrower has left the configuration, the connection has ended, or the region has had another primary
// since.
func (m *Machine) lend(p region.Ptr, config uint32, to participant.Borrower) bool {
	m.reserving.RLock() // Freeze, which forgets loans, comes before or after
	defer m.reserving.RUnlock()
	if int(to.Worker) >= len(m.workers) || !m.isReserved(p, config) {
		return false
	}
	w := m.workers[to.Worker]
	w.Lock() // excludes relistenLocked
	defer w.Unlock()
	if peer := w.peerLocked(to.Machine); peer == nil || peer.life != to.Connection {
		return false
	}
	return m.Replicas.Loans.Add(p, participant.Loan{Borrower: to, Config: config})
}
