package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// belongsTo returns why this machine cannot be part of any configuration that follows c, or nil. If
// only its settings differ, the error is ErrRestart: another machine has begun the instance since
// this life took its settings, and the machine's next life takes the settings of c.
func (m *Machine) belongsTo(c *cluster.Configuration) error {
	if err := SameCluster(m.cfg.Cluster, c); err != nil {
		return err
	}
	if c.Omits(m.cfg.Applied) {
		return m.omitted(m.cfg.Applied, c)
	}
	if err := c.Suits(m.self.Machine, m.settings()); err != nil {
		return fmt.Errorf("%w, since another machine has begun the instance: %w", ErrRestart, err)
	}
	return c.Knows(m.self.Machine, m.cfg.Self.Protocol)
}

// settings returns the settings of this life, or none if it has no configuration to begin an
// instance with.
func (m *Machine) settings() cluster.Settings {
	if m.cfg.First == nil {
		return cluster.Settings{}
	}
	return m.cfg.First.Settings()
}

// SameCluster returns ErrOtherCluster if a machine's memory belongs to another cluster than c. memory
// is the memory's cluster, or 0 if it has none yet.
func SameCluster(memory uint64, c *cluster.Configuration) error {
	if memory == 0 || memory == c.Cluster {
		return nil
	}
	return fmt.Errorf("%w: its memory is of cluster %016x, the configuration is of cluster %016x", ErrOtherCluster, memory, c.Cluster)
}

// lastLocked returns the last configuration that this machine's memory has been in.
func (m *Machine) lastLocked() cluster.ID {
	if m.mu.current != nil {
		return m.mu.current.ID
	}
	return m.cfg.Applied
}

// omitted returns the error for memory that has been in a configuration that c omits.
func (m *Machine) omitted(applied cluster.ID, c *cluster.Configuration) error {
	return fmt.Errorf("%w: it has been in configuration %d, of which configuration %d knows nothing; together they would be a mixture of two histories. Let the machine join again with an empty data folder; if the cluster waits for it, give it up: farmsql refound --lost %d at the machine that keeps the configuration. With --older instead, the cluster goes on with the mixture",
		ErrOmitted, applied, c.ID, m.self.Machine)
}

// Start makes the machine a member. It returns when it has applied a configuration that contains
// it, or when that is impossible:
//
//   - If there is no instance, this machine begins one, with the other founders.
//   - If an earlier life of this machine is in the configuration, and the others have been
//     restarted too, those that are back restart together: all keep their memory, and the next
//     configuration consists of them. Machines that are back with empty memory count for the
//     majority, and join afterwards.
//   - Otherwise it asks the CM to admit it, with what its memory holds.
//
// Errors: ErrRestart, ErrOtherCluster, ErrOmitted, protocol.ErrRange, ErrTaken, ErrNeeded, ErrEvicted, ErrClosed,
// the store's, the host's, and ctx's.
func (m *Machine) Start(ctx context.Context) error {
	begin, reported := m.cfg.Clock.Now(), ""
	for {
		if err := errors.Join(ctx.Err(), m.Err()); err != nil {
			return err
		}
		c, err := m.cfg.Store.Load()
		m.setCut(err != nil)
		switch {
		case err != nil:
		case c == nil:
			err = m.foundInstance()
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
		if err != nil && err.Error() != reported { // report each error once, however often it occurs
			reported = err.Error()
			m.cfg.Events.failed("start", err)
		}
		if m.waitFor(m.pause(), func() bool { return m.mu.phase.isMember() }) {
			return nil
		}
	}
}

// isMemberBefore reports whether this machine has become a member meanwhile. If not, it sets c
// as the floor: the machine applies no configuration before c. This matters if c does not
// contain the machine, which therefore asks to be admitted. Without the floor, a late
// NEW-CONFIG of an earlier configuration, which did contain the machine, would make it a
// member. When it is then admitted, it would be a member for the second time in one life, and
// take its memory for complete. Nor does the machine apply a configuration of a line that its
// store does not know: other members may follow a machine that was refounded, and this machine
// not yet, or never.
func (m *Machine) isMemberBefore(c *cluster.Configuration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase.isMember() {
		return true
	}
	m.mu.floor, m.mu.line = c.ID, c.Line
	return false
}

// setCut records whether this machine cannot reach the store. It is called only before the machine is
// a member.
func (m *Machine) setCut(isCut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.cut = isCut
}

// pause is the time between two attempts of a machine that is not a member yet.
func (m *Machine) pause() time.Duration { return max(m.cfg.Keeper.Length()/2, 2*time.Millisecond) }

// foundInstance creates the first configuration, if Config has one to begin an instance with.
func (m *Machine) foundInstance() error {
	if m.cfg.First == nil {
		return errors.New("membership: there is no configuration, and none to begin with")
	}
	if m.cfg.Cluster != 0 { // the machine has memory of an instance, which beginning another would drop
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

// founders asks the founders, and returns those that have answered and those that are missing.
// All founders except the first wait for the configuration that the first makes.
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

// launch stores c as the configuration after base, and leads it. c must have this machine as its
// CM.
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
	m.noteUnproven(base, c)
	if err := m.cfg.Store.CompareAndSwap(revision, c); err != nil {
		return fmt.Errorf("membership: store configuration %d: %w", c.ID, err)
	}
	t.Stored = m.cfg.Clock.Now()
	m.cfg.Events.stored(c, report)
	m.reached(recovery.StepStored)
	return m.distribute(c, t)
}

// resume sends c, which this machine has stored, although it did not get the store's answer.
func (m *Machine) resume(c *cluster.Configuration) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	defer m.rest()
	now := m.cfg.Clock.Now()
	return m.distribute(c, Timeline{Suspect: now, Probed: now, Stored: now})
}

// reportOldCopy reports that this machine's memory is older than the memory that c knows: it is a copy.
// The machine's replicas will be compared with those of the others, as after a long absence.
func (m *Machine) reportOldCopy(c *cluster.Configuration) {
	if c.IsOlder(m.cfg.Self) && !m.reportedOldCopy {
		m.reportedOldCopy = true
		m.cfg.Events.failed("start", errors.New("membership: the memory of this machine is older than what it had when it was a member last: what the others have since then is fetched from them"))
	}
}

// enter makes one attempt to become part of a configuration after c. waited is how long the machine
// has tried. If c contains this life already, the CM of c will send NEW-CONFIG, or, if that CM has
// died, the machines restart together when it comes back.
func (m *Machine) enter(c *cluster.Configuration, waited time.Duration) error {
	if recovery.IsMember(c, m.self) && c.CM == m.self.Machine {
		return m.resume(c)
	}
	m.reportOldCopy(c)
	if _, isIn := c.Member(m.self.Machine); !isIn {
		return m.join(c)
	}
	if m.cfg.Empty { // empty memory can join, whether the others go on or restart
		// A machine that shares no version with the CM may share one with a majority.
		if err := m.join(c); !isUnanswered(err) && !errors.Is(err, protocol.ErrRange) {
			return err
		}
	}
	lives := m.askLives(c)
	running, back := 0, []life{m.lifeOf()}
	for i, l := range lives {
		switch {
		case l.Applied > 0 && l.Member.Incarnation == c.Incarnation[i]:
			running++
		case l.Meets:
			back = append(back, l)
		}
	}
	if 2*running > len(c.Machines) {
		return m.join(c)
	}
	with, err := m.understand(c, lives)
	if err != nil || running > 0 { // the running machines find out by themselves, and restart
		return err
	}
	back = slices.DeleteFunc(back, func(l life) bool {
		return !slices.ContainsFunc(with, func(x cluster.Member) bool { return x.Machine == l.Member.Machine })
	})
	return m.restartTogether(c, back, waited)
}

// isUnanswered reports whether err means that no CM has handled the call.
func isUnanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, call.ErrOtherLife) || errors.Is(err, recovery.ErrNotCM)
}
