package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// uneven returns three machines with all replicas of n regions, of which machine 0 is the primary of all.
func uneven(t *testing.T, n int) *Configuration {
	t.Helper()
	c := movable(instance(3, 3, false))
	for range n {
		next, _, err := c.Place(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	return c
}

// primariesOf returns the number of primaries of each machine that may get replicas, in order.
func primariesOf(c *Configuration) (n []int) {
	for _, m := range c.Machines {
		if !c.IsDraining(m) {
			n = append(n, c.PrimaryOf(m))
		}
	}
	slices.Sort(n)
	return n
}

// A handover gives a group to a machine with backups of it. The former primary stays as a backup, nothing is
// filled, and the set of replicas is not another one. All handovers are one configuration.
func TestHandOver(t *testing.T) {
	c := uneven(t, 4)
	c, joined, err := c.Place(0, 1) // beside region 1
	if err != nil || joined.Group != 1 {
		t.Fatal(joined, err)
	}
	before := c.Clone()
	d, report := c.MoveOn(true)
	if d == nil || d.ID != c.ID+1 || len(report.HandedOver) < 3 || len(report.Moving)+len(report.Promoted)+len(report.Refilled) > 0 {
		t.Fatalf("%v", report)
	}
	d.Follow(c, func(region.ID) bool { return false })
	if err := sound(d); err != nil {
		t.Error(err)
	}
	for i, p := range d.Regions {
		was := before.Regions[i]
		isHandedOver := slices.Contains(report.HandedOver, p.Region)
		switch {
		case len(p.Filling) > 0 || p.LastReplicaChange != was.LastReplicaChange || len(p.Before) > 0:
			t.Errorf("%+v was %+v", p, was)
		case isHandedOver != (p.Primary != was.Primary), isHandedOver != (p.LastPrimaryChange == d.ID):
			t.Errorf("%+v was %+v, handed over: %v", p, was, isHandedOver)
		case isHandedOver && (!slices.Contains(p.Backups, was.Primary) || !slices.Contains(was.Backups, p.Primary)):
			t.Errorf("%+v was %+v", p, was)
		}
		if p.Group == 1 && p.Primary != d.Regions[0].Primary {
			t.Errorf("region %d is not at the primary of its group", p.Region)
		}
	}
	if fmt.Sprint(primariesOf(d)) != "[1 2 2]" {
		t.Error(primariesOf(d))
	}
	if next, _ := d.MoveOn(true); next != nil {
		t.Error("more is handed over")
	}
	if again, err := Decode("x", d.Encode()); err != nil || again.Regions[0].Primary != d.Regions[0].Primary {
		t.Error(err)
	}
}

// Without enough machines for moves, handovers alone even out the primaries: three machines with three
// replicas, and the same after two have joined and have been drained again.
func TestHandoversAreEnough(t *testing.T) {
	c := uneven(t, 60)
	c, moves := moveAll(t, c, true)
	if got := primariesOf(c); moves > 0 || got[2]-got[0] > 2 {
		t.Errorf("%d moves, primaries %v", moves, got)
	}
	for _, m := range []rdma.MachineID{3, 4} {
		next, _ := c.With(Member{Machine: m, FailureDomain: int(m), Incarnation: 9, Memory: 7, Protocol: protocol.Own}, nil)
		c, _ = moveAll(t, fillAll(next), true)
	}
	mean := 60 / 5
	if got := primariesOf(c); got[4]-got[0] > max(2, mean/5) {
		t.Errorf("five machines: primaries %v", got)
	}
	for _, m := range []rdma.MachineID{0, 3} {
		next, err := c.Drain(m)
		if err != nil {
			t.Fatal(err)
		}
		c, _ = moveAll(t, next, true)
	}
	mean = 60 / 3
	if got := primariesOf(c); got[2]-got[0] > mean/5 {
		t.Errorf("three of five: primaries %v", got)
	}
}

// Whatever the machines and the groups: moves and handovers end, the primaries then differ by a group or a
// tenth at most, wherever a backup could take one, and nothing is handed over between.
func TestHandoversEnd(t *testing.T) {
	handovers := 0
	for seed := range uint64(150) {
		c := movable(random(t, rand.New(rand.NewPCG(seed, 11))))
		c, _ = moveAll(t, c, true)
		for n := 0; ; n++ {
			next, report := c.MoveOn(true)
			if next == nil {
				break
			}
			handovers += len(report.HandedOver)
			if n > 1 {
				t.Fatalf("seed %d: %v, and it goes on", seed, report)
			}
			c = fillAll(next)
		}
		for _, g := range c.groups() {
			p := &c.Regions[g[0]]
			if !p.IsAvailable() || !c.isTogether(g) || !c.BeginsMoves() {
				continue
			}
			for _, b := range p.Backups {
				d := c.PrimaryOf(p.Primary) - c.PrimaryOf(b)
				if d > len(g) && d*evenPart*len(c.Machines) > len(c.Regions) && !c.IsDraining(b) && !c.IsDraining(p.Primary) {
					t.Errorf("seed %d: machine %d has %d primaries, and machine %d, with backups of group %d, has %d", seed, p.Primary, c.PrimaryOf(p.Primary), b, p.Group, c.PrimaryOf(b))
				}
			}
		}
	}
}

// Nothing is handed over to or from a machine that is being drained, while a replica is being filled or a
// region is unavailable, or while a member's program does not know it: then moves even out the
// primaries as before.
func TestNoHandovers(t *testing.T) {
	c := uneven(t, 9)
	if len(c.NextHandovers()) == 0 || c.Urgency() != ForBalance {
		t.Fatal("nothing would be handed over anyway")
	}
	if next, _ := c.MoveOn(false); next != nil {
		t.Error("handed over at once")
	}
	old := c.Clone()
	old.Speaks = protocol.Moves
	if next, report := old.MoveOn(true); next != nil || old.Urgency() != NothingMoves {
		t.Errorf("version %d: %v", old.Version(), report)
	}
	filling := c.Clone()
	filling.Regions[4].Filling = filling.Regions[4].Backups[:1]
	if next, report := filling.MoveOn(true); next != nil {
		t.Errorf("while a replica is filled: %v", report)
	}
	for _, m := range []rdma.MachineID{0, 1} {
		drained := c.Clone()
		member, _ := c.Member(m)
		drained.Draining = []Memory{{Machine: m, Token: member.Memory}}
		for _, h := range drained.NextHandovers() {
			if h.From == m || h.To == m {
				t.Errorf("machine %d is being drained: %+v", m, h)
			}
		}
	}
	moved := withRegions(t, movable(instance(5, 3, false)), 5)
	moved.Speaks = protocol.Moves
	for i := range 10 {
		next, _, err := moved.Place(0, 0)
		if err != nil {
			t.Fatal(i, err)
		}
		moved = next
	}
	moved, n := moveAll(t, moved, true)
	if got := primariesOf(moved); n == 0 || got[len(got)-1]-got[0] > 2 {
		t.Errorf("version %d: %d moves, primaries %v", moved.Version(), n, got)
	}
}
