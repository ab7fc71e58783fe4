package txn_test

import (
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/txn"
)

// Validation reads from all primaries at once, and finds what has changed at any of them.
func TestValidationRoundTrip(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		m := r.Machine(0)
		for changed := -1; changed < len(r.ptrs); changed++ {
			r.settle()
			tx := m.Begin()
			_, err := numbers(tx, r.ptrs)
			must(t, err)
			if changed >= 0 {
				r.set(r.Machines()-1, changed, uint64(changed)+1)
				r.settle()
			}
			before := m.Stats()
			err = tx.Commit(ctx)
			if s := m.Stats().Sub(before); s.RoundTrips != uint64(min(1, r.Machines()-1)) || s.Messages != 0 {
				t.Errorf("%d round trips, %d messages", s.RoundTrips, s.Messages)
			}
			if changed < 0 {
				must(t, err)
			} else {
				wantReason(t, err, txn.ReasonValidate)
			}
		}
		r.quiet()
	})
}

// While READs from one primary are pending, validation asks another one, which has more objects, with
// a message.
func TestValidationReadsAndAsks(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, Network: local.Options{Async: true}}, 3)
	for range 8 {
		r.ptrs = append(r.ptrs, r.make(2, 0))
	}
	m := r.Machine(0)
	for changed := -1; changed < len(r.ptrs); changed++ {
		r.settle()
		tx := m.Begin()
		_, err := numbers(tx, r.ptrs)
		must(t, err)
		if changed >= 0 {
			r.set(1, changed, uint64(changed)+1)
			r.settle()
		}
		before := m.Stats()
		err = tx.Commit(ctx)
		if s := m.Stats().Sub(before); s.RoundTrips != 2 || s.Messages != 1 {
			t.Errorf("%d round trips, %d messages", s.RoundTrips, s.Messages)
		}
		if changed < 0 {
			must(t, err)
		} else {
			wantReason(t, err, txn.ReasonValidate)
		}
	}
	r.quiet()
}

// A batchNIC counts the batches that its machine sends.
type batchNIC struct {
	rdma.NIC
	sent *atomic.Int64
}

func (n batchNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	return &batchQueue{q, n.sent}, err
}

type batchQueue struct {
	rdma.Queue
	sent *atomic.Int64
}

func (q *batchQueue) Flush() { q.sent.Add(1); q.Queue.Flush() }

// A commit sends the batches of SOSP'15 section 4, each once the one before is answered, and no other:
// LOCK, the READs of validation, COMMIT-BACKUP and COMMIT-PRIMARY. So it takes at most four round trips,
// however many machines take part.
func TestCommitRoundTrips(t *testing.T) {
	var sent [3]atomic.Int64
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, Network: local.Options{Async: true}, Wrap: func(n rdma.NIC) rdma.NIC {
		return batchNIC{n, &sent[n.Machine()]}
	}}, 6)
	r.settle()
	m := r.Machine(0)
	tx := m.Begin()
	_, err := numbers(tx, r.ptrs[:3])
	must(t, err)
	for i := 3; i < 6; i++ {
		must(t, write(tx, r.ptrs[i], 7))
	}
	before := sent[0].Load()
	must(t, tx.Commit(ctx))
	if n := sent[0].Load() - before; n != 4 {
		t.Errorf("a commit sends %d batches, one after the other, want 4", n)
	}
	r.quiet()
}
