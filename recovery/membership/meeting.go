package membership

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

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
func (m *Machine) greet(c *cluster.Configuration) []life { return m.greetSome(c, c.Machines) }

// greetSome is greet for some of them: of the rest there is the zero life, too.
func (m *Machine) greetSome(c *cluster.Configuration, some []rdma.MachineID) []life {
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

func (m *Machine) onHello(call.Peer, []byte) ([]byte, error) {
	return json.Marshal(m.lifeOf())
}

// lifeOf returns what this machine says of itself.
func (m *Machine) lifeOf() life {
	committed, isKnown := m.cfg.Host.Committed()
	m.mu.Lock()
	defer m.mu.Unlock()
	l := life{Member: m.cfg.Self, Meets: m.mu.phase == starting, Empty: m.cfg.Empty, Cut: m.mu.cut}
	if isKnown {
		l.Committed = committed + 1
	}
	if m.mu.phase.isMember() {
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
func (m *Machine) meet(c *cluster.Configuration, back []life, waited time.Duration) error {
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
	next, report := c.Restarted(kept, m.cfg.Self)
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
func (m *Machine) considerRestart(c *cluster.Configuration) {
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
var ErrRestart = errors.New("membership: restarts")

// Restart ends the membership of this life, if it is a member, for a reason that is an
// ErrRestart.
func (m *Machine) Restart(reason error) {
	m.mu.Lock()
	if !m.mu.phase.isMember() {
		m.mu.Unlock()
		return
	}
	m.endLocked(reason)
	m.mu.Unlock()
	m.cfg.Keeper.Configure(m.self.Machine, nil)
	m.cfg.Host.Restart()
}
