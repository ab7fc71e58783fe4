package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// movable returns c with members that all know moves.
func movable(c *Configuration) *Configuration {
	for i := range c.Machines {
		c.Protocol[i] = protocol.Own
		if c.Memory[i] == 0 {
			c.Memory[i] = uint64(1000 + i)
		}
	}
	c.Speaks = protocol.Own.Max
	return c
}

// withRegions places n regions at the machines in turn.
func withRegions(t *testing.T, c *Configuration, n int) *Configuration {
	t.Helper()
	for i := range n {
		next, _, err := c.Place(c.Machines[i%len(c.Machines)], 0)
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	return c
}

// fillAll fills every replica that is being filled.
func fillAll(c *Configuration) *Configuration {
	for _, m := range c.Machines {
		var ids []region.ID
		for _, p := range c.Regions {
			if slices.Contains(p.Filling, m) {
				ids = append(ids, p.Region)
			}
		}
		c = c.Filled(m, ids)
	}
	return c
}

// moveAll carries out all moves, and returns the last configuration and how many moves there were.
func moveAll(t *testing.T, c *Configuration, balance bool) (*Configuration, int) {
	t.Helper()
	moves, handovers := 0, 0
	for {
		next, report := c.MoveOn(balance)
		if next == nil {
			return c, moves
		}
		next.Follow(c, func(region.ID) bool { return false })
		if err := sound(next); err != nil {
			t.Fatalf("configuration %d: %v", next.ID, err)
		}
		if next.ID != c.ID+1 {
			t.Fatalf("configuration %d after %d", next.ID, c.ID)
		}
		for _, p := range next.Regions {
			was, _ := c.Placement(p.Region)
			full := func(p Placement) int { return len(p.Replicas()) - len(p.Filling) }
			if least := c.Least(&was); full(was) >= least && full(p) < least {
				t.Fatalf("region %d has %d complete replicas after %d", p.Region, full(p), full(was))
			}
		}
		if moves += len(report.Moved); moves > 10000 {
			t.Fatal("the moves do not end")
		}
		if handovers += len(report.HandedOver); handovers > 10000 {
			t.Fatal("the handovers do not end")
		}
		c = fillAll(next)
	}
}

// A move adds a backup, and lets the other replica leave once the new one is filled, wherever in the
// group it is still being filled. The target takes the place of the primary.
func TestMoveWaitsForFilling(t *testing.T) {
	c := movable(instance(4, 3, false))
	c, first, err := c.Place(0, 0)
	if err == nil {
		c, _, err = c.Place(0, first.Region)
	}
	if err != nil {
		t.Fatal(err)
	}
	to := slices.IndexFunc(c.Machines, func(m rdma.MachineID) bool { return !first.Has(m) })
	move := GroupMove{first.Group, Move{0, rdma.MachineID(to)}}
	d, report := c.StartMoves([]GroupMove{move})
	if err := sound(d); err != nil || !slices.Equal(report.Moving, []region.ID{1, 2}) {
		t.Fatalf("%v, %v", report, err)
	}
	for _, p := range d.Regions {
		if p.Primary != 0 || len(p.Backups) != 3 || *p.Move != move.Move || p.LastReplicaChange != d.ID {
			t.Errorf("%+v", p)
		}
	}
	if e, _ := Decode("x", d.Encode()); !reflect.DeepEqual(e, d) {
		t.Errorf("encoded and decoded: %+v, want %+v", e, d)
	}
	if next, _ := d.EndMoves(); next != nil {
		t.Fatal("nothing is filled, and a replica leaves")
	}
	d = d.Filled(move.To, []region.ID{1})
	if next, _ := d.EndMoves(); next != nil {
		t.Fatal("region 2 is not filled, and a replica leaves")
	}
	// A region that is made meanwhile takes part in the move.
	d, third, err := d.Place(0, 1)
	if err != nil || third.Group != first.Group || !slices.Contains(third.Backups, move.To) {
		t.Fatalf("%+v, %v", third, err)
	}
	d = d.Filled(move.To, []region.ID{2})
	e, report := d.EndMoves()
	if e == nil || sound(e) != nil || !slices.Equal(report.Moved, []region.ID{1, 2, 3}) || !slices.Equal(report.Promoted, report.Moved) {
		t.Fatalf("%v, %v", e, report)
	}
	for _, p := range e.Regions {
		if p.Primary != move.To || p.Has(0) || len(p.Backups) != 2 || p.Move != nil || p.LastPrimaryChange != e.ID || p.LastReplicaChange != e.ID {
			t.Errorf("%+v", p)
		}
	}
	if !strings.Contains(report.String(), "moved [1 2 3]") || d.Regions[0].Move.String() != fmt.Sprintf("from machine 0 to machine %d", to) {
		t.Errorf("%v, %v", report, d.Regions[0].Move)
	}
	if none := e.Regions[0].Move; none.String() != "no move" {
		t.Error(none)
	}
}

// Whichever machine fails during a move, the move is over, the region has as many replicas as it
// should have, in different failure domains, and no complete one goes while another is filled.
func TestFailureDuringAMove(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := movable(random(t, r))
		moves := c.NextMoves(true)
		if len(moves) == 0 {
			continue
		}
		c, _ = c.StartMoves(moves)
		if r.IntN(2) == 0 {
			c = c.Filled(moves[0].To, c.regionsOf(c.groups()[0]))
		}
		dead := c.Machines[r.IntN(len(c.Machines))]
		cm := c.Machines[slices.IndexFunc(c.Machines, func(m rdma.MachineID) bool { return m != dead })]
		d, report := c.Without([]rdma.MachineID{dead}, cm)
		if err := sound(d); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range d.Regions {
			was, _ := c.Placement(p.Region)
			lost := slices.Contains(was.Replicas(), dead)
			if lost && p.Move != nil || !lost && !p.moves(was.Move) {
				t.Errorf("seed %d: region %d was %+v, is %+v without machine %d", seed, p.Region, was, p, dead)
			}
			if !p.IsAvailable() || slices.Contains(report.Short, p.Region) {
				continue
			}
			full := func(p Placement) int { return len(p.Replicas()) - len(p.Filling) }
			gone := full(was) - full(p)
			if wasFull := slices.Contains(was.Replicas(), dead) && !slices.Contains(was.Filling, dead); wasFull {
				gone--
			}
			if gone > 0 && len(p.Filling) > 0 && full(was) <= c.Replicas {
				t.Errorf("seed %d: a complete replica of region %d has gone without need: was %+v, is %+v", seed, p.Region, was, p)
			}
		}
		c = fillAll(d)
		if _, n := moveAll(t, c, true); n > 1000 {
			t.Errorf("seed %d: %d moves", seed, n)
		}
	}
}

// The target may be in the failure domain of the machine that the replica leaves. If another replica
// fails then, one of the two goes: the target while it is being filled, otherwise the other one.
func TestFailureDuringAMoveWithinADomain(t *testing.T) {
	for _, isFilled := range []bool{false, true} {
		c := movable(instance(8, 3, true)) // two machines in each domain
		c, p, err := c.Place(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		from := p.Backups[0]
		to := from ^ 1
		c, _ = c.StartMoves([]GroupMove{{p.Group, Move{from, to}}})
		if isFilled {
			c = fillAll(c)
		}
		d, _ := c.Without([]rdma.MachineID{p.Backups[1]}, 0)
		stays, goes := from, to
		if isFilled {
			stays, goes = to, from
		}
		got := d.Regions[0]
		if err := sound(d); err != nil || got.Move != nil || !got.Has(stays) || got.Has(goes) || len(got.Backups) != 2 {
			t.Errorf("filled %v: %+v, %v", isFilled, got, err)
		}
	}
}

// A target without room refuses: the move is over, and the target gets nothing else.
func TestRefusedMove(t *testing.T) {
	c := withRegions(t, movable(instance(3, 2, false)), 6)
	c.AddMember(Member{Machine: 3, FailureDomain: 3, Incarnation: 1, Memory: 9, Protocol: protocol.Own})
	c, report := c.StartMoves(c.NextMoves(true))
	d, _ := c.Refuse(3, report.Moving)
	if err := sound(d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Regions {
		if p.Move != nil || len(p.Backups) != 1 || p.Has(3) {
			t.Errorf("%+v", p)
		}
	}
	if moves := d.NextMoves(true); len(moves) > 0 {
		t.Errorf("moves %v", moves)
	}
}

// If the target refuses one region of a group, the whole group stays, also what is complete there.
func TestRefusedGroup(t *testing.T) {
	c := movable(instance(4, 2, false))
	c, first, err := c.Place(0, 0)
	if err == nil {
		c, _, err = c.Place(0, first.Region)
	}
	if err != nil {
		t.Fatal(err)
	}
	to := slices.DeleteFunc(slices.Clone(c.Machines), first.Has)[0]
	c, _ = c.StartMoves([]GroupMove{{first.Group, Move{0, to}}})
	c = c.Filled(to, []region.ID{1})
	d, _ := c.Refuse(to, []region.ID{2})
	if err := sound(d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Regions {
		if p.Move != nil || p.Primary != 0 || p.Has(to) || p.Group != first.Group || len(p.Filling) > 0 {
			t.Errorf("%+v", p)
		}
	}
	if d, _ = c.Refuse(to, []region.ID{1}); d.Regions[0].Move == nil {
		t.Error("a replica is refused that is complete")
	}
}

// spread returns the lowest and the highest number of replicas and of primaries of a machine.
func spread(c *Configuration) (load, primaries [2]int) {
	of := c.load()
	for i, m := range c.Machines {
		for list, n := range map[*[2]int]int{&load: of[m], &primaries: c.PrimaryOf(m)} { // any order
			if i == 0 || n < list[0] {
				list[0] = n
			}
			list[1] = max(list[1], n)
		}
	}
	return load, primaries
}

// A machine that joins gets its share of replicas and of primaries; when all is even nothing moves.
func TestBalance(t *testing.T) {
	for n := 3; n <= 8; n++ {
		c := withRegions(t, movable(instance(n, 3, false)), 10*n)
		if moves := c.NextMoves(true); len(moves) > 0 {
			t.Errorf("%d machines: all is even, and %v move", n, moves)
		}
		for m := n; m < n+3; m++ {
			c, _ = c.With(Member{Machine: rdma.MachineID(m), FailureDomain: m, Incarnation: 1, Memory: 7, Protocol: protocol.Own}, nil)
			if moves := c.NextMoves(false); len(moves) > 0 {
				t.Errorf("moves %v, though nothing is drained", moves)
			}
			var moves int
			c, moves = moveAll(t, c, true)
			load, primaries := spread(c)
			t.Logf("%d machines: %d moves, %v replicas each, %v primaries", m+1, moves, load, primaries)
			mean := 30 * n / (m + 1)
			if load[1]-load[0] > max(1, mean/evenPart) || primaries[1]-primaries[0] > max(2, mean/3/evenPart+1) {
				t.Errorf("%d machines: %v replicas each, %v primaries", m+1, load, primaries)
			}
			if moves > mean+10 {
				t.Errorf("%d moves, for a share of %d", moves, mean)
			}
		}
	}
}

// Whatever the instance, moves end, and every configuration on the way is sound.
func TestMovesEnd(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := movable(random(t, r))
		for range 3 {
			if d, err := c.Drain(c.Machines[r.IntN(len(c.Machines))]); err == nil {
				c = d
			} else if !errors.Is(err, ErrCannotDrain) {
				t.Fatal(err)
			}
		}
		d, _ := moveAll(t, c, r.IntN(2) == 0)
		for _, m := range d.Machines {
			if d.IsDraining(m) && d.load()[m] > 0 && d.CheckDrain(m) == nil {
				t.Errorf("seed %d: machine %d still has %d replicas", seed, m, d.load()[m])
			}
		}
	}
}

// A machine that is being drained loses its replicas and gets no others, also when it comes back;
// with another memory it is another machine.
func TestDrain(t *testing.T) {
	c := withRegions(t, movable(instance(5, 3, false)), 10)
	c, err := c.Drain(2)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Drain(2); again != c || err != nil {
		t.Errorf("drained twice: %v", err)
	}
	if d, err := Decode("x", c.Encode()); err != nil || !d.IsDraining(2) || d.IsDraining(1) {
		t.Errorf("%v", err)
	}
	c, _ = moveAll(t, c, false)
	if n := c.load()[2]; n > 0 {
		t.Fatalf("machine 2 has %d replicas", n)
	}
	if moves := c.NextMoves(true); len(moves) > 0 {
		t.Errorf("moves %v", moves)
	}
	back, _ := c.Member(2)
	d, report := c.Without([]rdma.MachineID{2}, 0)
	if len(report.Refilled)+len(report.Promoted)+len(report.Short) > 0 {
		t.Errorf("a machine without replicas has gone: %v", report)
	}
	d, _ = d.Without([]rdma.MachineID{1}, 0)
	if d, _ = d.With(back, []region.ID{1, 2}); !d.IsDraining(2) || d.load()[2] > 0 {
		t.Errorf("back with %d replicas: %+v", d.load()[2], d.Draining)
	}
	d, _ = d.Without([]rdma.MachineID{2}, 0)
	other := back
	other.Memory++
	if d, _ = d.With(other, nil); d.IsDraining(2) || len(d.Draining) > 0 {
		t.Errorf("another machine is drained: %+v", d.Draining)
	}
	if d = c.Undrain(2); d.IsDraining(2) || d.Undrain(2) != d {
		t.Errorf("%+v", d.Draining)
	}
	if _, n := moveAll(t, d, true); n == 0 {
		t.Error("a machine that may have data again gets none")
	}
}

// What stands in the way of a drain is said.
func TestCannotDrain(t *testing.T) {
	three := withRegions(t, movable(instance(3, 3, false)), 3)
	full := withRegions(t, movable(instance(4, 3, false)), 4)
	for i := range full.Capacity {
		full.Capacity[i] = 3
	}
	one := withRegions(t, movable(instance(4, 3, false)), 4) // machine 3 has room for one region more, and 1 has several
	one.Capacity[0], one.Capacity[2], one.Capacity[3] = one.load()[0], one.load()[2], one.load()[3]+1
	short := withRegions(t, movable(instance(4, 3, false)), 4)
	short.Regions[0].dropBackup(short.Regions[0].Backups[0], short.ID)
	shortAt := short.Regions[0].Primary
	old := withRegions(t, instance(4, 3, false), 4)
	for _, x := range []struct {
		c       *Configuration
		machine rdma.MachineID
		text    string
	}{
		{three, 1, "in 2 failure domains, and each region is to have 3 replicas"},
		{full, 1, "no other machine has room"},
		{one, 1, "no other machine has room"},
		{short, shortAt, "fewer replicas than they should"},
		{old, 1, "version 1 of the protocol"},
		{three, 7, "no member"},
	} {
		if _, err := x.c.Drain(x.machine); !errors.Is(err, ErrCannotDrain) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%v, want %q", err, x.text)
		}
	}
	if next, _ := old.MoveOn(true); next != nil {
		t.Error("members that do not know moves are told to move")
	}
}

// Each region that moves takes room from the next: machines that are being drained already count.
func TestDrainOfTwo(t *testing.T) {
	c := withRegions(t, movable(instance(5, 2, false)), 10)
	for i := range c.Capacity {
		c.Capacity[i] = 7 // 20 replicas: there is room for 21 at three machines
	}
	if c.load()[3] == 0 || c.load()[4] == 0 {
		t.Fatal(c.load())
	}
	c, err := c.Drain(3)
	if err != nil {
		t.Fatal(err)
	}
	c.Capacity[0] = 4 // now for 18
	if _, err := c.Drain(4); !errors.Is(err, ErrCannotDrain) {
		t.Errorf("drained: %v", err)
	}
	c.Capacity[0] = 7
	d, err := c.Drain(4)
	if err != nil {
		t.Fatal(err)
	}
	if d, _ = moveAll(t, d, false); d.load()[3]+d.load()[4] > 0 {
		t.Errorf("replicas are left: %v", d.load())
	}
}

// A machine that is being drained makes a region with as many replicas as there are domains, also if
// its own is one that gets no replicas.
func TestRegionOfADrainedMachine(t *testing.T) {
	c := withRegions(t, movable(instance(4, 3, false)), 4)
	c, err := c.Drain(3)
	if err != nil {
		t.Fatal(err)
	}
	c, _ = c.Without([]rdma.MachineID{1, 2}, 0)
	d, p, err := c.Place(3, 0)
	if err != nil || len(p.Backups) != 1 || sound(d) != nil {
		t.Errorf("%+v, %v, %v", p, err, sound(d))
	}
}

// What moves wait for is named.
func TestStandsStill(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 4)
	if what := c.StandsStill(); what != "" {
		t.Error(what)
	}
	moving, _ := c.StartMoves([]GroupMove{{c.Regions[0].Group, Move{c.Regions[0].Primary, slices.DeleteFunc(slices.Clone(c.Machines), c.Regions[0].Has)[0]}}})
	filling, _ := c.Without([]rdma.MachineID{1}, 0)
	away, _ := c.Without(c.Regions[0].Replicas(), slices.DeleteFunc(slices.Clone(c.Machines), c.Regions[0].Has)[0])
	away.Follow(c, func(region.ID) bool { return false })
	for _, x := range []struct {
		c    *Configuration
		text string
	}{
		{moving, fmt.Sprintf("region 1, which moves %v", moving.Regions[0].Move)},
		{filling, "which is being filled at machine"},
		{away, "region 1, which is unavailable"},
	} {
		if what := x.c.StandsStill(); !strings.Contains(what, x.text) {
			t.Errorf("%q, want %q", what, x.text)
		}
		if x.c.NextMoves(true) != nil {
			t.Errorf("moves begin: %v", x.c.NextMoves(true))
		}
	}
	if what := filling.StandsStill(); !strings.Contains(what, "more") {
		t.Error(what)
	}
}

// How urgent moves are agrees with what MoveOn does.
func TestUrgency(t *testing.T) {
	seen := make(map[Urgency]int)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := movable(random(t, r))
		if d, err := c.Drain(c.Machines[r.IntN(len(c.Machines))]); err == nil && r.IntN(2) == 0 {
			c = d
		}
		if moves := c.NextMoves(true); len(moves) > 0 && r.IntN(2) == 0 {
			c, _ = c.StartMoves(moves)
			if r.IntN(2) == 0 {
				c = fillAll(c)
			}
		}
		atOnce, _ := c.MoveOn(false)
		balance, _ := c.MoveOn(true)
		want := NothingMoves
		switch {
		case atOnce != nil:
			want = AtOnce
		case balance != nil:
			want = ForBalance
		}
		if got := c.Urgency(); got != want {
			t.Errorf("seed %d: urgency %d, want %d", seed, got, want)
		}
		seen[want]++
	}
	if len(seen) != 3 {
		t.Errorf("seen %v", seen)
	}
}

// A configuration in which a move makes no sense is refused.
func TestInvalidMoves(t *testing.T) {
	c := withRegions(t, movable(instance(4, 2, false)), 1)
	p := c.Regions[0]
	other := slices.DeleteFunc(slices.Clone(c.Machines), p.Has)[0]
	for _, x := range []func(p *Placement){
		func(p *Placement) { p.Move = &Move{p.Primary, other} },
		func(p *Placement) { p.Move = &Move{other, p.Backups[0]} },
		func(p *Placement) { p.Move = &Move{p.Backups[0], p.Backups[0]} },
		func(p *Placement) { p.Backups = append(p.Backups, other) },
	} {
		d := c.Clone()
		x(&d.Regions[0])
		if _, err := Decode("x", d.Encode()); !errors.Is(err, ErrBadConfiguration) {
			t.Errorf("%+v: %v", d.Regions[0], err)
		}
	}
}

// To find out that nothing is to move takes little even with many regions.
func BenchmarkNothingMoves(b *testing.B) {
	c := movable(instance(10, 3, false))
	for i := range 5000 {
		next, p, err := c.Place(rdma.MachineID(i%10), 0)
		if err != nil {
			b.Fatal(err)
		}
		next.Regions = append(c.Regions, p) // Place copies the whole configuration
		c = next
	}
	for b.Loop() {
		if next, _ := c.MoveOn(true); next != nil {
			b.Fatal("something moves")
		}
	}
}
