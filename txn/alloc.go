package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/worker"
)

// A slot is room for an object, reserved by its primary: this machine, or another machine that has
// lent the slot over a connection (participant.Loans).
type slot struct {
	message.Slot
	lender     rdma.MachineID
	connection uint32
}

// alloc reserves a slot for an object, near hint: at the primary of hint's region, or at this machine
// if there is no hint (0) or no route to that region. While this machine is being drained, an
// allocation without a hint tries the other machines first.
func (m *Machine) alloc(ctx context.Context, w *worker.Worker, need region.Need, payload int, hint region.Addr) (slot, error) {
	if payload < 0 || payload > region.MaxPayload { // a larger size may not fit the message either
		return slot{}, fmt.Errorf("%w: %d bytes, at most %d", region.ErrTooLarge, payload, region.MaxPayload)
	}
	before := m.Routes.Load()
	rt := m.Route(hint.Region())
	if hint == 0 && m.IsDraining() {
		if got, err := m.allocElsewhere(ctx, w, before, need, payload); !isFull(err) {
			return got, err
		}
	}
	if hint == 0 || rt == nil || rt.PrimaryHere {
		return m.allocHere(w, need, payload, hint)
	}
	got, err := m.borrow(ctx, w, before, rt.Primary, region.Ordinary, payload, hint)
	if need != region.Ordinary && isFull(err) {
		// Try the held-back room only now: a machine of an earlier version, which holds none back,
		// refuses such a request.
		if held, errHeld := m.borrow(ctx, w, before, rt.Primary, need, payload, hint); errHeld == nil {
			return held, nil
		}
	}
	return got, err
}

// allocHere reserves a slot in one of this machine's regions.
func (m *Machine) allocHere(w *worker.Worker, need region.Need, payload int, hint region.Addr) (slot, error) {
	p, v, config, err := m.Replicas.Allocator.Alloc(need, int(w.ID), payload, hint)
	if err != nil {
		return slot{}, m.orBusy(err, hint)
	}
	return slot{Slot: message.Slot{Ptr: p, Version: v, Config: config}, lender: m.ID()}, nil
}

// allocElsewhere borrows a slot near any region of another machine. The regions take turns. If a machine
// has no room, it asks the next: a region that this machine made instead would have to move away.
func (m *Machine) allocElsewhere(ctx context.Context, w *worker.Worker, routes *route.List, need region.Need, payload int) (slot, error) {
	turn := m.elsewhere.Add(1)
	var full []rdma.MachineID
	err := fmt.Errorf("%w: no other machine has a region", region.ErrFull)
	for {
		rt := routeElsewhere(*routes, turn, full)
		if rt == nil {
			return slot{}, err
		}
		var got slot
		if got, err = m.borrow(ctx, w, routes, rt.Primary, need, payload, region.MakeAddr(rt.Region, 0)); !isFull(err) {
			return got, err
		}
		full = append(full, rt.Primary)
	}
}

// routeElsewhere returns the route to a region of a machine other than this one and those in
// full, or nil. The search begins at position turn. It prefers active regions; right after a
// reconfiguration no region is active, and it takes one that is not.
func routeElsewhere(all route.List, turn uint64, full []rdma.MachineID) (best *route.Route) {
	for i := range uint64(len(all)) {
		rt := all[(turn+i)%uint64(len(all))]
		switch {
		case rt == nil || rt.PrimaryHere || !rt.IsAvailable() || slices.Contains(full, rt.Primary): // not this one
		case rt.State == route.Active:
			return rt
		case best == nil:
			best = rt
		}
	}
	return best
}

// borrow asks another machine to reserve a slot near hint. That machine must be the primary
// according to routes, which the caller has loaded.
func (m *Machine) borrow(ctx context.Context, w *worker.Worker, routes *route.List, primary rdma.MachineID, need region.Need, payload int, hint region.Addr) (slot, error) {
	connection := w.ConnectionTo(primary)
	arg := message.Allocation{Hint: hint, Need: need, Payload: payload, Machine: m.ID(), Worker: w.ID, Connection: connection}.Encode()
	decode := func(reply message.Message) (slot, error) {
		if err := outcome.Shipped(outcome.Code(reply.A), reply.Body); err != nil {
			return slot{}, m.orBusy(err, hint)
		}
		lent, err := message.DecodeSlot(reply.Body)
		return slot{Slot: lent, lender: primary, connection: connection}, err
	}
	reply, err := w.Call(ctx, primary, message.Message{Kind: message.Request, B: uint16(worker.HandlerAlloc), Body: arg}, func(late message.Message) {
		if got, err := decode(late); err == nil && m.isCurrent(got) {
			w.ReleaseSlotLocked(got.lender, got.connection, got.Slot) // locked: see Worker.Call
		}
	})
	if err != nil {
		if err = m.AwaitReplacement(ctx, routes, err); err == nil {
			err = abort(ReasonBusy, hint) // a loan, if there was one, ended with the machine
		}
		return slot{}, err
	}
	return decode(reply)
}

// orBusy returns err, the error of an allocation, or a conflict instead if another attempt will
// soon find room. The allocation itself cannot wait for that room: freed memory becomes available
// only after all transactions that were open when it was freed have ended, this one among them.
func (m *Machine) orBusy(err error, hint region.Addr) error {
	if errors.Is(err, region.ErrReclaiming) || (isFull(err) && m.frees.Load()) {
		return abort(ReasonBusy, hint)
	}
	return err
}

// isFull reports whether err means that an allocation has found no room.
func isFull(err error) bool {
	return errors.Is(err, region.ErrFull) || errors.Is(err, nvram.ErrNoSpace)
}

// Frees tells the machine whether much memory is being freed in the background. Meanwhile,
// allocations that find no room fail with a conflict, so that their transactions are run again.
func (m *Machine) Frees(isGoing bool) { m.frees.Store(isGoing) }

// entry returns the write set's entry of an object that the transaction makes in the slot.
func (s slot) entry(payload []byte, late bool) set.Entry {
	return set.Entry{Ptr: s.Ptr, Version: s.Version, Op: record.OpAlloc, Config: s.Config, Lender: s.lender, Connection: s.connection, Payload: payload, Late: late}
}

// release returns the slot of an OpAlloc that did not commit. There is nothing to return if the
// region has got a new primary: its allocator does not know of the reservation. Nor is there if
// the connection over which the slot was lent has ended: that ended the loan. This machine may
// not know the region: the lender may have made it for this allocation.
func (m *Machine) release(w *worker.Worker, e *set.Entry) {
	s := slot{Slot: message.Slot{Ptr: e.Ptr, Config: e.Config}, lender: e.Lender, connection: e.Connection}
	if !m.isCurrent(s) {
		return
	}
	if e.Lender == m.ID() {
		m.ReleaseSlot(s.Ptr, s.Config)
		return
	}
	if sabotage.Loans.Skipped() {
		return
	}
	w.Lock()
	defer w.Unlock()
	w.ReleaseSlotLocked(s.lender, s.connection, s.Slot)
	w.RingPeersLocked()
}

// isCurrent reports whether the allocator that reserved the slot still knows of the reservation.
func (m *Machine) isCurrent(s slot) bool {
	rt := m.Route(s.Ptr.Addr.Region())
	return rt == nil || s.Config >= uint32(rt.LastPrimaryChange)
}
