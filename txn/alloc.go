package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
)

// Functions that this package ships itself.
const (
	handlerAlloc = internalHandlers + iota
	handlerRelease
	handlerEpoch
	handlerReserve
	handlerPing
	handlerDiscard
	handlerAnnex
	handlerDropAnnex
)

func (m *Machine) handleInternally() {
	m.Handle(handlerAlloc, m.handleAlloc)
	m.Handle(handlerRelease, m.handleRelease)
	m.Handle(handlerEpoch, m.handleEpoch)
	m.Handle(handlerReserve, m.handleReserve)
	m.Handle(handlerPing, handlePing)
	m.Handle(handlerDiscard, m.handleDiscard)
	m.Handle(handlerAnnex, m.handleAnnex)
	m.Handle(handlerDropAnnex, m.handleDropAnnex)
}

// A slot is room for an object at its primary.
type slot struct {
	ptr     region.Ptr
	version region.Version
	// config is the primary's configuration when it reserved the slot. If the allocation had to
	// wait for a new region, this may be later than the configuration in which the allocation
	// began.
	config uint32
	// lender is the primary that reserved the slot: this machine, or another that has lent the slot
	// over the connection: see participant.Loans.
	lender     rdma.MachineID
	connection uint32
}

// slotBytes is the length of an encoded slot in a reply.
const slotBytes = region.PtrBytes + 12

// alloc reserves a slot for an object, near hint. If another machine is hint's primary, that
// machine reserves it.
func (m *Machine) alloc(ctx context.Context, w *worker, need region.Need, payload int, hint region.Addr) (slot, error) {
	if payload < 0 || payload > region.MaxPayload { // a larger size may not fit the message either
		return slot{}, fmt.Errorf("%w: %d bytes, at most %d", region.ErrTooLarge, payload, region.MaxPayload)
	}
	before := m.routes.Load()
	rt := m.route(hint.Region())
	if hint == 0 || rt == nil || rt.PrimaryHere {
		p, v, err := m.cfg.Allocator.Alloc(need, int(w.id), payload, hint)
		return slot{ptr: p, version: v, config: m.config.Load(), lender: m.cfg.ID}, m.orBusy(err, hint)
	}
	got, err := m.borrow(ctx, w, before, rt.Primary, region.Ordinary, payload, hint)
	if need != region.Ordinary && isFull(err) {
		// Only now: a machine of an earlier version, which holds nothing back, refuses it.
		if held, errHeld := m.borrow(ctx, w, before, rt.Primary, need, payload, hint); errHeld == nil {
			return held, nil
		}
	}
	return got, err
}

// borrow asks another machine to reserve a slot near hint. That machine must be the primary by the
// routes that the caller passes as before.
func (m *Machine) borrow(ctx context.Context, w *worker, before *route.List, primary rdma.MachineID, need region.Need, payload int, hint region.Addr) (slot, error) {
	connection := w.connectionTo(primary)
	arg := binary.LittleEndian.AppendUint64(nil, uint64(hint))
	arg = binary.LittleEndian.AppendUint32(arg, uint32(payload)|uint32(need)<<needShift)
	arg = binary.LittleEndian.AppendUint32(arg, uint32(w.id)|uint32(m.cfg.ID)<<16)
	arg = binary.LittleEndian.AppendUint32(arg, connection)
	decode := func(reply message.Message) (slot, error) {
		if err := shippedError(replyCode(reply.A), reply.Body); err != nil {
			return slot{}, m.orBusy(err, hint)
		}
		got, err := decodeSlot(reply.Body)
		got.lender, got.connection = primary, connection
		return got, err
	}
	reply, err := w.call(ctx, primary, message.Message{Kind: message.Request, B: uint16(handlerAlloc), Body: arg}, func(late message.Message) {
		if got, err := decode(late); err == nil && m.isCurrent(got) {
			m.releaseLocked(w, got) // locked: see call.late
		}
	})
	if err != nil {
		if err = m.awaitReplacement(ctx, before, err); err == nil {
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
	if errors.Is(err, region.ErrReclaiming) || isFull(err) && m.frees.Load() {
		return abort(ReasonBusy, hint)
	}
	return err
}

// isFull reports whether err means that an allocation has found no room.
func isFull(err error) bool {
	return errors.Is(err, region.ErrFull) || errors.Is(err, nvram.ErrNoSpace)
}

// Frees tells the machine whether much memory is being freed in the background. While it is,
// allocations that find no room fail with a conflict.
func (m *Machine) Frees(isGoing bool) { m.frees.Store(isGoing) }

// entry returns the write set's entry of an object that the transaction makes in the slot.
func (s slot) entry(payload []byte, late bool) set.Entry {
	return set.Entry{Ptr: s.ptr, Version: s.version, Op: record.OpAlloc, Config: s.config, Lender: s.lender, Connection: s.connection, Payload: payload, Late: late}
}

func (s slot) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(s.ptr.Append(b), uint64(s.version))
	return binary.LittleEndian.AppendUint32(b, s.config)
}

func decodeSlot(b []byte) (s slot, err error) {
	if len(b) != slotBytes {
		return s, fmt.Errorf("%w: reply to an allocation of %d bytes", message.ErrBad, len(b))
	}
	s.ptr, err = region.DecodePtr(b)
	b = b[region.PtrBytes:]
	s.version, s.config = region.Version(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])
	return s, err
}

func (m *Machine) handleAlloc(_ context.Context, arg []byte) ([]byte, error) {
	if len(arg) != allocBytes {
		return nil, fmt.Errorf("%w: allocation of %d bytes", message.ErrBad, len(arg))
	}
	hint := region.Addr(binary.LittleEndian.Uint64(arg))
	size, who := binary.LittleEndian.Uint32(arg[8:]), binary.LittleEndian.Uint32(arg[12:])
	need, payload := region.Need(size>>needShift), int(size&(1<<needShift-1))
	l := participant.Loan{Machine: rdma.MachineID(who >> 16), Worker: uint16(who), Connection: binary.LittleEndian.Uint32(arg[16:])}
	p, v, err := m.cfg.Allocator.Alloc(need, int(l.Worker)%m.cfg.Workers, payload, hint)
	if errors.Is(err, region.ErrReclaiming) {
		return nil, region.ErrReclaiming // err may match region.ErrFull, too, which the caller must not see
	}
	if err != nil {
		return nil, err
	}
	if !m.lend(p, l) {
		m.cfg.Allocator.Release(p)
		return nil, ErrLost
	}
	return slot{ptr: p, version: v, config: m.config.Load()}.append(nil), nil
}

// needShift is the position of the need in the word of an allocation's argument that holds the
// length.
const needShift = 31

// allocBytes is the length of an allocation's argument.
const allocBytes = 20

// release returns the slot of an OpAlloc that did not commit. There is nothing to return if the
// region has a new primary since, whose allocator does not know of the reservation, or if the
// connection over which the slot was lent has ended, since that ended the loan. This machine may
// not know the region: the lender may have made it for an object that was to be near another one.
func (m *Machine) release(w *worker, e *set.Entry) {
	s := slot{ptr: e.Ptr, config: e.Config, lender: e.Lender, connection: e.Connection}
	if !m.isCurrent(s) {
		return
	}
	if e.Lender == m.cfg.ID {
		if m.route(s.ptr.Addr.Region()) != nil { // there is no route if the region has lost all its replicas
			m.cfg.Allocator.Release(s.ptr)
		}
		return
	}
	if sabotage.Loans.Skipped() {
		return
	}
	w.lock()
	defer w.unlock()
	m.releaseLocked(w, s)
	w.ringPeersLocked()
}

// isCurrent reports whether the allocator that reserved the slot still knows of the reservation.
func (m *Machine) isCurrent(s slot) bool {
	rt := m.route(s.ptr.Addr.Region())
	return rt == nil || s.config >= uint32(rt.LastPrimaryChange)
}

// releaseLocked tells the lender of a slot that this machine does not need it.
func (m *Machine) releaseLocked(w *worker, lent slot) {
	peer := w.peerLocked(lent.lender)
	if peer == nil || peer.msgs == nil || peer.broken != nil || peer.connection != lent.connection || w.stopped {
		return
	}
	// Only Quiesce waits for the reply.
	c := &call{to: lent.lender, release: true}
	c.wait.Add(1)
	w.releases++
	msg := message.Message{Kind: message.Request, B: uint16(handlerRelease), Tag: w.openCallLocked(c), Body: lent.ptr.Append(nil)}
	if err := w.sendLocked(peer, &msg); err != nil {
		w.fenceLocked(peer, err)
	}
}

// lend records a loan. It returns false if the borrower has left the configuration, or the
// connection has ended.
func (m *Machine) lend(p region.Ptr, to participant.Loan) bool {
	if int(to.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[to.Worker]
	w.lock() // excludes relisten
	defer w.unlock()
	if peer := w.peerLocked(to.Machine); peer == nil || peer.life != to.Connection {
		return false
	}
	return m.replicas.Loans.Add(p, to)
}

func (m *Machine) handleRelease(_ context.Context, arg []byte) ([]byte, error) {
	p, err := region.DecodePtr(arg)
	if err != nil || !m.replicas.Loans.Take(p) {
		return nil, fmt.Errorf("%w: release of %v, which was not lent: %v", message.ErrBad, p, err)
	}
	m.cfg.Allocator.Release(p)
	return nil, nil
}
