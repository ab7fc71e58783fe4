package btree

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// benchKeys returns the number of keys of the large tree; FARMSQL_BENCH_KEYS sets it.
func benchKeys() int {
	if n, err := strconv.Atoi(os.Getenv("FARMSQL_BENCH_KEYS")); err == nil && n > 0 {
		return n
	}
	return 1_000_000
}

// large is a tree of benchKeys on one machine, built once for all benchmarks.
var large = sync.OnceValues(func() (*Tree, error) {
	c, err := farm.Open(farm.Config{LogBytes: 64 << 20})
	if err != nil {
		return nil, err
	}
	m := c.Machine(0)
	var anchor region.Ptr
	if err := m.Run(ctx, func(tx *txn.Tx) (err error) {
		anchor, err = Create(tx, Config{}, 0)
		return err
	}); err != nil {
		return nil, err
	}
	tr := Open(m, anchor)
	const batch = 2000
	for lo := 0; lo < benchKeys(); lo += batch {
		if err := m.Run(ctx, func(tx *txn.Tx) error {
			for i := lo; i < lo+batch; i++ {
				if err := tr.Put(tx, intKey(i), rowPtr(i%(1<<24))); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return tr, nil
})

// chain is a random cycle through a gigabyte of lines. In short mode, which only checks that
// everything runs, it has few lines.
var chain = sync.OnceValue(func() *nvram.Memory {
	size := 1 << 30
	if testing.Short() {
		size = 4 << 20
	}
	m := nvram.NewMemory(int64(size))
	order := rand.New(rand.NewPCG(1, 1)).Perm(size / 64)
	for i, line := range order {
		m.Store(uint64(line)*64, uint64(order[(i+1)%len(order)])*64)
	}
	return m
})

// miss is the latency of one load that misses the cache and depends on the one
// before it, in nanoseconds.
func miss() float64 {
	m, at := chain(), uint64(0)
	const loads = 1 << 18
	begin := time.Now()
	for range loads {
		at = m.Load(at)
	}
	if at == 1 {
		panic("not a line")
	}
	return float64(time.Since(begin).Nanoseconds()) / loads
}

// reportMisses reports the time of an operation in dependent misses. The latency of a miss is
// measured before and after, because other work on the machine slows both.
func reportMisses(b *testing.B, before float64) {
	perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	each := (before + miss()) / 2
	b.ReportMetric(each, "ns/miss")
	b.ReportMetric(perOp/each, "misses/op")
}

func largeTree(b *testing.B) *Tree {
	tr, err := large()
	if err != nil {
		b.Fatal(err)
	}
	return tr
}

func BenchmarkLookup(b *testing.B) {
	tr, n := largeTree(b), benchKeys()
	for i := 0; i < n; i += 20 { // warm the cache of inner nodes
		if _, ok, err := tr.Lookup(intKey(i)); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	key := make([]byte, 0, 8)
	b.ReportAllocs()
	before := miss()
	for b.Loop() {
		k := r.IntN(n)
		key = appendInt(key[:0], k)
		if v, ok, err := tr.Lookup(key); err != nil || !ok || v != rowPtr(k%(1<<24)) {
			b.Fatal(k, v, ok, err)
		}
	}
	reportMisses(b, before)
	nodes, bytes := tr.Cached()
	b.ReportMetric(float64(bytes)/1e6, "cachedMB")
	b.ReportMetric(float64(nodes), "nodes")
	var ms runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&ms)
	b.ReportMetric(float64(ms.HeapAlloc)/1e6, "heapMB")
}

func appendInt(b []byte, i int) []byte {
	u := uint64(i) | 1<<63
	for s := 56; s >= 0; s -= 8 {
		b = append(b, byte(u>>s))
	}
	return b
}

// BenchmarkGet is a lookup in a transaction that commits.
func BenchmarkGet(b *testing.B) {
	tr, n := largeTree(b), benchKeys()
	r := rand.New(rand.NewPCG(1, 1))
	key := make([]byte, 0, 8)
	b.ReportAllocs()
	before := miss()
	for b.Loop() {
		tx := tr.m.Begin()
		key = appendInt(key[:0], r.IntN(n))
		if _, ok, err := tr.Get(tx, key); err != nil || !ok {
			b.Fatal(ok, err)
		}
		if err := tx.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	reportMisses(b, before)
}

// BenchmarkScan100 reads 100 entries in key order from a random place.
func BenchmarkScan100(b *testing.B) {
	tr, n := largeTree(b), benchKeys()
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	before := miss()
	for b.Loop() {
		tx := tr.m.Begin()
		cur := tr.Scan(tx, intKey(r.IntN(n-100)), nil, false)
		for range 100 {
			if _, _, ok, err := cur.Next(); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
		if err := tx.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	reportMisses(b, before)
}

// BenchmarkInsert inserts one key a transaction: at random places of the large
// tree, and ascending like AUTO_INCREMENT.
func BenchmarkInsert(b *testing.B) {
	for _, order := range []string{"random", "ascending"} {
		b.Run(order, func(b *testing.B) {
			tr, n := largeTree(b), benchKeys()
			r := rand.New(rand.NewPCG(uint64(b.N), 1))
			key := make([]byte, 0, 16)
			b.ReportAllocs()
			before := miss()
			next := uint64(0)
			for b.Loop() {
				next++
				if order == "random" {
					key = append(appendInt(key[:0], r.IntN(n)), 1)
					key = appendInt(key, int(r.Uint64()>>2))
				} else {
					key = append(append(key[:0], 0xff), appendInt(nil, int(next))...)
				}
				tx := tr.m.Begin()
				err := tr.Insert(tx, key, rowPtr(1))
				if err == nil {
					err = tx.Commit(ctx)
				}
				tx.Abort()
				if err != nil && !(order == "ascending" && err == ErrExists) { // b.N grows over several runs
					b.Fatal(err)
				}
			}
			reportMisses(b, before)
		})
	}
}

// BenchmarkInsertContended makes 32 clients insert ascending keys into one tree of three machines
// with three replicas: every commit changes the same leaf.
func BenchmarkInsertContended(b *testing.B) {
	c, err := farm.Open(farm.Config{Machines: 3, Replicas: 3, LogBytes: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	trees := createTree(b, c, Config{})
	var next atomic.Int64
	before := c.Machine(0).Stats()
	b.SetParallelism(16) // times two processors
	b.RunParallel(func(pb *testing.PB) {
		tr := trees[int(next.Add(1))%3]
		for pb.Next() {
			k := int(next.Add(1))
			tx := tr.m.Begin()
			err := tr.Insert(tx, intKey(k), rowPtr(1))
			if err == nil {
				err = tx.Commit(ctx)
			}
			tx.Abort()
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(c.Machine(0).Stats().Sub(before).Retries)*3/float64(b.N), "retries/op")
}
