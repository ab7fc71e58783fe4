package txn_test

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
)

// Who finds a connection broken when it sends block headers says so, as with any other
// operation: nothing else may go over it, and the allocation that waits for a new
// configuration would wait for ever.
func TestBrokenConnectionOfBlocks(t *testing.T) {
	for _, async := range []bool{false, true} {
		r := open(t, farm.Config{Machines: 3, Replicas: 2, Workers: 1, Network: local.Options{Async: async}, Clock: newHandClock()}, 6)
		r.lost = true
		m := r.Machine(0)
		p := r.ptrs[0]
		backup := m.Replicas(p)[1]
		fenced := r.fences(0)
		must(t, r.Machine(int(backup)).NIC().Close())
		if err := m.WriteBackups(p.Addr.Region(), 64, make([]byte, 8)); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("async %v: %v", async, err)
		}
		if _, ok := fenced.Load(backup); !ok {
			t.Errorf("async %v: nobody was told that machine %d cannot be reached", async, backup)
		}
	}
}
