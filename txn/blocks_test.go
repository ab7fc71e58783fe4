package txn_test

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
)

// A machine that finds a connection broken when it writes block headers reports that, as with any
// other operation. No other operation may use the connection, so without the report the allocation
// would wait for a new configuration for ever.
func TestBrokenConnectionOfBlocks(t *testing.T) {
	for _, async := range []bool{false, true} {
		r := open(t, txntest.Config{Machines: 3, Replicas: 2, Workers: 1, Network: local.Options{Async: async}, Clock: newHandClock()}, 6)
		r.lost = true
		m := r.Machine(0)
		p := r.ptrs[0]
		backup := m.ReplicasOf(p)[1]
		fenced := r.fences(0)
		must(t, r.Machine(int(backup)).NIC().Close())
		if err := m.WriteBackups(&region.Tenure{Region: m.Route(p.Addr.Region()).Local}, 64, make([]byte, 8), 0); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("async %v: %v", async, err)
		}
		if _, ok := fenced.Load(backup); !ok {
			t.Errorf("async %v: nobody was told that machine %d cannot be reached", async, backup)
		}
	}
}

// Headers that are written only to backups that have reserved storage for them are written to no
// others.
func TestWriteToBackupsThatHaveReserved(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1}, 6)
	m := r.Machine(0)
	local := m.Route(r.ptrs[0].Addr.Region()).Local
	const last = 1<<20 - 64 // in the region: a line where nothing is
	tenure := &region.Tenure{Region: local}
	in, err := m.ReserveBackups(tenure, last, 64)
	must(t, err)
	must(t, m.WriteBackups(tenure, last, make([]byte, 8), in))
	if err := m.WriteBackups(tenure, last, make([]byte, 8), in+1); !errors.Is(err, region.ErrBackups) {
		t.Error(err)
	}
}

// A machine that was a region's primary leaves the blocks to the present one: it could overwrite slabs
// that the other has made. The replica may also be another one, because the region has left and come
// back.
func TestBlocksOfAnotherPrimary(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1}, 6)
	m := r.Machine(0)
	rt := *m.Route(r.ptrs[0].Addr.Region())
	local, backup := rt.Local, r.Machine(1).Route(rt.Region).Local
	another, err := region.Format(rt.Region, nvram.NewMemory(region.MinSize))
	must(t, err)
	elsewhere := rt.Placement
	elsewhere.Primary, elsewhere.Backups = elsewhere.Backups[0], []rdma.MachineID{0}
	const last = 1<<20 - 64 // in the region: a line where nothing is
	tenure := &region.Tenure{Region: local}
	for what, now := range map[string]func(){
		"another primary": func() { m.AddRegion(elsewhere, local) },
		"another replica": func() { m.AddRegion(rt.Placement, another) },
	} {
		now()
		_, errReserve := m.ReserveBackups(tenure, last, 64)
		_, errDiscard := m.Discard(t.Context(), tenure, last, 64)
		for _, err := range []error{errReserve, errDiscard, m.WriteBackups(tenure, last, []byte("a line...line"), 0)} {
			if !errors.Is(err, region.ErrDeparted) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if backup.Memory().Load(last) != 0 {
			t.Errorf("%s: the backup has been written to", what)
		}
	}
	m.AddRegion(rt.Placement, local)
}
