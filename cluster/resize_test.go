package cluster

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// resized returns the configuration that notes the new number.
func resized(t *testing.T, c *Configuration, n int) *Configuration {
	t.Helper()
	d, err := c.Resize(n)
	if err != nil {
		t.Fatal(err)
	}
	d.Follow(c, func(region.ID) bool { return false })
	if err := sound(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// checkResized checks that all regions have n replicas, and nothing is left to do.
func checkResized(t *testing.T, c *Configuration, n int) {
	t.Helper()
	for _, p := range c.Regions {
		if len(p.Replicas()) != n || p.Had != 0 || len(p.Filling) > 0 {
			t.Errorf("%+v, want %d replicas", p, n)
		}
	}
	if len(c.Resizing()) > 0 || c.Urgency() == AtOnce {
		t.Errorf("regions %v are being resized, urgency %d", c.Resizing(), c.Urgency())
	}
}

// Regions get the new number of replicas, in different failure domains and evenly, and groups stay together.
func TestResize(t *testing.T) {
	for _, numbers := range [][]int{{1, 2, 3}, {1, 3, 1}, {2, 3, 2}, {3, 2, 3}, {3, 1, 4}, {2, 4, 3}} {
		c := withRegions(t, movable(instance(5, numbers[0], false)), 20)
		for i := range 3 {
			next, _, err := c.Place(c.Regions[0].Primary, c.Regions[0].Region)
			if err != nil || next.Regions[20+i].Group != 1 {
				t.Fatal(err)
			}
			c = next
		}
		for _, n := range numbers[1:] {
			before := c
			c, _ = moveAll(t, resized(t, c, n), false)
			checkResized(t, c, n)
			for i, p := range c.Regions {
				if was := before.Regions[i]; p.Primary != was.Primary || p.Group != was.Group || p.LastPrimaryChange != was.LastPrimaryChange || p.LastReplicaChange <= was.LastReplicaChange {
					t.Errorf("%+v, was %+v", p, was)
				}
			}
			if load, _ := spread(c); load[1]-load[0] > 5 {
				t.Errorf("to %d replicas: the machines have %v", n, load)
			}
		}
	}
}

// Replicas leave all regions in one configuration. They come in batches.
func TestResizeInBatches(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 12)
	c = resized(t, c, 3)
	if len(c.Resizing()) != 12 || c.Urgency() != AtOnce {
		t.Errorf("regions %v, urgency %d", c.Resizing(), c.Urgency())
	}
	d, report := c.MoveOn(false)
	if d == nil || len(report.Growing) != regionsAtOnce || !strings.Contains(report.String(), "growing [1 2 3 4]") {
		t.Fatalf("%v, %v", d, report)
	}
	if next, _ := d.MoveOn(true); next != nil || d.Urgency() != NothingMoves {
		t.Error("the next batch begins before the first is filled")
	}
	d, report = fillAll(d).MoveOn(false)
	if len(report.Growing) != regionsAtOnce || !slices.Equal(report.Grown, []region.ID{1, 2, 3, 4}) || len(d.Resizing()) != 8 {
		t.Errorf("%v, and regions %v are being resized", report, d.Resizing())
	}
	d, _ = moveAll(t, fillAll(d), false)
	d = resized(t, d, 1)
	e, report := d.MoveOn(false)
	if e == nil || len(report.Shrunk) != 12 || !strings.Contains(report.String(), "shrunk [1 2") {
		t.Fatalf("%v, %v", e, report)
	}
	e.Follow(d, func(region.ID) bool { return false })
	checkResized(t, e, 1)
	for _, p := range e.Regions {
		if len(p.Before) != 2 || p.LastReplicaChange != e.ID {
			t.Errorf("%+v: the memories that have left were complete", p)
		}
	}
}

// No replica leaves while another one is being filled, or moves.
func TestShrinkWaitsForFilling(t *testing.T) {
	c := withRegions(t, movable(instance(4, 3, false)), 4)
	filling, _ := c.Without([]rdma.MachineID{1}, 0)
	filling = resized(t, filling, 2)
	if d, report := filling.MoveOn(true); d != nil {
		t.Fatalf("%v: %+v", report, d.Regions)
	}
	d, _ := moveAll(t, fillAll(filling), false)
	checkResized(t, d, 2)

	p := c.Regions[0]
	to := slices.DeleteFunc(slices.Clone(c.Machines), p.Has)[0]
	moving, _ := c.StartMoves([]GroupMove{{p.Group, Move{p.Primary, to}}})
	moving = resized(t, moving, 2)
	if d, report := moving.MoveOn(true); d != nil {
		t.Fatalf("%v: %+v", report, d.Regions)
	}
	d, _ = moveAll(t, fillAll(moving), false)
	checkResized(t, d, 2)
	if q := d.Regions[0]; q.Primary != to {
		t.Errorf("%+v", q)
	}
}

// The replica leaves that is least wanted: of a machine that is being drained, then of the fullest, and last where
// an operator has put it. A primary never leaves.
func TestWhichReplicaLeaves(t *testing.T) {
	c := withRegions(t, movable(instance(5, 3, false)), 1)
	c.Regions[0].Primary, c.Regions[0].Backups = 0, []rdma.MachineID{1, 2}
	for range 4 {
		c, _, _ = c.Place(2, 0)
	}
	pinned := c.Clone()
	pinned.Regions[0].Pinned = []rdma.MachineID{2}
	draining, err := c.Drain(1)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		c     *Configuration
		stays rdma.MachineID
	}{"plain": {c, 1}, "pinned": {pinned, 2}, "draining": {draining, 2}} {
		d, _ := resized(t, x.c, 2).MoveOn(false)
		if p := d.Regions[0]; p.Primary != 0 || !slices.Equal(p.Backups, []rdma.MachineID{x.stays}) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What stands in the way of a resize is said.
func TestCannotResize(t *testing.T) {
	three := withRegions(t, movable(instance(3, 2, false)), 3)
	four := withRegions(t, movable(instance(4, 2, false)), 4)
	paired := withRegions(t, movable(instance(6, 3, true)), 3)
	full := withRegions(t, movable(instance(4, 2, false)), 8) // 16 replicas; with one more of each region it is 24
	for i := range full.Capacity {
		full.Capacity[i] = 5
	}
	drained, err := four.Drain(3)
	if err != nil {
		t.Fatal(err)
	}
	old := withRegions(t, movable(instance(4, 2, false)), 4)
	old.Speaks = protocol.Moves
	none := movable(instance(2, 2, false))
	for _, x := range []struct {
		c    *Configuration
		n    int
		text string
	}{
		{three, 4, "in 3 failure domains, and 4 replicas need as many: start machines that are away, or add some, first"},
		{paired, 4, "in 3 failure domains"},
		{drained, 4, "in 3 failure domains"},
		{none, 3, "in 2 failure domains"},
		{full, 3, "no machine has room for 1 more regions"},
		{old, 3, "speak version 3 of the protocol, and version 4 is needed"},
		{old, 1, "speak version 3 of the protocol, and version 4 is needed"},
		{four, 0, "0 replicas are none"},
		{four, -1, "-1 replicas are none"},
	} {
		if _, err := x.c.Resize(x.n); !errors.Is(err, ErrCannotResize) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("to %d: %v, want %q", x.n, err, x.text)
		}
	}
	if same, err := four.Resize(2); same != four || err != nil {
		t.Errorf("%v, %v", same, err)
	}
	old.Regions[0].Had = 1 // a version that all speak never falls
	if d, _ := old.ResizeOn(); d != nil {
		t.Error("members that do not know resizes are told to resize")
	}
}

// Growth that has been granted stands still when machines have failed since, and that is said. A drain must leave
// it its place.
func TestResizeStandsStill(t *testing.T) {
	c := resized(t, withRegions(t, movable(instance(3, 2, false)), 3), 3)
	if _, err := c.Drain(2); !errors.Is(err, ErrCannotDrain) {
		t.Errorf("drained: %v", err)
	}
	d, _ := c.Without([]rdma.MachineID{2}, 0)
	d, _ = moveAll(t, fillAll(d), false)
	if err := d.CheckResize(); !errors.Is(err, ErrCannotResize) || !strings.Contains(err.Error(), "in 2 failure domains") {
		t.Error(err)
	}
	for _, p := range d.Regions {
		if len(p.Replicas()) != 2 {
			t.Errorf("%+v", p)
		}
	}
	back, _ := c.Member(2)
	d, _ = d.With(back, nil)
	if d.CheckResize() != nil || d.Urgency() != AtOnce {
		t.Error(d.CheckResize(), d.Urgency())
	}
	d, _ = moveAll(t, d, false)
	checkResized(t, d, 3)

	full := withRegions(t, movable(instance(4, 2, false)), 4)
	for i := range full.Capacity {
		full.Capacity[i] = 2
	}
	full.AddMember(Member{Machine: 4, FailureDomain: 4, Incarnation: 1, Memory: 9, Protocol: protocol.Own})
	full = resized(t, full, 3)
	if _, err := full.Drain(4); !errors.Is(err, ErrCannotDrain) || !strings.Contains(err.Error(), "regions are to get 3 replicas, which have no place without machine 4") {
		t.Error(err)
	}
}

// A machine is drained as well while regions have more replicas than they should: those leave first.
func TestDrainOfShrinkingRegions(t *testing.T) {
	c := resized(t, withRegions(t, movable(instance(3, 3, false)), 3), 2)
	c, err := c.Drain(2)
	if err != nil {
		t.Fatal(err)
	}
	c, _ = moveAll(t, c, false)
	checkResized(t, c, 2)
	if c.load()[2] > 0 {
		t.Errorf("machine 2 has %d replicas", c.load()[2])
	}
}

// If one region of a group finds no room where it grows, the group stays as it was, but for what others need.
func TestRefusedGrowth(t *testing.T) {
	c := movable(instance(4, 2, false))
	c, first, err := c.Place(0, 0)
	if err == nil {
		c, _, err = c.Place(0, first.Region)
	}
	if err != nil {
		t.Fatal(err)
	}
	c = resized(t, c, 3)
	d, report := c.MoveOn(false)
	if !slices.Equal(report.Growing, []region.ID{1, 2}) {
		t.Fatal(report)
	}
	to := d.Regions[0].Backups[1]
	d = d.Filled(to, []region.ID{1})
	e, _ := d.Refuse(to, []region.ID{2})
	if err := sound(e); err != nil {
		t.Fatal(err)
	}
	for _, p := range e.Regions {
		if p.Has(to) || p.Group != first.Group || p.Had != 2 || len(p.Backups) != 1 || len(p.Filling) > 0 {
			t.Errorf("%+v", p)
		}
	}
	e, _ = moveAll(t, e, false) // the fourth machine has room
	checkResized(t, e, 3)

	// Machine 0 fails first: now the regions need what was new, also what is being filled.
	f, _ := d.Without([]rdma.MachineID{0}, 1)
	if p := f.Regions[1]; !f.NeedsFilling(&p) || len(p.Replicas()) != 2 || !slices.Contains(p.Filling, to) {
		t.Errorf("%+v", p)
	}
	f, _ = moveAll(t, fillAll(f), false)
	checkResized(t, f, 3)
}

// What is being filled is needed as long as fewer replicas are complete than the region had, or is to have, whichever is
// less: it is not the number of replicas that counts.
func TestNeedsFilling(t *testing.T) {
	never := func(region.ID) bool { return false }
	grows := func(from, to int) *Configuration {
		c, _ := resized(t, withRegions(t, movable(instance(5, from, false)), 1), to).MoveOn(false)
		return c
	}
	twoMore := grows(2, 4)
	if p := twoMore.Regions[0]; len(p.Filling) != 2 || twoMore.NeedsFilling(&p) {
		t.Errorf("%+v", p)
	}
	failed, _ := twoMore.Without([]rdma.MachineID{twoMore.Regions[0].Backups[0]}, twoMore.Regions[0].Primary)
	failed.Follow(twoMore, never)
	if p := failed.Regions[0]; len(p.Filling) != 2 || !failed.NeedsFilling(&p) {
		t.Errorf("one complete replica is left: %+v", p)
	}

	c := withRegions(t, movable(instance(4, 3, false)), 1)
	lost, _ := c.Without([]rdma.MachineID{c.Regions[0].Backups[0]}, c.Regions[0].Primary)
	lost.Follow(c, never)
	if p := lost.Regions[0]; len(p.Filling) != 1 || !lost.NeedsFilling(&p) {
		t.Errorf("%+v", p)
	}
	for name, taken := range map[string]*Configuration{"taken back": resized(t, grows(2, 3), 2), "fewer than the machines have": resized(t, lost, 2)} {
		p := taken.Regions[0]
		if len(p.Replicas()) != 3 || len(p.Filling) != 1 || taken.NeedsFilling(&p) {
			t.Errorf("%s: %+v", name, p)
		}
		d, _ := taken.Refuse(p.Filling[0], []region.ID{p.Region})
		d.Follow(taken, never)
		if err := sound(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkResized(t, d, 2)
	}
}

// If growth is taken back and asked for once more, what is being filled is needed no more than the first time, and a group
// stays together although some of its regions are filled.
func TestGrowthAskedForAgain(t *testing.T) {
	for _, n := range []int{1, 2} {
		c := withRegions(t, movable(instance(4, n, false)), 1)
		c, second, err := c.Place(c.Regions[0].Primary, c.Regions[0].Region)
		if err != nil {
			t.Fatal(err)
		}
		grows, _ := resized(t, c, n+1).MoveOn(false)
		target := grows.Regions[0].Filling[0]
		grows = grows.Filled(target, []region.ID{second.Region})
		again := resized(t, resized(t, grows, n), n+1)
		for i, p := range again.Regions {
			if again.NeedsFilling(&p) || p.Group != c.Regions[0].Group || len(p.Filling) != 1-i {
				t.Errorf("%d replicas before: %+v", n, p)
			}
		}
		d, _ := again.Refuse(target, []region.ID{again.Regions[0].Region})
		d.Follow(again, func(region.ID) bool { return false })
		if p := d.Regions[1]; p.Has(target) || len(d.Resizing()) != 2 {
			t.Errorf("refused: %+v", d.Regions)
		}
		d, _ = moveAll(t, d, false)
		checkResized(t, d, n+1)
	}

	// Where fewer were wanted for a while, nothing was added for a machine that was back, nor for one replica that leaves in
	// the end of a move: these regions grow.
	three := withRegions(t, movable(instance(4, 3, false)), 1)
	p := three.Regions[0]
	m, _ := three.Member(p.Backups[0])
	never := func(region.ID) bool { return false }
	two, _ := three.Without([]rdma.MachineID{m.Machine}, p.Primary)
	if two.Follow(three, never); len(two.Regions[0].Filling) != 1 {
		t.Fatalf("%+v", two.Regions[0])
	}
	two = fillAll(two)
	other, _ := two.Without([]rdma.MachineID{two.Regions[0].Backups[1]}, p.Primary) // no machine is left for the third
	other.Follow(two, never)
	wants := resized(t, other, 1)
	back, _ := wants.With(m, nil)
	back.Follow(wants, never)
	moves, _, err := back.Obey(Order{1, Move{p.Primary, m.Machine}})
	if err != nil {
		t.Fatal(err)
	}
	moves.Follow(back, never)
	for name, c := range map[string]*Configuration{"a machine is back": back, "a move": fillAll(moves)} {
		d, _ := moveAll(t, fillAll(resized(t, c, 3)), false)
		if p := d.Regions[0]; len(p.Replicas()) != 3 {
			t.Errorf("%s: %+v", name, p)
		}
	}

	// What is complete is needed, and what was needed just before.
	c := withRegions(t, movable(instance(5, 3, false)), 1)
	if p := resized(t, resized(t, c, 2), 4).Regions[0]; p.Had != 3 {
		t.Errorf("three are complete: %+v", p)
	}
	one, _ := c.Without([]rdma.MachineID{c.Regions[0].Backups[0], c.Regions[0].Backups[1]}, c.Regions[0].Primary)
	one.Follow(c, func(region.ID) bool { return false })
	if d := resized(t, resized(t, one, 2), 3); !d.NeedsFilling(&d.Regions[0]) || d.Least(&d.Regions[0]) != 2 {
		t.Errorf("one is complete: %+v", d.Regions[0])
	}
}

// A memory that is back may be in the failure domain of a backup that is being filled: there a replica was to move, which
// may be in the domain of the one that it replaces. Then the region gets another backup.
func TestReturnsBesideItsOwnDomain(t *testing.T) {
	never := func(region.ID) bool { return false }
	c := withRegions(t, movable(instance(6, 1, true)), 1)
	from := c.Regions[0].Primary
	to := c.Machines[slices.IndexFunc(c.Machines, func(m rdma.MachineID) bool { return m != from && c.domain(m) == c.domain(from) })]
	m, _ := c.Member(from)
	moves, _, err := c.Obey(Order{1, Move{from, to}})
	if err != nil {
		t.Fatal(err)
	}
	moves.Follow(c, never)
	grows := resized(t, moves, 2)
	away, _ := grows.Without([]rdma.MachineID{from}, to)
	away.Follow(grows, never)
	if p := away.Regions[0]; p.IsAvailable() || !slices.Contains(p.Filling, to) {
		t.Fatalf("%+v", p)
	}
	back, _ := away.With(m, []region.ID{1})
	back.Follow(away, never)
	if err := sound(back); err != nil || !back.Regions[0].IsAvailable() {
		t.Errorf("%+v: %v", back.Regions[0], err)
	}
	d, _ := moveAll(t, fillAll(back), false)
	checkResized(t, d, 2)
}

// Growth does not wait for regions that are unavailable: the others are not to be lost as well.
func TestGrowthBesideUnavailableRegions(t *testing.T) {
	c := withRegions(t, movable(instance(4, 1, false)), 8)
	m, _ := c.Member(3)
	lost := c.PrimaryOf(3)
	d, _ := c.Without([]rdma.MachineID{3}, 0)
	d.Follow(c, func(region.ID) bool { return false })
	e, _ := moveAll(t, resized(t, d, 2), false)
	if lost == 0 || len(e.Unavailable()) != lost || len(e.Resizing()) != lost {
		t.Errorf("%d regions wait for machine 3, %v are unavailable, %v are being resized", lost, e.Unavailable(), e.Resizing())
	}
	for _, p := range e.Regions {
		if p.IsAvailable() && len(p.Replicas()) != 2 {
			t.Errorf("%+v", p)
		}
	}
	f, report := e.With(m, e.Unavailable())
	f.Follow(e, func(region.ID) bool { return false })
	if len(report.Returned) != lost {
		t.Error(report)
	}
	f, _ = moveAll(t, f, false)
	checkResized(t, f, 2)
	if next, report := resized(t, e, 1).MoveOn(false); next != nil {
		t.Errorf("replicas leave while regions are unavailable: %v", report)
	}
}

// A machine that was away for a moment while regions grew there has them again, with what it has copied. Groups stay
// together.
func TestGrowthGoesOnWhenTheTargetIsBack(t *testing.T) {
	c := withRegions(t, movable(instance(3, 2, false)), 3)
	c, _, err := c.Place(c.Regions[0].Primary, 1)
	if err != nil {
		t.Fatal(err)
	}
	c = resized(t, c, 3)
	never := func(region.ID) bool { return false }
	d, _ := c.MoveOn(false)
	d.Follow(c, never)
	c = fillAll(d) // Had is not forgotten yet
	d, _ = c.Without([]rdma.MachineID{2}, 0)
	d.Follow(c, never)
	m, _ := c.Member(2)
	m.Incarnation++
	var grew, half []region.ID // half of a group is not enough
	for i, p := range d.Regions {
		if c.Regions[i].Has(2) && !p.Has(2) && p.Had != 0 && len(p.Replicas()) == 2 {
			grew = append(grew, p.Region)
			if p.Region != p.Group || p.Region != 1 {
				half = append(half, p.Region)
			}
		}
	}
	e, report := d.With(m, grew)
	e.Follow(d, never)
	if err := sound(e); err != nil {
		t.Fatal(err)
	}
	for _, p := range e.Regions {
		if slices.Contains(grew, p.Region) && (!slices.Contains(p.Kept, 2) || !slices.Contains(report.Growing, p.Region)) {
			t.Errorf("%+v: %v", p, report)
		}
	}
	e, _ = moveAll(t, fillAll(e), false)
	checkResized(t, e, 3)
	if len(grew) == len(half) {
		t.Fatalf("the group of region 1 has not grown at machine 2: %v", grew)
	}
	e, _ = d.With(m, half)
	e.Follow(d, never)
	if p, q := e.Regions[0], e.Regions[3]; p.Group != q.Group || p.Has(2) || q.Has(2) {
		t.Errorf("%+v, %+v", p, q)
	}
	full := m
	full.Capacity = 1
	e, _ = d.With(full, grew)
	e.Follow(d, never)
	if err := sound(e); err != nil || e.load()[2] > 1 {
		t.Errorf("machine 2, with room for one region, has %d: %v", e.load()[2], err)
	}
	draining := d.Clone()
	draining.Draining = []Memory{{Machine: 2, Token: m.Memory}}
	if e, _ = draining.With(m, grew); e.load()[2] > 0 {
		t.Errorf("machine 2, which is being drained, has %d regions", e.load()[2])
	}
}

// If the number becomes again what it was, regions that have grown shrink again, and those that are growing do so
// when they are filled.
func TestResizeIsTakenBack(t *testing.T) {
	c := resized(t, withRegions(t, movable(instance(4, 2, false)), 12), 3)
	c, _ = c.MoveOn(false)
	c, _ = fillAll(c).MoveOn(false)
	c = resized(t, c, 2)
	if n := len(c.Resizing()); n != 2*regionsAtOnce {
		t.Errorf("%d regions have to shrink, want %d", n, 2*regionsAtOnce)
	}
	if next, _ := c.MoveOn(false); next != nil {
		t.Error("replicas leave while others are being filled")
	}
	c, _ = moveAll(t, fillAll(c), false)
	checkResized(t, c, 2)
}

// A region that is made beside one that has not its new number yet is like that one, and others have the new number.
func TestPlaceDuringAResize(t *testing.T) {
	for _, n := range []int{1, 3} {
		c := resized(t, withRegions(t, movable(instance(4, 2, false)), 8), n)
		c, near, err := c.Place(0, 1)
		if err != nil || near.Group != 1 || near.Had != 2 || len(near.Replicas()) != 2 {
			t.Errorf("%+v, %v", near, err)
		}
		c, other, err := c.Place(0, 0)
		if err != nil || other.Had != 0 || len(other.Replicas()) != n {
			t.Errorf("%+v, %v", other, err)
		}
		c, _ = moveAll(t, c, false)
		checkResized(t, c, n)
	}
}

// While growth stands still for want of room, regions can be made as before. They have as many replicas as there is
// room for, and grow with the others.
func TestPlaceWhileGrowthStandsStill(t *testing.T) {
	c := resized(t, withRegions(t, movable(instance(3, 2, false)), 3), 3)
	c, _ = c.MoveOn(false)
	c, _ = c.Refuse(2, []region.ID{c.Regions[0].Region, c.Regions[1].Region, c.Regions[2].Region})
	c, _ = moveAll(t, fillAll(c), false)
	if err := c.CheckResize(); err == nil {
		t.Fatal("growth does not stand still")
	}
	d, p, err := c.Place(0, 0)
	if err != nil || len(p.Replicas()) != 2 || p.Had != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := sound(d); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Place(2, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a region at the full machine: %v", err)
	}
	full := c.Clone()
	full.Capacity[1] = -1
	if _, p, err := full.Place(0, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a region with fewer replicas than the others: %+v, %v", p, err)
	}
	d, _ = d.WithRoom(2, 0)
	d, _ = moveAll(t, d, false)
	checkResized(t, d, 3)
}

// More replicas are refused if they would take the last place of what is at a machine that is being drained.
func TestResizeLeavesADrainItsPlace(t *testing.T) {
	granted, refused := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := 4 + r.IntN(3)
		c := withRegions(t, movable(instance(n, 2, false)), 4+r.IntN(4))
		load := c.load()
		for i, m := range c.Machines {
			c.Capacity[i] = max(1, load[m]+r.IntN(6))
		}
		last := c.Machines[n-1]
		d, err := c.Drain(last)
		if err != nil {
			continue
		}
		e, err := d.Resize(3)
		switch {
		case err == nil:
			granted++
			if err := e.CheckDrain(last); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		case strings.Contains(err.Error(), "which is being drained: take that back first"):
			refused++
			if _, err := c.Resize(3); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if granted < 20 || refused < 20 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
}

// A lower number than the one just asked for is checked, too, if regions have to grow to it.
func TestResizeToLessIsChecked(t *testing.T) {
	c := resized(t, withRegions(t, movable(instance(4, 2, false)), 2), 4)
	c, _ = c.Without([]rdma.MachineID{2, 3}, 0)
	if _, err := c.Resize(3); !errors.Is(err, ErrCannotResize) || !strings.Contains(err.Error(), "in 2 failure domains, and 3 replicas need as many") {
		t.Error(err)
	}
	resized(t, c, 2)
}

// Programs that speak version 3 read what is stored as long as one of them is a member; nothing is resized then.
// Once all speak version 4 they refuse it.
func TestFormat5(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 3)
	c.Speaks = protocol.Moves
	b := c.Encode()
	if !bytes.Contains(b, []byte(`"Format":5`)) || bytes.Contains(b, []byte("Had")) {
		t.Errorf("%s", b)
	}
	d, err := Decode("x", b)
	if err != nil || !reflect.DeepEqual(c, d) {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := d.Agree(); err != nil {
		t.Fatal(err)
	}
	d = resized(t, d, 3)
	b = d.Encode()
	if !bytes.Contains(b, []byte(`"Format":6`)) || !bytes.Contains(b, []byte(`"Had":2`)) {
		t.Errorf("%s", b)
	}
	if e, err := Decode("x", b); err != nil || !reflect.DeepEqual(d, e) {
		t.Errorf("%+v, %v", e, err)
	}
	d.Regions[0].Had = -1
	if _, err := Decode("x", d.Encode()); !errors.Is(err, ErrBadConfiguration) || !strings.Contains(err.Error(), "had -1 replicas") {
		t.Error(err)
	}
}

// Whatever happens in between, configurations stay sound, no region has fewer replicas than before without need,
// and at last all have what they should, if there is room.
func TestResizesEnd(t *testing.T) {
	granted, refused, done := 0, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 11))
		c := movable(random(t, r))
		for range 2 + r.IntN(12) {
			d := disturbed(t, r, c, &granted, &refused)
			if d == nil || d == c {
				continue
			}
			if d.ID != c.ID {
				d.Follow(c, func(region.ID) bool { return r.IntN(2) == 0 })
			}
			if err := sound(d); err != nil {
				t.Fatalf("seed %d: configuration %d: %v", seed, d.ID, err)
			}
			if again, err := Decode("x", d.Encode()); err != nil || !reflect.DeepEqual(again.Encode(), d.Encode()) {
				t.Fatalf("seed %d: decoded: %v", seed, err)
			}
			c = d
		}
		c, _ = moveAll(t, fillAll(c), r.IntN(2) == 0)
		if len(c.Unavailable()) > 0 || c.CheckResize() != nil {
			continue
		}
		done++
		for _, p := range c.Regions {
			if p.Had != 0 || len(p.Replicas()) > c.Replicas {
				t.Errorf("seed %d: %+v, want %d replicas", seed, p, c.Replicas)
			}
		}
	}
	t.Logf("%d resizes granted, %d refused; %d of 400 instances in order at the end", granted, refused, done)
	if granted < 300 || refused < 100 || done < 100 {
		t.Errorf("%d resizes granted, %d refused; %d instances in order at the end", granted, refused, done)
	}
}

// disturbed returns a configuration after c, or a revision: another number of replicas, a machine that fails, joins,
// refuses or is being drained, replicas that are filled, or what the CM does by itself.
func disturbed(t *testing.T, r *rand.Rand, c *Configuration, granted, refused *int) (d *Configuration) {
	m := c.Machines[r.IntN(len(c.Machines))]
	switch r.IntN(8) {
	case 0, 1:
		d, err := c.Resize(1 + r.IntN(4))
		switch {
		case err == nil && d != c:
			*granted++
		case err != nil && !errors.Is(err, ErrCannotResize):
			t.Error(err)
		case err != nil:
			*refused++
		}
		return d
	case 2:
		if len(c.Machines) > 1 {
			d, _ = c.Without([]rdma.MachineID{m}, c.Machines[(slices.Index(c.Machines, m)+1)%len(c.Machines)])
		}
	case 3:
		joiner := Member{Machine: rdma.MachineID(100 + r.IntN(100)), FailureDomain: r.IntN(8), Incarnation: r.Uint64(), Memory: r.Uint64() | 1, Protocol: protocol.Own}
		if _, in := c.Member(joiner.Machine); !in {
			d, _ = c.With(joiner, []region.ID{region.ID(1 + r.IntN(10))})
		}
	case 4:
		d, _ = c.Drain(m)
	case 5:
		var ids []region.ID
		for _, p := range c.Regions {
			if slices.Contains(p.Filling, m) && r.IntN(2) == 0 {
				ids = append(ids, p.Region)
			}
		}
		if r.IntN(3) == 0 {
			d, _ = c.Refuse(m, ids)
		} else {
			d = c.Filled(m, ids)
		}
	case 6:
		d, _ = c.MoveOn(r.IntN(2) == 0)
	default:
		d = fillAll(c)
	}
	return d
}
