package membership

import (
	"cmp"
	"errors"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// backupCMs is k, the number of successors of a failed CM that are asked to reconfigure (SOSP'15
// section 5.2 step 1).
const backupCMs = 2

// askBackups asks the backup CMs, one after the other, to reconfigure. It returns true if this
// machine has to reconfigure itself: it is the next backup CM, a backup CM knows a newer configuration,
// another machine has asked this one to, or none of the backup CMs has reconfigured.
func (m *Machine) askBackups(c *cluster.Configuration) bool {
	isOver := func() bool { return !m.mu.phase.isMember() || m.mu.current.ID > c.ID || m.mu.asked == c.ID }
	for _, b := range successors(c, backupCMs) {
		if b == m.self.Machine {
			return true
		}
		_, err := m.cfg.Endpoint.Call(m.within(m.cfg.Keeper.Length()), recovery.PeerIn(c, b), kindSuspect, encodeID(c.ID))
		if errors.Is(err, recovery.ErrNotMember) {
			return true // the backup CM knows a newer configuration, which the store has
		}
		if err == nil && m.waitFor(m.patience(), isOver) {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.phase.isMember() && (m.mu.current.ID == c.ID || m.mu.asked == c.ID)
}

// handOver makes the CM of c ask the other members, one after the other, to take its place,
// until one has moved the instance on from c. The CM does so if it cannot reach the store, or
// is about to stop: it keeps its leases, so nobody would take its place unasked. It asks
// neither suspects nor members that are about to stop as well. At a machine that is not the CM
// and cannot reach the store, handOver only drops the request to take the CM's place, if there
// was one: the machine waits until it is asked again.
func (m *Machine) handOver(c *cluster.Configuration) {
	m.mu.Lock()
	m.mu.handed = false
	var fit []call.Peer
	for _, b := range successors(c, len(c.Machines)) {
		p := recovery.PeerIn(c, b)
		if _, leaves := m.mu.leavers[p]; !leaves && !slices.Contains(m.mu.suspects, p) {
			fit = append(fit, p)
		}
	}
	m.mu.Unlock()
	if c.CM != m.self.Machine {
		return
	}
	moved := func() bool { return !m.mu.phase.isMember() || m.mu.current.ID > c.ID }
	for _, p := range fit {
		_, err := m.cfg.Endpoint.Call(m.within(m.cfg.Keeper.Length()), p, kindSuspect, encodeID(c.ID))
		if m.waitFor(0, moved) || (err == nil && m.waitFor(m.patience(), moved)) {
			return
		}
	}
}

// onSuspect answers the request to reconfigure in the CM's place. A member sends it because the CM
// has failed, or the CM itself because it cannot reach the store.
func (m *Machine) onSuspect(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	c := m.mu.current
	m.mu.Unlock()
	switch id := decodeID(arg); {
	case c == nil || !recovery.IsMember(c, from):
		return nil, recovery.ErrNotMember
	case c.ID == id && from.Machine == c.CM:
		return nil, m.takeOver(c)
	case c.ID == id && !m.seesCMWork(c):
		m.suspect(c.CM, true)
	}
	return nil, nil
}

// takeOver makes this machine the CM of the configuration that follows c. It refuses if the machine
// is about to stop, because it would have to hand over itself: the caller asks another.
func (m *Machine) takeOver(c *cluster.Configuration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.phase.isMember() || m.mu.current.ID != c.ID {
		return nil // the configuration has moved on
	}
	if !m.mu.announced.IsZero() {
		return errChanging
	}
	m.mu.handed = true
	m.leadLocked()
	return nil
}

// seesCMWork reports whether this machine has evidence that the CM of c works: it holds a lease from
// the CM, and the CM answers a probe. If so, another machine's suspicion of the CM does not count: the
// fault is probably that machine's own. If the CM has failed after all, this machine's own lease will
// run out soon.
func (m *Machine) seesCMWork(c *cluster.Configuration) bool {
	if !m.cfg.Keeper.Valid() {
		return false
	}
	notCM := slices.DeleteFunc(lease.Members(c), func(p call.Peer) bool { return p.Machine == c.CM })
	answered, _ := m.probeAll(c, notCM) // only the CM is probed: no suspects
	return slices.Contains(answered, c.CM)
}

// dropSuspicion drops this machine's suspicion of the CM of c, and returns true, if the CM's process
// has not died and the CM works. Then only the
// connection between the two has broken, and this machine asks the CM for another
// configuration, in which they connect again. Without this, a machine that has lost a
// connection for a moment would ask the backup CMs. These refuse, because they know that the CM
// works; then the machine would evict the CM itself.
func (m *Machine) dropSuspicion(c *cluster.Configuration) bool {
	if m.cfg.NIC.Gone(c.CM) || !m.seesCMWork(c) {
		return false
	}
	cm := recovery.PeerIn(c, c.CM)
	m.mu.Lock()
	if m.mu.current.ID == c.ID && m.mu.asked != c.ID {
		m.mu.suspects = slices.DeleteFunc(m.mu.suspects, func(p call.Peer) bool { return p == cm })
	}
	m.mu.Unlock()
	m.noteApart(cm, true)
	m.Renew()
	return true
}

// successors returns the k machines that follow the CM on a ring on which
// machines are ordered by a hash of their identifiers.
func successors(c *cluster.Configuration, k int) []rdma.MachineID {
	ring := slices.Clone(c.Machines)
	slices.SortFunc(ring, func(a, b rdma.MachineID) int {
		return cmp.Or(cmp.Compare(hashMachine(a), hashMachine(b)), cmp.Compare(a, b))
	})
	at := slices.Index(ring, c.CM)
	ring = slices.Concat(ring[at+1:], ring[:at])
	return ring[:min(k, len(ring))]
}

// hashMachine spreads identifiers (the finalizer of SplitMix64).
func hashMachine(m rdma.MachineID) uint64 {
	x := uint64(m) + 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
