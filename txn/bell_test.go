package txn_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn"
)

// If a worker is locked when it is rung, the holder of its lock processes the input, once the lock
// has been released and not before.
func TestBellRungWhileLocked(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, Clock: newHandClock()}, 2)
	r.lost = true // one is fenced
	var fenced atomic.Bool
	r.Machine(1).OnFenced(func(rdma.MachineID, error) { fenced.Store(true) })
	rung := make(chan struct{})
	r.Machine(1).Locked(0, func() {
		go func() {
			defer close(rung)
			r.Machine(0).AppendMessage(0, 1, txn.Message(0xff, 0, 0, 0, 0, nil)) // no message
		}()
		select {
		case <-rung:
		case <-time.After(10 * time.Second):
			t.Error("who rings waits for the lock of the worker that it rings")
		}
		if fenced.Load() {
			t.Error("worked through while the worker was locked")
		}
	})
	if !fenced.Load() {
		t.Error("who has unlocked the worker has not answered a bell that was rung meanwhile")
	}
}

// Backups that have been given much are rung before the worker is unlocked, also if the
// acknowledgements are there at once: builds with invariants check it.
func TestBackupsAreRungBeforeUnlocking(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, LogBytes: 1 << 20}, 3)
	big := r.bigObjects(0, 60<<10, 3) // 180 KB: more than a sender holds back
	r.run(0, func(tx *txn.Tx) error { return writeAll(tx, big, 7) })
	r.settle()
	r.quiet()
}
