//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv(childCluster) != "" {
		child()
		return
	}
	if os.Getenv(childWithoutLimit) != "" {
		unpinnedChild()
		return
	}
	if os.Getenv(childWithLowPriority) != "" {
		lowPriorityChild()
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
	if v := cm.Variant(); !strings.HasPrefix(v, "thread with real-time priority") && !strings.HasPrefix(v, "thread with normal priority (real-time priority is not permitted)") {
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

// Environment variables with which a test tells its child process what to do.
const (
	childCluster = "LEASE_TEST_CLUSTER"
	childMachine = "LEASE_TEST_MACHINE"
	// childWithoutLimit is set for a child that may not pin memory.
	childWithoutLimit = "LEASE_TEST_UNPINNED"
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

// Between processes: the killed machine is suspected, and the other is not.
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

// TestPaper5_1_OwnThreadAtHighestPriority: a dedicated thread renews leases. If that is permitted,
// it has the highest priority below the kernel's own.
func TestPaper5_1_OwnThreadAtHighestPriority(t *testing.T) {
	for _, normal := range []bool{false, true} {
		k, err := NewThread(rand.Uint64(), peer(0), Config{Length: time.Second, Clock: clock.System{}, NormalPriority: normal})
		if err != nil {
			t.Fatal(err)
		}
		var threads [][2]int
		eventually(t, "there is one thread of that name", func() bool { // another test's may be ending
			threads = leaseThreads(t)
			return len(threads) == 1
		})
		k.Close()
		const fifo = 1
		want := [2]int{0, 0}
		if MayRealtime() && !normal {
			want = [2]int{98, fifo} // 99 is for the kernel's
		}
		if threads[0] != want {
			t.Errorf("normal %v: priority and policy %v, want %v", normal, threads[0], want)
		}
		eventually(t, "it has ended", func() bool { return len(leaseThreads(t)) == 0 })
	}
}

// leaseThreads returns real-time priority and scheduling policy of this process's
// lease threads.
func leaseThreads(t *testing.T) (threads [][2]int) {
	t.Helper()
	for stat := range leaseTasks(t, "stat") {
		_, after, _ := strings.Cut(stat, ") ")
		fields := strings.Fields(after) // from the third on, see proc(5)
		var one [2]int
		for i, at := range []int{40, 41} {
			var err error
			if one[i], err = strconv.Atoi(fields[at-3]); err != nil {
				t.Fatal(err)
			}
		}
		threads = append(threads, one)
	}
	return threads
}

// leaseTasks returns the content of a file in /proc for each lease thread of this process.
func leaseTasks(t *testing.T, file string) iter.Seq[string] {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for _, task := range tasks {
			folder := "/proc/self/task/" + task.Name() + "/"
			name, _ := os.ReadFile(folder + "comm")
			said, err := os.ReadFile(folder + file)
			if err != nil || !strings.HasPrefix(string(name), "farmsql-lease") {
				continue // has ended, or is another
			}
			if !yield(string(said)) {
				return
			}
		}
	}
}

// Signals to the process must not keep the thread from its leases, as Go's handler would. So the
// thread blocks all signals. The signal mask of the thread that starts it does not change.
func TestThreadTakesNoSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	blocked := func(status string) (mask uint64) {
		_, after, _ := strings.Cut(status, "SigBlk:")
		if _, err := fmt.Sscanf(after, "%x", &mask); err != nil {
			t.Fatalf("no mask in %q: %v", status, err)
		}
		return mask
	}
	ours := func() uint64 {
		status, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			t.Fatal(err)
		}
		return blocked(string(status))
	}
	before := ours()
	startThread(t, rand.Uint64(), 0, new(noticed), time.Second)
	if after := ours(); after != before {
		t.Errorf("%#x were blocked where it was started, now %#x are", before, after)
	}
	threads := 0
	for status := range leaseTasks(t, "status") {
		threads++
		mask := blocked(status)
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD, syscall.SIGPROF, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGALRM} {
			if mask&(1<<(s-1)) == 0 {
				t.Errorf("%v is not blocked", s)
			}
		}
		for _, s := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP} {
			if mask&(1<<(s-1)) != 0 {
				t.Errorf("%v, which an instruction causes, is blocked", s)
			}
		}
	}
	if threads == 0 {
		t.Error("there is no lease thread")
	}
}

// TestPaper5_1_OwnDatagrams: lease messages share no queue with other messages. They are datagrams
// between sockets that the keepers use for nothing else, one for each machine. They need neither a
// NIC nor calls.
func TestPaper5_1_OwnDatagrams(t *testing.T) {
	cluster := rand.Uint64()
	keepers := []Keeper{startThread(t, cluster, 0, new(noticed), time.Second), startThread(t, cluster, 1, new(noticed), time.Second)}
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for m := range keepers {
		name := fmt.Sprintf("@farmsql/%016x/lease/%d", cluster, m)
		var types []string
		for line := range strings.Lines(string(sockets)) {
			if f := strings.Fields(line); len(f) == 8 && f[7] == name {
				types = append(types, f[4])
			}
		}
		if !slices.Equal(types, []string{"0002"}) { // SOCK_DGRAM
			t.Errorf("sockets %s are of types %v", name, types)
		}
	}
	for _, k := range keepers {
		k.Configure(0, peers(0, 1))
	}
	for _, k := range keepers {
		eventually(t, "leases are exchanged", k.Valid)
	}
}

// TestPaper5_1_MemoryIsPinned: the lease manager allocates and pins its memory, stack and code when
// it starts, and gives them back when it ends. If that is not permitted, it runs without, and
// reports that.
func TestPaper5_1_MemoryIsPinned(t *testing.T) {
	before := lockedKB(t)
	k := startThread(t, rand.Uint64(), 0, new(noticed), time.Second)
	const stackKB = 256
	switch grown := lockedKB(t) - before; {
	case strings.Contains(k.Variant(), "not pinned"):
		t.Log(k.Variant()) // the limit of who runs the tests
	case grown < stackKB+100 || grown > PinnedBytesMax>>10: // relations of 1,024 members twice
		t.Errorf("%d KB are pinned: %s", grown, k.Variant())
	}
	k.Close()
	const codeKB = 64
	if left := lockedKB(t) - before; left > codeKB {
		t.Errorf("%d KB are pinned after Close", left)
	}

	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childWithoutLimit+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its memory not pinned (") || !strings.Contains(string(out), "valid: true") {
		t.Errorf("without permission: %v: %s", err, out)
	}
}

// lockedKB returns how much memory of this process is pinned.
func lockedKB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmLck:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unpinnedChild keeps leases without being permitted to pin memory.
func unpinnedChild() {
	err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{})
	if err == nil && os.Getuid() == 0 { // whom no limit binds
		const nobody = 65534
		err = syscall.Setuid(nobody)
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	k, err := NewThread(rand.Uint64(), peer(0), Config{Length: time.Second, Clock: clock.System{}})
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	k.Configure(0, peers(0))
	fmt.Printf("%s, valid: %v\n", k.Variant(), k.Valid())
	k.Close()
}

// TestSameRules: the rules in C are the rules in Go. With the same inputs, both give the same
// answers.
func TestSameRules(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		self := rdma.MachineID(r.IntN(3))
		length := int64(1000 + r.IntN(100000))
		a, b := &core{self: self, length: length}, newCCore(self, length)
		now := int64(1)
		for range 300 {
			now += r.Int64N(length / 3)
			if r.IntN(4) > 0 && seed%2 == 0 {
				a.beat = now
				b.setBeat(now)
			}
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
