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

// Moves and handovers end, with any machines and groups. All handovers are one configuration, after
// the last move, and make the primaries more even. They then differ by a group or a tenth at most,
// wherever there is a way on which one could be handed over.
func TestHandoversEnd(t *testing.T) {
	configurations, regions := 0, 0
	for seed := range uint64(150) {
		c := movable(random(t, rand.New(rand.NewPCG(seed, 11))))
		isOver := false
		for n := 0; ; n++ {
			next, report := c.MoveOn(true)
			if next == nil {
				break
			}
			if isOver || n > 10000 {
				t.Fatalf("seed %d: it goes on: %v", seed, report)
			}
			if isOver = len(report.HandedOver) > 0; isOver {
				configurations, regions = configurations+1, regions+len(report.HandedOver)
				if before, after := squares(c), squares(next); after >= before {
					t.Errorf("seed %d: squares of primaries %d, before %d", seed, after, before)
				}
			}
			next.Follow(c, func(region.ID) bool { return false })
			if err := sound(next); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			c = fillAll(next)
		}
		if c.BeginsMoves() {
			allEven(t, seed, c)
		}
	}
	if configurations < 20 || regions < 2*configurations {
		t.Errorf("%d regions were handed over in %d configurations: hardly any", regions, configurations)
	}
}

// squares returns the sum of the squares of the numbers of primaries.
func squares(c *Configuration) (sum int) {
	for _, m := range c.Machines {
		sum += c.PrimaryOf(m) * c.PrimaryOf(m)
	}
	return sum
}

// allEven checks that no two machines are uneven between which primaries could be handed over.
func allEven(t *testing.T, seed uint64, c *Configuration) {
	t.Helper()
	groups := slices.DeleteFunc(c.groups(), func(g []int) bool { return !c.Regions[g[0]].IsAvailable() || !c.isTogether(g) })
	targets := slices.DeleteFunc(slices.Clone(c.Machines), c.IsDraining)
	for n := range 20 { // the size of the groups
		leads := make(map[[2]rdma.MachineID]bool)
		for _, g := range groups {
			for _, b := range c.Regions[g[0]].Backups {
				leads[[2]rdma.MachineID{c.Regions[g[0]].Primary, b}] = leads[[2]rdma.MachineID{c.Regions[g[0]].Primary, b}] || len(g) == n
			}
		}
		for _, over := range targets {
			for _, a := range targets {
				for _, b := range targets {
					if leads[[2]rdma.MachineID{a, over}] && leads[[2]rdma.MachineID{over, b}] {
						leads[[2]rdma.MachineID{a, b}] = true
					}
				}
			}
		}
		for _, a := range targets {
			for _, b := range targets {
				d := c.PrimaryOf(a) - c.PrimaryOf(b)
				if leads[[2]rdma.MachineID{a, b}] && d > n && d*evenPart*len(targets) > len(c.Regions) {
					t.Errorf("seed %d: machine %d has %d primaries, machine %d has %d, and a way leads from one to the other for groups of %d", seed, a, c.PrimaryOf(a), b, c.PrimaryOf(b), n)
				}
			}
		}
	}
}

// ring returns machines in a ring, which have the regions of the two beside them, k each, once as the primary
// and once as the backup. Machine i is the primary of own[i] of those that it has with the next one.
func ring(k, size int, own []int) *Configuration {
	n := len(own)
	c := movable(instance(n, 2, false))
	for i := range rdma.MachineID(n) {
		next := (i + 1) % rdma.MachineID(n)
		for j := range k {
			p, b := i, next
			if j >= own[i] {
				p, b = next, i
			}
			group := c.NextRegion
			for range size {
				c.Regions = append(c.Regions, Placement{Region: c.NextRegion, Group: group, Primary: p, Backups: []rdma.MachineID{b}, LastPrimaryChange: c.ID, LastReplicaChange: c.ID})
				c.NextRegion++
			}
		}
	}
	return c
}

// Where those with many primaries have no backups at those with few, machines between pass them on: each
// gives one, and gets one.
func TestHandoversOverOthers(t *testing.T) {
	for size := 1; size <= 3; size++ {
		c := ring(6, size, []int{1, 0, 0, 1, 3, 5, 6, 6, 5, 3})
		if got := fmt.Sprint(primariesOf(c)); size == 1 && got != "[4 4 5 5 6 6 7 7 8 8]" {
			t.Fatal(got)
		}
		c, moves := moveAll(t, c, true)
		if got := primariesOf(c); moves > 0 || got[0] != 6*size || got[9] != 6*size {
			t.Errorf("groups of %d: %d moves, primaries %v", size, moves, got)
		}
	}
}

// While one machine makes regions there are few handovers: each makes the primaries as even as they can
// be, so that many regions have to be made until the next is worth it.
func TestHandoversAreFew(t *testing.T) {
	for _, n := range []int{30, 100, 300} {
		c, _ := moveAll(t, uneven(t, n), true)
		const made = 60
		handovers := 0
		for range made {
			next, _, err := c.Place(0, 0)
			if err != nil {
				t.Fatal(err)
			}
			c = next
			if next, _ := c.MoveOn(true); next != nil {
				next.Follow(c, func(region.ID) bool { return false })
				c, handovers = next, handovers+1
			}
		}
		most := made / (n/3/evenPart + 1)
		t.Logf("%d regions, and %d more are made: %d handovers", n, made, handovers)
		if handovers == 0 || handovers > most {
			t.Errorf("%d regions, and %d more are made: %d handovers, want 1 to %d", n, made, handovers, most)
		}
	}
}

// The successor of a configuration is known by its primaries to have handed some over; one in which
// a primary has failed has not.
func TestHandsOver(t *testing.T) {
	c := uneven(t, 4)
	d, _ := c.MoveOn(true)
	if !d.HandsOver(c) {
		t.Error("handed over, and not seen")
	}
	if d.Succeed().HandsOver(d) {
		t.Error("nothing has changed")
	}
	if dead, _ := c.Without([]rdma.MachineID{0}, 1); dead.HandsOver(c) {
		t.Error("the primary has failed")
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

// To plan thousands of handovers takes milliseconds: the CM does it while the instance waits for nothing
// else.
func BenchmarkHandovers(b *testing.B) {
	c := movable(instance(10, 3, false))
	for i := range 3000 {
		id := region.ID(i + 1)
		c.Regions = append(c.Regions, Placement{Region: id, Group: id, Primary: 0, Backups: []rdma.MachineID{rdma.MachineID(1 + i%9), rdma.MachineID(1 + (i+1)%9)}})
	}
	for b.Loop() {
		if n := len(c.NextHandovers()); n < 2000 {
			b.Fatalf("%d handovers", n)
		}
	}
}
