package sim

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

// fabric drives a world for tests that do not know it and run on ordinary goroutines. Everything
// happens under one lock. Events happen on a goroutine of their own.
type fabric struct {
	mu    turns
	world *World
}

// turns is a fair mutex: the goroutine that has waited longest gets it next. A busy queue must not
// keep events from happening.
type turns chan struct{}

func (t turns) Lock()   { t <- struct{}{} }
func (t turns) Unlock() { <-t }

func newFabric(t *testing.T, seed uint64) *fabric {
	f := &fabric{mu: make(turns, 1), world: New(Options{Seed: seed, Loss: 100})}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			f.mu.Lock()
			f.world.step()
			f.mu.Unlock()
			runtime.Gosched()
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		f.world.unwindAll()
		if f.world.failure != nil {
			t.Error(f.world.failure)
		}
	})
	return f
}

func (f *fabric) Join(m rdma.MachineID) (rdma.NIC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	machine := f.world.Machine(m)
	if machine.Process() != nil && machine.process.nic.closed {
		machine.Kill()
	}
	if machine.Process() == nil {
		machine.Boot()
	}
	n, err := machine.process.Join()
	if err != nil {
		return nil, err
	}
	return &lockedNIC{f, n.(*nic)}, nil
}

func (f *fabric) Cut(a, b rdma.MachineID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.Cut(a, b)
	f.world.Cut(b, a)
}

func (f *fabric) Mend(a, b rdma.MachineID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.Mend(a, b)
	f.world.Mend(b, a)
}

type lockedNIC struct {
	f *fabric
	*nic
}

func (n *lockedNIC) Register(k rdma.Key, m *nvram.Memory) error {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	return n.nic.Register(k, m)
}

func (n *lockedNIC) Deregister(k rdma.Key) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	n.nic.Deregister(k)
}

func (n *lockedNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	q, err := n.nic.Open(worker, bell)
	if err != nil {
		return nil, err
	}
	return &lockedQueue{n.f, q}, nil
}

func (n *lockedNIC) Datagram(to rdma.MachineID, b []byte) error {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	return n.nic.Datagram(to, b)
}

func (n *lockedNIC) Datagrams(f func(from rdma.MachineID, b []byte)) {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	n.nic.Datagrams(f)
}

func (n *lockedNIC) Close() error {
	n.f.mu.Lock()
	defer n.f.mu.Unlock()
	return n.nic.Close()
}

type lockedQueue struct {
	f *fabric
	q rdma.Queue
}

func (l *lockedQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	defer l.q.Flush()
	return l.q.Read(to, k, off, dst, tag)
}

func (l *lockedQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	defer l.q.Flush()
	return l.q.Write(to, k, off, src, tag)
}

func (l *lockedQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	defer l.q.Flush()
	return l.q.WriteRing(to, k, off, src, tag)
}

func (l *lockedQueue) Ring(to rdma.MachineID) error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	defer l.q.Flush()
	return l.q.Ring(to)
}

// Flush has nothing to do: outside of turns time may pass before it is called.
func (l *lockedQueue) Flush() {}

func (l *lockedQueue) Poll(cs []rdma.Completion) int {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.q.Poll(cs)
}

func (l *lockedQueue) Close() error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.q.Close()
}

func TestProvider(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric { return newFabric(t, seed) })
		})
	}
}
