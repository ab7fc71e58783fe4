package membership

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// A joinRequest is the argument of JOIN.
type joinRequest struct {
	Cluster uint64
	Member  cluster.Member
	// Holds are the regions that the machine's memory holds, in whatever state.
	Holds []region.ID
	// Settings are the settings of the machine. Earlier program versions leave them out.
	Settings cluster.Settings `json:",omitzero"`
	// Line is the line of the configuration that the machine has loaded; empty, but not null,
	// if that has none. Earlier program versions leave it out.
	Line *cluster.Line `json:",omitempty"`
	// Apart are members that the machine does not reach.
	Apart []rdma.MachineID `json:",omitempty"`

	at time.Time // when it arrived, at the CM
}

// joinPatience is how many lease times the CM keeps a request to join that is not repeated. A machine
// that still wants to join repeats its request within about eight, even if messages are lost. If the
// CM admitted a machine that has stopped meanwhile, that would interrupt all members until the
// machine's first lease runs out.
const joinPatience = 16

// dropJoinersLocked drops the requests to join of machines that have stopped asking.
func (m *Machine) dropJoinersLocked() {
	now := m.cfg.Clock.Now()
	m.mu.joiners = slices.DeleteFunc(m.mu.joiners, func(j joinRequest) bool { return now.Sub(j.at) > joinPatience*m.cfg.Keeper.Length() })
}

// join asks the CM of c to admit this machine. The machine keeps its memory until it has applied a
// configuration that does not need it.
func (m *Machine) join(c *cluster.Configuration) error {
	holds, err := m.holds()
	if err != nil {
		return err
	}
	arg, err := json.Marshal(joinRequest{Cluster: m.cfg.Cluster, Member: m.cfg.Self, Holds: holds, Settings: m.settings(), Line: new(append(cluster.Line{}, c.Line...)), Apart: m.apartFrom(c)})
	if err != nil {
		return err
	}
	_, err = m.cfg.Endpoint.Call(m.within(m.patience()), recovery.PeerIn(c, c.CM), kindJoin, arg)
	return err
}

// holds returns the regions that the machine's memory holds, in whatever state; none if the memory
// is empty.
func (m *Machine) holds() ([]region.ID, error) {
	if m.cfg.Empty {
		return nil, nil
	}
	return m.cfg.Host.Holds()
}

// onJoin handles a machine's request to join. The machine is admitted when no recovery is in
// progress. If an earlier life of the machine is still in the configuration, onJoin suspects that
// life. If that life still answers probes, there are two machines of one name (ErrTaken).
func (m *Machine) onJoin(from call.Peer, arg []byte) ([]byte, error) {
	var r joinRequest
	if err := json.Unmarshal(arg, &r); err != nil || r.Member.Machine != from.Machine || r.Member.Incarnation != from.Incarnation {
		return nil, fmt.Errorf("membership: JOIN of machine %d says %q", from.Machine, arg)
	}
	m.mu.Lock()
	c := m.mu.current
	isCM := m.mu.phase.isMember() && c.CM == m.self.Machine
	m.mu.Unlock()
	switch {
	case !isCM:
		return nil, recovery.ErrNotCM
	case SameCluster(r.Cluster, c) != nil:
		return nil, SameCluster(r.Cluster, c)
	case c.Suits(from.Machine, r.Settings) != nil:
		return nil, c.Suits(from.Machine, r.Settings)
	case r.Line != nil && c.Line.Leads(*r.Line):
		return nil, fmt.Errorf("%w: machine %d, and this is configuration %d", errUnheard, from.Machine, c.ID)
	case recovery.IsMember(c, from):
		return nil, nil
	}
	earlier, hasEarlier := c.Member(from.Machine)
	if hasEarlier {
		now := m.probes.probe([]rdma.MachineID{from.Machine}, m.cfg.Keeper.Length())[0]
		if now.err == nil && now.incarnation == earlier.Incarnation {
			return nil, fmt.Errorf("%w: machine %d", ErrTaken, from.Machine)
		}
	}
	if err := c.Admits(r.Member); err != nil {
		return nil, err
	}
	if hasEarlier {
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
	r.at = m.cfg.Clock.Now()
	m.mu.joiners = append(m.mu.joiners, r)
	m.leadLocked()
	return nil, nil
}

// needed returns the error for a machine that has come back without the memory that the instance
// waits for.
func needed(c *cluster.Configuration, m cluster.Member, regions []region.ID) error {
	err := ErrNeeded
	if c.IsOlder(m) {
		err = fmt.Errorf("%w; its folder is an older copy of that", ErrNeeded)
	}
	return fmt.Errorf("%w: machine %d, regions %v; start it with the data folder that it had, or give these regions up: farmsql forget --machine %d",
		err, m.Machine, regions, m.Machine)
}
