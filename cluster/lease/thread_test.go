//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childCluster) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

func startThread(t *testing.T, cluster uint64, m rdma.MachineID, n *noticed, length time.Duration) Keeper {
	t.Helper()
	k, err := NewThread(cluster, peer(m), Config{Length: length, Clock: clock.System{}, Expired: n.add})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func TestThread(t *testing.T) {
	cluster := rand.Uint64()
	var atCM, at1 noticed
	cm := startThread(t, cluster, 0, &atCM, time.Second)
	m1 := startThread(t, cluster, 1, &at1, time.Second)
	m2 := startThread(t, cluster, 2, new(noticed), time.Second)
	all := []Keeper{cm, m1, m2}
	for _, k := range all {
		if k.Valid() {
			t.Error("a lease before there is a configuration")
		}
		k.Configure(0, peers(0, 1, 2))
	}
	for i, k := range all {
		eventually(t, "each has its lease "+strconv.Itoa(i), k.Valid)
	}
	for _, l := range cm.Leases() {
		if l.Left <= 0 || l.Left > 2*time.Second {
			t.Errorf("%+v", l)
		}
	}
	if n := len(cm.Leases()); n != 2 || len(m1.Leases()) != 1 || cm.Outstanding() != 0 || cm.Length() != time.Second {
		t.Errorf("the CM has %d", n)
	}
	if v := cm.Variant(); v != "thread with real-time priority" && v != "thread with normal priority (real-time priority is not permitted)" {
		t.Error(v)
	}
	if _, err := NewThread(cluster, peer(2), Config{Clock: clock.System{}}); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("two threads of one machine: %v", err)
	}
	m2.Close()
	m2.Close()
	m2.Configure(0, peers(0, 1, 2))
	if m2.Valid() || m2.Leases() != nil || m2.Outstanding() != 0 {
		t.Error("a closed keeper has leases")
	}
	eventually(t, "the CM suspects machine 2", func() bool { return atCM.has(2) })
	cm.Configure(0, peers(0, 1))
	m1.Configure(0, peers(0, 1))
	cm.Close()
	eventually(t, "machine 1 suspects the CM", func() bool { return at1.has(0) })
	if m1.Valid() {
		t.Error("a lease lasts longer than its granter waits")
	}
	m1.Configure(1, peers(1))
	if !m1.Valid() || m1.Outstanding() < 0 {
		t.Error("the only machine needs no lease")
	}
}

// The variables by which a test tells its child process what to be.
const (
	childCluster = "LEASE_TEST_CLUSTER"
	childMachine = "LEASE_TEST_MACHINE"
)

// child is machine 1 or 2 of a cluster whose CM is in the parent process, until
// it is killed.
func child() {
	cluster, _ := strconv.ParseUint(os.Getenv(childCluster), 10, 64)
	machine, _ := strconv.Atoi(os.Getenv(childMachine))
	k, err := NewThread(cluster, peer(rdma.MachineID(machine)), Config{Length: time.Second, Clock: clock.System{}, Expired: func(rdma.MachineID) {}})
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	k.Configure(0, peers(0, 1, 2))
	for { // the parent kills it
		time.Sleep(time.Hour)
	}
}

// Between processes: one that is killed is suspected, the other is not.
func TestProcessIsKilled(t *testing.T) {
	cluster := rand.Uint64()
	var atCM noticed
	cm := startThread(t, cluster, 0, &atCM, time.Second)
	var children []*exec.Cmd
	for _, m := range []string{"1", "2"} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childCluster+"="+strconv.FormatUint(cluster, 10), childMachine+"="+m)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		children = append(children, c)
	}
	cm.Configure(0, peers(0, 1, 2))
	eventually(t, "both children hold leases", func() bool {
		return !slices.ContainsFunc(cm.Leases(), func(l Lease) bool { return l.Held <= 0 || l.Left <= 0 })
	})
	if err := children[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed process is suspected", func() bool { return atCM.has(1) })
	eventually(t, "the CM has a majority", cm.Valid)
}

// TestSameRules: the rules in C are those in Go: driven alike, the two answer
// alike.
func TestSameRules(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		self := rdma.MachineID(r.IntN(3))
		length := int64(1000 + r.IntN(100000))
		a, b := &core{self: self, length: length}, newCCore(self, length)
		now := int64(1)
		for range 300 {
			now += r.Int64N(length / 3)
			switch r.IntN(6) {
			case 0:
				if r.IntN(8) == 0 {
					members := []call.Peer{}
					for i := range rdma.MachineID(5) {
						if r.IntN(5) > 0 {
							members = append(members, call.Peer{Machine: i, Incarnation: 100 + uint64(i) + uint64(r.IntN(10)/9)})
						}
					}
					cm := rdma.MachineID(r.IntN(3))
					a.configure(now, cm, members)
					b.configure(now, cm, members)
				}
			case 1, 2:
				due1, expired1 := a.tick(now, nil)
				due2, expired2 := b.tick(now)
				if due1 != due2 || !slices.Equal(expired1, expired2) {
					t.Fatalf("seed %d: tick: %v %v, %v %v", seed, due1, expired1, due2, expired2)
				}
				for i := range a.relations {
					if m1, m2 := a.message(now, i), b.message(now, i); due1 && m1 != m2 {
						t.Fatalf("seed %d: message: %v, %v", seed, m1, m2)
					}
				}
			default:
				from := call.Peer{Machine: rdma.MachineID(r.IntN(5)), Incarnation: 100}
				from.Incarnation += uint64(from.Machine)
				m := message{uint8(1 + r.IntN(2)), now - r.Int64N(length), now - r.Int64N(length*5/4) + 10, r.Int64N(length*2) - length/8}
				r1, ok1 := a.receive(now, from, m)
				r2, ok2 := b.receive(now, from, m)
				if r1 != r2 || ok1 != ok2 {
					t.Fatalf("seed %d: receive %v: %v %v, %v %v", seed, m, r1, ok1, r2, ok2)
				}
			}
			if valid, outstanding, next := b.state(now); a.valid != valid || a.outstanding != outstanding || a.next(now) != next {
				t.Fatalf("seed %d: valid %d %d, outstanding %d %d, next %d %d", seed, a.valid, valid, a.outstanding, outstanding, a.next(now), next)
			}
		}
	}
}
