package txn_test

import (
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Many clients of three machines increment the same objects over connections, where they gather their
// posts. No increment is lost, nobody waits for what nobody sends, and all replicas are alike.
func TestManyOverTCP(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, NewNetwork: over(t, testnet.TCP)}, 30)
	const clients, each = 12, 40
	var running sync.WaitGroup
	for client := range clients {
		for machine := range r.Machines() {
			running.Go(func() {
				for i := range each {
					at := []region.Ptr{r.ptrs[(client+7*i)%len(r.ptrs)], r.ptrs[(client+11*i+1)%len(r.ptrs)]}
					if err := increment(r.Machine(machine), at); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	running.Wait()
	want, got := uint64(0), uint64(0)
	for client := range clients {
		for i := range each {
			want += uint64(r.Machines())
			if (client+7*i)%len(r.ptrs) != (client+11*i+1)%len(r.ptrs) {
				want += uint64(r.Machines())
			}
		}
	}
	for i := range r.ptrs {
		got += r.get(0, i)
	}
	if got != want {
		t.Errorf("%d increments of %d", got, want)
	}
	r.quiet()
}

// increment adds one to each of some objects, in one transaction. An object that is there twice is
// incremented once.
func increment(m *txn.Machine, ptrs []region.Ptr) error {
	return m.Run(ctx, func(tx *txn.Tx) error {
		all, err := numbers(tx, ptrs)
		for i, p := range ptrs {
			if err == nil {
				err = write(tx, p, all[i]+1)
			}
		}
		return err
	})
}

// BenchmarkCommitOver runs, on three machines that keep all objects, a transaction that reads an object of
// one of the others and changes one of the third: two round trips, and four of the commit, whose latency
// it reports apart.
func BenchmarkCommitOver(b *testing.B) {
	for _, way := range []testnet.Way{testnet.Local, testnet.LocalAsync, testnet.TCP, testnet.TLS} {
		b.Run(string(way), func(b *testing.B) {
			r := open(b, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, NewNetwork: over(b, way)}, 3)
			m := r.Machine(0)
			defer cputime.Report(b)()
			var commits time.Duration
			for b.Loop() {
				tx := m.Begin()
				_, err := tx.Read(r.ptrs[1])
				must(b, err)
				must(b, write(tx, r.ptrs[2], 7))
				begin := time.Now()
				must(b, tx.Commit(ctx))
				commits += time.Since(begin)
			}
			b.ReportMetric(float64(commits)/float64(b.N), "commit-ns/op")
		})
	}
}
