package farm

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/tcp"
	"github.com/farmsql/farmsql/region"
)

// overTCP are machines of this process that talk over the loopback interface, with leases.
type overTCP struct {
	t        *testing.T
	v        *Volatile
	settings Config
	founders []rdma.MachineID
	mu       sync.Mutex
	at       map[rdma.MachineID]string
}

func (o *overTCP) resolve(m rdma.MachineID) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, ok := o.at[m]
	return a, ok
}

// join puts a machine on the network, at the address that it had.
func (o *overTCP) join(m rdma.MachineID) *tcp.NIC {
	o.t.Helper()
	at, ok := o.resolve(m)
	if !ok {
		at = "127.0.0.1:0"
	}
	nic, err := tcp.Join(tcp.Config{Machine: m, Listen: at, Resolve: o.resolve})
	if err != nil {
		o.t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[m] = nic.Address()
	return nic
}

func (o *overTCP) open(nic *tcp.NIC) (*Member, error) {
	m := nic.Machine()
	o.mu.Lock()
	memory := o.v.shelf(int(m))
	o.mu.Unlock()
	return OpenMember(o.t.Context(), MemberConfig{
		Self: cluster.Member{Machine: m, FailureDomain: int(m)}, Settings: o.settings, Memory: memory, Store: &o.v.store, NIC: nic, Founders: o.founders,
		Keeper: func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			return lease.NewCalls(e, KindLease, lease.Config{Length: 500 * time.Millisecond, Clock: clock.System{}, Expired: expired}), nil
		},
	})
}

// Machines commit over TCP; when one is cut off from the others, those go on without it, and it
// comes back.
func TestMembersOverTCP(t *testing.T) {
	const n = 3
	o := &overTCP{t: t, v: NewVolatile(), settings: small(n, 2), at: map[rdma.MachineID]string{}}
	var nics [n]*tcp.NIC
	for i := range n {
		o.founders = append(o.founders, rdma.MachineID(i))
		nics[i] = o.join(rdma.MachineID(i))
	}
	var members [n]*Member
	var opening sync.WaitGroup
	for i := range n {
		opening.Go(func() {
			var err error
			if members[i], err = o.open(nics[i]); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		return
	}
	ptrs := accountsAt(t, members[:], 10, 100)
	transferAll(t, members[:], ptrs, 200)
	for i, m := range members {
		if err := checkTotal(m.Transactions(), ptrs, 1000); err != nil {
			t.Errorf("machine %d: %v", i, err)
		}
	}

	nics[2].Cut(0)
	nics[2].Cut(1)
	nics[0].Cut(2)
	nics[1].Cut(2)
	transferAll(t, members[:2], ptrs, 200)
	if c := members[0].Membership().Configuration(); len(c.Machines) != 2 {
		t.Errorf("configuration %d has machines %v", c.ID, c.Machines)
	}
	if err := errors.Join(members[2].Close(), nics[2].Close()); err != nil {
		t.Error(err)
	}
	nics[0].Mend(2)
	nics[1].Mend(2)
	nics[2] = o.join(2)
	var err error
	if members[2], err = o.open(nics[2]); err != nil {
		t.Fatal(err)
	}
	transferAll(t, members[:], ptrs, 200)
	for i, m := range members {
		if err := checkTotal(m.Transactions(), ptrs, 1000); err != nil {
			t.Errorf("machine %d: %v", i, err)
		}
	}
	for i := range n {
		if err := errors.Join(members[i].Close(), nics[i].Close()); err != nil {
			t.Error(err)
		}
	}
}

// accountsAt is accounts of machines that are not a Local.
func accountsAt(t *testing.T, members []*Member, n int, balance uint64) (ptrs []region.Ptr) {
	t.Helper()
	for i := range n {
		p, err := account(members[i%len(members)].Transactions(), balance)
		if err != nil {
			t.Fatal(err)
		}
		ptrs = append(ptrs, p)
	}
	return ptrs
}

// transferAll has each machine make transfers at the same time.
func transferAll(t *testing.T, members []*Member, ptrs []region.Ptr, rounds int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				if err := transfer(ctx, m.Transactions(), ptrs, rng); err != nil {
					t.Errorf("machine %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
}
