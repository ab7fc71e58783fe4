package membership

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// A life is a machine's answer to HELLO: its identity, and the configuration that it has reached.
type life struct {
	Member cluster.Member
	// Applied is the machine's current configuration; 0 if it has none yet.
	Applied cluster.ID
	// Meets says that the machine has been restarted and waits for the others; Empty that its
	// memory is empty.
	Meets bool
	Empty bool `json:",omitempty"`
	// Cut says that the machine cannot reach the store.
	Cut bool `json:",omitempty"`
	// Committed is one more than the last configuration committed with this memory; 0 if that
	// is not known.
	Committed cluster.ID `json:",omitempty"`

	refused bool // the machine shares no protocol version with this one; of Member, it told only Protocol
}

// askLives sends HELLO to all other machines of c, and returns their answers: a zero life for each
// machine that does not answer.
func (m *Machine) askLives(c *cluster.Configuration) []life { return m.askLivesOf(c, c.Machines) }

// askLivesOf is like askLives, for some machines of c; the answers of the others are zero.
func (m *Machine) askLivesOf(c *cluster.Configuration, some []rdma.MachineID) []life {
	lives := make([]life, len(c.Machines))
	left := len(c.Machines)
	within := m.within(m.cfg.Keeper.Length())
	for i, x := range c.Machines {
		m.spawn(func() {
			var l life
			if x != m.self.Machine && slices.Contains(some, x) {
				reply, err := m.cfg.Endpoint.Call(within, call.Peer{Machine: x, Incarnation: call.AnyLife}, kindHello, nil)
				if err == nil {
					err = json.Unmarshal(reply, &l)
				}
				if err != nil {
					l = life{}
				}
				if rangeErr := new(protocol.RangeError); errors.As(err, &rangeErr) {
					l.Member, l.refused = cluster.Member{Machine: x, Protocol: rangeErr.B.Range}, true
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

// lifeOf returns this machine's own answer to HELLO.
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

// restartTogether makes the next configuration from the machines that are back, if this machine
// leads them. It waits up to RestartWait for the others, and for a majority however long that
// takes. A region is unavailable until a machine with all of it is back.
//
// A machine with empty memory counts for the majority: the majority only has to ensure that no other
// machines go on, which needs no memory. Without such machines there might be no majority: one that
// died before it applied its first configuration has empty memory.
func (m *Machine) restartTogether(c *cluster.Configuration, back []life, waited time.Duration) error {
	if leaderOf(c, back) != m.self.Machine {
		return nil
	}
	if (len(back) < len(c.Machines) && waited < m.cfg.RestartWait) || 2*len(back) <= len(c.Machines) {
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

// leaderOf returns the machine that makes the next configuration. Of the machines that are back it
// prefers, in this order: machines that reach the store, machines that have their memory, machines
// whose memory is not an older copy, the last CM, and the first machine.
func leaderOf(c *cluster.Configuration, back []life) rdma.MachineID {
	return slices.MinFunc(back, func(a, b life) int {
		for _, isWorse := range []func(life) bool{
			func(l life) bool { return l.Cut },
			func(l life) bool { return l.Empty },
			func(l life) bool { return !c.IsMember(l.Member) }, // l has an older copy of its memory
			func(l life) bool { return l.Member.Machine != c.CM },
		} {
			if isWorse(a) != isWorse(b) {
				if isWorse(a) {
					return 1
				}
				return -1
			}
		}
		return cmp.Compare(a.Member.Machine, b.Member.Machine)
	}).Member.Machine
}

// considerRestart ends this life if the instance can go on only when this machine restarts
// together with others. That is so if the running machines are no majority of c, but would be
// one together with certain others: machines that have been restarted, or that a CM admitted
// and died before it told them.
func (m *Machine) considerRestart(c *cluster.Configuration) {
	lives := m.askLives(c)
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

// Restart ends the membership of this life, if it is a member. reason must be an ErrRestart.
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
