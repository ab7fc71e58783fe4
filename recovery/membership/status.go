package membership

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// Configuration returns the configuration that this machine has applied last, or
// nil. It is not to be changed. Mappings of regions made since then may be
// missing: Placement asks for them.
func (m *Machine) Configuration() *cluster.Configuration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.current
}

// A Status is how far a machine is, for display.
type Status struct {
	Configuration *cluster.Configuration // nil before the first
	// Suspects are machines that are suspected to have failed; Joining those that wait to
	// be admitted, at the CM.
	Suspects, Joining []rdma.MachineID
	// Apart are members that this machine does not reach and, at the CM, those that
	// others have reported: if it stays so, one of two is evicted.
	Apart []rdma.MachineID
	// Missing are machines that do not answer, without whom there is no majority. nil if
	// there is one.
	Missing []rdma.MachineID
	// Recovering says that not all regions are active yet. Changing says that this
	// machine is changing the configuration, or has asked the CM to: another one
	// follows, though nobody may be suspected.
	Recovering, Changing bool
	// Err is why the machine is no member any more.
	Err error
}

// Status returns the machine's status.
func (m *Machine) Status() Status {
	err := m.Err()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{Configuration: m.mu.current, Missing: slices.Clone(m.mu.missing), Recovering: m.mu.phase.isRecovering(), Err: err}
	s.Changing = m.mu.leads || m.mu.current != nil && m.mu.reported == m.mu.current.ID
	for _, p := range m.mu.suspects {
		s.Suspects = append(s.Suspects, p.Machine)
	}
	for _, j := range m.mu.joiners {
		s.Joining = append(s.Joining, j.Member.Machine)
	}
	s.Apart = m.mu.links.reportedLocked(m.cfg.Clock.Now(), m.cfg.Keeper.Length())
	return s
}

// Err returns why this machine has no part any more: ErrEvicted, ErrClosed, or
// what the host failed with. nil if it has.
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
