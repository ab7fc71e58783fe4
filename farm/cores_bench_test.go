package farm

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// The benchmarks of this file have each goroutine work on objects of its own, so that goroutines
// share only what the implementation makes them share. Run them with -cpu 1,2,...: see
// docs/internals/cores.md.

// onCores runs do on all processors of a single machine, once with one worker and once with two.
// Each goroutine has an object of its own.
func onCores(b *testing.B, do func(m *txn.Machine, own region.Ptr) error) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			c, err := Open(Config{Workers: workers, RegionBytes: 1 << 24, LogBytes: 4 << 20})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			m := c.Machine(0)
			own := make([]region.Ptr, 64)
			for i := range own {
				own[i] = benchmarkObject(b, m)
			}
			var next atomic.Int32
			b.ResetTimer()
			defer cputime.Report(b)()
			b.RunParallel(func(pb *testing.PB) {
				p := own[int(next.Add(1))%len(own)]
				for pb.Next() {
					if err := do(m, p); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkCoresOperation measures an operation without reads: the fixed cost of every lock-free
// lookup.
func BenchmarkCoresOperation(b *testing.B) {
	onCores(b, func(m *txn.Machine, own region.Ptr) error {
		op := m.Start()
		op.Look(own)
		op.End()
		return nil
	})
}

// BenchmarkCoresReadOnly is a transaction that reads one object.
func BenchmarkCoresReadOnly(b *testing.B) {
	ctx := context.Background()
	onCores(b, func(m *txn.Machine, own region.Ptr) error {
		return m.Run(ctx, func(t *txn.Tx) error {
			_, err := t.Read(own)
			return err
		})
	})
}

// BenchmarkCoresCommit is a transaction that changes one object.
func BenchmarkCoresCommit(b *testing.B) {
	ctx := context.Background()
	onCores(b, func(m *txn.Machine, own region.Ptr) error {
		return m.Run(ctx, func(t *txn.Tx) error {
			payload, err := t.Write(own)
			if err == nil {
				payload[0]++
			}
			return err
		})
	})
}
