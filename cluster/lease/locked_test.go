package lease

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// A noticed collects what keepers report.
type noticed struct {
	sync.Mutex
	machines []rdma.MachineID
}

func (n *noticed) add(m rdma.MachineID) {
	n.Lock()
	defer n.Unlock()
	n.machines = append(n.machines, m)
}

func (n *noticed) has(m rdma.MachineID) bool {
	n.Lock()
	defer n.Unlock()
	return slices.Contains(n.machines, m)
}

// eventually waits until f returns true, and fails the test after a while.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for begin := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 60*time.Second {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// The keeper locked, which exists for measurements, behaves like the others.
func TestLocked(t *testing.T) {
	cluster := rand.Uint64()
	var atCM noticed
	var all []Keeper
	for m := range rdma.MachineID(3) {
		cfg := Config{Length: time.Second, Clock: clock.System{}, Expired: atCM.add}
		if m > 0 {
			cfg.Expired = new(noticed).add
		}
		k, err := NewLocked(cluster, peer(m), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, k)
	}
	if _, err := NewLocked(cluster, peer(2), Config{Length: time.Second, Clock: clock.System{}}); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("two of one machine: %v", err)
	}
	for _, k := range all {
		k.Configure(0, peers(0, 1, 2))
	}
	for i, k := range all {
		eventually(t, "each has its lease "+strconv.Itoa(i), k.Valid)
	}
	if n := len(all[0].Leases()); n != 2 || all[0].Outstanding() != 0 || all[0].Length() != time.Second || all[0].Variant() == "" {
		t.Errorf("the CM has %d", n)
	}
	if err := all[2].Close(); err != nil || all[2].Valid() {
		t.Errorf("closed: %v", err)
	}
	eventually(t, "the CM suspects machine 2", func() bool { return atCM.has(2) })
}
