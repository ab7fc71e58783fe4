package txn_test

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
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
		if err := m.WriteBackups(p.Addr.Region(), 64, make([]byte, 8), 0); !errors.Is(err, rdma.ErrBroken) {
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
	id := r.ptrs[0].Addr.Region()
	const last = 1<<20 - 64 // in the region: a line where nothing is
	in, err := m.ReserveBackups(id, last, 64)
	must(t, err)
	must(t, m.WriteBackups(id, last, make([]byte, 8), in))
	if err := m.WriteBackups(id, last, make([]byte, 8), in+1); !errors.Is(err, region.ErrBackups) {
		t.Error(err)
	}
}
