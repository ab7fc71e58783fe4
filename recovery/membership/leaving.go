package membership

import (
	"errors"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// A machine that is to stop leaves in steps, since its last statements may take a while:
//
//	AnnounceLeave  It tells the other members (LEAVING) and stays a member: it serves, and replaces
//	               machines that fail. A CM asks another member to take its place, because from
//	               Leave on it would keep its leases and replace nobody.
//	AwaitLeavers   Nothing runs here any more. If all members leave, the machine stays until nothing
//	               runs at any of them: their last statements need its regions, and its leases.
//	Leave          The machine no longer moves the instance on.
//
// When all members have announced that they leave, the instance ends: none of them begins another
// configuration. Otherwise members whose statements take long would evict members that have stopped
// already, which would then have to catch up at the next start.

// leavePatience bounds the time in which members that all leave wait for each other and begin no
// configuration. Without a bound, a member that never stops would not admit the others after they
// have been started again. It is longer than the time that statements have to end.
const leavePatience = 15 * time.Second

// AnnounceLeave is called when this machine is about to stop, and still serves. It does not wait.
func (m *Machine) AnnounceLeave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.staysLocked() && m.mu.announced.IsZero() {
		m.mu.announced = m.cfg.Clock.Now()
		m.unlocked(func() { m.spawn(m.announce) })
	}
}

// AwaitLeavers is called when nothing runs at this machine any more, after AnnounceLeave. It waits
// one lease time for the announcements of machines that are stopped at the same time. If all members
// leave, it returns when nothing runs at any of them, or after leavePatience. Otherwise the CM waits
// until another machine has taken its place, but no longer than handing over may take.
func (m *Machine) AwaitLeavers() {
	m.mu.Lock()
	m.mu.finished = true
	c, isAnnounced := m.mu.current, m.staysLocked() && !m.mu.announced.IsZero()
	m.mu.Unlock()
	if !isAnnounced {
		return
	}
	m.tellLeaving(c)
	if !m.waitFor(m.cfg.Keeper.Length(), func() bool { return !m.beginsLocked() }) {
		m.waitFor(m.patience(), func() bool { return !m.beginsLocked() || m.mu.current.CM != m.self.Machine })
	}
	isOver := func() bool { return !m.staysLocked() || !m.endsWithAllLocked() || m.isFinishedLocked() }
	for !m.waitFor(m.cfg.Keeper.Length(), isOver) && m.Err() == nil { // endsWithAllLocked bounds it
	}
}

// isFinishedLocked reports whether nothing runs at the other members, which all leave. Suspects do
// not count.
func (m *Machine) isFinishedLocked() bool {
	for _, p := range lease.Members(m.mu.current) {
		if p != m.self && !m.mu.leavers[p] && !slices.Contains(m.mu.suspects, p) {
			return false
		}
	}
	return true
}

// Leave is called shortly before this machine stops. From then on it does not move the instance to
// another configuration, and gives the others no reason to do so: it suspects no machine, and
// reports no broken link. Otherwise, when all machines are stopped at once, the last ones would
// evict the machines that stopped first.
func (m *Machine) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.leaving = true
	m.wakeLocked()
}

// staysLocked reports whether the machine is a member, and not about to stop. Only then may it begin,
// request or store a configuration; to take part in a stored configuration it only has to be a member.
func (m *Machine) staysLocked() bool { return m.mu.phase.isMember() && !m.mu.leaving }

// beginsLocked reports whether the machine begins configurations.
func (m *Machine) beginsLocked() bool { return m.staysLocked() && !m.endsWithAllLocked() }

// begins is beginsLocked for a caller that does not hold the lock.
func (m *Machine) begins() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beginsLocked()
}

// endsWithAllLocked reports whether this machine and all other members have announced that they
// leave.
func (m *Machine) endsWithAllLocked() bool {
	if m.mu.announced.IsZero() || m.cfg.Clock.Now().Sub(m.mu.announced) > leavePatience {
		return false
	}
	for _, p := range lease.Members(m.mu.current) {
		if _, leaves := m.mu.leavers[p]; !leaves && p != m.self {
			return false
		}
	}
	return true
}

// announce tells the members that this machine leaves, again and again until Leave is called: members
// of a later configuration have not heard it yet, and a message may be lost. A CM also hands over, but
// only after one lease time: by then it has heard of most machines that are stopped with it, and does
// not ask them to take its place.
func (m *Machine) announce() {
	for {
		c := m.Configuration()
		m.tellLeaving(c)
		if c.CM == m.self.Machine {
			isOver := func() bool { return !m.beginsLocked() || m.mu.current.ID != c.ID }
			if !m.waitFor(m.cfg.Keeper.Length(), isOver) {
				m.handOver(c)
			}
		}
		m.waitFor(m.patience(), func() bool { return !m.staysLocked() || m.mu.current.ID != c.ID })
		m.mu.Lock()
		stays := m.staysLocked()
		if stays {
			m.leadLocked() // leavePatience may be over
		}
		m.mu.Unlock()
		if !stays {
			return
		}
	}
}

// tellLeaving tells the other members of c that this machine leaves, and whether anything still
// runs at this machine. It does not wait for them.
func (m *Machine) tellLeaving(c *cluster.Configuration) {
	m.mu.Lock()
	finished := m.mu.finished
	m.mu.Unlock()
	arg := []byte(nil)
	if finished {
		arg = []byte{1}
	}
	for _, p := range lease.Members(c) {
		if p == m.self {
			continue
		}
		m.spawn(func() {
			_, err := m.cfg.Endpoint.Call(m.within(m.cfg.Keeper.Length()), p, kindLeaving, arg)
			if m.isLost(p, err) && finished { // do not wait for it
				m.noteLeaver(p, true, false)
			}
		})
	}
}

// unansweredMost is how many LEAVINGs in a row a member may leave unanswered before the others take it
// for dead: one answer can be late.
const unansweredMost = 4

// isLost notes whether a member has answered LEAVING, be it with ErrNotMember, and reports whether the member must have died.
func (m *Machine) isLost(p call.Peer, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil || errors.Is(err, recovery.ErrNotMember) {
		delete(m.mu.unanswered, p)
		return false
	}
	m.mu.unanswered[p]++
	return errors.Is(err, call.ErrOtherLife) || m.cfg.NIC.Gone(p.Machine) || m.mu.unanswered[p] > unansweredMost
}

// noteLeaver notes that a member leaves, and whether anything still runs there. If isNew is
// false, it does so only for a member that has already announced that it leaves.
func (m *Machine) noteLeaver(p call.Peer, isFinished, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wasFinished, isLeaver := m.mu.leavers[p]
	if isLeaver || isNew {
		m.mu.leavers[p] = wasFinished || isFinished
		m.wakeLocked()
	}
}

// onLeaving notes that a member is about to stop, and whether anything still runs there.
func (m *Machine) onLeaving(from call.Peer, arg []byte) ([]byte, error) {
	if c := m.Configuration(); c == nil || !recovery.IsMember(c, from) {
		return nil, recovery.ErrNotMember
	}
	m.noteLeaver(from, len(arg) > 0, true)
	return nil, nil
}
