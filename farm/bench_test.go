package farm

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// benchmarkCluster opens an instance whose machines all have every region.
func benchmarkCluster(b *testing.B, machines int) *Local {
	c, err := Open(Config{Machines: machines, Replicas: machines, RegionBytes: 1 << 24, LogBytes: 4 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkCommitParallel measures the work of participants, and of doorbells, under load: several
// goroutines on every machine commit, each with its own objects, whose primaries are at all
// machines.
func BenchmarkCommitParallel(b *testing.B) {
	for _, machines := range []int{1, 3} {
		b.Run(fmt.Sprintf("f=%d", machines-1), func(b *testing.B) {
			c := benchmarkCluster(b, machines)
			const goroutines, each = 12, 16
			ptrs := make([][]region.Ptr, goroutines)
			for g := range ptrs {
				for i := range each {
					ptrs[g] = append(ptrs[g], benchmarkObject(b, c.Machine((g+i)%machines)))
				}
			}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					m := c.Machine(g % machines)
					for i := range b.N / goroutines {
						t := m.Begin()
						for k := range 2 {
							p, err := t.Write(ptrs[g][(i+k)%each])
							if err != nil {
								b.Error(err)
								return
							}
							p[0]++
						}
						if err := t.Commit(ctx); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func benchmarkObject(b *testing.B, m *txn.Machine) (p region.Ptr) {
	err := m.Run(context.Background(), func(t *txn.Tx) (err error) {
		p, _, err = t.Alloc(64, 0)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}
