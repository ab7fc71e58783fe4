//go:build !race

package shm

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// Operations that have to connect first count once, and those that are refused do not. Only a peer that sleeps is woken.
func TestCounts(t *testing.T) {
	f := newFabric(t)
	var nics [2]*NIC
	var queues [2]*Queue
	for i := range nics {
		nic, err := Join(f.path, rdma.MachineID(i+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nic.Close() })
		q, err := nic.Open(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		nics[i], queues[i] = nic, q.(*Queue)
	}
	memory, err := nvram.NewShared(1 << 12)
	if err == nil {
		err = nics[0].Register(5, memory)
	}
	if err != nil {
		t.Fatal(err)
	}
	q := queues[1]
	for range 3 {
		if _, err := q.Write(1, 5, 0, make([]byte, 64), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Write(1, 5, 1, make([]byte, 8), 1); err == nil {
		t.Error("misaligned")
	}
	if got, want := nics[1].Counts(), (rdma.Counts{Operations: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for parked := nics[0].state.parked(0); parked.Load() != 1; {
		time.Sleep(time.Millisecond)
	}
	if err := q.Ring(1); err != nil {
		t.Fatal(err)
	}
	if got, want := nics[1].Counts(), (rdma.Counts{Operations: 4, Doorbells: 1, Wakes: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	q.count = 1<<32 - 2
	q.counts.Operations.Store(0)
	for range 3 { // the count of the active word begins anew
		if _, err := q.Write(1, 5, 0, make([]byte, 64), 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := nics[1].Counts().Operations; got != 1<<31+2 {
		t.Errorf("%d operations, want %d", got, 1<<31+2)
	}
}
