package test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// TestMove: an operator moves a primary and a backup to other machines, while clients write at all of them,
// and is told what is in the way where that is impossible. Nothing that was acknowledged is missing, and
// the replicas stay where they were put.
func TestMove(t *testing.T) {
	f := newFleet(t, 4, 2, "")
	f.more = []string{"--lease", "3s"} // no region moves by itself before 100 leases are over
	f.machines[2].more, f.machines[3].more = []string{"--failure-domain", "9"}, []string{"--failure-domain", "9"}
	f.start()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	f.awaitWhole()
	l.begin(l.transfer, l.replace, l.read)
	move := func(region, from, to any) (out string, code int) {
		t.Helper()
		return f.farmsql("", "move", "--region", fmt.Sprint(region), "--from", fmt.Sprint(from), "--to", fmt.Sprint(to))
	}

	c := f.configuration()
	p := c.Regions[0]
	other := slices.DeleteFunc(slices.Clone(c.Machines), p.Has)[0]
	for _, x := range []struct {
		region, from, to any
		text             string
	}{
		{999, 0, 1, "has no region 999: name one that farmsql status shows"},
		{p.Region, p.Primary, 7, "machine 7 is no member"},
		{p.Region, p.Primary, p.Backups[0], "already: name another machine"},
		{p.Region, other, p.Primary, fmt.Sprintf("machine %d has no replica of region %d", other, p.Region)},
	} {
		if out, code := move(x.region, x.from, x.to); code != 1 || !strings.Contains(out, x.text) {
			t.Errorf("move region %v from %v to %v: status %d: %s", x.region, x.from, x.to, code, out)
		}
	}

	to := f.allowed(p, p.Primary)
	out, code := move(p.Region, p.Primary, to)
	if want := fmt.Sprintf("region %d is at machine %d\n", p.Region, to); code != 0 || !strings.Contains(out, want) {
		t.Fatalf("move: status %d: %s", code, out)
	}
	if got, _ := f.configuration().Placement(p.Region); got.Primary != to || got.Has(p.Primary) {
		t.Errorf("region %d was %+v, is %+v", p.Region, p, got)
	}
	out, _ = f.farmsql("", "status")
	if want := fmt.Sprintf("region %d stays at machine %d, where it was moved by hand", p.Region, to); !strings.Contains(out, want) {
		t.Errorf("status says %s", out)
	}
	if out, code := move(p.Region, p.Primary, to); code != 0 {
		t.Errorf("the same once more: status %d: %s", code, out)
	}

	p, _ = f.configuration().Placement(p.Region)
	from := p.Backups[0]
	if out, code := move(p.Region, from, f.allowed(p, from)); code != 0 {
		t.Errorf("move a backup: status %d: %s", code, out)
	}
	p, _ = f.configuration().Placement(p.Region)
	if at, partner, ok := inDomain9(p); ok {
		from := slices.DeleteFunc(p.Replicas(), func(m rdma.MachineID) bool { return m == at })[0]
		if out, code := move(p.Region, from, partner); code != 1 || !strings.Contains(out, "failure domain of machine "+strconv.Itoa(int(at))) {
			t.Errorf("move into a domain that has a replica: status %d: %s", code, out)
		}
	}
	before := l.transfers.Load()
	f.wait("some work", func() bool { return l.transfers.Load() > before+50 })
	l.end()
	if got, _ := f.configuration().Placement(p.Region); !got.Has(to) {
		t.Errorf("region %d is not at machine %d any more: %+v", p.Region, to, got)
	}
	for _, m := range f.machines {
		l.verify(m)
	}
}

// allowed returns a machine to which a replica can move from another.
func (f *fleet) allowed(p cluster.Placement, from rdma.MachineID) rdma.MachineID {
	f.t.Helper()
	c := f.configuration()
	for _, to := range c.Machines {
		if c.CheckOrder(cluster.Order{Region: p.Region, Move: cluster.Move{From: from, To: to}}) == nil {
			return to
		}
	}
	f.t.Fatalf("no machine can get the replica of %+v at machine %d: %+v", p, from, c)
	return 0
}

// inDomain9 returns which of the machines 2 and 3, which share a failure domain, has a replica, and the
// other one.
func inDomain9(p cluster.Placement) (at, partner rdma.MachineID, ok bool) {
	for _, m := range []rdma.MachineID{2, 3} {
		if p.Has(m) {
			return m, 5 - m, true
		}
	}
	return 0, 0, false
}
