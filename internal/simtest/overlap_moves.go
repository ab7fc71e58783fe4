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

// killAtMove drains a machine. It kills a machine just when a region begins to move or, mostly,
// when the moved replica leaves the drained machine. Sometimes it kills a second machine during the
// recovery from the first failure. In the end it undoes the drain, so that the drained machine may
// get the replica back.
func (t *overlapInjector) killAtMove(f Fault) {
	from := t.target()
	begins := t.rng.IntN(4) == 0
	next := t.onceMoved(func(_ *cluster.Configuration, r cluster.Remapped) []region.ID {
		if begins {
			return r.Moving
		}
		return r.Moved
	})
	t.disturbs++
	t.askToDrain(from, false)
	if now, p := next(movePatience); now != nil {
		t.strikeMove(f, []int{int(now.CM), from, int(p.Primary), t.any(), t.any()})
	}
	t.askToDrain(from, true)
	t.disturbs--
	t.noteChange()
}

// killAtHandover kills a machine, and other machines become the primaries of its regions. The
// killed machine comes back, and primaries are handed over to it. At that moment killAtHandover
// kills one or two machines, most likely ones that have replicas of these regions, or the CM.
func (t *overlapInjector) killAtHandover(f Fault) {
	back := t.any()
	next := t.onceMoved(func(c *cluster.Configuration, r cluster.Remapped) []region.ID {
		return slices.DeleteFunc(slices.Clone(r.HandedOver), func(id region.ID) bool {
			p, _ := c.Placement(id)
			return int(p.Primary) != back
		})
	})
	t.die(Kill, []int{back})
	now, p := next(handoverPatience)
	if now == nil {
		return
	}
	if t.rng.IntN(2) == 0 { // until then everything may be recovered, except what the former primary kept
		t.outside.Sleep(t.upTo(leaseTime))
	}
	roles := []int{int(now.CM), int(p.Primary), int(p.Primary), int(p.Primary)} // the primary is the most likely
	for _, m := range p.Backups {
		roles = append(roles, int(m))
	}
	t.strikeMove(f, roles)
}

// onceMoved returns a function, wait, that waits for the next configuration for which pick returns
// regions. pick gets the configuration and the report of its changes. wait returns the
// configuration and the placement of one of these regions, or nil if no such configuration comes in
// time.
func (t *overlapInjector) onceMoved(pick func(*cluster.Configuration, cluster.Remapped) []region.ID) (wait func(patience time.Duration) (*cluster.Configuration, cluster.Placement)) {
	var now *cluster.Configuration
	var picked []region.ID
	stored := t.outside.NewEvent()
	former := t.members.onMoved // the hook of another fault of this kind, or nil
	t.members.onMoved = func(c *cluster.Configuration, r cluster.Remapped) {
		if former != nil {
			former(c, r)
		}
		if ids := pick(c, r); now == nil && len(ids) > 0 {
			now, picked = c, ids
			stored.Set()
		}
	}
	return func(patience time.Duration) (*cluster.Configuration, cluster.Placement) {
		if !stored.WaitFor(patience) {
			return nil, cluster.Placement{}
		}
		p, _ := now.Placement(picked[t.rng.IntN(len(picked))])
		return now, p
	}
}

// resize changes the number of replicas, which may be impossible.
func (t *overlapInjector) resize(f Fault) {
	t.countFault(f)
	t.disturbs++
	t.askToResize()
	t.outside.Sleep(drainMin + t.upTo(t.plan.Hold))
	t.disturbs--
	t.noteChange()
}

// killAtResize changes the number of replicas, and kills a machine when a region gains or loses
// replicas. Sometimes it kills a second machine during the recovery from the first failure.
func (t *overlapInjector) killAtResize(f Fault) {
	next := t.onceMoved(func(_ *cluster.Configuration, r cluster.Remapped) []region.ID {
		return slices.Concat(r.Shrunk, r.Growing)
	})
	t.disturbs++
	t.askToResize()
	if now, p := next(movePatience); now != nil {
		roles := []int{int(now.CM), int(p.Primary), t.any()}
		for _, m := range p.Backups {
			roles = append(roles, int(m))
		}
		for _, m := range p.Before { // machines that no longer have the region
			roles = append(roles, int(m.Machine))
		}
		t.strikeMove(f, roles)
	}
	t.disturbs--
	t.noteChange()
}

// shrinkAtHandover kills a machine, and waits until primaries are handed over. It then makes all
// regions lose replicas, some of them at former primaries. At that moment one, two or all machines
// die. In half of all cases the number of replicas grows again meanwhile, so that former primaries
// get some replicas back.
func (t *overlapInjector) shrinkAtHandover(f Fault) {
	handed := t.onceMoved(func(_ *cluster.Configuration, r cluster.Remapped) []region.ID { return r.HandedOver })
	t.die(Kill, []int{t.any()})
	now, p := handed(handoverPatience)
	if now == nil {
		return
	}
	t.disturbs++
	t.maybeCutPower()
	shrunk := t.onceMoved(func(_ *cluster.Configuration, r cluster.Remapped) []region.ID {
		return slices.DeleteFunc(slices.Clone(r.Shrunk), func(id region.ID) bool { return id != p.Region })
	})
	t.askToHaveReplicas(1 + t.rng.IntN(max(1, now.Replicas-1)))
	if now, q := shrunk(movePatience); now != nil {
		t.countFault(f)
		if t.rng.IntN(2) == 0 {
			t.outside.Go(func() {
				t.outside.Sleep(t.upTo(strikeMax))
				t.askToResize()
			})
		}
		if !t.maybeCutPower() {
			roles := []int{int(now.CM), int(q.Primary), int(q.Primary), t.any()} // the primary dies more often than others
			for _, m := range p.Backups {                                        // the backups before the shrink: some no longer have the region
				roles = append(roles, int(m))
			}
			t.strikeMove(f, roles)
		}
	}
	t.askToHaveReplicas(min(3, t.options.Domains))
	t.disturbs--
	t.noteChange()
}

// maybeCutPower kills all machines in some cases, and reports whether it did. Call it just after
// the configuration has changed.
func (t *overlapInjector) maybeCutPower() bool {
	if t.rng.IntN(8) > 0 {
		return false
	}
	t.outside.Sleep(t.upTo(strikeMax))
	t.die(PowerCut, t.all())
	return true
}

// askToResize asks for another number of replicas.
func (t *overlapInjector) askToResize() {
	most := min(4, t.options.Domains)
	n := 1 + t.rng.IntN(most)
	if t.copies.now != nil && n == t.copies.now.Replicas {
		n = 1 + n%most
	}
	t.askToHaveReplicas(n)
}

// askToHaveReplicas asks for a number of replicas.
func (t *overlapInjector) askToHaveReplicas(n int) {
	t.ask(fmt.Sprintf("%d replicas", n), func(m *membership.Machine) error {
		err := m.Resize(ctx, n)
		if err == nil {
			t.members.resized++
		}
		return err
	})
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

// askToDrain asks a machine that serves to drain machine i or, if undo is set, to end the drain.
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

// undrainAll makes all machines take regions again. Some are still drained if an earlier fault's request came late.
func (t *overlapInjector) undrainAll() {
	if now := t.copies.now; now != nil {
		for _, d := range now.Draining {
			t.askToDrain(int(d.Machine), true)
		}
	}
}
