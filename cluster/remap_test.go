package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// random returns a configuration with members, domains, groups and capacities
// drawn at random.
func random(t *testing.T, r *rand.Rand) *Configuration {
	c := &Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: 1 + r.IntN(4), NextRegion: 1}
	n := c.Replicas + r.IntN(12)
	domains := c.Replicas + r.IntN(n-c.Replicas+1)
	bounded := r.IntN(3) == 0
	for i := range n {
		m := Member{Machine: rdma.MachineID(3 * i), FailureDomain: i % domains, Incarnation: r.Uint64(), Memory: r.Uint64() | 1}
		if bounded {
			m.Capacity = 5 + r.IntN(20)
		}
		c.AddMember(m)
	}
	c.CM = c.Machines[r.IntN(n)]
	for range r.IntN(8 * n) {
		near := region.ID(0)
		primary := c.Machines[r.IntN(n)]
		if len(c.Regions) > 0 && r.IntN(2) == 0 {
			p := c.Regions[r.IntN(len(c.Regions))]
			near, primary = p.Region, p.Primary
		}
		if next, _, err := c.Place(primary, near); err == nil {
			c = next
		} else if !bounded {
			t.Fatal(err)
		}
	}
	return c
}

// sound checks what holds for every configuration.
func sound(c *Configuration) error {
	if err := c.validate(); err != nil {
		return err
	}
	load := c.load()
	leader := map[region.ID]Placement{}
	for _, p := range c.Regions {
		for i, m := range p.Pinned {
			if !p.Has(m) || slices.Contains(p.Pinned[:i], m) {
				return fmt.Errorf("region %d at %v is pinned at %v", p.Region, p.Replicas(), p.Pinned)
			}
		}
		domains := map[int]bool{}
		for _, m := range p.Replicas() {
			if p.Move == nil || m != p.Move.From { // the target may be in its domain
				domains[c.domain(m)] = true
			}
			if member, _ := c.Member(m); member.Capacity > 0 && load[m] > member.Capacity {
				return fmt.Errorf("machine %d has %d replicas, room for %d", m, load[m], member.Capacity)
			}
		}
		if !p.IsAvailable() {
			continue
		}
		want := len(p.Replicas())
		if p.Move != nil {
			want--
		}
		if len(domains) != want {
			return fmt.Errorf("region %d at %v: two in one failure domain", p.Region, p.Replicas())
		}
		if slices.Contains(p.Filling, p.Primary) {
			return fmt.Errorf("region %d: its primary has not been filled", p.Region)
		}
		if l, ok := leader[p.Group]; ok && !slices.Equal(l.Replicas(), p.Replicas()) {
			return fmt.Errorf("region %d at %v is co-located with region %d at %v", p.Region, p.Replicas(), l.Region, l.Replicas())
		}
		leader[p.Group] = p
	}
	return nil
}

// all returns the regions for which want returns true.
func all(c *Configuration, want func(p Placement) bool) []region.ID {
	var ids []region.ID
	for _, p := range c.Regions {
		if want(p) {
			ids = append(ids, p.Region)
		}
	}
	return ids
}

// checkRemap compares a configuration, the next one, and the report about the change.
func checkRemap(c, d *Configuration, dead []rdma.MachineID, report Remapped) error {
	isDead := func(m rdma.MachineID) bool { return slices.Contains(dead, m) }
	away := all(c, func(p Placement) bool {
		return p.IsAvailable() && !slices.ContainsFunc(p.Replicas(), func(m rdma.MachineID) bool { return !isDead(m) && !slices.Contains(p.Filling, m) })
	})
	promoted := all(c, func(p Placement) bool {
		return p.IsAvailable() && isDead(p.Primary) && !slices.Contains(away, p.Region)
	})
	returned := all(c, func(p Placement) bool {
		now, _ := d.Placement(p.Region)
		return !p.IsAvailable() && now.IsAvailable()
	})
	short := all(d, func(p Placement) bool { return p.IsAvailable() && len(p.Replicas()) < d.Replicas })
	refilled := all(d, func(p Placement) bool {
		before, _ := c.Placement(p.Region)
		return slices.ContainsFunc(p.Backups, func(m rdma.MachineID) bool { return !before.Has(m) })
	})
	if want := (Remapped{Promoted: promoted, Refilled: refilled, Unavailable: away, Returned: returned, Short: short}); !reflect.DeepEqual(report, want) {
		return fmt.Errorf("report %+v, want %+v", report, want)
	}
	if len(d.Regions) != len(c.Regions) || len(d.Lost) > 0 || d.ID != c.ID+1 || d.Revision != c.Revision+1 {
		return fmt.Errorf("%d regions after %d", len(d.Regions), len(c.Regions))
	}
	for _, p := range d.Regions {
		if err := checkPlacement(c, d, p, isDead); err != nil {
			return err
		}
	}
	return checkBalance(c, d)
}

// checkPlacement: survivors stay, a filled survivor is primary, changes are
// dated, and only newcomers are to be filled.
func checkPlacement(c, d *Configuration, p Placement, isDead func(rdma.MachineID) bool) error {
	was, _ := c.Placement(p.Region)
	for _, m := range was.Replicas() {
		if !isDead(m) && !p.Has(m) {
			return fmt.Errorf("region %d: survivor %d has been dropped", p.Region, m)
		}
	}
	if !was.IsAvailable() || !p.IsAvailable() {
		return checkAway(c, d, was, p)
	}
	if !isDead(was.Primary) && p.Primary != was.Primary || !was.Has(p.Primary) {
		return fmt.Errorf("region %d: primary %d after %d", p.Region, p.Primary, was.Primary)
	}
	for _, m := range p.Backups {
		if fresh := !was.Has(m) || slices.Contains(was.Filling, m); fresh != slices.Contains(p.Filling, m) {
			return fmt.Errorf("region %d: filling %v, was at %v, filling %v", p.Region, p.Filling, was.Replicas(), was.Filling)
		}
	}
	wantPrimary, wantReplica := was.LastPrimaryChange, was.LastReplicaChange
	if p.Primary != was.Primary {
		wantPrimary = d.ID
	}
	a, b := p.Replicas(), was.Replicas()
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		wantReplica = d.ID
	}
	if p.LastPrimaryChange != wantPrimary || p.LastReplicaChange != wantReplica {
		return fmt.Errorf("region %d: changes at %d and %d, want %d and %d", p.Region, p.LastPrimaryChange, p.LastReplicaChange, wantPrimary, wantReplica)
	}
	return nil
}

// checkAway: an unavailable region waits for exactly the memories that had all of it when it became
// unavailable. When one of them is back, its machine becomes the primary.
func checkAway(c, d *Configuration, was, p Placement) error {
	switch {
	case was.IsAvailable():
		if !reflect.DeepEqual(p.Away, c.whole(p.Region)) {
			return fmt.Errorf("region %d waits for %v, not %v", p.Region, p.Away, c.whole(p.Region))
		}
	case !p.IsAvailable():
		if !reflect.DeepEqual(p.Away, was.Away) {
			return fmt.Errorf("region %d waits for %v after %v", p.Region, p.Away, was.Away)
		}
	default:
		m, _ := d.Member(p.Primary)
		if !slices.ContainsFunc(was.Away, func(a Memory) bool { return a.matches(m) }) || p.LastPrimaryChange != d.ID || p.LastReplicaChange != d.ID {
			return fmt.Errorf("region %d: %+v after %+v", p.Region, p, was)
		}
	}
	return nil
}

// checkBalance: a machine that got replicas has at most one group more than any machine that could
// have got one of them instead.
func checkBalance(c, d *Configuration) error {
	load := d.load()
	size := map[region.ID]int{}
	for _, p := range c.Regions {
		size[p.Group]++
	}
	for _, m := range d.Machines {
		gained := all(d, func(p Placement) bool {
			was, _ := c.Placement(p.Region)
			return p.Has(m) && !was.Has(m) && was.IsAvailable()
		})
		fair := len(gained) == 0
		for _, id := range gained {
			p, _ := d.Placement(id)
			was, _ := c.Placement(id)
			fair = fair || !slices.ContainsFunc(d.Machines, func(x rdma.MachineID) bool {
				shares := slices.ContainsFunc(p.Replicas(), func(r rdma.MachineID) bool { return r != m && d.domain(r) == d.domain(x) })
				full := !d.haveRoom(load, []rdma.MachineID{x}, size[was.Group])
				return !shares && !full && load[x] < load[m]-size[was.Group]
			})
		}
		if !fair {
			return fmt.Errorf("machine %d has %d replicas, was given %v; loads %v", m, load[m], gained, load)
		}
	}
	return nil
}

// TestPaper5_2_RegionsAreRemapped: a surviving backup becomes the primary of a region whose primary
// has failed. Every region gets as many replicas as there is room for, in different failure domains
// and evenly. The report names regions that are lost or short of replicas.
func TestPaper5_2_RegionsAreRemapped(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := random(t, r)
		for round := range 1 + r.IntN(4) {
			if err := sound(c); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			before := c.Clone()
			var d *Configuration
			var report Remapped
			var dead []rdma.MachineID
			switch away := allAway(c); {
			case len(away) > 0 && r.IntN(2) == 0: // one of the memories is back
				back := away[r.IntN(len(away))]
				m := Member{Machine: back.Machine, FailureDomain: 1000 + int(back.Machine), Incarnation: r.Uint64(), Memory: back.Token}
				d, report = c.With(m, c.Unavailable())
			case r.IntN(3) == 0:
				d, report = c.With(Member{Machine: rdma.MachineID(100 + round), FailureDomain: r.IntN(5), Incarnation: r.Uint64(), Memory: 1}, nil)
			default:
				dead = slices.Clone(c.Machines)
				r.Shuffle(len(dead), func(i, j int) { dead[i], dead[j] = dead[j], dead[i] })
				dead = dead[:r.IntN(min(len(dead), 4))]
				cm := slices.IndexFunc(c.Machines, func(m rdma.MachineID) bool { return !slices.Contains(dead, m) })
				d, report = c.Without(dead, c.Machines[cm])
			}
			if !reflect.DeepEqual(c, before) {
				t.Fatalf("seed %d: the configuration itself was changed", seed)
			}
			if err := sound(d); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := checkRemap(c, d, dead, report); err != nil {
				t.Fatalf("seed %d: without %v: %v", seed, dead, err)
			}
			if again, err := Decode("x", d.Encode()); err != nil || !reflect.DeepEqual(again.Encode(), d.Encode()) {
				t.Fatalf("seed %d: decoded: %v", seed, err)
			}
			c = d
			if r.IntN(2) == 0 { // some have been filled
				m := c.Machines[r.IntN(len(c.Machines))]
				c = c.Filled(m, all(c, func(Placement) bool { return true }))
			}
		}
	}
}

// allAway returns the memories that regions wait for, without those of members.
func allAway(c *Configuration) (away []Memory) {
	for _, p := range c.Regions {
		for _, m := range p.Away {
			if _, in := c.Member(m.Machine); !in && !slices.Contains(away, m) {
				away = append(away, m)
			}
		}
	}
	return away
}

// TestPaper5_2_RemapKeepsLocality: without bounds on room, regions that were
// co-located stay so.
func TestPaper5_2_RemapKeepsLocality(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := random(t, r)
		for i := range c.Capacity {
			c.Capacity[i] = 0
		}
		d, _ := c.Without(c.Machines[:1], c.Machines[len(c.Machines)-1])
		for _, p := range d.Regions {
			if was, _ := c.Placement(p.Region); was.Group != p.Group {
				t.Fatalf("seed %d: region %d of group %d is now of group %d", seed, p.Region, was.Group, p.Group)
			}
		}
	}
}

// TestPaper5_2_RemapBalances: the regions of a failed primary are spread over the
// survivors.
func TestPaper5_2_RemapBalances(t *testing.T) {
	c := instance(5, 3, false)
	for i := range 100 {
		var err error
		if c, _, err = c.Place(rdma.MachineID(i%5), 0); err != nil {
			t.Fatal(err)
		}
	}
	d, _ := c.Without([]rdma.MachineID{2}, 0)
	for _, m := range d.Machines {
		if load, primary := d.load()[m], d.PrimaryOf(m); load < 74 || load > 76 || primary < 20 || primary > 30 {
			t.Errorf("machine %d has %d replicas, %d as primary", m, load, primary)
		}
	}
}

// TestPaper5_2_NoRoomIsSaid: if no machine of another failure domain has room for a region, the
// report names the region as short of replicas. It gets no second replica in a failure domain, and
// gets the missing ones as soon as there is room.
func TestPaper5_2_NoRoomIsSaid(t *testing.T) {
	full := instance(4, 3, false)
	sameDomain := instance(4, 3, false)
	sameDomain.FailureDomain = []int{0, 1, 2, 2}
	for name, c := range map[string]*Configuration{"no room": full, "no other domain": sameDomain} {
		c, p, err := c.Place(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		dead := p.Backups[0]
		if name == "no room" {
			c.Capacity = []int{1, 1, 1, 1}
			other := slices.IndexFunc(c.Machines, func(m rdma.MachineID) bool { return !p.Has(m) })
			c.Capacity[other] = -1
		}
		d, report := c.Without([]rdma.MachineID{dead}, 0)
		if short, _ := d.Placement(p.Region); report.String() != "short of replicas [1]" || len(short.Replicas()) != 2 || short.Has(dead) {
			t.Errorf("%s: %v, %+v", name, report, short)
		}
		d, report = d.With(Member{Machine: 9, FailureDomain: 9, Incarnation: 1}, nil)
		if whole, _ := d.Placement(p.Region); report.String() != "refilled [1]" || !whole.Has(9) {
			t.Errorf("%s: with a machine more: %v, %+v", name, report, whole)
		}
	}
}

// Machines that come back with their memory keep their replicas.
func TestRestarted(t *testing.T) {
	c, p, err := instance(4, 3, false).Place(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	back := []Member{{Machine: 0, Incarnation: 50}, {Machine: 1, Incarnation: 51, Capacity: 4}, {Machine: 2, Incarnation: 52}, {Machine: 3, Incarnation: 53}}
	d, report := c.Restarted(back, back[2])
	if report.String() != "" || d.CM != 2 || d.ID != c.ID+1 || !reflect.DeepEqual(d.Regions, c.Regions) ||
		!slices.Equal(d.Incarnation, []uint64{50, 51, 52, 53}) || !slices.Equal(d.Capacity, []int{0, 4, 0, 0}) {
		t.Errorf("%v, %+v", report, d)
	}
	d, report = c.Restarted(slices.Delete(slices.Clone(back), 1, 2), back[2])
	if report.String() != "promoted [1], refilled [1]" || !slices.Equal(d.Machines, []rdma.MachineID{0, 2, 3}) || d.Regions[0].Primary == p.Primary {
		t.Errorf("%v, %+v", report, d)
	}
	// The CM has come back with empty memory: first with others, then alone.
	d, report = c.Restarted(back[:2], Member{Machine: 2, Incarnation: 54, Memory: 9})
	if m, _ := d.Member(2); report.String() != "short of replicas [1]" || d.CM != 2 || !slices.Equal(d.Machines, []rdma.MachineID{0, 1, 2}) || m.Incarnation != 54 || d.Keeps(2, 1) {
		t.Errorf("%v, %+v", report, d)
	}
	d, report = c.Restarted(nil, Member{Machine: 2, Incarnation: 54, Memory: 9})
	if report.String() != "UNAVAILABLE [1]" || d.CM != 2 || !slices.Equal(d.Machines, []rdma.MachineID{2}) || len(d.Regions[0].Away) == 0 {
		t.Errorf("%v, %+v", report, d)
	}
}

// A backup that is not filled cannot be promoted. If the other replicas are gone, the region is
// unavailable, although a machine has part of it.
func TestFillingIsNotPromoted(t *testing.T) {
	c, p, err := instance(3, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, report := c.Without([]rdma.MachineID{p.Backups[0]}, 0)
	if !slices.Equal(report.Refilled, []region.ID{1}) {
		t.Fatal(report)
	}
	half, _ := c.Placement(1)
	filled := c.Filled(half.Backups[0], []region.ID{1, 9})
	for _, c := range []struct {
		c    *Configuration
		want string
	}{{c, "UNAVAILABLE [1]"}, {filled, "promoted [1], short of replicas [1]"}} {
		d, report := c.c.Without([]rdma.MachineID{0}, half.Backups[0])
		if report.String() != c.want {
			t.Errorf("%v, want %s", report, c.want)
		}
		if away := strings.HasPrefix(c.want, "UNAVAILABLE"); away != (len(d.Unavailable()) == 1) || len(d.Regions) != 1 || len(d.Lost) > 0 {
			t.Errorf("%+v", d)
		}
	}
	if filled.Filled(half.Backups[0], []region.ID{1}) != filled {
		t.Error("filled twice")
	}
}

// A machine that has room again gets the missing replicas of regions, and nothing else changes.
func TestWithRoom(t *testing.T) {
	gained := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		c := random(t, r)
		if len(c.Machines) == 1 {
			continue
		}
		before, _ := c.Member(c.Machines[len(c.Machines)-1])
		c, report := c.Without(c.Machines[:1], before.Machine)
		c, _ = c.Refuse(before.Machine, report.Refilled)
		d, report := c.WithRoom(before.Machine, before.Capacity)
		if now, _ := d.Member(before.Machine); now.Capacity != before.Capacity || d.ID != c.ID+1 {
			t.Fatalf("seed %d: %+v in configuration %d", seed, now, d.ID)
		}
		if err := sound(d); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range d.Regions {
			was, _ := c.Placement(p.Region)
			added := slices.DeleteFunc(p.Replicas(), was.Has)
			if p.Primary != was.Primary || len(p.Replicas())-len(added) != len(was.Replicas()) || slices.ContainsFunc(added, func(m rdma.MachineID) bool { return m != before.Machine }) {
				t.Fatalf("seed %d: %+v was %+v", seed, p, was)
			}
			if len(added) > 0 != slices.Contains(report.Refilled, p.Region) {
				t.Fatalf("seed %d: %v, region %d gets %v", seed, report, p.Region, added)
			}
			gained += len(added)
		}
	}
	if gained == 0 {
		t.Error("no machine has got anything")
	}
}

// A machine that had no room for a replica does not get the same replica again.
func TestRefuse(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := random(t, r)
		if len(c.Machines) == 1 {
			continue
		}
		c, report := c.Without(c.Machines[:1], c.Machines[len(c.Machines)-1])
		m := c.Machines[r.IntN(len(c.Machines))]
		var refused []region.ID
		for _, id := range report.Refilled {
			if p, _ := c.Placement(id); slices.Contains(p.Filling, m) && r.IntN(2) == 0 {
				refused = append(refused, id)
			}
		}
		d, _ := c.Refuse(m, refused)
		if err := sound(d); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range d.Regions {
			was, _ := c.Placement(p.Region)
			if p.Has(m) != (was.Has(m) && !slices.Contains(refused, p.Region)) && len(refused) > 0 {
				t.Fatalf("seed %d: machine %d has region %d: %v", seed, m, p.Region, p.Has(m))
			}
		}
	}
}

// A machine that comes back holds an older state of regions. It replaces machines that are being
// filled with these regions, unless its failure domain prevents that.
func TestReplaceFilling(t *testing.T) {
	c, p, err := instance(5, 3, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	gone := p.Backups[0]
	was, _ := c.Member(gone)
	c, report := c.Without([]rdma.MachineID{gone}, 0)
	between, _ := c.Placement(1)
	stand := between.Filling[0]
	if report.String() != "refilled [1]" || stand == gone {
		t.Fatal(report)
	}
	d, report := c.With(was, []region.ID{1, 9})
	if now, _ := d.Placement(1); report.String() != "refilled [1]" || !slices.Equal(now.Filling, []rdma.MachineID{gone}) || now.Has(stand) || len(now.Backups) != 2 {
		t.Errorf("%v, %+v", report, now)
	}
	if err := sound(d); err != nil {
		t.Error(err)
	}
	for name, other := range map[string]*Configuration{"the place is filled": c.Filled(stand, []region.ID{1}), "its domain has a replica": c} {
		m := was
		if other == c {
			m.FailureDomain = 0
		}
		d, report := other.With(m, []region.ID{1})
		if now, _ := d.Placement(1); report.String() != "" || now.Has(gone) {
			t.Errorf("%s: %v, %+v", name, report, now)
		}
	}
}

// Machines that come back, one after the other or together, replace machines that hold nothing, and
// not each other.
func TestReturningMachinesKeepTheirPlaces(t *testing.T) {
	for name, together := range map[string]bool{"one after the other": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			c, p, err := instance(5, 3, false).Place(0, 0)
			if err != nil {
				t.Fatal(err)
			}
			holds := []region.ID{p.Region}
			var gone []Member
			for _, m := range p.Backups {
				member, _ := c.Member(m)
				gone = append(gone, member)
				c, _ = c.Without([]rdma.MachineID{m}, p.Primary)
				if !together {
					c, _ = c.With(member, holds)
				}
			}
			for _, m := range gone {
				if together {
					c, _ = c.With(m, holds)
				}
			}
			now, _ := c.Placement(p.Region)
			slices.Sort(now.Filling)
			slices.Sort(now.Kept)
			slices.Sort(p.Backups)
			if !slices.Equal(now.Filling, p.Backups) || !slices.Equal(now.Kept, p.Backups) {
				t.Errorf("%+v, want machines %v to be filled with what they hold already", now, p.Backups)
			}
			c = c.Filled(p.Backups[0], holds)
			if now, _ = c.Placement(p.Region); !slices.Equal(now.Kept, p.Backups[1:]) {
				t.Errorf("%+v, machine %d has everything", now, p.Backups[0])
			}
			if err := sound(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A machine that was left out of a configuration has missed nothing if nobody can have committed in
// it. A region that becomes unavailable then waits for the machine's memory, too.
func TestFollow(t *testing.T) {
	used := func(region.ID) bool { return false }
	unused := func(region.ID) bool { return true }
	c, p, err := instance(4, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Memory {
		c.Memory[i] = 50 + uint64(i)
	}
	backup := p.Backups[0]
	primary, other := Memory{0, 50, 100}, Memory{backup, 50 + uint64(backup), 100 + uint64(backup)}
	d, _ := c.Without([]rdma.MachineID{backup}, 3)
	d.Follow(c, used)
	if p, _ := d.Placement(1); !p.IsAvailable() || !reflect.DeepEqual(p.Before, []Memory{other}) {
		t.Fatalf("%+v, want it to know of %v", p, other)
	}
	for _, x := range []struct {
		is   func(region.ID) bool
		want []Memory
	}{{used, []Memory{primary}}, {unused, []Memory{primary, other}}} {
		e, report := d.Without([]rdma.MachineID{0}, 3)
		if report.String() != "UNAVAILABLE [1]" {
			t.Fatal(report)
		}
		e.Follow(d, x.is)
		if p, _ := e.Placement(1); !reflect.DeepEqual(p.Away, x.want) || p.Before != nil {
			t.Errorf("%+v, want it to wait for %v", p, x.want)
		}
		if err := sound(e); err != nil {
			t.Error(err)
		}
	}
	// The configuration keeps such memories while nobody can have committed, and while machines
	// come and go.
	e, _ := d.With(Member{Machine: backup, FailureDomain: int(backup), Incarnation: 7, Memory: other.Token, Lives: []uint64{other.Life, 7}}, []region.ID{1})
	e.Follow(d, unused)
	e, _ = e.Without([]rdma.MachineID{backup}, 3)
	e.Follow(d, unused)
	if p, _ := e.Placement(1); !reflect.DeepEqual(p.Before, []Memory{other}) {
		t.Errorf("%+v, want it to know of %v", p, other)
	}
	e.Follow(d, used)
	if p, _ := e.Placement(1); p.Before != nil {
		t.Errorf("%+v: its replicas alone have all of it", p)
	}
	// Each of the awaited memories has everything until somebody commits with one of them.
	e, _ = d.Without([]rdma.MachineID{0}, 3)
	e.Follow(d, unused)
	f, report := e.With(Member{Machine: 0, Incarnation: 8, Memory: 50, Lives: []uint64{100, 8}}, []region.ID{1})
	f.Follow(e, used)
	if p, _ := f.Placement(1); report.String() != "returned [1]" || !reflect.DeepEqual(p.Before, []Memory{other}) {
		t.Errorf("%v, %+v", report, p)
	}
	// Memory that an operator has given up stays given up.
	g, report := e.Forget(0)
	g.Follow(e, unused)
	if p, _ := g.Placement(1); report.String() != "" || !reflect.DeepEqual(p.Away, []Memory{other}) || p.Primary != backup {
		t.Errorf("%v, %+v", report, g.Regions)
	}
	if h, report := g.Forget(backup); report.String() != "LOST [1]" || len(h.Regions) != 0 || !slices.Equal(h.Lost, []region.ID{1}) {
		t.Errorf("%v, %+v", report, h)
	}
}

// An awaited memory is identified by its last life as a member. An older copy does not count as
// that memory, nor as a replica in a meeting.
func TestOlderCopies(t *testing.T) {
	c, _, err := instance(3, 1, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Memory = []uint64{50, 51, 52}
	d, _ := c.Without([]rdma.MachineID{0}, 1)
	for _, x := range []struct {
		name    string
		memory  uint64
		lives   []uint64
		isIt    bool
		isOlder bool
	}{
		{"the last life's", 50, []uint64{100, 7}, true, false},
		{"used since, to no effect", 50, []uint64{100, 5, 6, 7}, true, false},
		{"an older copy", 50, []uint64{99, 7}, false, true},
		{"an older copy, begun twice", 50, []uint64{98, 99, 7}, false, true},
		{"by a program that knows no lives", 50, nil, true, false},
		{"kept by a program that knew none", 50, []uint64{0, 7}, true, false},
		{"another memory", 60, []uint64{7}, false, false},
	} {
		m := Member{Machine: 0, Incarnation: 7, Memory: x.memory, Lives: x.lives}
		e, _ := d.With(m, []region.ID{1})
		p, _ := e.Placement(1)
		if p.IsAvailable() != x.isIt || (len(d.Missing(m, []region.ID{1})) == 0) != x.isIt || d.IsOlder(m) != x.isOlder {
			t.Errorf("%s: %+v, missing %v, older %v", x.name, p, d.Missing(m, []region.ID{1}), d.IsOlder(m))
		}
		f, _ := c.Restarted([]Member{m}, Member{Machine: 1, Incarnation: 8, Memory: 51, Lives: []uint64{101, 8}})
		if _, in := f.Member(0); in != x.isIt || c.IsMember(m) != x.isIt || c.IsOlder(m) != x.isOlder {
			t.Errorf("%s: machines %v have come back, older %v", x.name, f.Machines, c.IsOlder(m))
		}
	}
}

// A machine leads a meeting with empty memory. Its former memory is given up, and no region waits
// for it again; otherwise regions would also wait for another machine's memory.
func TestFollowAfterRestarted(t *testing.T) {
	c, p, err := instance(3, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Memory = []uint64{50, 51, 52}
	backup := p.Backups[0]
	next, _ := c.Restarted(nil, Member{Machine: 0, Incarnation: 7, Memory: 90, Lives: []uint64{7}})
	next.Follow(c, func(region.ID) bool { return false })
	if now, _ := next.Placement(1); len(now.Away) != 1 || now.Away[0].Machine != backup {
		t.Errorf("waits for %v, want machine %d", now.Away, backup)
	}
	empty := Member{Machine: backup, FailureDomain: int(backup), Incarnation: 8, Memory: 91, Lives: []uint64{8}}
	if missing := next.Missing(empty, nil); len(missing) != 1 {
		t.Errorf("%v are missing: machine %d alone has the region, and comes with nothing", missing, backup)
	}
}

// A machine that has come back with an older copy may have to lead a meeting if no other machine is
// back with more. That gives up none of its former memory, and the machine finds that it must not
// become a member with the copy.
func TestOlderCopyLeadsAMeeting(t *testing.T) {
	c, _, err := instance(3, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Memory = []uint64{50, 51, 52}
	older := Member{Machine: 0, Incarnation: 7, Memory: 50, Lives: []uint64{99, 7}}
	next, _ := c.Restarted([]Member{older}, older)
	if now, _ := next.Placement(1); len(now.Away) != 2 {
		t.Errorf("waits for %v", now.Away)
	}
	if missing := next.Missing(older, []region.ID{1}); !slices.Equal(missing, []region.ID{1}) {
		t.Errorf("%v are missing", missing)
	}
}

// An older copy is refused while a region waits for the memory, even if another machine's memory
// would do: if the copy joined, the memory would be given up.
func TestOlderCopyOfWhatIsAwaited(t *testing.T) {
	c, p, err := instance(3, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Memory = []uint64{50, 51, 52}
	third := 3 - p.Backups[0]
	d, _ := c.Without([]rdma.MachineID{0, p.Backups[0]}, third)
	for _, x := range []struct {
		name    string
		m       Member
		missing int
	}{
		{"an older copy", Member{Machine: 0, Memory: 50, Incarnation: 7, Lives: []uint64{99, 7}}, 1},
		{"nothing", Member{Machine: 0, Memory: 60, Incarnation: 7, Lives: []uint64{7}}, 0},
		{"what it had", Member{Machine: 0, Memory: 50, Incarnation: 7, Lives: []uint64{100, 7}}, 0},
		{"a machine that nobody waits for", Member{Machine: 9, Memory: 50, Incarnation: 7, Lives: []uint64{99, 7}}, 0},
	} {
		if missing := d.Missing(x.m, []region.ID{1}); len(missing) != x.missing {
			t.Errorf("%s: %v are missing", x.name, missing)
		}
	}
}
