package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// A reconfiguration takes a machine from one configuration to the next, in four
// steps (SOSP'15 sections 5.2, 5.3), between which package recovery talks to the
// other machines:
//
//	Freeze   NEW-CONFIG: no commit begins, commits in progress write no further
//	         records, and acknowledgements do not count any more. Every commit in
//	         progress is caught: recovery decides it, and its caller waits for that.
//	Drain    NEW-CONFIG-COMMIT: the records in the logs are processed; records that
//	         arrive later are not. Drain returns the logs' evidence.
//	Resume   commits begin again, in regions that are active.
//	Settle   recovery is over: its memory and log space are freed.

var (
	// ErrCaught is the error of the waits of a commit that a reconfiguration has caught.
	ErrCaught = errors.New("txn: caught by a reconfiguration")
	// ErrMoved makes a commit start again with a new plan: the configuration is changing or has
	// changed, or a region that the commit writes to is not active yet.
	ErrMoved = errors.New("txn: configuration is changing")
)

// Freeze begins the change to configuration c, whose identifier is higher than that of the present
// one. When it returns, no commit that this machine has begun can proceed by itself, and this
// machine ignores replies from machines that are not in c. Regions whose primary is new, or was not
// active before, are blocked.
//
// If a member is not connected to this machine with all workers, Freeze makes sure that the
// member's writes in c have no effect here until it has connected again. The member notices when
// its first WRITE fails. Otherwise its writes in c could be acknowledged and then lost, when its
// logs are emptied for the new connection. Freeze returns these members.
func (m *Machine) Freeze(c *cluster.Configuration) (apart []rdma.MachineID) {
	member := func(id rdma.MachineID) bool { _, ok := c.Member(id); return ok }
	apart = slices.DeleteFunc(slices.Clone(c.Machines), func(id rdma.MachineID) bool { return id == m.cfg.ID || m.Connected(id) })
	m.recovery.Begin(c.ID)
	m.draining.Store(c.IsDraining(m.cfg.ID))
	for _, w := range m.workers {
		w.freeze(uint32(c.ID), member, apart)
	}
	m.Replicas.Loans.Refuse(func(id rdma.MachineID) bool { return !member(id) })
	m.reserving.Lock() // operations that use the old routes are done once the lock is held
	defer m.reserving.Unlock()
	before := m.Routes.Load()
	m.Remap(c, func(id region.ID) *region.Region {
		if rt := m.Route(id); rt != nil {
			return rt.Local
		}
		return nil
	})
	m.Replicas.Loans.Forget(func(p region.Ptr) bool { return !m.goesOn(before, p.Addr) })
	return apart
}

// goesOn reports whether this machine has been the primary of the region of an address without
// interruption since it had the given routes. Otherwise loans there are over: a primary in between, and
// the borrowers, know nothing of them.
func (m *Machine) goesOn(before *route.List, a region.Addr) bool {
	was, now := before.Of(a.Region()), m.Route(a.Region())
	return now != nil && now.PrimaryHere && was != nil && (was.LastPrimaryChange == now.LastPrimaryChange || sabotage.EarlierLoans.Skipped())
}

// freeze is Freeze at one worker: it begins a configuration, and leaves the commits in progress to
// recovery.
func (w *Worker) freeze(config uint32, member func(rdma.MachineID) bool, apart []rdma.MachineID) {
	w.Lock()
	defer w.Unlock()
	if w.config == 0 { // the first configuration of this life of the machine
		w.window = record.NewWindow(config)
	}
	w.frozen, w.config, w.boundary = true, config, w.window.Next
	for w.begun != nil {
		w.catchLocked(w.begun)
	}
	w.self.Freeze()
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		if p.log != nil {
			p.log.Release(p.log.Reserved())
		}
		p.in.Freeze(config)
		p.truncated, p.far = nil, nil // recovery finds the truncations that the peer has not been told of
		if slices.Contains(apart, p.id) && !sabotage.Sever.Skipped() {
			w.severLocked(p)
		} else if !member(p.id) {
			w.markLostLocked(p)
			// Operations pending there would wait until the network notices that the peer is silent;
			// their transactions can begin again with the new routes.
			w.q.Break(p.id)
		}
		p.hasLeft = p.hasLeft || !member(p.id)
	}
}

// severLocked ends the connection to a peer in both directions. The records in the peer's log stay,
// for recovery, under a key that the peer does not know.
func (w *Worker) severLocked(p *peer) {
	w.markLostLocked(p)
	nic := w.m.cfg.NIC
	nic.Deregister(route.LogKey(p.id, w.ID, p.life))
	if !sabotage.MessagesKey.Skipped() {
		nic.Deregister(route.MessagesKey(p.id, w.ID, p.life))
	}
	p.life++
	// This cannot run out of room, since two registrations have just ended. If it fails because the
	// NIC is closed, no peer can read the records anyway.
	_ = nic.Register(route.LogKey(p.id, w.ID, p.life), p.memory)
}

// markLostLocked ignores all further input from a peer, without asking for another
// configuration.
func (w *Worker) markLostLocked(p *peer) {
	if p.broken == nil {
		p.broken = outcome.ErrLost
		w.failWaitsLocked(p.id, outcome.ErrLost)
	}
}

// Resume lets commits begin in the given configuration, unless the next one's Freeze has begun.
func (m *Machine) Resume(in cluster.ID) error {
	return m.recovery.During(in, func() { // Freeze changes the configuration before it freezes a worker
		for _, w := range m.workers {
			w.Lock()
			w.frozen = false
			w.Unlock()
		}
	})
}

// IsDraining reports whether the machine is to have no regions. Objects that need not be in one of its
// regions should be made elsewhere: a region that is made for them has to move away.
func (m *Machine) IsDraining() bool { return m.draining.Load() }

// Config returns the identifier of the current configuration.
func (m *Machine) Config() cluster.ID { return cluster.ID(m.config.Load()) }

// Evict tells the machine that it has left the configuration. Everything in progress fails: with
// outcome.ErrInDoubt if the others' recovery decides it, with outcome.ErrEvicted if nothing had happened yet.
// Everything that begins later fails with outcome.ErrEvicted. Only Close may follow.
func (m *Machine) Evict() {
	m.evicted.Store(true)
	for _, w := range m.workers {
		w.Lock()
		w.frozen = true
		w.failAllLocked(outcome.ErrEvicted)
		w.Unlock()
	}
}

// Gone returns why this machine can do nothing any more, or nil.
func (m *Machine) Gone() error {
	switch {
	case m.closed.Load():
		return outcome.ErrClosed
	case m.evicted.Load():
		return outcome.ErrEvicted
	}
	return nil
}

// peerLocked returns the sibling at a machine, or nil.
func (w *Worker) peerLocked(machine rdma.MachineID) *peer {
	if int(machine) < len(w.peers) {
		return w.peers[machine]
	}
	return nil
}

// AwaitReplacement is called after an operation that used the given routes has failed with err. If
// err says that a machine cannot be reached, AwaitReplacement waits until this machine has other
// routes, and returns nil: the operation can be tried again. It returns any other err immediately,
// and every err if machines are never replaced.
func (m *Machine) AwaitReplacement(ctx context.Context, routes *route.List, err error) error {
	if m.cfg.Alive == nil || !isLoss(err) {
		return m.OrGone(err)
	}
	n := wait.Need{Lease: &m.Lease, Ctx: ctx, What: "a replacement of a machine that cannot be reached"}
	for m.Routes.Load() == routes {
		if over := n.Pause(); over != nil {
			return fmt.Errorf("%w (%v)", over, err) // does not wrap err, which may be a conflict
		}
	}
	return m.Gone()
}

// OrGone replaces err by the reason why this machine is gone, if it is gone and err is a
// consequence of that: err says that another machine cannot be reached, or that this machine's
// queues are closed. Otherwise it returns err.
func (m *Machine) OrGone(err error) error {
	if isLoss(err) || errors.Is(err, rdma.ErrClosed) {
		return cmp.Or(m.Gone(), err)
	}
	return err
}

// isLoss reports whether err says that a machine cannot be reached.
func isLoss(err error) bool {
	return errors.Is(err, rdma.ErrBroken) || errors.Is(err, rdma.ErrKey) || errors.Is(err, outcome.ErrLost) || errors.Is(err, errNotAPeer)
}

// A BlockedError is an ErrMoved that names a region which may not be used yet.
type BlockedError region.ID

func (BlockedError) Error() string { return ErrMoved.Error() }

// Is makes it an ErrMoved.
func (BlockedError) Is(target error) bool { return target == ErrMoved }

// AwaitMove waits for a moment after an operation has met err, an ErrMoved. since is when the
// operation first met one, or zero if this is the first time; AwaitMove returns since, or the
// present time if it is zero.
func (m *Machine) AwaitMove(ctx context.Context, err error, since time.Time) (time.Time, error) {
	n := m.moving(ctx, err, since)
	err = n.Pause()
	return n.Since, err
}

// moving returns the need of an operation that keeps meeting err, an ErrMoved.
func (m *Machine) moving(ctx context.Context, err error, since time.Time) wait.Need {
	n := wait.Need{Lease: &m.Lease, Ctx: ctx, What: "a configuration that all have agreed on", Since: since}
	if b, ok := err.(BlockedError); ok {
		n.What, n.Region = "region", region.ID(b)
	}
	return n
}
