package cluster

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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
	if got := oneOf([]rdma.MachineID{4, 7, 9}); got != "4, 7 or 9" || oneOf(nil) != "" {
		t.Errorf("%q", got)
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
			o := Order{p.Region, Move{p.Primary, c.Machines[r.IntN(len(c.Machines))]}}
			if c.CheckOrder(o) == nil {
				c = obeyed(t, c, o)
				granted++
			}
		}
		moveAll(t, c, true)
	}
	if granted < 100 {
		t.Errorf("%d orders were granted", granted)
	}
}
