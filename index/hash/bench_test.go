package hash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/txn"
)

// benchItems is how many pairs of 16 + 32 bytes the benchmarks work on;
// FARMSQL_BENCH_KEYS sets it.
func benchItems() int {
	if n, err := strconv.Atoi(os.Getenv("FARMSQL_BENCH_KEYS")); err == nil {
		return n
	}
	return 1_000_000
}

// dependentLoad returns the nanoseconds of a load that misses the cache and
// depends on the one before: what a lookup is measured by.
func dependentLoad() float64 {
	const bytes, loads = 1 << 30, 2_000_000
	m := nvram.NewMemory(bytes)
	order := rand.New(rand.NewPCG(1, 1)).Perm(bytes / 64)
	for i, line := range order {
		m.Store(uint64(line)*64, uint64(order[(i+1)%len(order)])*64)
	}
	at, begin := uint64(0), time.Now()
	for range loads {
		at = m.Load(at)
	}
	took := time.Since(begin)
	m.Store(0, at)
	return float64(took.Nanoseconds()) / loads
}

func benchTable(b *testing.B) *Table {
	c, err := farm.Open(farm.Config{LogBytes: 4 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	m := c.Machine(0)
	tb := Open(m, createTable(b, m, Config{ValueBytes: 32}))
	load(b, tb, 0, benchItems(), make([]byte, 32))
	return tb
}

func Benchmark(b *testing.B) {
	miss := dependentLoad()
	perOp := func(b *testing.B, ops int) {
		ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N*ops)
		b.ReportMetric(ns, "ns/key")
		b.ReportMetric(ns/miss, "misses/key")
	}
	tb, items := benchTable(b), benchItems()
	b.Logf("%d pairs in %d shards; dependent load %.0f ns", items, tb.Stats().Shards, miss)
	key, buf := make([]byte, 16), make([]byte, 32)
	rnd := rand.New(rand.NewPCG(1, 2))
	b.Run("Lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := tb.Lookup(numberedKey(key, rnd.IntN(items)), buf); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
		perOp(b, 1)
	})
	transaction := func(name string, ops int, do func(t *txn.Tx) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := tb.m.Run(ctx, func(t *txn.Tx) error {
					for range ops {
						if err := do(t); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			perOp(b, ops)
		})
	}
	transaction("Get", 1, func(t *txn.Tx) error {
		_, _, err := tb.Get(t, numberedKey(key, rnd.IntN(items)))
		return err
	})
	transaction("Put", 1, func(t *txn.Tx) error {
		rnd := rnd.Uint64()
		buf[0], buf[1] = byte(rnd), byte(rnd>>8)
		return tb.Put(t, numberedKey(key, int(rnd%uint64(items))), buf)
	})
	next := items
	insert := func(t *txn.Tx) error {
		next++
		return tb.Insert(t, numberedKey(key, next), buf)
	}
	transaction("Insert", 1, insert)
	transaction("InsertBy100", 100, insert)
}
