package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// A machine without room refuses a replica, and is then bounded: later configurations give it no
// further replicas, since each refusal costs a reconfiguration. When the machine has room again, it
// tells the CM (ROOM), which gives it replicas of regions that have too few.

// A roomRequest is the argument of ROOM, which the CM keeps.
type roomRequest struct {
	Capacity int // number of regions that there is room for; 0 means unlimited
	from     call.Peer
}

// HasRoom tells the CM that this machine has room for replicas again: its capacity is what it was at
// its start. HasRoom does not wait for the next configuration. The machine calls it again while a
// configuration gives it less capacity. Errors: all for which IsPassing is true.
func (m *Machine) HasRoom(ctx context.Context) error {
	return m.askCM(ctx, kindRoom, m.onRoom, roomRequest{Capacity: m.cfg.Self.Capacity}, nil)
}

// IsBounded reports whether c gives this machine no further replicas because it has refused some in
// this life.
func (m *Machine) IsBounded(c *cluster.Configuration) bool {
	self, in := c.Member(m.self.Machine)
	return in && self.Capacity != m.cfg.Self.Capacity
}

// onRoom keeps a machine's latest ROOM at the CM, if it has more room than the configuration gives it.
func (m *Machine) onRoom(from call.Peer, arg []byte) ([]byte, error) {
	r := roomRequest{from: from}
	if err := json.Unmarshal(arg, &r); err != nil {
		return nil, fmt.Errorf("membership: ROOM: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	switch {
	case m.refusesLocked(from) != nil:
		return nil, m.refusesLocked(from)
	case !r.changes(c):
		return nil, nil
	}
	m.mu.roomy = slices.DeleteFunc(m.mu.roomy, func(x roomRequest) bool { return x.from == from })
	m.mu.roomy = append(m.mu.roomy, r)
	m.leadLocked()
	return nil, nil
}

// changes reports whether c gives the machine less than it has room for.
func (r roomRequest) changes(c *cluster.Configuration) bool {
	now, _ := c.Member(r.from.Machine)
	return recovery.IsMember(c, r.from) && now.Capacity != r.Capacity
}

// refusesLocked returns the error for a request that only a member may make of the CM: this
// machine is not the CM, or the peer is no member. It returns nil if neither is so.
func (m *Machine) refusesLocked(from call.Peer) error {
	c := m.mu.current
	switch {
	case !m.mu.phase.isMember() || c.CM != m.self.Machine:
		return recovery.ErrNotCM
	case !recovery.IsMember(c, from):
		return recovery.ErrNotMember
	}
	return nil
}
