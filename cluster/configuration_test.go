package cluster

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// instance returns a configuration of n machines. If paired, each failure domain has two machines.
func instance(n, replicas int, paired bool) *Configuration {
	c := &Configuration{Cluster: 7, ID: 1, Revision: 1, Replicas: replicas, NextRegion: 1, Workers: 2, RegionBytes: 1 << 20, LogBytes: 1 << 16}
	for i := range n {
		m := Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: uint64(100 + i)}
		if paired {
			m.FailureDomain = i / 2
		}
		c.AddMember(m)
	}
	return c
}

// Each replica of a region is in another failure domain, and machines have equally many replicas.
func TestPlace(t *testing.T) {
	for _, paired := range []bool{false, true} {
		for n := 1; n <= 7; n++ {
			for replicas := 1; replicas <= n && !(paired && replicas > (n+1)/2); replicas++ {
				c := instance(n, replicas, paired)
				load := map[rdma.MachineID]int{}
				for i := range 12 * n {
					before := c.Clone()
					next, p, err := c.Place(rdma.MachineID(i%n), 0)
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(c, before) {
						t.Fatal("Place has changed its receiver")
					}
					if p.Region != c.NextRegion || next.NextRegion != c.NextRegion+1 || next.ID != c.ID || next.Revision != c.Revision+1 {
						t.Fatalf("region %d of revision %d, then %d", p.Region, next.Revision, next.NextRegion)
					}
					domains := map[int]bool{}
					for _, m := range p.Replicas() {
						domains[c.domain(m)] = true
						load[m]++
						if !next.Keeps(m, p.Region) {
							t.Fatal("Keeps does not know a replica")
						}
					}
					if len(domains) != replicas || p.Primary != rdma.MachineID(i%n) {
						t.Fatalf("placed at %v, %d failure domains", p.Replicas(), len(domains))
					}
					if got, ok := next.Placement(p.Region); !ok || !reflect.DeepEqual(got, p) {
						t.Fatalf("placement of %d is %v", p.Region, got)
					}
					c = next
				}
				if _, ok := c.Placement(c.NextRegion); ok {
					t.Fatal("finds a region that is not there")
				}
				if lo, hi := 12*replicas/2, 12*replicas*2; !paired {
					for m, l := range load {
						if l < lo || l > hi || c.PrimaryOf(m) != 12 {
							t.Errorf("%d machines, %d replicas: machine %d has %d, primary of %d", n, replicas, m, l, c.PrimaryOf(m))
						}
					}
				}
			}
		}
	}
}

func TestPlaceNear(t *testing.T) {
	c := instance(5, 3, false)
	c, first, err := c.Place(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // so that another choice would be as good
		if c, _, err = c.Place(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	c, near, err := c.Place(2, first.Region)
	if err != nil || !slices.Equal(near.Replicas(), first.Replicas()) {
		t.Errorf("near %v: %v, %v", first, near, err)
	}
	near.Backups[0] = 99
	if again, _ := c.Placement(first.Region); again.Backups[0] == 99 {
		t.Error("two regions share their backups")
	}
	if _, other, err := c.Place(1, first.Region); err != nil || other.Primary != 1 {
		t.Errorf("near a region of another primary: %v, %v", other, err)
	}
}

func TestPlaceWithoutRoom(t *testing.T) {
	if _, _, err := instance(4, 3, true).Place(0, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v", err)
	}
	c := instance(3, 2, false)
	if _, _, err := c.Place(3, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("primary at a machine that is no member: %v", err)
	}
	c.Capacity = []int{1, 1, 0}
	c, first, err := c.Place(0, 0)
	if err != nil || !slices.Equal(first.Replicas(), []rdma.MachineID{0, 1}) {
		t.Fatal(first, err)
	}
	if _, _, err := c.Place(0, first.Region); !errors.Is(err, ErrNoRoom) {
		t.Errorf("primary has no room: %v", err)
	}
	if _, _, err := c.Place(2, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("no machine has room for a backup: %v", err)
	}
}

// While machines are away, a region gets as many replicas as there are failure domains, and the
// rest when the machines are back. The first region of an instance waits for all machines.
func TestPlaceWhileMachinesAreAway(t *testing.T) {
	c := instance(3, 3, false)
	gone, _ := c.Member(2)
	alone, _ := c.Without([]rdma.MachineID{2}, 0)
	if _, _, err := alone.Place(0, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("the first region: %v", err)
	}
	c, _, err := c.Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, _ = c.Without([]rdma.MachineID{2}, 0)
	c, second, err := c.Place(1, 0)
	if err != nil || !slices.Equal(second.Replicas(), []rdma.MachineID{1, 0}) {
		t.Fatal(second, err)
	}
	if _, near, err := c.Place(1, second.Region); err != nil || near.Group != second.Group {
		t.Error(near, err)
	}
	d, report := c.With(gone, nil)
	if report.String() != "refilled [1 2]" || sound(d) != nil {
		t.Errorf("%v, %+v", report, d.Regions)
	}
	c.Capacity[0] = -1
	if _, _, err := c.Place(1, 0); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a machine is there and has no room: %v", err)
	}
}

// Regions made near each other form a group, unless there is no room for it.
func TestPlaceGroup(t *testing.T) {
	c := instance(3, 2, false)
	c.Capacity = []int{0, 2, 0}
	for i, want := range []region.ID{1, 1, 3} {
		next, p, err := c.Place(0, 1)
		if err != nil || p.Group != want {
			t.Errorf("region %d: %+v, %v", i+1, p, err)
		}
		c = next
	}
}

func TestMembers(t *testing.T) {
	c := instance(1, 1, false)
	five := Member{Machine: 5, FailureDomain: 2, Incarnation: 11, Memory: 21, Capacity: 3}
	c.AddMember(five)
	c.AddMember(Member{Machine: 3, FailureDomain: 1, Incarnation: 12, Memory: 22, Capacity: 4})
	if !slices.Equal(c.Machines, []rdma.MachineID{0, 3, 5}) {
		t.Errorf("machines %v", c.Machines)
	}
	if m, ok := c.Member(5); !ok || !reflect.DeepEqual(m, five) {
		t.Errorf("machine 5 is %+v", m)
	}
	c.removeMember(3)
	c.removeMember(4)
	if _, ok := c.Member(3); ok || !slices.Equal(c.Machines, []rdma.MachineID{0, 5}) {
		t.Errorf("machines %v", c.Machines)
	}
	if m, ok := c.Member(5); !ok || !reflect.DeepEqual(m, five) {
		t.Errorf("machine 5 is %+v", m)
	}
}

func TestClone(t *testing.T) {
	c, _, err := instance(3, 3, false).Place(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Root = region.MakePtr(region.MakeAddr(1, 640), 3, 4)
	d := c.Clone()
	if !reflect.DeepEqual(c, d) {
		t.Errorf("%+v, %+v", c, d)
	}
	d.Regions[0].Backups[0], d.Machines[0], d.FailureDomain[0], d.Incarnation[0], d.Memory[0], d.Capacity[0] = 9, 9, 9, 9, 9, 9
	if c.Regions[0].Backups[0] == 9 || c.Machines[0] == 9 || c.FailureDomain[0] == 9 || c.Incarnation[0] == 9 || c.Memory[0] == 9 || c.Capacity[0] == 9 {
		t.Error("clone shares memory")
	}
}
