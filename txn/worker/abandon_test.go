package worker

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A deadEnd is a queue to machines that never answer.
type deadEnd struct {
	rdma.Queue
	posted chan struct{}
	closed atomic.Bool
}

func (q *deadEnd) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, _ uint64) (bool, error) {
	if q.closed.Load() {
		return false, &rdma.Error{Op: rdma.OpRead, To: to, Key: k, Offset: off, Bytes: len(dst), Err: rdma.ErrClosed}
	}
	close(q.posted)
	return false, nil
}

func (q *deadEnd) Flush() {}

func (q *deadEnd) Poll([]rdma.Completion) int { return 0 }

func (q *deadEnd) Close() error {
	q.closed.Store(true)
	return nil
}

// A machine that is evicted does not wait for what its functions read at others: they may
// never answer, and nobody waits for the functions any more.
func TestAbandonEndsReadsOfFunctions(t *testing.T) {
	m, _ := listener(t)
	q := &deadEnd{posted: make(chan struct{})}
	m.workers[0].q = &patientQueue{q, m.workers[0]}
	failed := make(chan error, 1)
	m.serving.Add(1)
	go func() { // as serve would
		defer m.serving.Add(-1)
		failed <- m.ReadReplica(1, 2, 0, make([]byte, 8))
	}()
	<-q.posted
	if err := m.Abandon(time.Minute); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, outcome.ErrClosed) {
		t.Errorf("the read: %v", err)
	}
	if err := m.ReadReplica(1, 2, 0, make([]byte, 8)); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("a read that begins then: %v", err)
	}
}
