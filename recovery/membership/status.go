package membership

import (
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// Configuration returns the configuration that this machine applied last, or nil. The caller must
// not change it. It may lack regions made since then: Placement asks the CM for them.
func (m *Machine) Configuration() *cluster.Configuration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.current
}

// A Status is the state of a machine's membership, for display.
type Status struct {
	Configuration *cluster.Configuration // nil before the first
	// Suspects are the suspected machines. Joining, only at the CM, are machines that wait to be
	// admitted.
	Suspects, Joining []rdma.MachineID
	// Apart are the members that this machine does not reach. At the CM, they include members that
	// others have reported. If a link stays broken, one of its two ends is evicted.
	Apart []rdma.MachineID
	// Missing are the machines that do not answer, if the others are no majority; otherwise nil.
	Missing []rdma.MachineID
	// Recovering says that not all regions are active yet. Changing says that this machine is
	// changing the configuration, or has asked the CM to change it: another configuration follows,
	// even if nobody is suspected.
	Recovering, Changing bool
	// BalanceIn, only at the CM, is the time until replicas are moved, or primaries handed
	// over, for the sake of balance; 0 if there is nothing to balance, or no time left to wait.
	BalanceIn time.Duration
	// MovesAwait, only at the CM, says what holds up moves, and changes of the number of replicas; empty if nothing does.
	MovesAwait string
	// Err is the reason why the machine is not a member any more.
	Err error
}

// Status returns the machine's status.
func (m *Machine) Status() Status {
	err := m.Err()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{Configuration: m.mu.current, Missing: slices.Clone(m.mu.missing), Recovering: m.mu.phase.isRecovering(), Err: err}
	s.Changing = m.mu.leads || (m.mu.current != nil && m.mu.reported == m.mu.current.ID)
	for _, p := range m.mu.suspects {
		s.Suspects = append(s.Suspects, p.Machine)
	}
	m.dropJoinersLocked()
	for _, j := range m.mu.joiners {
		s.Joining = append(s.Joining, j.Member.Machine)
	}
	s.Apart = m.mu.links.reportedLocked(m.cfg.Clock.Now(), m.cfg.Keeper.Length())
	if m.mu.phase == active && m.mu.current.CM == m.self.Machine && m.urgencyLocked() == cluster.ForBalance {
		s.BalanceIn = m.balanceInLocked()
	}
	if m.mu.phase.isMember() && m.mu.current.CM == m.self.Machine {
		s.MovesAwait = m.movesHeldLocked()
	}
	return s
}

// Err returns the reason why this machine no longer takes part: ErrEvicted, ErrClosed, or the host's
// error. It returns nil as long as the machine takes part.
func (m *Machine) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.failure != nil:
		return m.mu.failure
	case m.mu.phase == closed:
		return ErrClosed
	}
	return nil
}
