package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
)

// stepPatience is for how many lease times a machine that holds its lease may take for one
// step of a reconfiguration.
const stepPatience = 100

// storeTries is how often in a row the store may fail before a CM hands over.
const storeTries = 2

// backupCMs is k, how many successors of the CM are asked to reconfigure when it
// has failed (SOSP'15 section 5.2 step 1).
const backupCMs = 2

// Suspect says that a lease of the machine has run out, that it has died, or that it
// cannot be reached. The CM suspects others, the others the CM; to the CM they report the
// rest. It begins a reconfiguration, and does not wait for it.
func (m *Membership) Suspect(machine rdma.MachineID) { m.suspect(machine, false) }

// Leave has this machine, which is about to stop, suspect nobody any more. Where all are
// stopped at once, who is the last would evict those that have stopped before.
func (m *Membership) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.leaving = true
}

// suspect notes a suspicion. asked says that another machine has asked this one
// to take the CM's place.
func (m *Membership) suspect(machine rdma.MachineID, asked bool) {
	if m.note(machine, asked) {
		m.cfg.Events.suspected(machine)
		m.reached(StepSuspected)
	}
}

// note is suspect; it is true if the machine was not suspected before.
func (m *Membership) note(machine rdma.MachineID, asked bool) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase != member || m.mu.leaving || machine == m.self.Machine {
		return false
	}
	p := peerIn(c, machine)
	if !memberIn(c, p) {
		return false
	}
	if c.CM != m.self.Machine && c.CM != machine {
		m.unlocked(func() {
			if m.estranged(p, true) {
				m.Renew()
			}
		})
		return false
	}
	if asked {
		m.mu.asked = c.ID
	}
	if isNew = !slices.Contains(m.mu.suspects, p); isNew {
		if len(m.mu.suspects) == 0 {
			m.mu.since = m.cfg.Clock.Now()
		}
		m.mu.suspects = append(m.mu.suspects, p)
	}
	m.wakeLocked()
	m.leadLocked()
	return isNew
}

// Renew says that this machine is not connected to another member, though nobody need
// have failed: it has the CM go on to the next configuration, in which the two connect
// anew. It does not wait for it.
func (m *Membership) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	switch {
	case m.mu.phase != member:
	case c.CM != m.self.Machine:
		m.reportLocked(c)
	default:
		m.mu.renew = true
		m.leadLocked()
	}
}

// reportLocked tells the CM that this machine cannot reach another, once in each
// configuration.
func (m *Membership) reportLocked(c *cluster.Configuration) {
	if m.mu.reported == c.ID {
		return
	}
	m.mu.reported = c.ID
	m.unlocked(func() {
		m.spawn(func() {
			_, err := m.cfg.Endpoint.Call(during{context.Background(), m, c.ID}, peerIn(c, c.CM), kindUnreachable, encodeID(c.ID))
			if !IsPassing(err) {
				m.cfg.Events.failed("report to the CM", err)
			}
		})
	})
}

// onUnreachable moves the CM on to the next configuration: without the machine that
// another could not reach if it does not answer a probe, and otherwise with it, in
// which both connect anew.
func (m *Membership) onUnreachable(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase == member && c.ID == decodeID(arg) && c.CM == m.self.Machine && memberIn(c, from) {
		m.mu.renew = true
		m.leadLocked()
	}
	return nil, nil
}

// leadLocked sees to it that lead runs if there is something to do.
func (m *Membership) leadLocked() {
	if m.mu.leads || !m.isWorkLocked() {
		return
	}
	m.mu.leads = true
	m.unlocked(func() { m.spawn(m.lead) })
}

func (m *Membership) isWorkLocked() bool {
	if m.mu.phase != member {
		return false
	}
	isCM := m.mu.current.CM == m.self.Machine
	asCM := isCM && (m.mu.renew || len(m.mu.forget) > 0 || len(m.mu.joiners)+len(m.mu.roomy) > 0 && m.isSettledLocked())
	return asCM || len(m.mu.suspects) > 0 || m.mu.handed || len(m.victimsLocked(m.mu.current)) > 0
}

// isSettledLocked says whether nothing of earlier configurations is left to
// recover anywhere. Until then no machine is let in: it would get new logs where
// those of its earlier life may still be needed.
func (m *Membership) isSettledLocked() bool {
	return sabotage.SettledJoin.Skipped() || !m.mu.recovering && len(m.mu.isSettled) == len(m.mu.current.Machines)
}

// lead reconfigures as long as there is a reason to.
func (m *Membership) lead() {
	failures := 0 // of the store, in a row
	for {
		m.mu.Lock()
		if !m.isWorkLocked() {
			m.mu.leads = false
			m.mu.Unlock()
			return
		}
		c, isAsked := m.mu.current, m.mu.asked == m.mu.current.ID || m.mu.handed
		m.mu.Unlock()
		if c.CM != m.self.Machine && !isAsked && (m.acquit(c) || !m.askBackups(c)) {
			continue
		}
		err := m.reconfigure()
		if failures++; !errors.Is(err, errStore) {
			failures = 0
		}
		if err != nil {
			m.cfg.Events.failed("reconfiguration", err)
			if failures >= storeTries {
				m.handOver(c)
			}
			m.waitFor(m.cfg.Keeper.Length()/2, func() bool { return m.mu.phase != member })
		}
	}
}

// askBackups asks the backup CMs, one after the other, to reconfigure. It is true
// if this machine has to try: because it is next, or nothing has come of it.
func (m *Membership) askBackups(c *cluster.Configuration) bool {
	moved := func() bool { return m.mu.phase != member || m.mu.current.ID > c.ID || m.mu.asked == c.ID }
	for _, b := range successors(c, backupCMs) {
		if b == m.self.Machine {
			return true
		}
		_, err := m.cfg.Endpoint.Call(m.within(m.cfg.Keeper.Length()), peerIn(c, b), kindSuspect, encodeID(c.ID))
		if errors.Is(err, errNotMember) {
			return true // it knows of a newer configuration; the store tells
		}
		if err == nil && m.waitFor(m.patience(), moved) {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.phase == member && (m.mu.current.ID == c.ID || m.mu.asked == c.ID)
}

// handOver is what a machine does that is to move on from c and does not reach the
// store. The CM asks the others, one after the other, to take its place: it keeps its
// leases, so nobody else would. One that was asked to waits until it is asked again.
func (m *Membership) handOver(c *cluster.Configuration) {
	m.mu.Lock()
	m.mu.handed = false
	suspects := slices.Clone(m.mu.suspects)
	m.mu.Unlock()
	if c.CM != m.self.Machine {
		return
	}
	moved := func() bool { return m.mu.phase != member || m.mu.current.ID > c.ID }
	for _, b := range successors(c, len(c.Machines)) {
		p := peerIn(c, b)
		if slices.Contains(suspects, p) {
			continue
		}
		_, err := m.cfg.Endpoint.Call(m.within(m.cfg.Keeper.Length()), p, kindSuspect, encodeID(c.ID))
		if m.waitFor(0, moved) || err == nil && m.waitFor(m.patience(), moved) {
			return
		}
	}
}

// within returns a context that ends after d.
func (m *Membership) within(d time.Duration) context.Context {
	return withDeadline{context.Background(), m.cfg.Clock.Now().Add(d)}
}

// withDeadline is a context whose deadline calls compare with the clock by
// themselves: it has no timer.
type withDeadline struct {
	context.Context
	at time.Time
}

func (d withDeadline) Deadline() (time.Time, bool) { return d.at, true }

// successors returns the k machines that follow the CM on a ring on which
// machines are ordered by a hash of their identifiers.
func successors(c *cluster.Configuration, k int) []rdma.MachineID {
	ring := slices.Clone(c.Machines)
	slices.SortFunc(ring, func(a, b rdma.MachineID) int {
		if x, y := hashMachine(a), hashMachine(b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return int(a) - int(b)
	})
	at := slices.Index(ring, c.CM)
	ring = slices.Concat(ring[at+1:], ring[:at])
	return ring[:min(k, len(ring))]
}

// hashMachine spreads identifiers (the finalizer of SplitMix64).
func hashMachine(m rdma.MachineID) uint64 {
	x := uint64(m) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// knowsWell says whether this machine has reason to believe that the CM of c is
// well: it holds a lease there, and the CM answers a probe. A machine that hears
// nobody suspects the CM too, and must not cost the instance both of them. If the
// CM has failed all the same, this machine's own lease is about to run out.
func (m *Membership) knowsWell(c *cluster.Configuration) bool {
	if !m.cfg.Keeper.Valid() {
		return false
	}
	answered, _ := m.probeAll(c, slices.DeleteFunc(lease.Members(c), func(p call.Peer) bool { return p.Machine == c.CM }))
	return slices.Contains(answered, c.CM)
}

// acquit drops this machine's suspicion of the CM of c, if that is well: only the
// connection to it has broken, as it can to any member, and another configuration makes it
// anew, for which the CM is asked. Without this a machine that has lost a connection for a
// moment would ask the backup CMs, which know better, in vain and for long, and then evict
// the CM itself.
func (m *Membership) acquit(c *cluster.Configuration) bool {
	if m.cfg.NIC.Gone(c.CM) || !m.knowsWell(c) {
		return false
	}
	cm := peerIn(c, c.CM)
	m.mu.Lock()
	if m.mu.current.ID == c.ID && m.mu.asked != c.ID {
		m.mu.suspects = slices.DeleteFunc(m.mu.suspects, func(p call.Peer) bool { return p == cm })
	}
	m.mu.Unlock()
	m.estranged(cm, true)
	m.Renew()
	return true
}

// onSuspect is what a backup CM is asked: to reconfigure, because the CM of the
// configuration has failed, or, by the CM itself, because it does not reach the store.
func (m *Membership) onSuspect(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	c := m.mu.current
	m.mu.Unlock()
	switch id := decodeID(arg); {
	case c == nil || !memberIn(c, from):
		return nil, errNotMember
	case c.ID == id && from.Machine == c.CM:
		m.takeOver(c)
	case c.ID == id && !m.knowsWell(c):
		m.suspect(c.CM, true)
	}
	return nil, nil
}

// takeOver has this machine go on to the configuration after c, as its CM.
func (m *Membership) takeOver(c *cluster.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase == member && m.mu.current.ID == c.ID {
		m.mu.handed = true
		m.leadLocked()
	}
}

// errStore means that the store of configurations has failed.
var errStore = errors.New("recovery: the store of configurations")

var errNoMajority = errors.New("recovery: no majority of the machines has answered")

// reconfigure moves the instance on from its current configuration, with this
// machine as CM: steps 2 to 7.
func (m *Membership) reconfigure() error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	t := Timeline{Suspect: m.cfg.Clock.Now()}
	base, err := m.base()
	if errors.Is(err, errStore) { // others may reach it, and wait for this life's end
		m.considerRestart(m.Configuration())
	}
	if base == nil || err != nil {
		return err
	}
	m.mu.Lock()
	suspects, joiners, forget, current := slices.Clone(m.mu.suspects), slices.Clone(m.mu.joiners), slices.Clone(m.mu.forget), m.mu.current
	renew, handed, since := m.mu.renew, m.mu.handed, m.mu.since
	victims, broken := m.victimsLocked(current), m.brokenLocked()
	roomy := slices.Clone(m.mu.roomy)
	if !m.isSettledLocked() {
		joiners, roomy = nil, nil
	}
	m.mu.Unlock()
	if len(suspects) > 0 {
		t.Suspect = since
	}
	if base.ID > current.ID {
		if base.CM == m.self.Machine { // stored by this machine, though it was not told so
			return m.distribute(base, t)
		}
		if !handed {
			suspects = append(suspects, peerIn(base, base.CM)) // it had its time
		}
	}
	probed, missing := m.probeAll(base, suspects)
	answering := m.answering(base, probed)
	if 2*len(answering) <= len(base.Machines) {
		// A suspicion may have been wrong: rather with those machines than not at all.
		probed, _ = m.probeAll(base, nil)
		answering = m.answering(base, probed)
		missing = unprobed(base, suspects, probed, answering)
	}
	if 2*len(answering) <= len(base.Machines) && !sabotage.Majority.Skipped() {
		m.waiting(silent(base, answering))
		m.considerRestart(base)
		return fmt.Errorf("%w: %d of %d", errNoMajority, len(answering), len(base.Machines))
	}
	m.waiting(nil)
	missing = m.withVictims(base, missing, victims)
	t.Probed, t.Dead = m.cfg.Clock.Now(), missing
	m.reached(StepProbed)
	var next *cluster.Configuration
	var report cluster.Remapped
	switch {
	case len(missing) > 0:
		next, report = base.Without(missing, m.self.Machine)
	case len(forget) > 0:
		next, report = base.Forget(forget[0])
	case len(joiners) > 0:
		next, report = base.With(joiners[0].Member, joiners[0].Holds)
		t.Joined, t.IsJoin = joiners[0].Member.Machine, true
	case len(roomy) > 0:
		next, report = base.WithRoom(roomy[0].from.Machine, roomy[0].Capacity)
	case renew || handed || len(suspects) > 0: // who was suspected is well
		next = base.Succeed()
		next.CM = m.self.Machine
	case len(victims) > 0: // the configuration is not what they were chosen by
		return errChanging
	default:
		return nil
	}
	if err := m.store(base, next, report); err != nil {
		return err
	}
	t.Stored = m.cfg.Clock.Now()
	m.banish(victims, next, broken)
	return m.distribute(next, t)
}

// base returns the configuration to move on from: the stored one. It is nil if
// there is nothing to do: because this machine was evicted, or another CM is at
// work, whose NEW-CONFIG has come.
func (m *Membership) base() (*cluster.Configuration, error) {
	c, err := m.cfg.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStore, err)
	}
	if c == nil {
		return nil, errors.New("recovery: the store has lost the configuration")
	}
	if !m.isMember(c) {
		m.evict(fmt.Errorf("%w: configuration %d is without it", ErrEvicted, c.ID))
		return nil, nil
	}
	if c.CM == m.self.Machine || !m.waitFor(m.patience(), func() bool { return m.mu.phase != member || m.mu.current.ID >= c.ID }) {
		return c, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase != member || len(m.mu.suspects) == 0 && !m.mu.handed {
		return nil, nil
	}
	return c, nil
}

// probeAll returns which machines of c answer a probe as the life that is a
// member, and which do not. This machine is one that does, suspects are among
// those that do not.
func (m *Membership) probeAll(c *cluster.Configuration, suspects []call.Peer) (answered, missing []rdma.MachineID) {
	var ask []rdma.MachineID
	for _, x := range c.Machines {
		if x != m.self.Machine && !slices.Contains(suspects, peerIn(c, x)) {
			ask = append(ask, x)
		}
	}
	answered = []rdma.MachineID{m.self.Machine}
	for _, p := range m.probes.probe(ask, m.cfg.Keeper.Length()/2) {
		if p.err == nil && (p.incarnation == peerIn(c, p.machine).Incarnation || sabotage.ProbeIncarnation.Skipped()) {
			answered = append(answered, p.machine)
		}
	}
	for _, x := range c.Machines {
		if !slices.Contains(answered, x) {
			missing = append(missing, x)
		}
	}
	return answered, missing
}

// unusedIn returns what says whether no transaction can have committed to a region in
// configuration c, nor ever will. Nobody can if its CM has had nobody commit c, which only
// the CM knows. Nor can somebody to a region of which some replica has not committed c: its
// primary waits for what the replica finds in its logs, which it drains then. back are lives
// of members that were that replica's in c and are over, whose memory remembers it.
func (m *Membership) unusedIn(c *cluster.Configuration, back []life) func(region.ID) bool {
	m.mu.Lock()
	unproven := c.CM == m.self.Machine && m.mu.unproven != 0 && c.ID >= m.mu.unproven
	m.mu.Unlock()
	var behind []rdma.MachineID
	for _, l := range back {
		isOver := !memberIn(c, call.Peer{Machine: l.Member.Machine, Incarnation: l.Member.Incarnation})
		if isOver && c.IsMember(l.Member) && l.Committed > 0 && l.Committed-1 < c.ID {
			behind = append(behind, l.Member.Machine)
		}
	}
	return func(id region.ID) bool {
		p, _ := c.Placement(id)
		return unproven || slices.ContainsFunc(behind, p.Has)
	}
}

// makes notes that this machine is about to store next, which follows base, and has nobody
// commit it before sendCommit.
func (m *Membership) makes(base, next *cluster.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.unproven == 0 || base == nil || base.CM != m.self.Machine {
		m.mu.unproven = next.ID
	}
}

// store makes next the configuration, if base still is: step 3.
func (m *Membership) store(base, next *cluster.Configuration, report cluster.Remapped) error {
	next.Follow(base, m.unusedIn(base, nil))
	m.makes(base, next)
	err := m.cfg.Store.CompareAndSwap(base.Revision, next)
	if err != nil {
		// base may be applied by now, and the reason to go on from it forgotten.
		m.mu.Lock()
		m.mu.renew = true
		m.mu.Unlock()
	}
	switch {
	case errors.Is(err, cluster.ErrMoved):
		return fmt.Errorf("recovery: store configuration %d: %w", next.ID, err)
	case err != nil:
		return fmt.Errorf("%w: configuration %d: %w", errStore, next.ID, err)
	}
	m.cfg.Events.stored(next, report)
	m.reached(StepStored)
	return nil
}

// distribute is steps 5 to 7. It ends early, without an error, when a machine is
// suspected: then what is stored is what the next reconfiguration starts from.
func (m *Membership) distribute(c *cluster.Configuration, t Timeline) error {
	for {
		t.ID = c.ID
		next, wait, err := m.sendNewConfig(c)
		if err != nil || wait < 0 {
			return err
		}
		if next != nil {
			c = next
			continue
		}
		t.Acked = m.cfg.Clock.Now()
		m.reached(StepAcked)
		if !sabotage.OldLeases.Skipped() {
			m.waitFor(wait, func() bool { return m.mu.phase != member })
		}
		m.reached(StepLeasesOver)
		return m.sendCommit(c, t)
	}
}

// sendNewConfig has all members apply c, and returns for how long old leases may
// still last; a negative time if a machine is suspected. If there are machines
// without room for what c gives them, next is the configuration that spares them.
func (m *Membership) sendNewConfig(c *cluster.Configuration) (next *cluster.Configuration, wait time.Duration, err error) {
	own, err := m.applyConfiguration(c)
	if err != nil {
		return nil, 0, err
	}
	acks := make([]ack, len(c.Machines))
	parts := split(c)
	ok := m.all(c, func(ctx context.Context, i int, p call.Peer) error {
		if p == m.self {
			acks[i] = own
			return nil
		}
		var reply []byte
		for _, part := range parts {
			var err error
			if reply, err = m.cfg.Endpoint.Call(ctx, p, kindNewConfig, part); err != nil {
				return err
			}
		}
		return json.Unmarshal(reply, &acks[i])
	})
	if !ok && !sabotage.ConfigAcks.Skipped() {
		return nil, -1, nil
	}
	for i, a := range acks {
		wait = max(wait, a.Outstanding)
		refused := slices.DeleteFunc(a.Refused, func(id region.ID) bool {
			p, ok := c.Placement(id)
			return !ok || !slices.Contains(p.Filling, c.Machines[i]) // asked for by nobody
		})
		if len(refused) > 0 { // one machine a round
			next, report := c.Refuse(c.Machines[i], refused)
			return next, 0, m.store(c, next, report)
		}
	}
	return nil, wait, nil
}

// sendCommit has all members commit c.
func (m *Membership) sendCommit(c *cluster.Configuration, t Timeline) error {
	if sabotage.SlowRecovery.Skipped() {
		m.cfg.Clock.Sleep(3 * time.Second)
	}
	t.Committed = m.cfg.Clock.Now()
	m.mu.Lock()
	m.mu.timeline = t
	m.mu.unproven = 0
	m.mu.Unlock()
	m.all(c, func(ctx context.Context, _ int, p call.Peer) error {
		if p == m.self {
			return m.commit(c.ID)
		}
		_, err := m.cfg.Endpoint.Call(ctx, p, kindNewConfigCommit, encodeID(c.ID))
		return err
	})
	return nil
}

// all runs f for each member of c at once. It returns true when it has succeeded
// for all, and false as soon as a machine is suspected, or this one is no member
// of c any more: then f's context ends. A machine that answers that it is another
// life is suspected here, and so is one that does not come to an end though it says that
// it is at work.
func (m *Membership) all(c *cluster.Configuration, f func(ctx context.Context, i int, p call.Peer) error) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left, deadline := len(c.Machines), m.cfg.Clock.Now().Add(stepPatience*m.cfg.Keeper.Length())
	isOver := func() bool {
		return m.mu.phase != member || m.mu.current.ID != c.ID ||
			slices.ContainsFunc(m.mu.suspects, func(p call.Peer) bool { return memberIn(c, p) })
	}
	for i, machine := range c.Machines {
		p := peerIn(c, machine)
		m.spawn(func() {
			err := f(withDeadline{ctx, deadline}, i, p)
			if err != nil && ctx.Err() == nil && !errors.Is(err, errSuperseded) && !errors.Is(err, call.ErrClosed) {
				m.cfg.Events.failed(fmt.Sprintf("call of machine %d", machine), err)
				m.Suspect(machine)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if err == nil {
				left--
			}
			m.wakeLocked()
		})
	}
	for {
		var isDone, over bool
		m.waitFor(m.patience(), func() bool { isDone, over = left == 0, isOver(); return isDone || over })
		if isDone || over || m.Err() != nil {
			return isDone && !over
		}
	}
}

// onRegionsActive notes at the CM that all regions of a machine are active.
func (m *Membership) onRegionsActive(from call.Peer, arg []byte) ([]byte, error) {
	m.regionsActive(decodeID(arg), from)
	return nil, nil
}

// onSettled notes at the CM that a machine has nothing to recover any more.
func (m *Membership) onSettled(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase == member && c.ID == decodeID(arg) && c.CM == m.self.Machine && memberIn(c, from) {
		m.mu.isSettled[from.Machine] = true
		m.leadLocked() // somebody may wait to join
	}
	return nil, nil
}

// regionsActive sends ALL-REGIONS-ACTIVE once all machines have reported.
func (m *Membership) regionsActive(id cluster.ID, from call.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase != member || c.ID != id || c.CM != m.self.Machine || !memberIn(c, from) || !m.mu.recovering {
		return
	}
	if m.mu.isActive == nil {
		m.mu.isActive = make(map[rdma.MachineID]bool)
	}
	m.mu.isActive[from.Machine] = true
	if len(m.mu.isActive) < len(c.Machines) {
		return
	}
	m.unlocked(func() { m.spawn(func() { m.sendAllActive(c) }) })
}

func (m *Membership) sendAllActive(c *cluster.Configuration) {
	m.mu.Lock()
	if !m.mu.recovering || m.mu.current.ID != c.ID {
		m.mu.Unlock()
		return
	}
	t := m.mu.timeline
	m.mu.Unlock()
	if t.ID == c.ID {
		t.AllActive = m.cfg.Clock.Now()
		m.cfg.Events.reconfigured(t)
	}
	m.all(c, func(ctx context.Context, _ int, p call.Peer) error {
		if p == m.self {
			return m.allActive(c.ID)
		}
		_, err := m.cfg.Endpoint.Call(ctx, p, kindAllRegionsActive, encodeID(c.ID))
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leadLocked() // somebody may wait to join
}
