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
	for begin := time.Now(); time.Since(begin) < 7*length; time.Sleep(length / 10) {
		cm.Beat()
		if atCM.has(1) {
			t.Fatalf("a busy machine is suspected after %v", time.Since(begin))
		}
	}
	eventually(t, "it is suspected in the end", func() bool { cm.Beat(); return atCM.has(1) })
}

// A machine that has beaten is reminded of the next beat, at the latest after two thirds of a lease time, and again and again
// if none comes. When the keeper is closed the reminders have ended.
func TestReminders(t *testing.T) {
	const length = 200 * time.Millisecond
	cluster := rand.Uint64()
	var keepers []Keeper
	for m := range rdma.MachineID(3) {
		k := startThread(t, cluster, m, new(noticed), length)
		k.Configure(0, peers(0, 1, 2))
		keepers = append(keepers, k)
	}
	var reminders, ignored, never atomic.Int64
	keepers[0].Remind(func() { reminders.Add(1); keepers[0].Beat() })
	keepers[1].Remind(func() { ignored.Add(1) })
	keepers[2].Remind(func() { never.Add(1) })
	keepers[0].Beat()
	keepers[1].Beat()
	begin := time.Now()
	eventually(t, "machines are reminded", func() bool { return reminders.Load() >= 15 && ignored.Load() >= 15 })
	if took := time.Since(begin); took < 15*length/2 {
		t.Errorf("15 reminders with a beat each in %v", took)
	}
	for _, k := range keepers {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if never.Load() > 0 {
		t.Error("a machine that has never beaten is reminded")
	}
	n := reminders.Load()
	time.Sleep(length)
	if reminders.Load() != n {
		t.Error("a reminder after Close")
	}
	keepers[0].Remind(func() { t.Error("a reminder of a closed keeper") })
}

// A machine that exchanges no leases is reminded, too: nothing else wakes its thread.
func TestRemindersOfOneMachine(t *testing.T) {
	const length = 200 * time.Millisecond
	k := startThread(t, rand.Uint64(), 0, new(noticed), length)
	k.Configure(0, peers(0))
	var reminders atomic.Int64
	k.Remind(func() { reminders.Add(1); k.Beat() })
	k.Beat()
	time.Sleep(10 * length)
	if n := reminders.Load(); n < 5 || n > 20 {
		t.Errorf("%d reminders in ten leases, of a beat every two thirds of one", n)
	}
}
