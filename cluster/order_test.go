package cluster

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// obeyed carries out an order to its end.
func obeyed(t *testing.T, c *Configuration, o Order) *Configuration {
	t.Helper()
	d, report, err := c.Obey(o)
	if err != nil || !slices.Contains(report.Moving, o.Region) || !d.IsGranted(o) {
		t.Fatalf("%+v: %v, %+v", o, err, report)
	}
	d.Follow(c, func(region.ID) bool { return false })
	c = fillAll(d)
	d, _ = c.EndMoves()
	d.Follow(c, func(region.ID) bool { return false })
	if err := sound(d); err != nil || !d.IsGranted(o) {
		t.Fatalf("%+v: %v", o, err)
	}
	return d
}

// A replica moves where the operator says, with its group and in the role that it has, and balance
// leaves it there, though not what is uneven because of it. Another order moves it further.
func TestOrder(t *testing.T) {
	c := movable(instance(4, 2, false))
	c, first, err := c.Place(0, 0)
	if err == nil {
		c, _, err = c.Place(0, first.Region)
	}
	if err != nil {
		t.Fatal(err)
	}
	c = withRegions(t, c, 8)
	to := slices.DeleteFunc(slices.Clone(c.Machines), first.Has)[0]
	o := Order{2, Move{0, to}}
	if c.IsGranted(o) {
		t.Error("granted before it is given")
	}
	c = obeyed(t, c, o)
	for _, p := range c.Regions[:2] {
		if p.Primary != to || p.Has(0) || !slices.Equal(p.Pinned, []rdma.MachineID{to}) {
			t.Errorf("%+v", p)
		}
	}
	even, moves := moveAll(t, c, true)
	if load, _ := spread(even); moves == 0 || load[1]-load[0] > 1 {
		t.Errorf("%d moves, %v replicas each", moves, load)
	}
	for _, p := range even.Regions[:2] {
		if p.Primary != to {
			t.Errorf("balance has moved what was ordered: %+v", p)
		}
	}
	further := Order{1, Move{to, slices.DeleteFunc(slices.Clone(even.Machines), even.Regions[0].Has)[0]}}
	even = obeyed(t, even, further)
	if p := even.Regions[0]; !slices.Equal(p.Pinned, []rdma.MachineID{further.To}) {
		t.Errorf("%+v", p)
	}
}

// A pinned replica leaves a machine that is being drained, or fails, and is pinned no longer.
func TestPinnedReplicaLeaves(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 4)
	to := slices.DeleteFunc(slices.Clone(c.Machines), c.Regions[0].Has)[0]
	c = obeyed(t, c, Order{1, Move{c.Regions[0].Primary, to}})
	drained, err := c.Drain(to)
	if err != nil {
		t.Fatal(err)
	}
	drained, _ = moveAll(t, drained, false)
	stale := c.Clone()
	stale.Regions[0].Pinned = []rdma.MachineID{99}
	if stale.IsGranted(Order{1, Move{98, 99}}) {
		t.Error("a replica has been moved to a machine that has none")
	}
	cm := slices.DeleteFunc(slices.Clone(c.Machines), func(m rdma.MachineID) bool { return m == to })[0]
	without, _ := c.Without([]rdma.MachineID{to}, cm)
	for name, d := range map[string]*Configuration{"drained": drained, "failed": without} {
		d.Follow(c, func(region.ID) bool { return false })
		if p := d.Regions[0]; p.Has(to) || len(p.Pinned) > 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What cannot be ordered is refused with what is in the way, and what to do.
func TestCannotMove(t *testing.T) {
	c := withRegions(t, movable(instance(8, 3, true)), 4) // two machines in each domain
	p := c.Regions[0]
	free := slices.DeleteFunc(slices.Clone(c.Machines), func(m rdma.MachineID) bool { return p.Has(m) || !c.sparesDomain(&p, m, m) })[0]
	full := c.Clone()
	full.Capacity[free] = full.load()[free]
	if full.Capacity[free] == 0 {
		t.Fatal("a capacity of 0 is none")
	}
	short := c.Clone()
	short.Regions[0].dropBackup(p.Backups[1], short.ID)
	gone, _ := c.Without(p.Replicas(), free)
	moving, _, err := c.Obey(Order{1, Move{p.Primary, free}})
	if err != nil {
		t.Fatal(err)
	}
	drained, err := c.Drain(free)
	if err != nil {
		t.Fatal(err)
	}
	lost := c.Clone()
	lost.Lost = []region.ID{9}
	for _, x := range []struct {
		c    *Configuration
		o    Order
		text string
	}{
		{withRegions(t, instance(4, 3, false), 1), Order{1, Move{0, 3}}, "version 3 is needed: start those of older programs"},
		{lost, Order{9, Move{0, 3}}, "region 9 is lost: restore a save"},
		{c, Order{77, Move{0, 3}}, "has no region 77: name one that farmsql status shows"},
		{gone, Order{1, Move{p.Primary, free}}, "unavailable until one of its memories is back: start one"},
		{moving, Order{1, Move{p.Backups[0], free}}, "moves from machine"},
		{c, Order{1, Move{free, p.Primary}}, "has no replica of region 1: move one from machine " + oneOf(p.Replicas())},
		{c, Order{1, Move{99, free}}, "machine 99 has no replica"},
		{c, Order{1, Move{p.Primary, 99}}, "machine 99 is no member of configuration 1: start it"},
		{c, Order{1, Move{p.Primary, p.Backups[0]}}, "has a replica of region 1 already"},
		{c, Order{1, Move{p.Primary, p.Primary}}, "has a replica of region 1 already"},
		{drained, Order{1, Move{p.Primary, free}}, "is being drained: take that back"},
		{short, Order{1, Move{p.Primary, free}}, "has 2 of 3 replicas"},
		{c, Order{1, Move{p.Primary, p.Backups[0] ^ 1}}, "failure domain of machine"},
		{moving, Order{1, Move{p.Primary, 99}}, "machine 99 is no member"},
		{full, Order{1, Move{p.Primary, free}}, "no room for regions [1]"},
	} {
		_, _, err := x.c.Obey(x.o)
		if !errors.Is(err, ErrCannotMove) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%+v: %v, want %q", x.o, err, x.text)
		}
	}
	if err := c.CheckOrder(Order{1, Move{p.Primary, p.Primary ^ 1}}); err != nil {
		t.Errorf("within the domain of the machine that the replica leaves: %v", err)
	}
	if err := moving.CheckOrder(Order{1, Move{p.Primary, p.Backups[0]}}); err != nil {
		t.Errorf("an order does not wait until its region has moved: %v", err)
	}
	if got := oneOf([]rdma.MachineID{4, 7, 9}); got != "4, 7 or 9" || oneOf(nil) != "" {
		t.Errorf("%q", got)
	}
}

// failedOrder carries out an order, in the middle of which a machine fails.
func failedOrder(t *testing.T, c *Configuration, o Order, fails rdma.MachineID) *Configuration {
	t.Helper()
	d, _, err := c.Obey(o)
	if err != nil {
		t.Fatal(err)
	}
	d.Follow(c, func(region.ID) bool { return false })
	cm := d.Machines[0]
	if cm == fails && len(d.Machines) > 1 {
		cm = d.Machines[1]
	}
	e, _ := d.Without([]rdma.MachineID{fails}, cm)
	e.Follow(d, func(region.ID) bool { return false })
	if err := sound(e); err != nil {
		t.Fatalf("%+v, machine %d fails: %v", o, fails, err)
	}
	p, _ := e.Placement(o.Region)
	if isDone := e.IsGranted(o); isDone && p.Has(o.From) && p.Move == nil || isDone && !p.Has(o.To) {
		t.Fatalf("%+v, machine %d fails: done, though the region is at %+v", o, fails, p)
	}
	return fillAll(e)
}

// If a machine fails in the middle of an order, the region keeps the replicas that it needs. The target
// is pinned only if the replica has left the other machine.
func TestFailureDuringAnOrder(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 8)
	p := c.Regions[0]
	first := slices.DeleteFunc(slices.Clone(c.Machines), p.Has)[0]
	c = obeyed(t, c, Order{1, Move{p.Primary, first}}) // from where it moves on
	second := slices.DeleteFunc(slices.Clone(c.Machines), c.Regions[0].Has)[0]
	o := Order{1, Move{first, second}}
	for name, x := range map[string]struct {
		fails     rdma.MachineID
		isGranted bool
		pinned    []rdma.MachineID
	}{
		"the target":                            {second, false, []rdma.MachineID{first}},
		"the machine that the replica leaves":   {first, true, []rdma.MachineID{second}},
		"the machine with the region's backups": {p.Backups[0], false, []rdma.MachineID{first}},
	} {
		d := failedOrder(t, c, o, x.fails)
		if got := d.Regions[0]; d.IsGranted(o) != x.isGranted || !slices.Equal(got.Pinned, x.pinned) {
			t.Errorf("%s fails: granted %v, %+v", name, d.IsGranted(o), got)
		}
	}
	moving, _, _ := c.Obey(o)
	moving.Follow(c, func(region.ID) bool { return false })
	refused, _ := moving.Refuse(second, []region.ID{1})
	refused.Follow(moving, func(region.ID) bool { return false })
	if got := refused.Regions[0].Pinned; !slices.Equal(got, []rdma.MachineID{first}) {
		t.Errorf("the target refuses: pinned at %v", got)
	}
}

// A machine that joins with an older copy of what moves does not take the place of a target that an
// operator has named, for the region nor for one of its group; it does so if the region needs the replica.
func TestOrderWhenAnOlderCopyJoins(t *testing.T) {
	c := movable(instance(4, 2, false))
	c, first, err := c.Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	to := slices.DeleteFunc(slices.Clone(c.Machines), first.Has)[0]
	joiner := Member{Machine: 9, FailureDomain: 9, Incarnation: 9, Memory: 9, Protocol: protocol.Own}
	for name, place := range map[string]bool{"a region": false, "one of a group": true} {
		base := c
		if place {
			if base, _, err = c.Place(0, first.Region); err != nil {
				t.Fatal(err)
			}
		}
		last := base.Regions[len(base.Regions)-1].Region
		ordered, _, err := base.Obey(Order{first.Region, Move{0, to}})
		if err != nil {
			t.Fatal(err)
		}
		ordered.Follow(base, func(region.ID) bool { return false })
		d, _ := ordered.With(joiner, []region.ID{last})
		d.Follow(ordered, func(region.ID) bool { return false })
		for _, p := range d.Regions {
			if p.Move == nil || p.Move.To != to || p.Has(9) || !slices.Equal(p.Pinned, []rdma.MachineID{to}) {
				t.Errorf("%s: %+v", name, p)
			}
		}
		failed, _ := ordered.Without([]rdma.MachineID{0}, to)
		failed.Follow(ordered, func(region.ID) bool { return false })
		d, _ = failed.With(joiner, []region.ID{last})
		d.Follow(failed, func(region.ID) bool { return false })
		if p := d.Regions[len(d.Regions)-1]; p.Has(to) || !p.Has(9) || len(p.Pinned) > 0 {
			t.Errorf("%s, which needs the replica: %+v", name, p)
		}
	}
}

// A region that is made beside a pinned one is pinned, too.
func TestPinnedGroupGrows(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 1)
	to := slices.DeleteFunc(slices.Clone(c.Machines), c.Regions[0].Has)[0]
	c = obeyed(t, c, Order{1, Move{0, to}})
	d, p, err := c.Place(to, 1)
	if err != nil || p.Group != 1 || !slices.Equal(p.Pinned, []rdma.MachineID{to}) || sound(d) != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// An order is refused if it takes room without which a machine that is being drained cannot be emptied.
func TestOrdersBesideADrain(t *testing.T) {
	granted, refused := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := withRegions(t, movable(instance(4+r.IntN(4), 2+r.IntN(2), false)), 4+r.IntN(8))
		load := c.load()
		for i, m := range c.Machines {
			c.Capacity[i] = max(1, load[m]) + r.IntN(4)
		}
		drained := c.Machines[r.IntN(len(c.Machines))]
		c, err := c.Drain(drained)
		if err != nil {
			continue
		}
		for range 5 {
			p := c.Regions[r.IntN(len(c.Regions))]
			o := Order{p.Region, Move{p.Replicas()[r.IntN(len(p.Replicas()))], c.Machines[r.IntN(len(c.Machines))]}}
			switch err := c.CheckOrder(o); {
			case err == nil:
				granted++
				if err := obeyed(t, c, o).CheckDrain(drained); err != nil {
					t.Errorf("seed %d, %+v: %v", seed, o, err)
				}
			case strings.Contains(err.Error(), "which is being drained: take that back first"):
				refused++
			}
		}
	}
	if granted < 100 || refused == 0 {
		t.Errorf("%d orders were granted, %d refused", granted, refused)
	}
}

// Whatever is ordered, configurations stay sound, and moves end.
func TestOrdersEnd(t *testing.T) {
	granted := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		c, _ := moveAll(t, movable(random(t, r)), false)
		for range 10 {
			if len(c.Regions) == 0 || !c.BeginsMoves() {
				break
			}
			p := c.Regions[r.IntN(len(c.Regions))]
			replicas := p.Replicas()
			o := Order{p.Region, Move{replicas[r.IntN(len(replicas))], c.Machines[r.IntN(len(c.Machines))]}}
			if c.CheckOrder(o) != nil {
				continue
			}
			granted++
			if r.IntN(4) == 0 {
				c = failedOrder(t, c, o, c.Machines[r.IntN(len(c.Machines))])
			} else {
				c = obeyed(t, c, o)
			}
		}
		moveAll(t, c, true)
	}
	if granted < 100 {
		t.Errorf("%d orders were granted", granted)
	}
}
