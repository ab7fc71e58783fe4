package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// Bounds on the time that machines without a fault may take. The time counts from the last
// beginning or end of a fault, and only while these machines are a majority and have all regions.
const (
	// suspectMax bounds the time until a machine that is dead or does nothing is suspected or left
	// out, even if its lease keeper still runs.
	suspectMax = 2*leaseTime + 2*time.Millisecond
	// activeMax bounds the time until all regions of a configuration are active and every machine
	// commits again. It also bounds the time of a transaction.
	activeMax = 10 * leaseTime
	// unknownMax bounds the percentage of transactions whose client does not learn the outcome,
	// once there are unknownEnough transactions. Clients that died do not count.
	unknownMax    = 5
	unknownEnough = 1000
	boundsEvery   = 500 * time.Microsecond
)

// bounds checks that healthy machines make progress.
type bounds struct {
	*run
	*health
	since time.Duration // the time since which there have been enough healthy machines
	// By machine:
	well      []time.Duration // the time since which it has been healthy
	committed []time.Duration // the time of its latest commit
	counted   []int           // its commits at the latest observation
}

func newBounds(r *run, h *health) *bounds {
	n := len(h.hinders)
	return &bounds{run: r, health: h, well: make([]time.Duration, n), committed: make([]time.Duration, n), counted: make([]int, n)}
}

// watch checks all bounds, and returns true until the workload ends.
func (b *bounds) watch() bool {
	b.observe()
	if b.suffices() {
		b.run.fail(b.check(b.run.world.Now() - max(b.since, b.last))) // last is when a fault last began or ended
	} else {
		b.since = b.run.world.Now()
	}
	return !b.stopping
}

// observe records which machines are healthy, and which have committed.
func (b *bounds) observe() {
	now := b.run.world.Now()
	for i := range b.hinders {
		if !b.isWell(rdma.MachineID(i)) {
			b.well[i] = now
		}
		if b.commits[i] > b.counted[i] {
			b.counted[i], b.committed[i] = b.commits[i], now
		}
	}
}

// check returns an error if a bound is exceeded. quiet is the time since the last change of faults.
func (b *bounds) check(quiet time.Duration) error {
	if quiet > suspectMax {
		if err := b.checkSuspicions(quiet); err != nil {
			return err
		}
	}
	if quiet > activeMax {
		return b.checkProgress()
	}
	return nil
}

// checkSuspicions returns an error if a member that cannot answer is not suspected in time.
func (b *bounds) checkSuspicions(quiet time.Duration) error {
	c := b.copies.now
	for k, m := range c.Machines {
		p := b.machine(int(m)).Process()
		hasJustExited := p == nil && b.run.world.Now()-b.members.exited[m] <= suspectMax
		isWorking := p != nil && !p.Paused()
		if isWorking || hasJustExited {
			continue
		}
		if quiet > activeMax {
			return fmt.Errorf("machine %d does nothing and is a member of configuration %d, %v later", m, c.ID, activeMax)
		}
		if !b.isSuspected(m, c.Incarnation[k]) {
			return fmt.Errorf("machine %d does nothing and nobody suspects it, %v later", m, suspectMax)
		}
	}
	return nil
}

// isSuspected reports whether a healthy machine or the CM suspects machine m, or is changing the
// configuration. The CM counts even if it cannot reach the store or does not serve yet.
func (b *bounds) isSuspected(m rdma.MachineID, incarnation uint64) bool {
	return slices.ContainsFunc(b.copies.now.Machines, func(x rdma.MachineID) bool {
		p := b.machine(int(x)).Process()
		counts := b.isWell(x) || x == b.copies.now.CM
		if !counts || p == nil || p.Paused() || b.members.begun[x] == nil {
			return false
		}
		s := b.members.begun[x].Membership().Status()
		if s.Err != nil || s.Configuration == nil {
			return false
		}
		member, in := s.Configuration.Member(m)
		return s.Changing || slices.Contains(s.Suspects, m) || !in || member.Incarnation != incarnation
	})
}

// checkProgress returns an error if a healthy machine makes no progress.
func (b *bounds) checkProgress() error {
	now := b.run.world.Now()
	for i, m := range b.members.up {
		if now-b.well[i] <= activeMax {
			continue
		}
		s := m.Membership().Status()
		at := b.stored[s.Configuration.ID]
		switch {
		case s.Recovering && now-at > activeMax:
			return fmt.Errorf("machine %d: not all regions of configuration %d are active %v after it was stored", i, s.Configuration.ID, activeMax)
		case now-b.committed[i] > activeMax && now > b.begun+activeMax:
			return fmt.Errorf("machine %d is well and has committed nothing for %v", i, activeMax)
		}
	}
	for _, t := range b.timings {
		if i := t.node.id; t.since > 0 && b.nodes[i] == t.node && now-max(t.since, b.well[i], b.since, b.last) > activeMax {
			return fmt.Errorf("%s of machine %d, which is well, takes more than %v", "a transaction", i, activeMax)
		}
	}
	return nil
}

// checkUnknown returns an error if too many clients did not learn their transaction's outcome.
func (r *run) checkUnknown() error {
	all := r.result.Commits + r.result.Aborts + r.result.Unknown
	if untold := r.result.Unknown - r.orphans; all > unknownEnough && 100*untold > unknownMax*all {
		return fmt.Errorf("%d of %d transactions ended with an outcome unknown to clients that live, more than %d in 100", untold, all, unknownMax)
	}
	return nil
}

// A timing is the time when a client began its transaction; 0 if the client runs none.
type timing struct {
	node  *node
	since time.Duration
}

// withTiming wraps work so that the beginning of each call is recorded.
func (r *run) withTiming(n *node, work func(*client) error) func(*client) error {
	t := &timing{node: n}
	r.timings = append(r.timings, t)
	return func(c *client) error {
		t.since = r.world.Now()
		err := work(c)
		t.since = 0
		return err
	}
}
