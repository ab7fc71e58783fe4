package membership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// storeTries is how often in a row the store may fail before the CM hands over.
const storeTries = 2

// leadLocked starts lead if there is something to do and lead is not running yet.
func (m *Machine) leadLocked() {
	if m.mu.leads || !m.isWorkLocked() {
		return
	}
	m.mu.leads = true
	if m.mu.stage == steady {
		m.proceedLocked(suspecting)
	}
	m.unlocked(func() { m.spawn(m.lead) })
}

// isWorkLocked reports whether there is a reason for another configuration that this machine has to
// act on: suspects, machines to evict, or a request to take the CM's place; and, only at the CM,
// other requests. Machines that want to join or have room, and replicas that are to move, wait until
// nothing is left to recover.
func (m *Machine) isWorkLocked() bool {
	if !m.beginsLocked() {
		return false
	}
	m.dropJoinersLocked()
	isCM := m.mu.current.CM == m.self.Machine
	isSettled := isCM && m.isSettledLocked()
	asCM := (isCM && (m.mu.renew || len(m.mu.forget)+len(m.mu.drains)+len(m.mu.resizes) > 0)) ||
		(isSettled && (len(m.mu.joiners)+len(m.mu.roomy)+len(m.mu.refusals) > 0 || m.movesLocked()))
	return asCM || len(m.mu.suspects) > 0 || m.mu.handed || len(m.victimsLocked(m.mu.current)) > 0
}

// isSettledLocked reports whether all machines have recovered everything of earlier configurations.
// Until then no machine is admitted: it would get new logs while the logs of its earlier life may
// still be needed.
func (m *Machine) isSettledLocked() bool {
	return sabotage.SettledJoin.Skipped() || (m.mu.phase == active && len(m.mu.isSettled) == len(m.mu.current.Machines))
}

// lead reconfigures again and again, as long as there is a reason to.
func (m *Machine) lead() {
	failures := 0 // failures of the store, in a row
	for {
		m.mu.Lock()
		if !m.isWorkLocked() {
			m.mu.leads = false
			if m.mu.stage == suspecting { // the stage may be another one if this machine is starting at the same time
				m.proceedLocked(steady)
			}
			m.mu.Unlock()
			return
		}
		c, isAsked := m.mu.current, m.mu.asked == m.mu.current.ID || m.mu.handed
		m.mu.Unlock()
		isMyTurn := c.CM == m.self.Machine || isAsked || (!m.dropSuspicion(c) && m.askBackups(c))
		if !isMyTurn {
			continue
		}
		err := m.reconfigure()
		if errors.Is(err, errStore) {
			failures++
		} else {
			failures = 0
		}
		if err != nil {
			m.cfg.Events.failed("reconfiguration", err)
			if failures >= storeTries {
				m.handOver(c)
			}
			m.waitFor(m.cfg.Keeper.Length()/2, func() bool { return !m.mu.phase.isMember() })
		}
	}
}

// errStore means that the store of configurations has failed.
var errStore = errors.New("membership: the store of configurations")

var errNoMajority = errors.New("membership: no majority of the machines has answered")

// reasons are the reasons for making another configuration.
type reasons struct {
	current       *cluster.Configuration // the configuration to replace
	suspects      []call.Peer
	since         time.Time // the time of the first suspicion
	forget        []forgetRequest
	joiners       []joinRequest // empty while there is something to recover
	roomy         []roomRequest // machines that have room again; empty while there is something to recover
	drains        []drainRequest
	resizes       []resizeRequest
	refusals      []refusal // machines that have no room for what moves to them; empty while there is something to recover
	moves         bool      // replicas are to move; never while there is something to recover
	renew, handed bool
	victims       []call.Peer // members to evict because of links
	links         []cluster.Link
}

// reasons returns the present reasons for another configuration. Requests that must wait until
// nothing is left to recover are left out until then.
func (m *Machine) reasons() reasons {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	r := reasons{
		current: c, suspects: slices.Clone(m.mu.suspects), since: m.mu.since, forget: slices.Clone(m.mu.forget), drains: slices.Clone(m.mu.drains),
		resizes: slices.Clone(m.mu.resizes), renew: m.mu.renew, handed: m.mu.handed, victims: m.victimsLocked(c), links: m.lastingLocked(),
	}
	if m.isSettledLocked() {
		r.joiners, r.roomy, r.moves = slices.Clone(m.mu.joiners), slices.Clone(m.mu.roomy), m.movesLocked()
		r.refusals = slices.Clone(m.mu.refusals)
	}
	return r
}

// reconfigure moves the instance to the configuration after the current one, with this machine as
// CM: steps 2 to 7.
func (m *Machine) reconfigure() error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	defer m.rest()
	t := Timeline{Suspect: m.cfg.Clock.Now()}
	base, err := m.base()
	if errors.Is(err, errStore) { // machines that have restarted may reach the store, but need this one
		m.considerRestart(m.Configuration())
	}
	if base == nil || err != nil {
		return err
	}
	why := m.reasons()
	if len(why.suspects) > 0 {
		t.Suspect = why.since
	}
	if base.ID > why.current.ID {
		if base.CM == m.self.Machine { // this machine has stored base, but got no answer
			return m.distribute(base, t)
		}
		if !why.handed {
			why.suspects = append(why.suspects, recovery.PeerIn(base, base.CM)) // that CM has stored base, but its NEW-CONFIG has not come in time
		}
	}
	missing, err := m.findMissing(base, why.suspects)
	if err != nil {
		return err
	}
	missing = m.withVictims(base, missing, why.victims)
	t.Probed, t.Dead = m.cfg.Clock.Now(), missing
	m.reached(recovery.StepProbed)
	next, report, err := m.remap(base, missing, why, &t)
	if next == nil || err != nil || !m.begins() { // leave now: after storing there is no way back
		return err
	}
	if err := m.store(base, next, report); err != nil {
		return err
	}
	t.Stored = m.cfg.Clock.Now()
	m.exclude(why.victims, next, why.links)
	return m.distribute(next, t)
}

// findMissing is step 2: it returns the members of c that the next configuration leaves out. These
// are the suspects, and the members that do not answer a probe. If too few of the others answer a
// call to be a majority of c, findMissing asks the suspects as well, since a suspicion may have been
// wrong: a suspect is then left out only if it does not answer. findMissing fails if there is still
// no majority.
func (m *Machine) findMissing(c *cluster.Configuration, suspects []call.Peer) (missing []rdma.MachineID, err error) {
	m.proceed(probing)
	probed, missing := m.probeAll(c, suspects)
	answering := m.answering(c, probed)
	isMajority := func() bool { return 2*len(answering) > len(c.Machines) }
	if !isMajority() {
		probed, _ = m.probeAll(c, nil)
		answering = m.answering(c, probed)
		missing = unfit(c, suspects, probed, answering)
	}
	if !isMajority() && !sabotage.Majority.Skipped() {
		m.waiting(silent(c, answering))
		m.considerRestart(c)
		return nil, fmt.Errorf("%w: %d of %d", errNoMajority, len(answering), len(c.Machines))
	}
	m.waiting(nil)
	return missing, nil
}

// remap is step 4: it makes the configuration that follows base, for the first of the reasons that
// applies; the others wait for later configurations. It returns nil if no reason is left. Missing
// machines come first, because regions wait for them.
func (m *Machine) remap(base *cluster.Configuration, missing []rdma.MachineID, why reasons, t *Timeline) (next *cluster.Configuration, report cluster.Remapped, err error) {
	m.proceed(remapping)
	forget := slices.DeleteFunc(slices.Clone(why.forget), func(r forgetRequest) bool { return r.isOver(base) })
	drains := slices.DeleteFunc(slices.Clone(why.drains), func(r drainRequest) bool { return r.isOver(base) })
	resizes := slices.DeleteFunc(slices.Clone(why.resizes), func(r resizeRequest) bool { return r.isOver(base) })
	switch {
	case len(missing) > 0:
		next, report = base.Without(missing, m.self.Machine)
	case len(forget) > 0:
		next, report = base.Forget(forget[0].Machine)
	case len(drains) > 0:
		next, err = m.drained(base, drains[0])
	case len(resizes) > 0:
		next, err = m.resized(base, resizes[0])
	case len(why.joiners) > 0:
		j := why.joiners[0]
		next, report = base.With(j.Member, j.Holds)
		t.Joined, t.IsJoin = j.Member.Machine, true
	case len(why.refusals) > 0 && why.refusals[0].In == base.ID:
		next, report = base.Refuse(why.refusals[0].from.Machine, why.refusals[0].Regions)
	case len(why.roomy) > 0:
		next, report = base.WithRoom(why.roomy[0].from.Machine, why.roomy[0].Capacity)
	case why.renew || why.handed || len(why.suspects) > 0: // no suspect has failed
		next = base.Succeed()
		next.CM = m.self.Machine
	case why.moves: // last: moves can wait
		next, report = m.moveOn(base)
	case len(why.victims) > 0: // the victims were chosen for an older configuration
		err = errChanging
	}
	return next, report, err
}

// base returns the stored configuration, which the next one follows. It returns nil if there is
// nothing to do: this machine was evicted, or the NEW-CONFIG of another CM has come and this machine
// neither suspects a member nor is asked to take the CM's place.
func (m *Machine) base() (*cluster.Configuration, error) {
	c, err := m.cfg.Store.Load()
	switch {
	case errors.Is(err, cluster.ErrNewer):
		m.evict(fmt.Errorf("%w: the others have gone on to a version that it does not speak: %w", ErrEvicted, err))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errStore, err)
	}
	if c == nil {
		return nil, errors.New("membership: the store has lost the configuration")
	}
	if !m.isMember(c) {
		m.evict(fmt.Errorf("%w: configuration %d is without it", ErrEvicted, c.ID))
		return nil, nil
	}
	m.mu.Lock()
	last := m.lastLocked()
	m.mu.Unlock()
	if c.Omits(last) {
		m.evict(fmt.Errorf("%w: %w", ErrEvicted, m.omitted(last, c)))
		return nil, nil
	}
	// If another machine has stored c, its NEW-CONFIG may be on the way: wait for that, and then move on
	// from c only if there is still a reason to.
	if c.CM == m.self.Machine || !m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || m.mu.current.ID >= c.ID }) {
		return c, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.phase.isMember() || (len(m.mu.suspects) == 0 && !m.mu.handed) {
		return nil, nil
	}
	return c, nil
}

// probeAll probes the members of c. It returns those that answer with their incarnation in c,
// including this machine, and those that are missing, including the suspects.
func (m *Machine) probeAll(c *cluster.Configuration, suspects []call.Peer) (answered, missing []rdma.MachineID) {
	var ask []rdma.MachineID
	for _, x := range c.Machines {
		if x != m.self.Machine && !slices.Contains(suspects, recovery.PeerIn(c, x)) {
			ask = append(ask, x)
		}
	}
	answered = []rdma.MachineID{m.self.Machine}
	for _, p := range m.probes.probe(ask, m.cfg.Keeper.Length()/2) {
		if p.err == nil && (p.incarnation == recovery.PeerIn(c, p.machine).Incarnation || sabotage.ProbeIncarnation.Skipped()) {
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

// unusedIn returns a function that reports whether a region is certainly unused in
// configuration c: no transaction has committed to it there, and none will. That is certain in
// two cases. Either the CM of c has told no machine to commit c; only that CM knows. Or a
// replica of the region has not committed c: then the primary still waits for the evidence in
// the replica's logs, which the replica drains when it commits c. back lists the machines that
// have come back. If a machine's life in c has ended, its memory shows whether that life
// committed c.
func (m *Machine) unusedIn(c *cluster.Configuration, back []life) func(region.ID) bool {
	m.mu.Lock()
	unproven := c.CM == m.self.Machine && m.mu.unproven != 0 && c.ID >= m.mu.unproven
	m.mu.Unlock()
	var behind []rdma.MachineID
	for _, l := range back {
		isOver := !recovery.IsMember(c, call.Peer{Machine: l.Member.Machine, Incarnation: l.Member.Incarnation})
		if isOver && c.IsMember(l.Member) && l.Committed > 0 && l.Committed-1 < c.ID { // Committed is one more than the last configuration that was committed
			behind = append(behind, l.Member.Machine)
		}
	}
	return func(id region.ID) bool {
		p, _ := c.Placement(id)
		return unproven || slices.ContainsFunc(behind, p.Has)
	}
}

// noteUnproven records that the configuration next is unproven: no machine can have committed it yet,
// because this machine has not sent NEW-CONFIG-COMMIT (sendCommit). If base is unproven already, the
// earlier record stays: it holds for all configurations that follow. noteUnproven is called before next is stored
// as the configuration after base.
func (m *Machine) noteUnproven(base, next *cluster.Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.unproven == 0 || base == nil || base.CM != m.self.Machine {
		m.mu.unproven = next.ID
	}
}

// store is step 3: it stores next, if base is still the stored configuration.
func (m *Machine) store(base, next *cluster.Configuration, report cluster.Remapped) error {
	m.proceed(updating)
	next.Follow(base, m.unusedIn(base, nil))
	if err := m.agree(next); err != nil {
		return err
	}
	m.noteUnproven(base, next)
	err := m.cfg.Store.CompareAndSwap(base.Revision, next)
	if err != nil {
		// Keep a reason for another configuration: if this machine has applied base meanwhile, it
		// has forgotten the earlier reasons.
		m.mu.Lock()
		m.mu.renew = true
		m.mu.Unlock()
	}
	switch {
	case errors.Is(err, cluster.ErrMoved):
		return fmt.Errorf("membership: store configuration %d: %w", next.ID, err)
	case err != nil:
		return fmt.Errorf("%w: configuration %d: %w", errStore, next.ID, err)
	}
	m.cfg.Events.stored(next, report)
	m.reached(recovery.StepStored)
	return nil
}
