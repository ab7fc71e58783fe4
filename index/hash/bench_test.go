package hash

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/txn"
)

// benchItems returns the number of pairs of 16 + 32 bytes in the benchmarks' tables;
// FARMSQL_BENCH_KEYS sets it.
func benchItems() int {
	if n, err := strconv.Atoi(os.Getenv("FARMSQL_BENCH_KEYS")); err == nil {
		return n
	}
	return 1_000_000
}

// A chase is a random cycle through memory far larger than the cache, in which each load depends on
// the one before. The time of lookups is given in such loads. In short mode, which only checks that
// everything runs, it takes little memory.
type chase struct {
	m  *nvram.Memory
	at uint64
}

func newChase() *chase {
	bytes := 1 << 30
	if testing.Short() {
		bytes = 4 << 20
	}
	m := nvram.NewMemory(int64(bytes))
	order := rand.New(rand.NewPCG(1, 1)).Perm(bytes / 64)
	for i, line := range order {
		m.Store(uint64(line)*64, uint64(order[(i+1)%len(order)])*64)
	}
	return &chase{m: m}
}

// miss returns the present latency of one load in nanoseconds.
func (c *chase) miss() float64 {
	const loads = 500_000
	begin := time.Now()
	for range loads {
		c.at = c.m.Load(c.at)
	}
	return float64(time.Since(begin).Nanoseconds()) / loads
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
	tb, items, chase := benchTable(b), benchItems(), newChase()
	b.Logf("%d pairs in %d shards", items, tb.Stats().Shards)
	// The machine is shared, so each figure is reported with the latency before and after it.
	run := func(name string, ops int, op func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := chase.miss()
			for b.Loop() {
				op(b)
			}
			took := float64(b.Elapsed().Nanoseconds()) / float64(b.N*ops)
			miss := (before + chase.miss()) / 2
			b.ReportMetric(took, "ns/key")
			b.ReportMetric(miss, "ns/miss")
			b.ReportMetric(took/miss, "misses/key")
		})
	}
	key, buf := make([]byte, 16), make([]byte, 32)
	rnd := rand.New(rand.NewPCG(1, 2))
	run("Lookup", 1, func(b *testing.B) {
		if _, ok, err := tb.Lookup(numberedKey(key, rnd.IntN(items)), buf); !ok || err != nil {
			b.Fatal(ok, err)
		}
	})
	transaction := func(name string, ops int, do func(t *txn.Tx) error) {
		run(name, ops, func(b *testing.B) {
			err := tb.m.Run(ctx, func(t *txn.Tx) error {
				for range ops {
					if err := do(t); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
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

// Sixteen goroutines change one key of a shard whose primary is another machine: in transactions of
// their own, or combined and shipped. At the primary itself a commit over rdma/local never waits, so
// there would be nothing to combine.
func BenchmarkHotKey(b *testing.B) {
	c, err := farm.Open(farm.Config{Machines: 3, Replicas: 3, RegionBytes: 64 << 20, LogBytes: 4 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for i := range 3 {
		Serve(c.Machine(i))
	}
	m := c.Machine(1)
	tb := Open(m, createTable(b, c.Machine(0), Config{ValueBytes: 32}))
	hot := []byte("hot")
	parallel := func(name string, put func(value []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				value := make([]byte, 8)
				for n := rand.Uint64(); pb.Next(); n++ {
					binary.LittleEndian.PutUint64(value, n)
					if err := put(value); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	parallel("Transactions", func(value []byte) error {
		return m.Run(ctx, func(t *txn.Tx) error { return tb.Put(t, hot, value) })
	})
	before := tb.Stats()
	parallel("Combined", func(value []byte) error { return tb.PutNow(ctx, hot, value) })
	combined, shipped := tb.Stats().Combined-before.Combined, tb.Stats().Shipped-before.Shipped
	b.Logf("%d operations in %d messages", combined+shipped, shipped)
}
