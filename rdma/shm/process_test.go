//go:build !race

package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"golang.org/x/sys/unix"
)

// self is machine 1, in the test's process.
type self struct {
	t      testing.TB
	path   string // of the shared folder
	nic    *NIC
	q      rdma.Queue
	memory *nvram.Memory
	rung   atomic.Uint64
}

func newSelf(t testing.TB) *self {
	s := &self{t: t, path: folderOf(t)}
	var err error
	if s.nic, err = Join(s.path, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.nic.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.memory, err = nvram.NewShared(nvBytes); err != nil {
		t.Fatal(err)
	}
	if err := s.nic.Register(key, s.memory); err != nil {
		t.Fatal(err)
	}
	for w := range workers { // the siblings of the children's
		q, err := s.nic.Open(w, func() { s.rung.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		if w == 0 {
			s.q = q
		}
	}
	return s
}

func (s *self) write(to rdma.MachineID, off uint64, b []byte) error {
	_, err := s.q.Write(to, key, off, b, 1)
	return err
}

func (s *self) read(to rdma.MachineID, off uint64) (uint64, error) {
	b := make([]byte, 8)
	_, err := s.q.Read(to, key, off, b, 1)
	return uint64(b[0]), err
}

// hammer writes to a machine over and over until it is broken, and says when that
// was.
func (s *self) hammer(to rdma.MachineID) (broken time.Time, err error) {
	for i := 0; err == nil; i++ {
		err = s.write(to, 0, pattern(hammered, byte(i)))
	}
	return time.Now(), err
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestTwoProcesses(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	if err := s.write(2, 0, pattern(64, 1)); !errors.Is(err, rdma.ErrKey) {
		t.Errorf("before it is registered: %v", err)
	}
	c.do("register")
	if err := s.write(2, 64, pattern(64, 5)); err != nil {
		t.Fatal(err)
	}
	if got := c.do("load", 120); got != fmt.Sprint(0x0505050505050505) {
		t.Errorf("child loads %s", got)
	}
	if v, err := s.read(2, 64); err != nil || v != 5 {
		t.Errorf("read %d, %v", v, err)
	}
	c.do("write", 1)
	if v := s.memory.Load(beside + 56); v != 0x0909090909090909 {
		t.Errorf("child wrote %#x", v)
	}
	var got atomic.Pointer[string]
	s.nic.Datagrams(func(from rdma.MachineID, b []byte) { text := fmt.Sprint(from, " ", string(b)); got.Store(&text) })
	eventually(t, "datagram back", func() bool {
		if err := s.nic.Datagram(2, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		return got.Load() != nil
	})
	if *got.Load() != "2 echo of hello" {
		t.Error(*got.Load())
	}
}

// Who cuts a machine's state short kills that machine at most.
func TestStateCutShort(t *testing.T) {
	s := newSelf(t)
	for _, connected := range []bool{true, false} {
		c := start(t, s.path, 2, t.TempDir())
		c.do("register")
		if connected {
			if err := s.write(2, 0, pattern(64, 1)); err != nil {
				t.Fatal(err)
			}
		}
		state := s.nic.stateOf(2)
		if err := os.Truncate(s.nic.folder.file(2, "state"), 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.write(2, 0, pattern(64, 1)); !errors.Is(err, rdma.ErrBroken) {
				t.Errorf("write: %v", err)
			}
		}
		if err := guard(func() error { _, ok := state.lookup(key); return fmt.Errorf("found %v", ok) }); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("lookup: %v", err)
		}
		s.nic.Deregister(key)
		if err := s.nic.Register(key, s.memory); err != nil {
			t.Fatal(err)
		}
		c.kill()
	}
	c := start(t, s.path, 2, t.TempDir())
	c.do("register")
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Errorf("to its next life: %v", err)
	}
}

// Control calls find the life that they are for.
func TestCallsBetweenProcesses(t *testing.T) {
	s := newSelf(t)
	e := call.New(s.nic, clock.System{}, 11)
	defer e.Close()
	memory := t.TempDir()
	for life := uint64(21); life < 24; life++ {
		c := start(t, s.path, 2, memory)
		c.do("calls", life)
		for i := range 50 {
			arg := pattern(i*call.BytesMax/50, 'a')
			got, err := e.Call(t.Context(), call.Peer{Machine: 2, Incarnation: life}, 1, arg)
			if err != nil || string(got) != "reply to "+string(arg) {
				t.Fatalf("%d bytes: %.20q, %v", len(arg), got, err)
			}
		}
		if _, err := e.Call(t.Context(), call.Peer{Machine: 2, Incarnation: life - 1}, 1, nil); !errors.Is(err, call.ErrOtherLife) {
			t.Errorf("call to the life before: %v", err)
		}
		c.kill()
	}
}

// Each ring is heard, also by a worker that has been asleep for long.
func TestDoorbellsBetweenProcesses(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	parked := func(nic *NIC, m rdma.MachineID) bool { return nic.stateOf(m).parked(0).Load() == 1 }
	for range 200 {
		eventually(t, "child to sleep", func() bool { return parked(s.nic, 2) })
		before := c.do("rung")
		if err := s.q.Ring(2); err != nil {
			t.Fatal(err)
		}
		eventually(t, "child's bell", func() bool { return c.do("rung") != before })
	}
	for i := range uint64(200) {
		if i%2 == 0 {
			eventually(t, "own doorbell to sleep", func() bool { return parked(s.nic, 1) })
		}
		before := s.rung.Load()
		c.do("ring", 1)
		eventually(t, "own bell", func() bool { return s.rung.Load() > before })
	}
}

// Waking a worker that sleeps is no part of an operation. Who wakes it may lose the
// processor to it, and be stopped (SIGSTOP) there: others would wait for the operation.
func TestWakesAfterTheOperation(t *testing.T) {
	s := newSelf(t)
	start(t, s.path, 2, t.TempDir()).do("register")
	woken := 0
	s.q.(*Queue).wake = func(rung *atomic.Uint32) {
		woken++
		if s.nic.state.active(0).Load()%2 != 0 {
			t.Error("a wake within an operation")
		}
		futexWake(rung)
	}
	for name, ring := range map[string]func() error{
		"Ring": func() error { return s.q.Ring(2) },
		"WriteRing": func() error {
			_, err := s.q.WriteRing(2, key, 0, make([]byte, 8), 1)
			return err
		},
	} {
		woken = 0
		for range 10 {
			eventually(t, "child to sleep", func() bool { return s.nic.stateOf(2).parked(0).Load() == 1 })
			if err := ring(); err != nil {
				t.Fatal(err)
			}
		}
		if woken == 0 {
			t.Errorf("%s has woken nobody", name)
		}
	}
}

// A ring whose ringer was stopped, or killed, before it woke the sleeper: the next
// one to ring does, or the end of the ringer's connection.
func TestDoorbellWithoutWake(t *testing.T) {
	s := newSelf(t)
	state := s.nic.stateOf(1)
	for name, wake := range map[string]func(c *child){
		"the next ring":           func(*child) { ringBell(state.rung(0), state.parked(0)) },
		"the death of the ringer": func(c *child) { c.kill() },
	} {
		c := start(t, s.path, 2, t.TempDir())
		c.do("ring", 1) // it is connected
		eventually(t, "own doorbell to sleep", func() bool { return state.parked(0).Load() == 1 })
		time.Sleep(10 * time.Millisecond) // it has just said so
		before := s.rung.Load()
		state.rung(0).Swap(1) // without the wake
		wake(c)
		eventually(t, "own bell after "+name, func() bool { return s.rung.Load() > before })
		c.kill()
	}
}

// A peer that is killed in the middle of its operations and of ours: connections
// break, its memory stays, and its next life has what was written.
func TestKilledPeer(t *testing.T) {
	s := newSelf(t)
	memory := t.TempDir()
	var deaths atomic.Int32
	s.nic.Deaths(func(m rdma.MachineID) {
		if m != 2 {
			t.Errorf("machine %d has died", m)
		}
		deaths.Add(1)
	})
	for round := range 5 {
		c := start(t, s.path, 2, memory)
		c.do("register")
		if err := s.write(2, beside, pattern(64, byte(round+1))); err != nil {
			t.Fatal(err)
		}
		c.do("hammer", 1)
		eventually(t, "child's writes", func() bool { return s.memory.Load(0) != 0 })
		var broken time.Time
		var err error
		var group sync.WaitGroup
		group.Go(func() { broken, err = s.hammer(2) })
		time.Sleep(time.Duration(round) * time.Millisecond)
		old := s.attachment(2)
		c.kill()
		ended := time.Now()
		group.Wait()
		if !errors.Is(err, rdma.ErrBroken) {
			t.Fatalf("write to a dead machine: %v", err)
		}
		t.Logf("round %d: connection broken %v after the process was reaped", round, broken.Sub(ended))
		if !s.nic.Gone(2) {
			t.Error("a killed machine is not gone")
		}
		eventually(t, "its death is told", func() bool { return deaths.Load() == int32(round+1) })
		for name, err := range map[string]error{"write": s.write(2, 0, pattern(8, 1)), "ring": s.q.Ring(2), "again": s.write(2, 0, pattern(8, 1))} {
			if !errors.Is(err, rdma.ErrBroken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if v := old.Load(beside); v != uint64(round+1)*0x0101010101010101 {
			t.Errorf("the dead machine's memory holds %#x", v)
		}
		s.nic.Deregister(key) // waits for nobody who is dead
		if err := s.nic.Register(key, s.memory); err != nil {
			t.Fatal(err)
		}
		s.memory.Zero(0, hammered)
	}
	c := start(t, s.path, 2, memory)
	c.do("register")
	if s.nic.Gone(2) {
		t.Error("the next life is gone")
	}
	if v, err := s.read(2, beside); err != nil || v != 5 {
		t.Errorf("next life's memory holds %d, %v", v, err)
	}
	if got := c.do("load", beside); got != fmt.Sprint(0x0505050505050505) {
		t.Errorf("next life loads %s", got)
	}
}

// attachment is the memory of machine m, as it is mapped here.
func (s *self) attachment(m rdma.MachineID) *nvram.Memory {
	s.nic.mu.Lock()
	defer s.nic.mu.Unlock()
	return s.nic.mu.peers[m].attachment(key).memory
}

// While others hammer on a machine's memory it is killed and started again: once
// it has joined, nothing lands that was meant for its former life.
func TestNothingLandsInTheNextLife(t *testing.T) {
	s := newSelf(t)
	memory := t.TempDir()
	var stop atomic.Bool
	var group sync.WaitGroup
	defer group.Wait()
	defer stop.Store(true)
	var landed atomic.Uint64
	group.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if s.write(2, 0, pattern(hammered, byte(i))) == nil {
				landed.Add(1)
			}
		}
	})
	for range 5 {
		c := start(t, s.path, 2, memory)
		c.do("register")
		before := landed.Load()
		eventually(t, "writes", func() bool { return landed.Load() > before+10 })
		c.kill()
		c = start(t, s.path, 2, memory) // and does not register
		was := c.do("load", 0)
		if is := c.do("watch", 1000000); is != was {
			t.Errorf("memory was %s, is %s", was, is)
		}
		c.kill()
	}
}

func TestStoppedPeer(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	c.do("register")
	c.signal(syscall.SIGSTOP)
	for i := range 100 {
		if err := s.write(2, 0, pattern(64, byte(i))); err != nil {
			t.Fatalf("write to a stopped machine: %v", err)
		}
	}
	if err := s.q.Ring(2); err != nil {
		t.Fatalf("ring a stopped machine: %v", err)
	}
	for range 100 { // more than fits its socket: none waits
		if err := s.nic.Datagram(2, pattern(rdma.DatagramBytesMax, 1)); err != nil {
			t.Fatal(err)
		}
	}
	s.nic.Deregister(key) // it is not in an operation
	if s.nic.Gone(2) {
		t.Error("a stopped machine is gone")
	}
	c.signal(syscall.SIGCONT)
	eventually(t, "bell", func() bool { return c.do("rung") != "0" })
	if got := c.do("load", 0); got != fmt.Sprint(uint64(99)*0x0101010101010101) {
		t.Errorf("memory holds %s", got)
	}
}

// If a process is stopped in the middle of an operation that may be on memory being removed,
// Deregister waits until it goes on or dies, and Join waits for a while.
func TestStoppedInAnOperation(t *testing.T) {
	s := newSelf(t)
	for _, verb := range []string{"begin", "begin-undescribed"} {
		for _, end := range []string{"killed", "goes on"} {
			c := start(t, s.path, 2, t.TempDir())
			c.do(verb, 1)
			c.signal(syscall.SIGSTOP)
			if err := s.nic.settle(time.Millisecond, onMemory(1, key)); !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), strconv.Itoa(c.cmd.Process.Pid)) {
				t.Errorf("with patience: %v", err)
			}
			returned := make(chan struct{})
			go func() {
				s.nic.Deregister(key)
				close(returned)
			}()
			select {
			case <-returned:
				t.Error("did not wait")
			case <-time.After(5 * time.Millisecond):
			}
			if end == "killed" {
				c.kill()
			} else {
				s.nic.stateOf(2).active(0).Add(1) // as the process would
			}
			<-returned
			c.kill()
			if err := s.nic.Register(key, s.memory); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Nobody waits for a process that is stopped in the middle of an operation on something
// else, at this machine or another. If others did, a machine that is stopped at any
// moment of its work could keep them from a configuration without it.
func TestStoppedInAnotherOperation(t *testing.T) {
	s := newSelf(t)
	if err := s.nic.Register(key+1, s.memory); err != nil {
		t.Fatal(err)
	}
	c := start(t, s.path, 2, t.TempDir())
	c.do("begin", 1)
	c.signal(syscall.SIGSTOP)
	s.nic.Deregister(key + 1)
	c.kill()
	c = start(t, s.path, 2, t.TempDir())
	c.do("begin", 3)
	c.signal(syscall.SIGSTOP)
	s.nic.Deregister(key)
	s.nic.Cut(3)
	if err := s.q.Close(); err != nil {
		t.Error(err)
	}
	if err := s.nic.Close(); err != nil {
		t.Error(err)
	}
}

// A machine is not started again while somebody is in the middle of an operation
// that may be on its memory.
func TestJoinWaitsForOperations(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	former, err := createState(s.nic.folder.file(3, "state"), 3, 77) // as a killed process leaves it
	if err != nil {
		t.Fatal(err)
	}
	c.do("begin", 3)
	c.signal(syscall.SIGSTOP)
	for range 2 {
		if _, err := join(s.path, 3, time.Millisecond); !errors.Is(err, ErrStuck) {
			t.Errorf("join: %v", err)
		}
		if former.isAlive() {
			t.Error("the former life is not over")
		}
	}
	c.kill()
	nic, err := Join(s.path, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := nic.Close(); err != nil {
		t.Error(err)
	}
}

// A peer that cannot be watched, for lack of descriptors, is not dead for that.
// A machine that begins to watch another while that one is leaving is not told of a death: its
// connection stays open until the other has left.
func TestWatchedWhileItLeaves(t *testing.T) {
	f := newFabric(t)
	for m := rdma.MachineID(1); m <= 2; m++ {
		if _, err := f.Join(m); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.nics[m].Close() })
	}
	watching, leaving := f.nics[1], f.nics[2]
	watching.Deaths(func(m rdma.MachineID) { t.Errorf("machine %d has died", m) })
	q, err := leaving.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaving.mu.Lock()
	leaving.mu.closed = true // as Close begins
	leaving.mu.Unlock()
	p, err := func() (*peer, error) {
		watching.mu.Lock()
		defer watching.mu.Unlock()
		return watching.peerLocked(2)
	}()
	if err != nil || p == nil {
		t.Fatalf("no peer: %v", err)
	}
	eventually(t, "the connection is kept", func() bool {
		leaving.mu.Lock()
		defer leaving.mu.Unlock()
		return len(leaving.mu.watchers) == 1
	})
	leaving.mu.Lock()
	leaving.mu.closed = false
	leaving.mu.Unlock()
	_ = q.Close()
	if err := leaving.Close(); err != nil {
		t.Fatal(err)
	}
	if s := p.state.alive.Load(); s != hasLeft {
		t.Errorf("state %d of a machine that has left", s)
	}
	if err := watching.Close(); err != nil {
		t.Fatal(err) // waits for the goroutine that tells of deaths
	}
}

func TestPeerThatCannotBeWatched(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	c.do("register")
	state := s.nic.stateOf(2)
	alive := s.nic.folder.file(2, "alive")
	if err := os.Rename(alive, alive+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.write(2, 0, pattern(64, 1)); !errors.Is(err, rdma.ErrBroken) || !state.isAlive() {
		t.Errorf("not to be watched: %v; alive %v", err, state.isAlive())
	}
	if err := os.Rename(alive+".away", alive); err != nil {
		t.Fatal(err)
	}
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Error(err)
	}
}

// Without descriptors nobody can be asked: whoever takes memory away waits.
func TestOutOfDescriptors(t *testing.T) {
	s := newSelf(t)
	if err := s.write(1, 0, pattern(64, 1)); err != nil { // connects
		t.Fatal(err)
	}
	if err := s.nic.Register(key+1, s.memory); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer restore()
	if err := s.nic.settle(time.Millisecond, allOperations); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("with patience: %v", err)
	}
	if _, err := Join(s.path, 2); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("join: %v", err)
	}
	if _, err := s.q.Read(1, key+1, 0, make([]byte, 8), 1); !errors.Is(err, rdma.ErrBroken) || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("read of what is not attached: %v", err)
	}
	returned := make(chan struct{})
	go func() {
		s.nic.Deregister(key)
		close(returned)
	}()
	select {
	case <-returned:
		t.Error("did not wait")
	case <-time.After(5 * time.Millisecond):
	}
	restore()
	<-returned
}

// A folder that is removed takes nobody's memory away.
func TestFolderRemoved(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	c.do("register")
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path); err != nil {
		t.Fatal(err)
	}
	if err := s.write(2, 0, pattern(64, 2)); err != nil {
		t.Error(err)
	}
	c.do("begin", 1)
	if err := s.nic.settle(5*time.Millisecond, allOperations); !errors.Is(err, ErrStuck) {
		t.Errorf("with patience: %v", err)
	}
	c.kill()
	s.nic.Deregister(key)
	eventually(t, "break", func() bool { return errors.Is(s.write(2, 0, pattern(64, 2)), rdma.ErrBroken) })
}

func TestOneProcessPerMachine(t *testing.T) {
	s := newSelf(t)
	c := start(t, s.path, 2, t.TempDir())
	_, err := Join(s.path, 2)
	if !errors.Is(err, rdma.ErrMachineTaken) || !strings.Contains(err.Error(), fmt.Sprint("process ", c.cmd.Process.Pid)) {
		t.Errorf("a second machine 2: %v", err)
	}
	if _, answer := tryStart(t, s.path, 1, t.TempDir()); !strings.Contains(answer, rdma.ErrMachineTaken.Error()) {
		t.Errorf("a second machine 1: %s", answer)
	}
	c.do("register") // it is not disturbed
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(s.nic.folder.file(2, "state"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(s.path, 2); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("while its state cannot be read: %v", err)
	}
}

// Garbage in the folder is nobody's end.
func TestGarbageInTheFolder(t *testing.T) {
	s := newSelf(t)
	for name, content := range map[string]int{
		"machine-3.state": 5, "machine-4.state": StateBytes, "machine-5.alive": 5, "machine-x.state": 1, "machine-70000.state": 1,
		"machine-6.state/x": 1, "machine-7.datagram": 3, "something": 1, "machine-8.lock": 3, "machine-8.state.new/x": 1, "machine-8.alive/x": 1,
	} {
		path := filepath.Join(s.path, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, pattern(content, 0xa5), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	garbled := start(t, s.path, 9, t.TempDir()) // whose state becomes garbage while it is used
	garbled.do("register")
	if err := s.write(9, 0, pattern(64, 1)); err != nil {
		t.Fatal(err)
	}
	memory := s.nic.stateOf(9).memory
	memory.CopyIn(slotsAt, pattern(slotsMax*slotBytes, 0xa5))
	for m := rdma.MachineID(3); m < 10; m++ {
		if err := s.write(m, 0, pattern(8, 1)); !errors.Is(err, rdma.ErrBroken) && !errors.Is(err, rdma.ErrKey) {
			t.Errorf("write to machine %d: %v", m, err)
		}
		if err := s.nic.Datagram(m, []byte("x")); err != nil {
			t.Errorf("datagram to machine %d: %v", m, err)
		}
	}
	for _, b := range [][]byte{nil, []byte("short"), pattern(64, 0xa5), pattern(rdma.DatagramBytesMax+9, 1)} {
		s.nic.deliver(b)
	}
	s.nic.Deregister(key)
	for _, m := range []rdma.MachineID{3, 4, 5, 7, 8} { // and they can be used
		start(t, s.path, m, t.TempDir()).do("register")
		if err := s.write(m, 0, pattern(8, 1)); err != nil {
			t.Errorf("write to machine %d: %v", m, err)
		}
	}
}

// A slot that lies about its memory.
func TestSlotsThatLie(t *testing.T) {
	q, nic, m := pair(t)
	l, _ := m.Location()
	slot := nic.mu.memories[7].slot
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, pattern(64, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]func(*nvram.Memory){
		"longer":            func(s *nvram.Memory) { s.Store(slot+bytesAt, m.Size()+8) },
		"much longer":       func(s *nvram.Memory) { s.Store(slot+bytesAt, 1<<63) },
		"odd":               func(s *nvram.Memory) { s.Store(slot+bytesAt, 9) },
		"other file":        func(s *nvram.Memory) { s.Store(slot+inodeAt, l.Inode+1) },
		"other device":      func(s *nvram.Memory) { s.Store(slot+deviceAt, l.Device+1) },
		"path too long":     func(s *nvram.Memory) { s.Store(slot+pathBytesAt, pathMax+1) },
		"no path":           func(s *nvram.Memory) { s.Store(slot+pathBytesAt, 0) },
		"path is not there": func(s *nvram.Memory) { s.CopyIn(slot+pathAt, pattern(16, 'x')) },
	} {
		was := make([]byte, slotBytes)
		nic.state.memory.CopyOut(was, slot)
		nic.state.withdraw(slot)
		lie(nic.state.memory)
		nic.state.withdraw(slot) // live again, as a newer registration
		if _, err := q.Read(2, 7, 0, make([]byte, 8), 1); !errors.Is(err, rdma.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
		nic.state.withdraw(slot)
		nic.state.memory.CopyIn(slot+8, was[8:])
		nic.state.withdraw(slot)
	}
	if _, err := q.Read(2, 7, 0, make([]byte, 8), 1); err != nil {
		t.Errorf("after the last lie: %v", err)
	}
}

func TestFormats(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, formatName), []byte("farmsql shm folder\nformat 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(other, 1); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), other) {
		t.Errorf("folder of another format: %v", err)
	}
	none := t.TempDir()
	if err := os.WriteFile(filepath.Join(none, "machine-1.state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(none, 1); !errors.Is(err, ErrFormat) {
		t.Errorf("folder without a format: %v", err)
	}
	if _, err := Join(filepath.Join(other, formatName, "below"), 1); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("folder below a file: %v", err)
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("d", 100)) // too long a name for a socket
	nic, err := Join(deep, 1)
	if err != nil {
		t.Fatalf("a long path: %v", err)
	}
	if err := nic.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(deep); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Close left %s, %v", deep, err)
	}
}

// Whatever in the machine's place cannot be replaced is an error of Join.
func TestJoinFails(t *testing.T) {
	for _, kind := range []string{"lock", "state"} {
		path := folderOf(t)
		other, err := Join(path, 2) // so that the folder stays
		if err != nil {
			t.Fatal(err)
		}
		nic, err := Join(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := nic.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(nic.file(kind)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(nic.file(kind), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Join(path, 1); err == nil || !strings.Contains(err.Error(), "machine-1."+kind) {
			t.Errorf("%s is a folder: %v", kind, err)
		}
		if err := os.RemoveAll(nic.file(kind)); err != nil {
			t.Fatal(err)
		}
		nic, err = Join(path, 1)
		if err != nil {
			t.Fatalf("%s is gone: %v", kind, err)
		}
		if err := errors.Join(nic.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoRoom(t *testing.T) {
	_, nic, m := pair(t)
	for _, worker := range []int{-1, WorkersMax} {
		if _, err := nic.Open(worker, nil); !errors.Is(err, ErrTooMany) {
			t.Errorf("worker %d: %v", worker, err)
		}
	}
	if _, err := nic.Open(WorkersMax-1, nil); err != nil {
		t.Errorf("the last worker: %v", err)
	}
	if err := nic.Register(8, nvram.NewMemory(64)); !errors.Is(err, rdma.ErrPrivate) {
		t.Errorf("private memory: %v", err)
	}
	folder, err := nvram.OpenFolder(filepath.Join(t.TempDir(), strings.Repeat("d", 200), strings.Repeat("d", 250)), nvram.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Abandon() })
	far, err := folder.Map("m", 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := nic.Register(8, far); !errors.Is(err, ErrTooMany) {
		t.Errorf("long path: %v", err)
	}
	for k := rdma.Key(100); ; k++ {
		err := nic.Register(k, m)
		if errors.Is(err, ErrTooMany) {
			if n := len(nic.mu.memories); n != slotsMax {
				t.Errorf("room for %d registrations, want %d", n, slotsMax)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	nic.Deregister(100)
	if err := nic.Register(99, m); err != nil {
		t.Errorf("where there is room again: %v", err)
	}
}

// Who cuts a file short makes operations fail, not processes.
func TestFileCutShort(t *testing.T) {
	s := newSelf(t)
	memory := t.TempDir()
	c := start(t, s.path, 2, memory)
	c.do("register")
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(memory, "m.mem")
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.write(2, 0, pattern(64, 1)); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("write: %v", err)
	}
	if _, err := s.read(2, 4096); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("read: %v", err)
	}
	s.nic.Deregister(key) // the operation has ended
	if err := os.Truncate(file, nvBytes); err != nil {
		t.Fatal(err)
	}
	if err := s.write(2, 0, pattern(64, 1)); err != nil {
		t.Errorf("once it is whole again: %v", err)
	}
	// Any other panic goes on.
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	q := s.q.(*Queue)
	var err error
	q.count++
	defer q.end(&err, false)
	panic("other")
}

// A registration keeps its memory.
func TestRegisteredMemoryStays(t *testing.T) {
	q, _, _ := pair(t)
	for range 3 {
		runtime.GC()
	}
	if _, err := q.Read(2, 7, 0, make([]byte, 8), 1); err != nil {
		t.Error(err)
	}
}

// What is mapped for registrations that have gone is let go.
func TestAttachmentsAreDropped(t *testing.T) {
	q, nic, m := pair(t)
	for k := rdma.Key(100); k < 200; k++ {
		if err := nic.Register(k, m); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Read(2, k, 0, make([]byte, 8), 1); err != nil {
			t.Fatal(err)
		}
		nic.Deregister(k)
	}
	p := q.(*Queue).conns[2].peer
	if n := len(*p.attached.Load()); n > 2 {
		t.Errorf("%d memories are attached", n)
	}
}

// The fast path must not allocate.
func TestNoAllocation(t *testing.T) {
	q, _, _ := pair(t)
	buf := make([]byte, 128)
	for name, f := range map[string]func() error{
		"read":  func() error { _, err := q.Read(2, 7, 64, buf, 1); return err },
		"write": func() error { _, err := q.Write(2, 7, 64, buf, 1); return err },
		"ring":  func() error { return q.Ring(2) },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestIdleMachinesSleep lets five machines of two workers do nothing. What they
// use is asserted with much room: a loaded computer must not fail it, a loop that
// polls must.
func TestIdleMachinesSleep(t *testing.T) {
	s := newSelf(t)
	var children []*child
	for m := range rdma.MachineID(5) {
		c := start(t, s.path, 10+m, t.TempDir())
		c.do("register")
		children = append(children, c)
		if err := s.write(10+m, 0, pattern(64, 1)); err != nil {
			t.Fatal(err)
		}
		for other := range m { // all know each other
			if answer := c.ask("write", 10+other); answer != "ok " {
				t.Fatal(answer)
			}
			children[other].do("ring", 10+m)
		}
	}
	used := func() (total time.Duration) {
		for _, c := range children {
			n, err := strconv.Atoi(c.do("cpu"))
			if err != nil {
				t.Fatal(err)
			}
			total += time.Duration(n)
		}
		return total
	}
	for m := range rdma.MachineID(5) {
		for w := range workers {
			eventually(t, "doorbells to sleep", func() bool { return s.nic.stateOf(10+m).parked(w).Load() == 1 })
		}
	}
	before, began := used(), time.Now()
	const idle = 2 * time.Second
	time.Sleep(idle) // that is what is measured
	spent, took := used()-before, time.Since(began)
	t.Logf("five idle processes used %v in %v: %.2f %% of a processor", spent, took, 100*float64(spent)/float64(took))
	if spent > took/10 {
		t.Errorf("five idle processes used %v in %v", spent, took)
	}
	runtime.KeepAlive(s)
}

// stateOf returns the state of machine m that a NIC knows.
func (nic *NIC) stateOf(m rdma.MachineID) *state {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	s, err := nic.stateOfLocked(m)
	if err != nil {
		panic(err)
	}
	return s
}
