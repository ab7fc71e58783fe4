package membership

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Two members that do not reach each other may both answer the CM's probe. Without the following
// rules both would stay in the configuration, and each would wait for messages from the other that
// never come.
//
//   - A member that meets a broken connection, or silence, checks repeatedly whether it reaches
//     the other member: by a call and by a READ, which use both directions of the link. Until the
//     check succeeds, it reports to the CM that it does not reach the other (APART).
//   - When a link has been broken for linkPatience leases, or breaks for the flapsMax'th time, the
//     CM evicts a member at one of its ends and tells it why. The CM chooses the fewest members that
//     cover all such links; it evicts none if the instance cannot go on without them
//     (cluster.Configuration.Cover).
//   - A machine evicted for its links is admitted again when it reaches every member, but not
//     before a time that doubles with each eviction: otherwise a flapping link would cost a
//     reconfiguration each time.
const (
	// linkPatience is the number of lease times after which a broken link is acted upon.
	linkPatience = 2
	// flapsMax is how often a link may break within flapMemory lease times.
	flapsMax, flapMemory = 6, 200
	// exclusionMin and exclusionMax bound, in lease times, how long an evicted machine stays out.
	exclusionMin, exclusionMax = 10, 640
	// reportLeases is how many lease times a report stays valid. Members repeat theirs.
	reportLeases = 4
)

// ErrApart: the machine does not reach all members, or did not lately, and is not admitted.
var ErrApart = errors.New("membership: the machine does not reach all members")

// A breakage is the CM's record of one direction of a link, from the first report that it is broken.
type breakage struct {
	// since is the time of the first report that the direction is broken now, last the time of the
	// latest such report. Both are zero once the member has reported that it reaches the other.
	since, last time.Time
	times       int       // how often the direction broke, each time within flapMemory after closed
	closed      time.Time // when the member last reported that it reaches the other
}

// A condition is the CM's judgement of a breakage.
//
//	whole -> broken -> lasting
//	  ^--------+---------+
//
//	whole    The member reaches the other, or has reported nothing for reportLeases: it may have
//	         left, or this machine may have become the CM again and have only old reports.
//	broken   The member does not reach the other, for at most linkPatience. In the next configuration
//	         the two connect again.
//	lasting  Connecting again has not helped for linkPatience, or the direction broke for the
//	         flapsMax'th time within flapMemory. One of the two is evicted, if the instance can go on
//	         without it.
type condition uint8

const (
	whole condition = iota
	broken
	lasting
)

// condition returns the condition of a direction at the given time.
func (b *breakage) condition(now time.Time, lease time.Duration) condition {
	switch {
	case b.since.IsZero() || now.Sub(b.last) > reportLeases*lease:
		return whole
	case b.times < flapsMax && now.Sub(b.since) < linkPatience*lease:
		return broken
	}
	return lasting
}

// A direction is a member that reports, and a member that it does not reach.
type direction struct{ from, to call.Peer }

// An exclusion is the time for which a machine that was evicted for its links stays out.
type exclusion struct {
	until time.Time
	times int
}

// links is a Machine's state of its links. The Machine's mu guards it.
type links struct {
	// apart are the members that this machine does not reach. The value is the configuration in
	// which a connection to the member broke; 0 if none has.
	apart    map[call.Peer]cluster.ID
	checking bool // checkLinks runs
	// At the CM:
	breakages  map[direction]*breakage
	exclusions map[rdma.MachineID]*exclusion
	unresolved bool // the CM has reported that links are broken and nobody can be evicted
}

func (l *links) init() {
	l.apart, l.breakages, l.exclusions = make(map[call.Peer]cluster.ID), make(map[direction]*breakage), make(map[rdma.MachineID]*exclusion)
}

// forgetStrangersLocked drops the state of links to lives that are not in c.
func (l *links) forgetStrangersLocked(c *cluster.Configuration) {
	for p := range l.apart { // any order
		if !recovery.IsMember(c, p) {
			delete(l.apart, p)
		}
	}
	for d := range l.breakages { // any order
		if !recovery.IsMember(c, d.from) || !recovery.IsMember(c, d.to) {
			delete(l.breakages, d)
		}
	}
	l.unresolved = false
}

// Disconnected is called when the connection to a member has ended, or the member has owed this
// machine an answer for long. The member need not have failed. If the two reach each other, they
// connect again in the next configuration; if not, this machine reports that to the CM.
// Disconnected does not wait.
func (m *Machine) Disconnected(machine rdma.MachineID) {
	m.mu.Lock()
	p, isPeer := call.Peer{}, m.mu.phase.isMember()
	if isPeer {
		_, isPeer = m.mu.current.Member(machine)
		p = recovery.PeerIn(m.mu.current, machine)
	}
	m.mu.Unlock()
	if isPeer && m.noteApart(p, true) {
		m.Renew() // in case the member can be reached: the next configuration settles the answers that it owes
	}
}

// noteApart records that this machine may be unable to reach a member. isBroken says that a connection
// is broken, which needs another configuration to connect again. It returns true if the member counted
// as reachable before.
func (m *Machine) noteApart(p call.Peer, isBroken bool) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.staysLocked() || p == m.self || !recovery.IsMember(m.mu.current, p) {
		return false
	}
	broke, known := m.mu.links.apart[p]
	if isBroken {
		broke = m.mu.current.ID
	}
	m.mu.links.apart[p] = broke
	if !m.mu.links.checking {
		m.mu.links.checking = true
		m.unlocked(func() { m.spawn(m.checkLinks) })
	}
	return !known
}

// checkLinks reports the unreachable members to the CM until this machine reaches all.
func (m *Machine) checkLinks() {
	for {
		m.reportApart()
		pause := m.cfg.Keeper.Length() / 4
		m.waitFor(pause, func() bool { return !m.staysLocked() })
		m.tryApart()
		m.mu.Lock()
		if len(m.mu.links.apart) == 0 || !m.staysLocked() {
			m.mu.links.checking = false
			m.mu.Unlock()
			m.reportApart()
			return
		}
		m.mu.Unlock()
	}
}

// tryApart tries to reach the members in apart. If it reaches a member whose connection broke in this
// configuration, it asks for the next configuration, in which the two connect again.
func (m *Machine) tryApart() {
	m.mu.Lock()
	var tried []call.Peer
	for p := range m.mu.links.apart { // any order: sorted below
		tried = append(tried, p)
	}
	m.mu.Unlock()
	slices.SortFunc(tried, func(a, b call.Peer) int { return int(a.Machine) - int(b.Machine) })
	far := m.unreached(tried)
	renew := false
	m.mu.Lock()
	for _, p := range tried {
		if broke, known := m.mu.links.apart[p]; known && !slices.Contains(far, p.Machine) {
			delete(m.mu.links.apart, p)
			renew = renew || (m.mu.phase.isMember() && broke == m.mu.current.ID)
		}
	}
	m.mu.Unlock()
	if renew {
		m.Renew()
	}
}

// unreached returns the machines that this one does not reach with datagrams and READs, or that do
// not reach it.
func (m *Machine) unreached(peers []call.Peer) (far []rdma.MachineID) {
	answered := make([]bool, len(peers))
	left := len(peers)
	within := m.within(m.cfg.Keeper.Length())
	machines := make([]rdma.MachineID, len(peers))
	for i, p := range peers {
		machines[i] = p.Machine
		m.spawn(func() {
			_, err := m.cfg.Endpoint.Call(within, p, kindHello, nil)
			m.mu.Lock()
			defer m.mu.Unlock()
			answered[i] = err == nil
			left--
			m.wakeLocked()
		})
	}
	read := m.probes.probe(machines, m.cfg.Keeper.Length()/2)
	m.waitFor(2*m.cfg.Keeper.Length(), func() bool { return left == 0 })
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range peers {
		if !answered[i] || read[i].err != nil || read[i].incarnation != peers[i].Incarnation {
			far = append(far, machines[i])
		}
	}
	return far
}

// reportApart tells the CM which machines this one does not reach now.
func (m *Machine) reportApart() {
	m.mu.Lock()
	c := m.mu.current
	arg := encodeID(c.ID)
	for _, x := range c.Machines {
		if _, isApart := m.mu.links.apart[recovery.PeerIn(c, x)]; isApart {
			arg = binary.LittleEndian.AppendUint16(arg, uint16(x))
		}
	}
	stays := m.staysLocked()
	m.mu.Unlock()
	if !stays {
		return
	}
	if c.CM == m.self.Machine {
		_, _ = m.onApart(m.self, arg) // a report about an older configuration is useless
		return
	}
	ctx := recovery.WithDeadline(during{context.Background(), m, c.ID}, m.cfg.Clock.Now().Add(m.cfg.Keeper.Length()))
	_, err := m.cfg.Endpoint.Call(ctx, recovery.PeerIn(c, c.CM), kindApart, arg)
	if err != nil && !IsPassing(err) && !errors.Is(err, ErrEvicted) {
		m.cfg.Events.failed("report to the CM", err)
	}
}

// onApart records a member's report at the CM.
func (m *Machine) onApart(from call.Peer, arg []byte) ([]byte, error) {
	if len(arg) < 4 || len(arg)%2 != 0 {
		return nil, fmt.Errorf("membership: APART of %d bytes", len(arg))
	}
	far := make(map[rdma.MachineID]bool)
	for b := arg[4:]; len(b) > 0; b = b[2:] {
		far[rdma.MachineID(binary.LittleEndian.Uint16(b))] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.mu.phase.isMember() || c.CM != m.self.Machine || !recovery.IsMember(c, from) {
		return nil, nil
	}
	now := m.cfg.Clock.Now()
	for _, x := range c.Machines {
		m.mu.links.takeLocked(direction{from, recovery.PeerIn(c, x)}, far[x], now, m.cfg.Keeper.Length())
	}
	m.reportUnresolvedLocked()
	m.leadLocked()
	return nil, nil
}

// takeLocked records whether a direction is broken at the given time.
func (l *links) takeLocked(d direction, isBroken bool, now time.Time, lease time.Duration) {
	b := l.breakages[d]
	if b != nil && !b.since.IsZero() && now.Sub(b.last) > reportLeases*lease {
		// Nothing has been reported for so long that the direction counts as whole: the report that
		// the member reaches the other was lost.
		b.since, b.last, b.closed = time.Time{}, time.Time{}, b.last
	}
	wasBroken := b != nil && !b.since.IsZero()
	switch {
	case wasBroken && isBroken:
		b.last = now
	case wasBroken:
		b.since, b.last, b.closed = time.Time{}, time.Time{}, now
	case !isBroken: // the direction is whole, as before
	case b == nil:
		l.breakages[d] = &breakage{since: now, last: now, times: 1}
	default: // the direction breaks again
		if now.Sub(b.closed) > flapMemory*lease {
			b.times = 0
		}
		b.since, b.last = now, now
		b.times++
	}
}

// reportedLocked returns the machines at the far ends of broken links: those that this machine does
// not reach itself, and those that members have reported to it.
func (l *links) reportedLocked(now time.Time, lease time.Duration) (far []rdma.MachineID) {
	for p := range l.apart { // any order: sorted below
		far = append(far, p.Machine)
	}
	for d, b := range l.breakages { // any order
		if b.condition(now, lease) != whole {
			far = append(far, d.to.Machine)
		}
	}
	slices.Sort(far)
	return slices.Compact(far)
}

// lastingLocked returns the links that have been broken for long, or repeatedly, and are still
// reported as broken: each once, in order.
func (m *Machine) lastingLocked() []cluster.Link {
	return m.mu.links.lastingLocked(m.cfg.Clock.Now(), m.cfg.Keeper.Length())
}

func (l *links) lastingLocked(now time.Time, lease time.Duration) (list []cluster.Link) {
	for d, b := range l.breakages { // any order: sorted below
		if b.condition(now, lease) == lasting {
			list = append(list, cluster.LinkOf(d.from.Machine, d.to.Machine))
		}
	}
	slices.SortFunc(list, func(a, b cluster.Link) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(list)
}

// victimsLocked returns the machines that the CM evicts because of broken links.
func (m *Machine) victimsLocked(c *cluster.Configuration) (victims []call.Peer) {
	if len(m.mu.links.breakages) == 0 || c.CM != m.self.Machine {
		return nil
	}
	if links := m.lastingLocked(); len(links) > 0 {
		for _, x := range c.Cover(links, m.self.Machine) {
			victims = append(victims, recovery.PeerIn(c, x))
		}
	}
	return victims
}

// withVictims adds the victims, which are to be evicted because of broken links, to the missing
// machines. It adds none if the instance cannot go on without the missing machines and the victims.
func (m *Machine) withVictims(c *cluster.Configuration, missing []rdma.MachineID, victims []call.Peer) []rdma.MachineID {
	all := slices.Clone(missing)
	for _, v := range victims {
		if recovery.IsMember(c, v) && !slices.Contains(all, v.Machine) {
			all = append(all, v.Machine)
		}
	}
	if len(all) == len(missing) || !c.MayLose(all, m.self.Machine) {
		return missing
	}
	slices.Sort(all)
	return all
}

// reportUnresolvedLocked reports, once in a configuration, that links are broken and nobody can be
// evicted for it.
func (m *Machine) reportUnresolvedLocked() {
	links := m.lastingLocked()
	if len(links) == 0 || m.mu.links.unresolved || len(m.victimsLocked(m.mu.current)) > 0 {
		return
	}
	m.mu.links.unresolved = true
	m.unlocked(func() {
		m.cfg.Events.failed("links", fmt.Errorf("membership: machines do not reach each other, and the instance cannot go on without any of them: mend the links %v", links))
	})
}

// exclude is called when the CM has decided to evict the victims because of their links, and has
// stored c. For each victim that is not in c, exclude records how long the machine stays excluded, and
// tells the machine why.
func (m *Machine) exclude(victims []call.Peer, c *cluster.Configuration, links []cluster.Link) {
	now, length := m.cfg.Clock.Now(), m.cfg.Keeper.Length()
	for _, v := range victims {
		if recovery.IsMember(c, v) {
			continue
		}
		m.mu.Lock()
		x := m.mu.links.exclusions[v.Machine]
		if x == nil || now.Sub(x.until) > 2*exclusionMax*length { // the last exclusion is so long ago that the times begin anew
			x = new(exclusion)
			m.mu.links.exclusions[v.Machine] = x
		}
		x.until = now.Add(time.Duration(min(exclusionMin<<min(x.times, 10), exclusionMax)) * length)
		x.times++
		m.mu.Unlock()
		arg := append(encodeID(c.ID), reasonOf(v.Machine, links)...)
		m.spawn(func() { _, _ = m.cfg.Endpoint.Call(m.within(m.patience()), v, kindExcluded, arg) }) // if the call fails, the machine finds out by itself
	}
}

// reasonOf returns why a machine is evicted.
func reasonOf(x rdma.MachineID, links []cluster.Link) string {
	var others []rdma.MachineID
	for _, l := range links {
		other := l[0] + l[1] - x // if x is one end of the link
		if slices.Contains(l[:], x) && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return fmt.Sprintf("machine %d and machines %v do not reach each other", x, others)
}

// onExcluded ends this life, with the reason.
func (m *Machine) onExcluded(from call.Peer, arg []byte) ([]byte, error) {
	if len(arg) < 4 {
		return nil, fmt.Errorf("membership: EXCLUDED of %d bytes", len(arg))
	}
	m.mu.Lock()
	c, id := m.mu.current, decodeID(arg[:4])
	concerned := m.mu.phase.isMember() && recovery.IsMember(c, from) && id > c.ID
	m.mu.Unlock()
	if concerned {
		m.evict(fmt.Errorf("%w: configuration %d is without it: %s", ErrEvicted, id, arg[4:]))
	}
	return nil, nil
}

// apartFrom returns the members of c that this machine does not reach.
func (m *Machine) apartFrom(c *cluster.Configuration) []rdma.MachineID {
	var others []call.Peer
	for _, x := range c.Machines {
		if x != m.self.Machine {
			others = append(others, recovery.PeerIn(c, x))
		}
	}
	return m.unreached(others)
}

// admits returns an error if the joiner may not join, because of the machines in far, which it
// does not reach, or because it is still excluded.
func (m *Machine) admits(c *cluster.Configuration, joiner rdma.MachineID, far []rdma.MachineID) error {
	far = slices.DeleteFunc(slices.Clone(far), func(x rdma.MachineID) bool { _, in := c.Member(x); return !in })
	if len(far) > 0 {
		return fmt.Errorf("%w: machine %d does not reach machines %v, or they not it: mend the links, or wait until those that have failed are no members", ErrApart, joiner, far)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.mu.links.exclusions[joiner]; x != nil && m.cfg.Clock.Now().Before(x.until) {
		return fmt.Errorf("%w: machine %d did not when it was evicted, for the %d. time: it is let in when its links have held for a while", ErrApart, joiner, x.times)
	}
	return nil
}
