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

// BenchmarkCoresContention has 8 clients on each processor: two of ten operations change a key in a
// transaction, one is a PutNow of a key that few others use, one inserts into a table that grows, and the
// others look up. It is for profiles of what clients wait for: see docs/internals/cores.md.
func BenchmarkCoresContention(b *testing.B) {
	const pairs = 100_000
	for _, machines := range []int{1, 2} {
		b.Run(fmt.Sprintf("machines=%d", machines), func(b *testing.B) {
			c, err := farm.Open(farm.Config{Machines: machines, Replicas: machines, Workers: 2, LogBytes: 4 << 20})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			m := c.Machine(0)
			anchor, growing := createTable(b, m, Config{ValueBytes: 32}), createTable(b, m, Config{ValueBytes: 32})
			tables, grow := make([]*Table, machines), make([]*Table, machines)
			for i := range machines {
				tables[i], grow[i] = Open(c.Machine(i), anchor), Open(c.Machine(i), growing)
			}
			load(b, tables[0], 0, pairs, make([]byte, 32))
			var next atomic.Int32
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				n := int(next.Add(1)) - 1
				if err := contend(tables[n%machines], grow[n%machines], n, pairs, pb); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

func contend(tb, growing *Table, client, pairs int, pb *testing.PB) error {
	rnd := rand.New(rand.NewPCG(1, uint64(client)))
	key, value := make([]byte, 16), make([]byte, 32)
	put := func(tb *Table, i int) error {
		return tb.m.Run(ctx, func(t *txn.Tx) error { return tb.Put(t, numberedKey(key, i), value) })
	}
	for i := 0; pb.Next(); i++ {
		var err error
		switch i % 10 {
		case 0, 5:
			err = put(tb, rnd.IntN(pairs))
		case 2:
			err = tb.PutNow(ctx, numberedKey(key, rnd.IntN(100)), value)
		case 7:
			err = put(growing, client<<40|i)
		default:
			_, _, err = tb.Lookup(numberedKey(key, rnd.IntN(pairs)), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
