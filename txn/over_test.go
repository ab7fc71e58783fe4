package txn_test

import (
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/internal/testcert"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/tcp"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// overTCP returns a function for txntest.Config.Wrap that gives machines connections over the loopback
// interface, in place of the NICs that they would have.
func overTCP(t testing.TB, secured *tls.Config) func(rdma.NIC) rdma.NIC {
	var mu sync.Mutex
	addresses := make(map[rdma.MachineID]string)
	resolve := func(m rdma.MachineID) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		address, ok := addresses[m]
		return address, ok
	}
	return func(replaced rdma.NIC) rdma.NIC {
		m := replaced.Machine()
		must(t, replaced.Close())
		nic, err := tcp.Join(tcp.Config{Machine: m, Listen: "127.0.0.1:0", Resolve: resolve, TLS: secured})
		must(t, err)
		mu.Lock()
		defer mu.Unlock()
		addresses[m] = nic.Address()
		return nic
	}
}

// Many clients of three machines increment the same objects over connections, where they gather their
// posts. No increment is lost, nobody waits for what nobody sends, and all replicas are alike.
func TestManyOverTCP(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, Wrap: overTCP(t, nil)}, 30)
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
	secured := testcert.New(b, b.TempDir()).TLS(b, "127.0.0.1")
	for _, way := range []struct {
		name string
		cfg  txntest.Config
	}{
		{"local", txntest.Config{}},
		{"local,async", txntest.Config{Network: local.Options{Async: true}}},
		{"tcp", txntest.Config{Wrap: overTCP(b, nil)}},
		{"tcp,TLS", txntest.Config{Wrap: overTCP(b, secured)}},
	} {
		b.Run(way.name, func(b *testing.B) {
			way.cfg.Machines, way.cfg.Replicas, way.cfg.Workers = 3, 3, 1
			r := open(b, way.cfg, 3)
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
