package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// belongsTo says why this machine can have no part in what follows c, whoever else does.
func (m *Machine) belongsTo(c *cluster.Configuration) error {
	if err := SameCluster(m.cfg.Cluster, c); err != nil {
		return err
	}
	return c.Knows(m.self.Machine, m.cfg.Self.Protocol)
}

// SameCluster returns ErrOtherCluster if memory of a cluster, 0 if it is of none yet, is
// not that of c.
func SameCluster(memory uint64, c *cluster.Configuration) error {
	if memory == 0 || memory == c.Cluster {
		return nil
	}
	return fmt.Errorf("%w: its memory is of cluster %016x, the configuration is of cluster %016x", ErrOtherCluster, memory, c.Cluster)
}

// Start makes the machine a member, and returns when it has applied a
// configuration that it is part of, or when it cannot:
//
//   - If there is no instance, this machine begins one, with the other founders.
//   - If the configuration knows this machine from an earlier life, and the others
//     have been restarted too, those that have come back meet: all keep their
//     memory, and the next configuration is made of them. Machines that have come back
//     with nothing count for the majority, and join afterwards.
//   - Otherwise it asks the CM to let it join, with what its memory holds.
//
// Errors: ErrOtherCluster, protocol.ErrRange, ErrTaken, ErrNeeded, ErrEvicted, ErrClosed, the store's,
// the host's, and ctx's.
func (m *Machine) Start(ctx context.Context) error {
	begin, said := m.cfg.Clock.Now(), ""
	for {
		if err := errors.Join(ctx.Err(), m.Err()); err != nil {
			return err
		}
		c, err := m.cfg.Store.Load()
		m.setCut(err != nil)
		switch {
		case err != nil:
		case c == nil:
			err = m.found()
		case m.isMemberBefore(c):
			return nil
		default:
			if err = m.belongsTo(c); err == nil {
				err = m.enter(c, m.cfg.Clock.Now().Sub(begin))
			}
		}
		if err != nil && !IsPassing(err) {
			return err
		}
		if err != nil && err.Error() != said { // once, however often it is tried
			said = err.Error()
			m.cfg.Events.failed("start", err)
		}
		if m.waitFor(m.pause(), func() bool { return m.mu.phase.isMember() }) {
			return nil
		}
	}
}

// isMemberBefore says whether this machine has become a member meanwhile. If not, no
// configuration before c will make it one: it may ask to be let in because c is without
// it, and must not apply one before c that had it, of which NEW-CONFIG comes late. It
// would be in that, left out, and in again in one life, and would take what it has for
// all there is.
func (m *Machine) isMemberBefore(c *cluster.Configuration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase.isMember() {
		return true
	}
	m.mu.floor = c.ID
	return false
}

// setCut notes whether this machine, which is no member yet, does not reach the store.
func (m *Machine) setCut(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.cut = is
}

// pause is how often a machine that is not in yet tries.
func (m *Machine) pause() time.Duration { return max(m.cfg.Keeper.Length()/2, 2*time.Millisecond) }

// found makes the first configuration, if this machine is to.
func (m *Machine) found() error {
	if m.cfg.First == nil {
		return errors.New("membership: there is no configuration, and none to begin with")
	}
	if m.cfg.Cluster != 0 { // to begin again would drop what the machine has
		return fmt.Errorf("%w: it is of cluster %016x, and there is no configuration", ErrOtherCluster, m.cfg.Cluster)
	}
	c := m.cfg.First.Clone()
	c.ID, c.Revision, c.CM, c.NextRegion = 1, 1, m.self.Machine, 1
	for c.Cluster == 0 {
		c.Cluster = m.cfg.Clock.Uint64()
	}
	founders, missing := m.founders()
	if len(missing) > 0 {
		m.waiting(missing)
		return nil
	}
	for _, f := range founders {
		c.AddMember(f)
	}
	return m.launch(nil, c, cluster.Remapped{})
}

// founders returns who begins the instance, and which of them have not come yet. Who is
// not to make the first configuration waits for the one that is.
func (m *Machine) founders() (come []cluster.Member, missing []rdma.MachineID) {
	all := m.cfg.Founders
	if len(all) == 0 {
		return []cluster.Member{m.cfg.Self}, nil
	}
	if all[0] != m.self.Machine {
		return nil, all[:1]
	}
	for i, l := range m.askLives(&cluster.Configuration{Machines: all}) {
		switch {
		case all[i] == m.self.Machine:
			come = append(come, m.cfg.Self)
		case l.Meets:
			come = append(come, l.Member)
		default:
			missing = append(missing, all[i])
		}
	}
	return come, missing
}

// launch makes c the configuration, after base, and leads it, of which this
// machine is the CM.
func (m *Machine) launch(base, c *cluster.Configuration, report cluster.Remapped) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	defer m.rest()
	t := Timeline{Suspect: m.cfg.Clock.Now(), Probed: m.cfg.Clock.Now()}
	if err := m.agree(c); err != nil {
		return err
	}
	revision := uint64(0)
	if base != nil {
		revision = base.Revision
	}
	m.proceed(updating)
	m.makes(base, c)
	if err := m.cfg.Store.CompareAndSwap(revision, c); err != nil {
		return fmt.Errorf("membership: store configuration %d: %w", c.ID, err)
	}
	t.Stored = m.cfg.Clock.Now()
	m.cfg.Events.stored(c, report)
	m.reached(recovery.StepStored)
	return m.distribute(c, t)
}

// resume sends c, which this machine has stored, though it was not told so.
func (m *Machine) resume(c *cluster.Configuration) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	defer m.rest()
	now := m.cfg.Clock.Now()
	return m.distribute(c, Timeline{Suspect: now, Probed: now, Stored: now})
}

// reportOldCopy says that the memory is an older copy of what c knows. It is compared with
// what the others have, as that of a machine is that was away for long.
func (m *Machine) reportOldCopy(c *cluster.Configuration) {
	if c.IsOlder(m.cfg.Self) && !m.reportedOldCopy {
		m.reportedOldCopy = true
		m.cfg.Events.failed("start", errors.New("membership: the memory of this machine is older than what it had when it was a member last: what the others have since then is fetched from them"))
	}
}

// enter tries once to become part of what follows c. waited is for how long that
// has been tried. c may have this life already: then its CM sends NEW-CONFIG, unless it
// has died, and is met if it comes back.
func (m *Machine) enter(c *cluster.Configuration, waited time.Duration) error {
	if recovery.IsMember(c, m.self) && c.CM == m.self.Machine {
		return m.resume(c)
	}
	m.reportOldCopy(c)
	if _, knows := c.Member(m.self.Machine); !knows {
		return m.join(c)
	}
	if m.cfg.Empty { // for who has nothing it is the same whether the others go on or meet
		if err := m.join(c); !isUnanswered(err) {
			return err
		}
	}
	lives := m.askLives(c)
	if err := refusedBy(lives); err != nil {
		return err
	}
	m.reportRefusal(lives)
	running, back := 0, []life{m.lifeOf()}
	for i, l := range lives {
		switch {
		case l.Applied > 0 && l.Member.Incarnation == c.Incarnation[i]:
			running++
		case l.Meets:
			back = append(back, l)
		}
	}
	switch {
	case 2*running > len(c.Machines):
		return m.join(c)
	case running > 0: // they will restart themselves
		return nil
	}
	return m.restartTogether(c, back, waited)
}

// isUnanswered says that a call was not taken by a CM.
func isUnanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, call.ErrOtherLife) || errors.Is(err, recovery.ErrNotCM)
}
