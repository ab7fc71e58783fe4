package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// TestDrain: a machine joins three others and gets its share of the regions; then farmsql drain takes
// the data off one of the three, which is stopped. Clients write at all of them meanwhile. Nothing
// that was acknowledged is missing, and no region is short of a replica afterwards.
func TestDrain(t *testing.T) {
	f := newFleet(t, 4, 2, "")
	f.more = []string{"--lease", "100ms"} // regions begin to move 100 leases after the machine has joined
	joiner := f.machines[3]
	f.machines = f.machines[:3]
	f.start()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	f.awaitWhole()
	f.machines = append(f.machines, joiner)
	joiner.start()
	f.awaitServing()
	l.begin(l.transfer, l.replace, l.read)
	has := func(p cluster.Placement) bool { return p.Has(3) }
	f.wait("machine 3 to have regions", func() bool { return slices.ContainsFunc(f.configuration().Regions, has) })
	f.awaitWhole()

	out := run(t, "drain", "--data", f.folder, "--machine", "1")
	if !strings.Contains(out, "machine 1 has no data; it may be stopped") {
		t.Errorf("drain says %s", out)
	}
	if out := run(t, "status", "--data", f.folder); !strings.Contains(out, "1 draining") && !strings.Contains(out, "1 CM draining") {
		t.Errorf("status says %s", out)
	}
	before := l.transfers.Load()
	f.wait("some work", func() bool { return l.transfers.Load() > before+50 })
	l.end()
	drained := f.machines[1]
	placed := f.configuration().Regions
	drained.stop()
	f.wait("the others to go on", func() bool { return !slices.Contains(f.configuration().Machines, rdma.MachineID(1)) })
	for i, p := range f.configuration().Regions {
		if p.LastReplicaChange != placed[i].LastReplicaChange || len(p.Filling) > 0 || len(p.Backups) != 1 {
			t.Errorf("region %d was %+v, is %+v", p.Region, placed[i], p)
		}
	}
	f.machines = slices.Delete(f.machines, 1, 2)
	for _, m := range f.machines {
		l.verify(m)
	}
}
