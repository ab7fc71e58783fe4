package membership

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// A NEW-CONFIG carries the encoded configuration, in several parts if it is long. Each part begins
// with | configuration 4 | part 4 | parts 4 |.
const partHeaderBytes = 12

// partBytes is the size of a part of an encoded configuration. Tests make it small.
var partBytes = call.BytesMax - partHeaderBytes

// split returns the arguments of the calls that send c.
func split(c *cluster.Configuration) [][]byte {
	var calls [][]byte
	parts := slices.Collect(slices.Chunk(c.Encode(), partBytes))
	for i, part := range parts {
		arg := binary.LittleEndian.AppendUint32(nil, uint32(c.ID))
		arg = binary.LittleEndian.AppendUint32(arg, uint32(i))
		arg = binary.LittleEndian.AppendUint32(arg, uint32(len(parts)))
		calls = append(calls, append(arg, part...))
	}
	return calls
}

// An ack is the content of a NEW-CONFIG-ACK.
type ack struct {
	// Outstanding bounds the rest of the leases that the machine has granted to machines that are
	// left out.
	Outstanding time.Duration
	// Refused are replicas for which the machine has no room.
	Refused []region.ID
	// Self is what the machine reports about itself. Its entry in the configuration may be incomplete,
	// because a CM of an earlier program version does not pass all of it on. Earlier versions leave
	// Self out.
	Self cluster.Member
}

// incoming is a NEW-CONFIG that has come only in part.
type incoming struct {
	id    cluster.ID
	parts [][]byte
}

// partsMax bounds the number of parts.
const partsMax = 1 << 12

// onNewConfig receives a part of a NEW-CONFIG, and applies the configuration with the last part.
func (m *Machine) onNewConfig(from call.Peer, arg []byte) ([]byte, error) {
	if len(arg) < partHeaderBytes {
		return nil, fmt.Errorf("membership: NEW-CONFIG of %d bytes", len(arg))
	}
	id := cluster.ID(binary.LittleEndian.Uint32(arg))
	part, parts := binary.LittleEndian.Uint32(arg[4:]), binary.LittleEndian.Uint32(arg[8:])
	c := m.Configuration()
	if c == nil || id > c.ID { // new here; otherwise the CM repeats its call
		b, err := m.collect(from, id, part, parts, arg[partHeaderBytes:])
		if err != nil || part < parts-1 {
			return nil, err
		}
		if c, err = m.decodeNewConfig(b); err != nil {
			return nil, err
		}
	}
	if id != c.ID && !sabotage.OldConfig.Skipped() {
		return nil, fmt.Errorf("%w: %d, this is %d", recovery.ErrSuperseded, c.ID, id)
	}
	if recovery.PeerIn(c, c.CM) != from || !m.isMember(c) {
		return nil, fmt.Errorf("%w: configuration %d, from machine %d", recovery.ErrNotMember, c.ID, from.Machine)
	}
	a, err := m.applyConfiguration(c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// collect stores one sender's part of configuration id, and returns all parts that have come, joined.
// The sender sends the parts in order, so with the last part the configuration is whole. A part of an
// earlier configuration than the sender's latest fails with recovery.ErrSuperseded.
func (m *Machine) collect(from call.Peer, id cluster.ID, part, parts uint32, b []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := m.mu.incoming[from]
	if part >= parts || parts > partsMax || (in != nil && id < in.id) {
		return nil, fmt.Errorf("%w: part %d of %d of configuration %d", recovery.ErrSuperseded, part, parts, id)
	}
	if in == nil || in.id != id || len(in.parts) != int(parts) {
		in = &incoming{id, make([][]byte, parts)}
		m.mu.incoming[from] = in
	}
	in.parts[part] = b
	return slices.Concat(in.parts...), nil
}

func (m *Machine) decodeNewConfig(b []byte) (*cluster.Configuration, error) {
	c, err := cluster.Decode("NEW-CONFIG", b)
	if err == nil {
		err = errors.Join(SameCluster(m.cfg.Cluster, c), c.Suits(m.self.Machine, m.settings()))
	}
	return c, err
}

// applyConfiguration is step 6 at this machine. Applying a configuration again gives the same
// result as the first time; for an older one the error is recovery.ErrSuperseded.
func (m *Machine) applyConfiguration(c *cluster.Configuration) (ack, error) {
	m.cfg.Clock.Lock(&m.apply)
	defer m.apply.Unlock()
	isNew, err := m.begin(c)
	if err != nil {
		return ack{}, err
	}
	if isNew {
		m.cfg.Events.applying(c)
		m.cfg.Host.Freeze(c)
		m.cfg.Keeper.Configure(c.CM, lease.Members(c))
		refused, err := m.cfg.Host.Apply(c)
		if err != nil {
			m.evict(fmt.Errorf("membership: apply configuration %d: %w", c.ID, err))
			return ack{}, err
		}
		m.mu.Lock()
		m.mu.refused = refused
		if m.mu.phase == applying { // this machine may have been evicted or closed meanwhile
			m.enterLocked(applied)
		}
		m.wakeLocked()
		m.mu.Unlock()
		m.waiting(nil)
		m.cfg.Events.applied(c)
		m.reached(recovery.StepApplied)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	self := m.cfg.Self
	self.Lives = nil
	return ack{m.outstandingLocked(), m.mu.refused, self}, nil
}

// outstandingLocked returns how long machines that have been left out may still hold a lease,
// as far as this machine can tell from the leases that it has granted. Those machines may hold
// leases from other machines, too. But the leases that the last CM granted end no later than
// the lease that this machine granted to that CM.
//
// It returns 0 only if all machines left out since the last committed configuration are known
// to be dead. It is not enough that some are dead: a dead process serves nothing, but a live
// one may rely on a lease whose grantor has died. Gone reports that the newest life of a
// machine is over; then the life that was left out is over, too, since it began before this
// check.
func (m *Machine) outstandingLocked() time.Duration {
	for _, p := range m.mu.leftOut {
		if !m.cfg.NIC.Gone(p.Machine) {
			return m.cfg.Keeper.Outstanding()
		}
	}
	return 0
}

// leaveOutLocked records the members of the current configuration that are not in next.
func (m *Machine) leaveOutLocked(next *cluster.Configuration) {
	if m.mu.current == nil {
		return
	}
	for _, p := range lease.Members(m.mu.current) {
		if !recovery.IsMember(next, p) {
			m.mu.leftOut = append(m.mu.leftOut, p)
		}
	}
}

// begin makes c the current configuration, if it is newer, and ends what is still in progress for
// the previous one.
func (m *Machine) begin(c *cluster.Configuration) (isNew bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.mu.current
	switch {
	case m.mu.phase == closed:
		return false, ErrClosed
	case m.mu.phase == evicted:
		return false, ErrEvicted
	case current != nil && c.ID < current.ID:
		return false, fmt.Errorf("%w: %d, this is %d", recovery.ErrSuperseded, current.ID, c.ID)
	case current != nil && c.Line.IsApart(current.Line):
		return false, fmt.Errorf("%w: configuration %d, this is %d", ErrOtherLine, current.ID, c.ID)
	case c.Omits(m.lastLocked()):
		return false, m.omitted(m.lastLocked(), c)
	case current == nil && m.mu.floor > 0 && c.Line.Leads(m.mu.line):
		return false, fmt.Errorf("%w: it has configuration %d, and this is %d", errUnheard, m.mu.floor, c.ID)
	case current == nil && c.ID < m.mu.floor:
		return false, fmt.Errorf("%w: %d, this is %d", recovery.ErrSuperseded, m.mu.floor, c.ID)
	case current != nil && c.ID == current.ID:
		return false, nil
	}
	if m.mu.cancel != nil {
		m.mu.cancel()
		m.mu.cancel = nil
	}
	m.leaveOutLocked(c)
	m.mu.moves.noteMembers(current, c, m.cfg.Clock.Now())
	m.mu.current, m.mu.refused, m.mu.refusals = c, nil, nil
	m.mu.suspects = nil // the leases of members that were suspected begin anew
	m.mu.joiners = slices.DeleteFunc(m.mu.joiners, func(j joinRequest) bool {
		_, in := c.Member(j.Member.Machine)
		return in || c.Admits(j.Member) != nil
	})
	m.mu.roomy = slices.DeleteFunc(m.mu.roomy, func(r roomRequest) bool { return !r.changes(c) })
	m.mu.forget = slices.DeleteFunc(m.mu.forget, func(r forgetRequest) bool { return r.isOver(c) })
	m.mu.orders = slices.DeleteFunc(m.mu.orders, func(r orderRequest) bool { return c.IsGranted(r.Order) })
	m.mu.drains = slices.DeleteFunc(m.mu.drains, func(r drainRequest) bool { return r.isOver(c) })
	m.mu.resizes = slices.DeleteFunc(m.mu.resizes, func(r resizeRequest) bool { return r.isOver(c) })
	m.mu.isActive, m.mu.renew, m.mu.handed = nil, false, false
	m.mu.isSettled = make(map[rdma.MachineID]bool)
	clear(m.mu.incoming)
	m.mu.links.forgetStrangersLocked(c)
	maps.DeleteFunc(m.mu.leavers, func(p call.Peer, _ bool) bool { return !recovery.IsMember(c, p) })
	m.enterLocked(applying)
	m.wakeLocked()
	return true, nil
}

// onNewConfigCommit is step 7 at this machine.
func (m *Machine) onNewConfigCommit(_ call.Peer, arg []byte) ([]byte, error) {
	return nil, m.commit(decodeID(arg))
}

// commit makes the host commit configuration id, if that is the current one. It does not wait for the
// result.
func (m *Machine) commit(id cluster.ID) error {
	// Wait until the configuration has been applied.
	m.cfg.Clock.Lock(&m.apply)
	defer m.apply.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.mu.phase.isMember() || c == nil || c.ID != id {
		return fmt.Errorf("%w: commit of configuration %d", recovery.ErrSuperseded, id)
	}
	if m.mu.phase >= committed {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.mu.cancel = cancel
	m.enterLocked(committed)
	m.mu.leftOut = nil // the CM has waited for their leases
	m.unlocked(func() { m.spawn(func() { m.recoverTransactions(ctx, c) }) })
	return nil
}
