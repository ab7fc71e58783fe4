package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
)

// drain takes the data off a machine for a while. The machines move regions, which interrupts all of
// them now and then.
func (t *overlapInjector) drain(f Fault) {
	i := t.target()
	t.countFault(f)
	t.disturbs++
	t.askToDrain(i, false)
	t.outside.Sleep(drainMin + t.maybeLong(t.hold()))
	t.askToDrain(i, true)
	t.disturbs--
	t.noteChange()
}

// order makes an operator move a replica, which may be impossible.
func (t *overlapInjector) order(f Fault) {
	t.countFault(f)
	now := t.copies.now
	if now == nil || len(now.Regions) == 0 {
		return
	}
	p := now.Regions[t.rng.IntN(len(now.Regions))]
	replicas := p.Replicas()
	if len(replicas) == 0 {
		return
	}
	o := cluster.Order{Region: p.Region, Move: cluster.Move{From: replicas[t.rng.IntN(len(replicas))], To: now.Machines[t.rng.IntN(len(now.Machines))]}}
	t.ask(fmt.Sprintf("move region %d %v", o.Region, &o.Move), func(m *membership.Machine) error {
		err := m.Move(ctx, o)
		if err == nil {
			t.members.ordered++
		}
		return err
	})
	t.noteChange()
}

// killAtMove drains a machine, and kills one just when a region begins to move, or, mostly, when its
// replica leaves; sometimes it kills a second one, while the first failure is recovered from. Then the
// machine that the replica has left may get it back at once.
func (t *overlapInjector) killAtMove(f Fault) {
	from := t.target()
	var now *cluster.Configuration
	var moves []region.ID
	begins, stored := t.rng.IntN(4) == 0, t.outside.NewEvent()
	next := t.members.onMoved // of another such fault
	t.members.onMoved = func(c *cluster.Configuration, r cluster.Remapped) {
		if next != nil {
			next(c, r)
		}
		ids := r.Moved
		if begins {
			ids = r.Moving
		}
		if now == nil && len(ids) > 0 {
			now, moves = c, ids
			stored.Set()
		}
	}
	t.disturbs++
	t.askToDrain(from, false)
	if stored.WaitFor(movePatience) {
		p, _ := now.Placement(moves[t.rng.IntN(len(moves))])
		t.strikeMove(f, []int{int(now.CM), from, int(p.Primary), t.any(), t.any()})
	}
	t.askToDrain(from, true)
	t.disturbs--
	t.noteChange()
}

// killAtHandover kills a machine, of whose regions others become primaries. When it is back, primaries
// are handed over to it: then killAtHandover kills one or two of the machines that have replicas of
// these regions, or the CM.
func (t *overlapInjector) killAtHandover(f Fault) {
	back := t.any()
	var now *cluster.Configuration
	var handed []region.ID
	stored := t.outside.NewEvent()
	next := t.members.onMoved // of another such fault
	t.members.onMoved = func(c *cluster.Configuration, r cluster.Remapped) {
		if next != nil {
			next(c, r)
		}
		to := slices.DeleteFunc(slices.Clone(r.HandedOver), func(id region.ID) bool {
			p, _ := c.Placement(id)
			return int(p.Primary) != back
		})
		if now == nil && len(to) > 0 {
			now, handed = c, to
			stored.Set()
		}
	}
	t.die(Kill, []int{back})
	if !stored.WaitFor(handoverPatience) {
		return
	}
	if t.rng.IntN(2) == 0 { // once all is recovered, but for what the former primary may have kept
		t.outside.Sleep(t.upTo(leaseTime))
	}
	p, _ := now.Placement(handed[t.rng.IntN(len(handed))])
	roles := []int{int(now.CM), int(p.Primary), int(p.Primary), int(p.Primary)}
	for _, m := range p.Backups {
		roles = append(roles, int(m))
	}
	t.strikeMove(f, roles)
}

const (
	// handoverPatience bounds the wait for a handover. Often there is none: the primaries are even.
	handoverPatience = 5 * leaseTime
	// movePatience bounds the wait for a move.
	movePatience = 20 * leaseTime
	// strikeMax bounds the time from the configuration of a move to the failure. By then all have
	// applied it, and most have committed it.
	strikeMax = time.Millisecond
)

// strikeMove kills one machine of those given, and perhaps a second one.
func (t *overlapInjector) strikeMove(f Fault, roles []int) {
	var over []clock.Event
	for n := 1 + t.rng.IntN(2); n > 0; n-- {
		if t.rng.IntN(3) > 0 {
			t.outside.Sleep(t.upTo(strikeMax))
		}
		i, done := roles[t.rng.IntN(len(roles))], t.outside.NewEvent()
		over = append(over, done)
		t.outside.Go(func() {
			t.die(f, []int{i})
			done.Set()
		})
	}
	for _, e := range over {
		e.Wait()
	}
}

// drainMin is long enough for some regions to move, if nothing else happens.
const drainMin = 5 * leaseTime

// drainPatience is how long an operator waits for the answer to a request, which can be lost.
const drainPatience = 5 * leaseTime

// askToDrain asks any machine that serves to drain machine i, or, with undo, not to any more.
func (t *overlapInjector) askToDrain(i int, undo bool) {
	t.ask(fmt.Sprintf("drain machine %d, undo %v", i, undo), func(m *membership.Machine) error { return m.Drain(ctx, rdma.MachineID(i), undo) })
}

// ask makes a request at any machine that serves.
func (t *overlapInjector) ask(what string, request func(*membership.Machine) error) {
	asked := slices.DeleteFunc(t.all(), func(m int) bool { return t.members.up[m] == nil })
	if len(asked) == 0 {
		return
	}
	k := asked[t.rng.IntN(len(asked))]
	m, p, done := t.members.up[k], t.machine(k).Process(), t.outside.NewEvent()
	p.Go(func() {
		t.members.note(p, "%s: %v", what, request(m.Membership()))
		done.Set()
	})
	done.WaitFor(drainPatience)
}

// undrainAll makes all machines take regions again. A request of an earlier fault may come late.
func (t *overlapInjector) undrainAll() {
	if now := t.copies.now; now != nil {
		for _, d := range now.Draining {
			t.askToDrain(int(d.Machine), true)
		}
	}
}
