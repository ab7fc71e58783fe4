package micro

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// nearBytes is a working set well within the cache.
const nearBytes = 64 << 10

// farBytes is a working set far beyond the cache. In short mode, which only shows that everything
// runs, it is smaller.
func farBytes() int {
	if testing.Short() {
		return 4 << 20
	}
	return 1 << 30
}

// dependentLoad returns the nanoseconds of one load that depends on the one
// before, in a random cycle through n bytes.
func dependentLoad(n, loads int) float64 {
	m := nvram.NewMemory(int64(n))
	lines := n / nvram.LineBytes
	order := rand.New(rand.NewPCG(1, 1)).Perm(lines)
	for i, line := range order {
		m.Store(uint64(line)*nvram.LineBytes, uint64(order[(i+1)%lines])*nvram.LineBytes)
	}
	at := uint64(0)
	begin := time.Now()
	for range loads {
		at = m.Load(at)
	}
	took := time.Since(begin)
	sink.Store(0, at)
	return float64(took.Nanoseconds()) / float64(loads)
}

var sink = nvram.NewMemory(64)

// miss is the latency of a dependent load beyond the cache, measured once.
var miss = sync.OnceValue(func() float64 { return dependentLoad(farBytes(), 5_000_000) })

// report adds the number of dependent misses that an operation takes.
func report(b *testing.B, perOp int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(perOp)/miss(), "misses")
}

func BenchmarkDependentLoad(b *testing.B) {
	for _, set := range []struct {
		name  string
		bytes int
	}{{"near", nearBytes}, {"far", farBytes()}} {
		b.Run(set.name, func(b *testing.B) {
			ns := dependentLoad(set.bytes, max(b.N, 1_000_000))
			b.ReportMetric(ns, "ns/op")
		})
	}
}

// BenchmarkFetchedLoad measures a load that was prefetched 16 loads ahead: the lower bound for
// lookups that wait together. The places are random; the time includes drawing one.
func BenchmarkFetchedLoad(b *testing.B) {
	const ahead = 16
	b.Run("far", func(b *testing.B) {
		m := nvram.NewMemory(int64(farBytes()))
		lines := m.Size() / nvram.LineBytes
		for line := range lines {
			m.Store(line*nvram.LineBytes, line)
		}
		rng, sum := rand.New(rand.NewPCG(1, 1)), uint64(0)
		var fetched [ahead]uint64
		for i := 0; b.Loop(); i++ {
			sum += m.Load(fetched[i%ahead])
			at := rng.Uint64N(lines) * nvram.LineBytes
			prefetch.Lines(m.Pointer(at, nvram.LineBytes), 1)
			fetched[i%ahead] = at
		}
		sink.Store(0, sum)
	})
}

// BenchmarkLoadsApart measures loads at random places, including drawing the place, with a number
// of additions between two loads. No load depends on another. The number of loads that the
// processor has outstanding shows how far it looks ahead.
func BenchmarkLoadsApart(b *testing.B) {
	m := nvram.NewMemory(int64(farBytes()))
	m.Zero(0, m.Size()) // gives it pages
	lines := m.Size() / nvram.LineBytes
	for _, additions := range []int{0, 25, 50, 75, 100, 200} {
		b.Run(fmt.Sprint(additions), func(b *testing.B) {
			rng, sum := rand.NewPCG(1, 1), uint64(0)
			for b.Loop() {
				sum += m.Load(rng.Uint64() & (lines - 1) * nvram.LineBytes)
				for i := range additions {
					sum += uint64(i)
				}
			}
			sink.Store(0, sum)
			report(b, 1)
		})
	}
}

// cluster opens an instance of n machines with n replicas.
func cluster(b *testing.B, n int) *farm.Local {
	c, err := farm.Open(farm.Config{Machines: n, Replicas: n, RegionBytes: 2 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// objects allocates objects with this payload that take up bytes altogether.
func objects(b *testing.B, c *farm.Local, bytes, payload int) []region.Ptr {
	class, _ := region.ClassFor(payload)
	n := bytes / class.Size()
	ptrs := make([]region.Ptr, 0, n)
	for len(ptrs) < n {
		batch(b, c.Machine(0), func(t *txn.Tx) error {
			for range min(1000, n-len(ptrs)) {
				p, _, err := t.Alloc(payload, 0)
				if err != nil {
					return err
				}
				ptrs = append(ptrs, p)
			}
			return nil
		})
	}
	return ptrs
}

func batch(b *testing.B, m *txn.Machine, fn func(*txn.Tx) error) {
	if err := m.Run(context.Background(), fn); err != nil {
		b.Fatal(err)
	}
}

// eachSet runs f for a working set in the cache and one far beyond it.
func eachSet(b *testing.B, machines, payload int, f func(b *testing.B, m *txn.Machine, pick func() region.Ptr)) {
	for _, set := range []struct {
		name  string
		bytes int
	}{{"near", nearBytes}, {"far", farBytes() / machines}} {
		b.Run(set.name, func(b *testing.B) {
			c := cluster(b, machines)
			ptrs := objects(b, c, set.bytes, payload)
			// The pointers are shuffled and then read in order, so that they come from the cache.
			// Picking them at random would cost a miss for each.
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(ptrs), func(i, j int) { ptrs[i], ptrs[j] = ptrs[j], ptrs[i] })
			next := 0
			f(b, c.Machine(0), func() region.Ptr {
				next++
				return ptrs[next%len(ptrs)]
			})
		})
	}
}

// BenchmarkObjectRead is the lock-free read of one object, by its size.
func BenchmarkObjectRead(b *testing.B) {
	for _, size := range []int{64, 128, 256} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			eachSet(b, 1, size-region.HeaderBytes-2*(size/64-1), func(b *testing.B, m *txn.Machine, pick func() region.Ptr) {
				p := pick()
				if p.Class().Size() != size {
					b.Fatalf("objects have %d bytes", p.Class().Size())
				}
				dst := make([]byte, p.Capacity())
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.Read(pick(), dst); err != nil {
						b.Fatal(err)
					}
				}
				report(b, 1)
			})
		})
	}
}

// BenchmarkCommit reads, changes and commits objects of 128 bytes.
func BenchmarkCommit(b *testing.B) {
	for _, machines := range []int{1, 3} {
		for _, writes := range []int{1, 4} {
			b.Run(fmt.Sprintf("%d/f=%d", writes, machines-1), func(b *testing.B) {
				eachSet(b, machines, 100, func(b *testing.B, m *txn.Machine, pick func() region.Ptr) {
					ctx := context.Background()
					b.ReportAllocs()
					for b.Loop() {
						if err := commit(ctx, m, pick, writes); err != nil {
							b.Fatal(err)
						}
					}
					report(b, 1)
				})
			})
		}
	}
}

func commit(ctx context.Context, m *txn.Machine, pick func() region.Ptr, writes int) error {
	t := m.Begin()
	defer t.Abort()
	for range writes {
		p, err := t.Write(pick())
		if err != nil {
			return err
		}
		p[0]++
	}
	return t.Commit(ctx)
}

// keys is how many keys the large indexes hold.
func keys() int {
	if n, err := strconv.Atoi(os.Getenv("FARMSQL_BENCH_KEYS")); err == nil {
		return n
	}
	if testing.Short() {
		return 10_000
	}
	return 1_000_000
}

// nearKeys is how many keys stay in the cache.
const nearKeys = 1000

// key is the i-th key: 16 bytes that are spread over the key space.
func key(b []byte, i uint64) []byte {
	b = binary.BigEndian.AppendUint64(b[:0], i*0x9e3779b97f4a7c15)
	return binary.BigEndian.AppendUint64(b, i)
}

func BenchmarkHash(b *testing.B) {
	value := make([]byte, 32)
	for _, set := range []struct {
		name string
		n    int
	}{{"near", nearKeys}, {"far", keys()}} {
		b.Run(set.name, func(b *testing.B) {
			m := cluster(b, 1).Machine(0)
			var anchor region.Ptr
			batch(b, m, func(t *txn.Tx) (err error) {
				anchor, err = hash.Create(t, hash.Config{ValueBytes: len(value)}, 0)
				return err
			})
			table := hash.Open(m, anchor)
			fill(b, m, set.n, func(t *txn.Tx, k []byte) error { return table.Insert(t, k, value) })
			b.Run("lookup", func(b *testing.B) {
				rng, k, dst := rand.New(rand.NewPCG(3, 4)), make([]byte, 16), make([]byte, 64)
				b.ReportAllocs()
				for b.Loop() {
					if _, ok, err := table.Lookup(key(k, rng.Uint64N(uint64(set.n))), dst); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				report(b, 1)
			})
			b.Run("lookup32", func(b *testing.B) { lookupMany(b, table, set.n) })
			b.Run("insert", func(b *testing.B) {
				insertNew(b, m, func(t *txn.Tx, k []byte) error { return table.Insert(t, k, value) })
			})
		})
	}
}

// lookupMany looks up 32 keys at once. It reports figures for one key.
func lookupMany(b *testing.B, table *hash.Table, n int) {
	const together = 32
	rng, keys := rand.New(rand.NewPCG(3, 4)), make([][]byte, together)
	for i := range keys {
		keys[i] = make([]byte, 16)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%together > 0 {
			continue
		}
		for k := range keys {
			key(keys[k], rng.Uint64N(uint64(n)))
		}
		if err := table.LookupMany(keys, func(_ int, _ []byte, ok bool) {
			if !ok {
				b.Error("a key is not there")
			}
		}); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 1)
}

func BenchmarkBTree(b *testing.B) {
	for _, set := range []struct {
		name string
		n    int
	}{{"near", nearKeys}, {"far", keys()}} {
		b.Run(set.name, func(b *testing.B) {
			c := cluster(b, 1)
			m := c.Machine(0)
			var anchor region.Ptr
			batch(b, m, func(t *txn.Tx) (err error) {
				anchor, err = btree.Create(t, btree.Config{}, 0)
				return err
			})
			tree := btree.Open(m, anchor)
			fill(b, m, set.n, func(t *txn.Tx, k []byte) error { return tree.Insert(t, k, c.Root()) })
			b.Run("lookup", func(b *testing.B) {
				rng, k := rand.New(rand.NewPCG(3, 4)), make([]byte, 16)
				b.ReportAllocs()
				for b.Loop() {
					if _, ok, err := tree.Lookup(key(k, rng.Uint64N(uint64(set.n)))); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				report(b, 1)
			})
			b.Run("scan100", func(b *testing.B) { scan(b, m, tree, set.n) })
			b.Run("insert", func(b *testing.B) {
				insertNew(b, m, func(t *txn.Tx, k []byte) error { return tree.Insert(t, k, c.Root()) })
			})
		})
	}
}

// scan reads 100 keys in a transaction of its own.
func scan(b *testing.B, m *txn.Machine, tree *btree.Tree, n int) {
	rng, k, ctx := rand.New(rand.NewPCG(3, 4)), make([]byte, 16), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		t := m.Begin()
		cursor := tree.Scan(t, key(k, rng.Uint64N(uint64(n))), nil, false)
		for range 100 {
			if _, _, ok, err := cursor.Next(); err != nil {
				b.Fatal(err)
			} else if !ok {
				break
			}
		}
		if err := t.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 1)
}

// fill inserts the first n keys.
func fill(b *testing.B, m *txn.Machine, n int, insert func(*txn.Tx, []byte) error) {
	k := make([]byte, 16)
	for i := 0; i < n; {
		first := i
		batch(b, m, func(t *txn.Tx) error {
			for i = first; i < min(first+200, n); i++ {
				if err := insert(t, key(k, uint64(i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// fresh counts the keys that insertNew has used, far from those of fill.
var fresh uint64 = 1 << 40

// insertNew inserts a key that is not there, in a transaction of its own.
func insertNew(b *testing.B, m *txn.Machine, insert func(*txn.Tx, []byte) error) {
	k, ctx := make([]byte, 16), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		fresh++
		t := m.Begin()
		if err := insert(t, key(k, fresh)); err != nil {
			b.Fatal(err)
		}
		if err := t.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 1)
}
