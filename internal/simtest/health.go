package simtest

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// health keeps track of the injected faults, and so of the machines that have none.
type health struct {
	world   *sim.World
	members *members
	copies  *copies
	// hinders counts, by machine, its present faults; disturbs counts the faults
	// that affect all machines.
	hinders  []int
	disturbs int
	// last is the time at which a fault last began or ended; stored the time at
	// which a configuration last became the current one.
	last   time.Duration
	stored map[cluster.ID]time.Duration
}

// newHealth returns the health of members, and registers it to be told of all their
// configurations. A region that is lost without need fails the run.
func newHealth(r *run, m *members) *health {
	h := &health{world: r.world, members: m, copies: newCopies(), hinders: make([]int, len(m.up)), stored: make(map[cluster.ID]time.Duration)}
	m.store.stored = func(now *cluster.Configuration) {
		r.fail(h.copies.stored(now))
		if _, known := h.stored[now.ID]; !known {
			h.stored[now.ID] = h.world.Now()
		}
	}
	return h
}

// noteChange notes that a fault has begun or ended.
func (h *health) noteChange() { h.last = h.world.Now() }

// isWell reports whether a machine is a member without faults.
func (h *health) isWell(m rdma.MachineID) bool {
	if h.hinders[m] > 0 || h.members.up[m] == nil || h.copies.now == nil {
		return false
	}
	s := h.members.up[m].Membership().Status()
	if s.Err != nil || s.Configuration == nil {
		return false
	}
	inOwnView, in := s.Configuration.Member(m)
	stored, still := h.copies.now.Member(m)
	return in && still && inOwnView.Incarnation == stored.Incarnation
}

// suffices reports whether the healthy machines can continue without the others, and
// no fault affects all machines.
func (h *health) suffices() bool { return h.disturbs == 0 && h.copies.suffice(h.isWell) }
