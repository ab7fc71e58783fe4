package testnet

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformanceOnABadNetwork runs the suite of all providers with all that a network does to bytes and datagrams
// short of breaking connections, which the suite does itself.
func TestConformanceOnABadNetwork(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric { return New(t, BadTLS) })
}

// A cable that is out stays so when both its ends begin another life.
func TestCutOutlastsALife(t *testing.T) {
	n := New(t, TCP)
	live := func(m rdma.MachineID) *endOfCable {
		e := &endOfCable{bell: make(chan struct{}, 1)}
		var err error
		if e.nic, err = n.Join(m); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.nic.Close() })
		if e.q, err = e.nic.Open(0, func() { e.bell <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		if err := e.nic.Register(key, nvram.NewMemory(nvram.WordBytes)); err != nil {
			t.Fatal(err)
		}
		return e
	}
	former := []*endOfCable{live(1), live(2)}
	n.Cut(1, 2)
	for _, e := range former {
		if err := e.nic.Close(); err != nil {
			t.Fatal(err)
		}
	}
	live(1)
	second := live(2)
	if err := second.read(1); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("over a cable that is out: %v, want %v", err, rdma.ErrBroken)
	}
	n.Mend(1, 2)
	if err := second.read(1); err != nil {
		t.Errorf("over one that is in again: %v", err)
	}
}

const key = 1

// An endOfCable is one life of a machine with one worker.
type endOfCable struct {
	nic  rdma.NIC
	q    rdma.Queue
	bell chan struct{}
}

// read reads a word of another machine.
func (e *endOfCable) read(from rdma.MachineID) error {
	if _, err := e.q.Read(from, key, 0, make([]byte, nvram.WordBytes), 0); err != nil {
		return err
	}
	e.q.Flush()
	<-e.bell
	var cs [1]rdma.Completion
	e.q.Poll(cs[:])
	return cs[0].Err
}
