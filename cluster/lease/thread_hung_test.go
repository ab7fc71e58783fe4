//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// If only the thread of a machine still runs, the machine's lease must end.
func TestThreadHung(t *testing.T) {
	starts := map[string]func(uint64, rdma.MachineID, Config) (Keeper, error){
		"thread": func(c uint64, m rdma.MachineID, cfg Config) (Keeper, error) { return NewThread(c, peer(m), cfg) },
		"locked": func(c uint64, m rdma.MachineID, cfg Config) (Keeper, error) { return NewLocked(c, peer(m), cfg) },
	}
	for name, start := range starts {
		for hung := range 2 {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				cluster := rand.Uint64()
				var keepers []Keeper
				var heard [3]noticed
				for m := range 3 {
					k, err := start(cluster, rdma.MachineID(m), Config{Length: time.Second, Clock: clock.System{}, Expired: heard[m].add})
					if err != nil {
						t.Fatal(err)
					}
					defer k.Close()
					k.Configure(0, peers(0, 1, 2))
					keepers = append(keepers, k)
				}
				beatAll := func(but int) {
					for m, k := range keepers {
						if m != but {
							k.Beat()
						}
					}
				}
				beatAll(-1)
				for _, k := range keepers {
					eventually(t, "leases are exchanged", func() bool { beatAll(-1); return k.Valid() })
				}
				granter := 1 - hung // of whose lease it is a matter
				eventually(t, "it is suspected", func() bool { beatAll(hung); return heard[granter].has(rdma.MachineID(hung)) })
				if keepers[hung].Valid() {
					t.Error("who is suspected relies on its lease")
				}
				if hung == 1 && heard[0].has(2) {
					t.Error("who works is suspected, too")
				}
			})
		}
	}
}

// A machine whose threads wait for a processor, or have one, is late and not hung. It gets several
// leases more, but not infinitely many.
func TestThreadStarved(t *testing.T) {
	const length = 400 * time.Millisecond
	cluster := rand.Uint64()
	var atCM noticed
	cm, m := startThread(t, cluster, 0, &atCM, length), startThread(t, cluster, 1, new(noticed), length)
	for _, k := range []Keeper{cm, m} {
		k.Configure(0, peers(0, 1))
	}
	beat := func() { cm.Beat(); m.Beat() }
	eventually(t, "leases are exchanged", func() bool { beat(); return cm.Valid() && m.Valid() })
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() { // without a pause
		}
	}()
	beat()
	for begin := time.Now(); time.Since(begin) < 4*length; time.Sleep(length / 10) {
		cm.Beat()
		if atCM.has(1) {
			t.Fatalf("a busy machine is suspected after %v", time.Since(begin))
		}
	}
	eventually(t, "it is suspected in the end", func() bool { cm.Beat(); return atCM.has(1) })
}
