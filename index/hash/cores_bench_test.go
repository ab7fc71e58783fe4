package hash

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/txn"
)

// coresTable opens a table of n pairs on a machine with the given number of workers.
func coresTable(b *testing.B, workers, n int) *Table {
	c, err := farm.Open(farm.Config{Workers: workers, LogBytes: 4 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	m := c.Machine(0)
	tb := Open(m, createTable(b, m, Config{ValueBytes: 32}))
	load(b, tb, 0, n, make([]byte, 32))
	return tb
}

// onCores runs do on all processors, once with one worker and once with two. Each goroutine gets a
// number of its own, from 0.
func onCores(b *testing.B, pairs int, do func(tb *Table, goroutine int, pb *testing.PB) error) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			tb := coresTable(b, workers, pairs)
			var next atomic.Int32
			b.ResetTimer()
			defer cputime.Report(b)()
			b.RunParallel(func(pb *testing.PB) {
				if err := do(tb, int(next.Add(1))-1, pb); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkCoresLookup looks up keys of a table that the caches hold, so that what processors share
// shows. Run it with -cpu 1,2,...
func BenchmarkCoresLookup(b *testing.B) {
	const pairs = 4096
	onCores(b, pairs, func(tb *Table, goroutine int, pb *testing.PB) error {
		key, buf := make([]byte, 16), make([]byte, 32)
		rnd := rand.New(rand.NewPCG(1, uint64(goroutine)))
		for pb.Next() {
			if _, ok, err := tb.Lookup(numberedKey(key, rnd.IntN(pairs)), buf); !ok || err != nil {
				return fmt.Errorf("found %v: %v", ok, err)
			}
		}
		return nil
	})
}

// BenchmarkCoresPutNow changes keys as transactions of their own. No two goroutines change the same
// key, so that nothing is combined.
func BenchmarkCoresPutNow(b *testing.B) {
	const pairs, each = 4096, 64
	onCores(b, pairs, func(tb *Table, goroutine int, pb *testing.PB) error {
		key, value := make([]byte, 16), make([]byte, 32)
		for i := 0; pb.Next(); i++ {
			n := (goroutine*each + i%each) % pairs
			if err := tb.PutNow(ctx, numberedKey(key, n), value); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkCoresInsert inserts keys into a table that grows: its shards split, several at the same
// time.
func BenchmarkCoresInsert(b *testing.B) {
	onCores(b, 0, func(tb *Table, goroutine int, pb *testing.PB) error {
		key, value := make([]byte, 16), make([]byte, 32)
		for i := 0; pb.Next(); i++ {
			err := tb.m.Run(ctx, func(t *txn.Tx) error {
				return tb.Put(t, numberedKey(key, goroutine<<40|i), value)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
