package verbs

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// belled returns a queue of machine 1, and a channel that has an element once its bell has rung.
func (f *fabric) belled(t *testing.T) (q rdma.Queue, rung chan struct{}) {
	nic, err := f.Join(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nic.Close() })
	rung = make(chan struct{}, 1)
	q, err = nic.Open(0, func() {
		select {
		case rung <- struct{}{}:
		default: // it has a sign
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return q, rung
}

// The bell rings for an operation that the peer's answer refuses, while nothing of the card is under way: a worker may sleep until then.
func TestBellRingsForWhatIsRefused(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	f.machine(t, 2, 1<<12)
	q, rung := f.belled(t)
	for range 3 { // the first connects
		if _, err := q.Read(2, key+1, 0, make([]byte, 8), 1); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		select {
		case <-rung:
		case <-time.After(10 * time.Second):
			t.Fatal("the bell has not rung")
		}
		var cs [2]rdma.Completion
		if n := q.Poll(cs[:]); n != 1 || cs[0].Err == nil {
			t.Errorf("%d completions, the first %v", n, cs[0].Err)
		}
	}
}
