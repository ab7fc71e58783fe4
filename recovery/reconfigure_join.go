package recovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
)

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
// Errors: ErrOtherCluster, ErrTaken, ErrNeeded, ErrEvicted, ErrClosed, the store's,
// the host's, and ctx's.
func (m *Membership) Start(ctx context.Context) error {
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
			if err = SameCluster(m.cfg.Cluster, c); err == nil {
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
		if m.waitFor(m.pause(), func() bool { return m.mu.phase == member }) {
			return nil
		}
	}
}

// isMemberBefore says whether this machine has become a member meanwhile. If not, no
// configuration before c will make it one: it may ask to be let in because c is without
// it, and must not apply one before c that had it, of which NEW-CONFIG comes late. It
// would be in that, left out, and in again in one life, and would take what it has for
// all there is.
func (m *Membership) isMemberBefore(c *cluster.Configuration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase == member {
		return true
	}
	m.mu.floor = c.ID
	return false
}

// setCut notes whether this machine, which is no member yet, does not reach the store.
func (m *Membership) setCut(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.cut = is
}

// pause is how often a machine that is not in yet tries.
func (m *Membership) pause() time.Duration { return max(m.cfg.Keeper.Length()/2, 2*time.Millisecond) }

// found makes the first configuration, if this machine is to.
func (m *Membership) found() error {
	if m.cfg.First == nil {
		return errors.New("recovery: there is no configuration, and none to begin with")
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
func (m *Membership) founders() (come []cluster.Member, missing []rdma.MachineID) {
	all := m.cfg.Founders
	if len(all) == 0 {
		return []cluster.Member{m.cfg.Self}, nil
	}
	if all[0] != m.self.Machine {
		return nil, all[:1]
	}
	for i, l := range m.greet(&cluster.Configuration{Machines: all}) {
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
func (m *Membership) launch(base, c *cluster.Configuration, report cluster.Remapped) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	t := Timeline{Suspect: m.cfg.Clock.Now(), Probed: m.cfg.Clock.Now()}
	revision := uint64(0)
	if base != nil {
		revision = base.Revision
	}
	m.makes(base, c)
	if err := m.cfg.Store.CompareAndSwap(revision, c); err != nil {
		return fmt.Errorf("recovery: store configuration %d: %w", c.ID, err)
	}
	t.Stored = m.cfg.Clock.Now()
	m.cfg.Events.stored(c, report)
	m.reached(StepStored)
	return m.distribute(c, t)
}

// resume sends c, which this machine has stored, though it was not told so.
func (m *Membership) resume(c *cluster.Configuration) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	now := m.cfg.Clock.Now()
	return m.distribute(c, Timeline{Suspect: now, Probed: now, Stored: now})
}

// tellOfCopy says that the memory is an older copy of what c knows. It is compared with
// what the others have, as that of a machine is that was away for long.
func (m *Membership) tellOfCopy(c *cluster.Configuration) {
	if c.IsOlder(m.cfg.Self) && !m.toldOfCopy {
		m.toldOfCopy = true
		m.cfg.Events.failed("start", errors.New("recovery: the memory of this machine is older than what it had when it was a member last: what the others have since then is fetched from them"))
	}
}

// enter tries once to become part of what follows c. waited is for how long that
// has been tried. c may have this life already: then its CM sends NEW-CONFIG, unless it
// has died, and is met if it comes back.
func (m *Membership) enter(c *cluster.Configuration, waited time.Duration) error {
	if memberIn(c, m.self) && c.CM == m.self.Machine {
		return m.resume(c)
	}
	m.tellOfCopy(c)
	if _, knows := c.Member(m.self.Machine); !knows {
		return m.join(c)
	}
	if m.cfg.Empty { // for who has nothing it is the same whether the others go on or meet
		if err := m.join(c); !isUnanswered(err) {
			return err
		}
	}
	lives := m.greet(c)
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
	return m.meet(c, back, waited)
}

// isUnanswered says that a call was not taken by a CM.
func isUnanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, call.ErrOtherLife) || errors.Is(err, errNotCM)
}

// A life is what a machine says of itself when it is greeted.
type life struct {
	Member cluster.Member
	// Applied is its current configuration; 0 if it has none yet.
	Applied cluster.ID
	// Meets says that it has come back, and waits for others; Empty that it has done so
	// with nothing.
	Meets bool
	Empty bool `json:",omitempty"`
	// Cut says that it does not reach the store.
	Cut bool `json:",omitempty"`
	// Committed is one more than the last configuration that it has committed, with the
	// memory that it has; 0 if that is not known.
	Committed cluster.ID `json:",omitempty"`
}

// greet asks all others of c how they are. Those that do not answer are the zero
// life.
func (m *Membership) greet(c *cluster.Configuration) []life { return m.greetSome(c, c.Machines) }

// greetSome is greet for some of them: of the rest there is the zero life, too.
func (m *Membership) greetSome(c *cluster.Configuration, some []rdma.MachineID) []life {
	lives := make([]life, len(c.Machines))
	left := len(c.Machines)
	within := m.within(m.cfg.Keeper.Length())
	for i, x := range c.Machines {
		m.spawn(func() {
			var l life
			if x != m.self.Machine && slices.Contains(some, x) {
				reply, err := m.cfg.Endpoint.Call(within, call.Peer{Machine: x, Incarnation: call.AnyLife}, kindHello, nil)
				if err != nil || json.Unmarshal(reply, &l) != nil {
					l = life{}
				}
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			lives[i] = l
			left--
			m.wakeLocked()
		})
	}
	m.waitFor(2*m.cfg.Keeper.Length(), func() bool { return left == 0 })
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(lives)
}

func (m *Membership) onHello(call.Peer, []byte) ([]byte, error) {
	return json.Marshal(m.lifeOf())
}

// lifeOf returns what this machine says of itself.
func (m *Membership) lifeOf() life {
	committed, isKnown := m.cfg.Host.Committed()
	m.mu.Lock()
	defer m.mu.Unlock()
	l := life{Member: m.cfg.Self, Meets: m.mu.phase == starting, Empty: m.cfg.Empty, Cut: m.mu.cut}
	if isKnown {
		l.Committed = committed + 1
	}
	if m.mu.phase == member {
		l.Applied = m.mu.current.ID
	}
	return l
}

// meet makes the next configuration of the machines that are back, if this one
// is to. It waits for the others for a while, and in any case for a majority. Regions of
// which nobody has come back that has everything are unavailable until somebody does.
//
// Who has come back with nothing is part of the majority all the same: it makes sure
// that no others go on, which needs no memory. A machine that died before it had
// applied its first configuration is such a one, and there may be no others.
func (m *Membership) meet(c *cluster.Configuration, back []life, waited time.Duration) error {
	if leaderOf(c, back) != m.self.Machine {
		return nil
	}
	if len(back) < len(c.Machines) && waited < m.cfg.Meeting || 2*len(back) <= len(c.Machines) {
		var missing []rdma.MachineID
		for _, x := range c.Machines {
			if !slices.ContainsFunc(back, func(l life) bool { return l.Member.Machine == x }) {
				missing = append(missing, x)
			}
		}
		m.waiting(missing)
		return nil
	}
	var kept []cluster.Member
	for _, l := range back {
		if !l.Empty {
			kept = append(kept, l.Member)
		}
	}
	holds, err := m.holds()
	if err != nil {
		return err
	}
	next, report := c.Reborn(kept, m.cfg.Self)
	if lost := next.Missing(m.cfg.Self, holds); len(lost) > 0 {
		return needed(c, m.cfg.Self, lost)
	}
	next.Follow(c, m.unusedIn(c, back))
	return m.launch(c, next, report)
}

// leaderOf returns who of the machines that are back makes the next configuration:
// the last CM if it is among them, else the first; one that has its memory if there
// is one, and that reaches the store.
func leaderOf(c *cluster.Configuration, back []life) rdma.MachineID {
	return slices.MinFunc(back, func(a, b life) int {
		for _, worse := range []func(life) bool{
			func(l life) bool { return l.Cut },
			func(l life) bool { return l.Empty },
			func(l life) bool { return !c.IsMember(l.Member) }, // an older copy
			func(l life) bool { return l.Member.Machine != c.CM },
		} {
			if worse(a) != worse(b) {
				if worse(a) {
					return 1
				}
				return -1
			}
		}
		return cmp.Compare(a.Member.Machine, b.Member.Machine)
	}).Member.Machine
}

// considerRestart ends this life if machines of c have been restarted, or let in by a CM
// that died before it told them, and a majority is there with them, but not without them:
// only in a meeting can the instance go on.
func (m *Membership) considerRestart(c *cluster.Configuration) {
	lives := m.greet(c)
	running, meeting := 1, 0
	for i, l := range lives {
		switch {
		case l.Applied > 0 && l.Member.Incarnation == c.Incarnation[i]:
			running++
		case l.Meets:
			meeting++
		}
	}
	if meeting > 0 && 2*running <= len(c.Machines) && 2*(running+meeting) > len(c.Machines) {
		m.Restart(fmt.Errorf("%w, to meet machines that have been restarted", ErrRestart))
	}
}

// ErrRestart means that this life is over, and another one is to follow.
var ErrRestart = errors.New("recovery: restarts")

// Restart ends the membership of this life, if it is a member, for a reason that is an
// ErrRestart.
func (m *Membership) Restart(reason error) {
	m.mu.Lock()
	if m.mu.phase != member {
		m.mu.Unlock()
		return
	}
	m.mu.phase, m.mu.failure = evicted, reason
	if m.mu.cancel != nil {
		m.mu.cancel()
	}
	m.wakeLocked()
	m.mu.Unlock()
	m.cfg.Keeper.Configure(m.self.Machine, nil)
	m.cfg.Host.Restart()
}

// A joinRequest is the argument of JOIN.
type joinRequest struct {
	Cluster uint64
	Member  cluster.Member
	// Holds are the regions that the machine's memory holds, in whatever state.
	Holds []region.ID
	// Apart are members that it does not reach.
	Apart []rdma.MachineID `json:",omitempty"`
}

// join asks the CM of c to let this machine in. What it has in memory stays until a
// configuration that it has applied has no use for it.
func (m *Membership) join(c *cluster.Configuration) error {
	holds, err := m.holds()
	if err != nil {
		return err
	}
	arg, err := json.Marshal(joinRequest{m.cfg.Cluster, m.cfg.Self, holds, m.apartFrom(c)})
	if err != nil {
		return err
	}
	_, err = m.cfg.Endpoint.Call(m.within(m.patience()), peerIn(c, c.CM), kindJoin, arg)
	return err
}

// holds returns the regions that the machine's memory holds, in whatever state.
func (m *Membership) holds() ([]region.ID, error) {
	if m.cfg.Empty {
		return nil, nil
	}
	return m.cfg.Host.Holds()
}

// onJoin takes a machine up that wants to join. It is admitted when no recovery
// is going on. If the configuration has an earlier life of it, that one is
// suspected; if that life is the one that answers probes, there are two machines
// of one name.
func (m *Membership) onJoin(from call.Peer, arg []byte) ([]byte, error) {
	var r joinRequest
	if err := json.Unmarshal(arg, &r); err != nil || r.Member.Machine != from.Machine || r.Member.Incarnation != from.Incarnation {
		return nil, fmt.Errorf("recovery: JOIN of machine %d says %q", from.Machine, arg)
	}
	m.mu.Lock()
	c := m.mu.current
	isCM := m.mu.phase == member && c.CM == m.self.Machine
	m.mu.Unlock()
	switch {
	case !isCM:
		return nil, errNotCM
	case SameCluster(r.Cluster, c) != nil:
		return nil, SameCluster(r.Cluster, c)
	case memberIn(c, from):
		return nil, nil
	}
	if was, knows := c.Member(from.Machine); knows {
		now := m.probes.probe([]rdma.MachineID{from.Machine}, m.cfg.Keeper.Length())[0]
		if now.err == nil && now.incarnation == was.Incarnation {
			return nil, fmt.Errorf("%w: machine %d", ErrTaken, from.Machine)
		}
		m.Suspect(from.Machine)
		return nil, nil
	}
	if lost := c.Missing(r.Member, r.Holds); len(lost) > 0 {
		return nil, needed(c, r.Member, lost)
	}
	if err := m.admits(c, from.Machine, r.Apart); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.joiners = slices.DeleteFunc(m.mu.joiners, func(j joinRequest) bool { return j.Member.Machine == from.Machine })
	m.mu.joiners = append(m.mu.joiners, r)
	m.leadLocked()
	return nil, nil
}

// needed refuses a machine that has not come back with what the instance waits for.
func needed(c *cluster.Configuration, m cluster.Member, regions []region.ID) error {
	err := ErrNeeded
	if c.IsOlder(m) {
		err = fmt.Errorf("%w; its folder is an older copy of that", ErrNeeded)
	}
	return fmt.Errorf("%w: machine %d, regions %v; start it with the data folder that it had, or give these regions up: farmsql forget --machine %d",
		err, m.Machine, regions, m.Machine)
}
