package local

import (
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric narrows the result of Join.
type fabric struct{ *Network }

func (f fabric) Join(m rdma.MachineID) (rdma.NIC, error) {
	nic, err := f.Network.Join(m)
	if err != nil {
		return nil, err
	}
	return nic, nil
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]Options{"sync": {}, "async": {Async: true}} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(*testing.T) rdmatest.Fabric { return fabric{NewNetwork(o)} })
		})
	}
}

// The fast mode must not allocate.
func TestNoAllocation(t *testing.T) {
	_, q, _ := pair(t, Options{})
	buf := make([]byte, 128)
	for name, f := range map[string]func() error{
		"read":  func() error { _, err := q.Read(2, 7, 64, buf, 1); return err },
		"write": func() error { _, err := q.Write(2, 7, 64, buf, 1); return err },
		"ring":  func() error { return q.Ring(2) },
		"flush": func() error { q.Flush(); return nil },
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

// In the fast mode the bell runs inside Ring.
func TestRingCallsTheBell(t *testing.T) {
	n := NewNetwork(Options{})
	a, _ := n.Join(1)
	b, _ := n.Join(2)
	defer a.Close()
	defer b.Close()
	rung := 0
	if _, err := b.Open(0, func() { rung++ }); err != nil {
		t.Fatal(err)
	}
	q, err := a.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 3; want++ {
		if err := q.Ring(2); err != nil || rung != want {
			t.Fatalf("bell rang %d times, want %d: %v", rung, want, err)
		}
	}
}

// A queue whose operations nobody polls fills up, and works again after.
func TestFullQueue(t *testing.T) {
	_, q, _ := pair(t, Options{Async: true, Depth: 4})
	word := make([]byte, 8)
	pending := 0
	for {
		_, err := q.Write(2, 7, 0, word, 1)
		if errors.Is(err, rdma.ErrFull) {
			break
		}
		if err != nil || pending > 4 {
			t.Fatalf("%d pending: %v", pending, err)
		}
		pending++
	}
	if pending != 4 {
		t.Errorf("queue of 4 took %d", pending)
	}
	q.Flush()
	var cs [8]rdma.Completion
	for pending > 0 {
		pending -= q.Poll(cs[:])
	}
	if _, err := q.Write(2, 7, 0, word, 1); err != nil {
		t.Error(err)
	}
}

// The bell wakes a worker that sleeps until its operation completes.
func TestBellForCompletion(t *testing.T) {
	n := NewNetwork(Options{Async: true})
	nic, err := n.Join(1)
	if err != nil {
		t.Fatal(err)
	}
	defer nic.Close()
	wake := make(chan struct{}, 1)
	q, err := nic.Open(0, func() { wake <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	if err := nic.Register(7, nvram.NewMemory(64)); err != nil {
		t.Fatal(err)
	}
	var cs [1]rdma.Completion
	for tag := range uint64(50) {
		if _, err := q.Write(1, 7, 0, make([]byte, 8), tag); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		<-wake
		if q.Poll(cs[:]) != 1 || cs[0].Tag != tag || cs[0].Err != nil {
			t.Fatalf("woken for nothing: %+v", cs[0])
		}
	}
}

// Whoever takes memory or a connection away waits for the operation that is in
// the middle of using it. The operation is played here: real ones are too short.
func TestTakingAwayWaitsForOperations(t *testing.T) {
	for name, takeAway := range map[string]func(n *Network, to *NIC, q *Queue){
		"deregister":  func(_ *Network, to *NIC, _ *Queue) { to.Deregister(7) },
		"close peer":  func(_ *Network, to *NIC, _ *Queue) { to.Close() },
		"close own":   func(_ *Network, _ *NIC, q *Queue) { q.nic.Close() },
		"close queue": func(_ *Network, _ *NIC, q *Queue) { q.Close() },
		"cut":         func(n *Network, _ *NIC, _ *Queue) { n.Cut(1, 2) },
		"isolate":     func(n *Network, _ *NIC, _ *Queue) { n.Isolate(2) },
	} {
		t.Run(name, func(t *testing.T) {
			n, queue, _ := pair(t, Options{})
			q := queue.(*Queue)
			n.mu.Lock()
			to := n.mu.nics[2]
			n.mu.Unlock()
			q.active.Store(1)
			returned := make(chan struct{})
			go func() {
				takeAway(n, to, q)
				close(returned)
			}()
			select {
			case <-returned:
				t.Error("did not wait")
			case <-time.After(20 * time.Millisecond):
			}
			q.active.Store(0)
			<-returned
		})
	}
}

func TestIsolate(t *testing.T) {
	n, q, m := pair(t, Options{})
	word := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	n.Isolate(1)
	if _, err := q.Write(2, 7, 0, word, 1); !errors.Is(err, rdma.ErrBroken) || m.Load(0) != 0 {
		t.Errorf("write from an isolated machine: %v", err)
	}
	if err := q.Ring(1); err != nil {
		t.Errorf("an isolated machine reaches itself: %v", err)
	}
	n.Mend(1, 2)
	if _, err := q.Write(2, 7, 0, word, 1); err != nil {
		t.Error(err)
	}
}

// A receiver that does not return costs a bounded number of goroutines.
func TestReceiverThatIsStuck(t *testing.T) {
	n := NewNetwork(Options{})
	nic, err := n.Join(1)
	if err != nil {
		t.Fatal(err)
	}
	release, ended := make(chan struct{}), make(chan struct{}, 2*datagramsMax)
	nic.Datagrams(func(rdma.MachineID, []byte) { <-release; ended <- struct{}{} })
	for range 2 * datagramsMax {
		if err := nic.Datagram(1, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	for range datagramsMax {
		<-ended
	}
	if err := nic.Close(); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 0 {
		t.Errorf("%d datagrams more than may wait were delivered", len(ended))
	}
}
