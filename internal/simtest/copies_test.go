package simtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// placed returns a configuration of three machines with one region.
func placed(filling ...rdma.MachineID) *cluster.Configuration {
	c := &cluster.Configuration{ID: 1, Revision: 1, Replicas: 3, Regions: []cluster.Placement{{Region: 1, Primary: 0, Backups: []rdma.MachineID{1, 2}, Filling: filling, Group: 1}}}
	for i := range rdma.MachineID(3) {
		c.AddMember(cluster.Member{Machine: i, FailureDomain: int(i), Incarnation: 10 + uint64(i)})
	}
	return c
}

// copies learns from configurations and destroyed memories which memory has a region in full. No
// configuration may lose such a region.
func TestCopies(t *testing.T) {
	lost := func(c *cluster.Configuration) *cluster.Configuration {
		d := c.Succeed()
		d.Regions, d.Lost = nil, []region.ID{1}
		return d
	}
	for _, c := range []struct {
		name    string
		filling []rdma.MachineID
		destroy []rdma.MachineID
		have    []rdma.MachineID
	}{
		{"all", nil, nil, []rdma.MachineID{0, 1, 2}},
		{"one is being filled", []rdma.MachineID{1}, nil, []rdma.MachineID{0, 2}},
		{"one was destroyed", nil, []rdma.MachineID{0}, []rdma.MachineID{1, 2}},
		{"one was destroyed, one is being filled", []rdma.MachineID{1}, []rdma.MachineID{0}, []rdma.MachineID{2}},
		{"nobody", []rdma.MachineID{1}, []rdma.MachineID{0, 2}, nil},
	} {
		k := newCopies()
		now := placed(c.filling...)
		if err := k.stored(now); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.destroy {
			k.destroyed(m)
		}
		if got := k.of(now.Regions[0]); !slices.Equal(got, c.have) && len(got)+len(c.have) > 0 {
			t.Errorf("%s: machines %v have it", c.name, got)
		}
		for m := range rdma.MachineID(3) {
			if want := len(c.have) == 1 && c.have[0] == m; k.isOnly(m, anybody) != want {
				t.Errorf("%s: only machine %d has it: %v", c.name, m, !want)
			}
		}
		if err := k.stored(lost(now)); (err != nil) != (len(c.have) > 0) || err != nil && !strings.Contains(err.Error(), "has lost region 1") {
			t.Errorf("%s: lost: %v", c.name, err)
		}
	}
}

// Data that a machine receives after its memory was destroyed do not count before another life has
// them. A destroyed replica counts again once it is full again.
func TestCopiesOfAnEndedLife(t *testing.T) {
	k := newCopies()
	filling := placed(1)
	k.stored(filling)
	k.destroyed(1)
	full := filling.Filled(1, []region.ID{1}) // it was about to be called full
	k.stored(full)
	if have := k.of(full.Regions[0]); slices.Contains(have, 1) {
		t.Errorf("machines %v have it", have)
	}
	without, _ := full.Without([]rdma.MachineID{1}, 0)
	k.stored(without)
	back, _ := without.With(cluster.Member{Machine: 1, FailureDomain: 1, Incarnation: 99}, nil)
	k.stored(back)
	if have := k.of(back.Regions[0]); slices.Contains(have, 1) {
		t.Errorf("while it is filled machines %v have it", have)
	}
	again := back.Filled(1, []region.ID{1})
	k.stored(again)
	if have := k.of(again.Regions[0]); !slices.Contains(have, 1) {
		t.Errorf("filled, machines %v have it", have)
	}
}

// A region may wait for memory that it had given up, and that was destroyed meanwhile.
func TestCopiesOfWhatIsAway(t *testing.T) {
	k := newCopies()
	first := placed()
	k.stored(first)
	k.destroyed(1)
	without, _ := first.Without([]rdma.MachineID{1}, 0)
	k.stored(without)
	nobody, _ := without.Without([]rdma.MachineID{0, 2}, 3)
	nobody.AddMember(cluster.Member{Machine: 3, Incarnation: 13})
	without.Follow(first, func(region.ID) bool { return false })
	nobody.Follow(without, func(region.ID) bool { return true })
	k.stored(nobody)
	if p := nobody.Regions[0]; len(p.Away) != 3 || !slices.Equal(k.of(p), []rdma.MachineID{0, 2}) {
		t.Errorf("machines %v have it, it waits for %v", k.of(p), p.Away)
	}
	k.destroyed(2)
	if p := nobody.Regions[0]; !slices.Equal(k.of(p), []rdma.MachineID{0}) || !k.isOnly(0, anybody) {
		t.Errorf("machines %v have it", k.of(p))
	}
}

// Machines suffice if they are a majority and have all regions.
func TestSuffice(t *testing.T) {
	k := newCopies()
	if k.suffice(anybody) {
		t.Error("nobody suffices before there is a configuration")
	}
	k.stored(placed(1, 2))
	for _, c := range []struct {
		machines []rdma.MachineID
		want     bool
	}{{[]rdma.MachineID{0}, false}, {[]rdma.MachineID{1, 2}, false}, {[]rdma.MachineID{0, 2}, true}, {[]rdma.MachineID{0, 1, 2}, true}} {
		if got := k.suffice(func(m rdma.MachineID) bool { return slices.Contains(c.machines, m) }); got != c.want {
			t.Errorf("%v: %v", c.machines, got)
		}
	}
	if k.canLose(0) || !k.canLose(1) {
		t.Error("the memory that has a region in full can be lost, or one that has nothing cannot")
	}
	k.destroyed(1)
	if !k.suffice(func(m rdma.MachineID) bool { return m != 1 }) || k.suffice(func(m rdma.MachineID) bool { return m != 2 }) || k.canLose(2) {
		t.Error("a machine whose memory was destroyed counts")
	}
}

// The store fails for a machine that is cut off from it, and now and then for all machines. A
// failed swap may have happened; a swap that was reported as done has happened.
func TestStoreFailures(t *testing.T) {
	w := sim.New(sim.Options{Seed: 1})
	err := w.Run(func() {
		c := newConfigurations(w.Rand())
		told := 0
		c.stored = func(*cluster.Configuration) { told++ }
		one, other := storeClient{c, 1, w.Outside()}, storeClient{c, 2, w.Outside()}
		c.away[1]++
		if err := one.CompareAndSwap(0, placed()); !errors.Is(err, cluster.ErrUnreachable) || told > 0 {
			t.Errorf("cut off: %v", err)
		}
		if _, err := one.Load(); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("cut off: %v", err)
		}
		if err := other.CompareAndSwap(0, placed()); err != nil || told != 1 {
			t.Error(err)
		}
		c.away[1]--
		c.failing = 500
		var before, after, done int
		for range 200 {
			now, _ := c.MemoryStore.Load()
			next := now.Revise()
			err := one.CompareAndSwap(now.Revision, next)
			now, _ = c.MemoryStore.Load()
			switch swapped := now.Revision == next.Revision; {
			case err == nil && swapped:
				done++
			case err != nil && swapped:
				after++
			case err != nil:
				before++
			default:
				t.Error("a swap that has succeeded has not happened")
			}
		}
		if min(before, after, done) < 20 || told != 1+after+done {
			t.Errorf("%d failed before, %d after the swap, %d did not; told of %d", before, after, done, told)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
