package kv

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// loaded returns the benchmark on a small target.
func loaded(t *testing.T, target bench.TargetConfig, cfg Config) *Workload {
	t.Helper()
	target.Workers, target.RegionSize, target.LogSize = 1, 32*farmsql.MiB, farmsql.MiB
	opened, err := bench.Open(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg.Seed = 3
	w, err := New(opened, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, w *Workload, threads, each int) *bench.Result {
	t.Helper()
	res, err := bench.Run(t.Context(), w.target, w, bench.Options{Threads: threads, Transactions: each, Seed: 5, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if part := 100 * float64(res.Kinds[update].Count) / float64(res.Total.Count); math.Abs(part-float64(w.cfg.Updates)) > 3 {
		t.Errorf("%.1f %% updates, want %d", part, w.cfg.Updates)
	}
	return res
}

// NSDI'14 section 4.2: at 90 % occupancy and H = 8 a lookup from another machine is
// 1.04 reads.
func TestNative(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Zipf: 0.99, Updates: 20}, {Neighbourhood: 16, ValueBytes: 112, Updates: 50}, {Occupancy: 50, Lookups: lookup.OneTwoSided, Updates: 5},
		{Neighbourhood: 6, Updates: 20}, {Neighbourhood: 2, Lookups: lookup.OneTwoSided, Updates: 5}, {ValueBytes: 500, InlineBytes: 8, Updates: 20},
	} {
		cfg.Keys = 8000
		w := loaded(t, bench.TargetConfig{Machines: 2, Replicas: 1}, cfg)
		run(t, w, 2, 1000) // the directories
		res := run(t, w, 2, 4000)
		if cfg.Updates == 0 {
			if reads := (res.Reads.Local/2 + res.Reads.Remote); reads < 0.9 || reads > 1.15 {
				t.Errorf("%.3f local and %.3f remote reads for a lookup", res.Reads.Local, res.Reads.Remote)
			}
		}
		s := w.store.(*nativeStore)
		shards := s.tables[0].Stats().Shards
		full := 100 * float64(w.cfg.Keys) / float64(shards*s.bucketsOfShard()*w.cfg.Neighbourhood/2)
		if math.Abs(full-float64(w.cfg.Occupancy)) > 1 {
			t.Errorf("%.1f %% full, want %d: %d keys in %d shards", full, w.cfg.Occupancy, w.cfg.Keys, shards)
		}
		if ratio := float64(w.cfg.Keys) / 8000; ratio > 1.5 || ratio < 0.66 {
			t.Errorf("%d keys", w.cfg.Keys)
		}
	}
}

// Keys that are looked up together count one by one.
func TestMany(t *testing.T) {
	const batch, calls = 50, 20
	w := loaded(t, bench.TargetConfig{Machines: 2}, Config{Keys: 8000, Batch: batch})
	if res := run(t, w, 2, calls); res.Total.Count != 2*2*calls*batch {
		t.Errorf("%d lookups", res.Total.Count)
	}
	if name := w.Name(); name != "key-value, uniform keys, lookups of 50" {
		t.Error(name)
	}
	catchBroken(t, w)
}

// catchBroken breaks a pair, and then removes it. Lookups must notice both.
func catchBroken(t *testing.T, w *Workload) {
	s := w.store.(*nativeStore)
	key := fillKey(make([]byte, keyBytes), 7)
	for name, change := range map[string]func(t *txn.Tx) error{
		"torn": func(t *txn.Tx) error { return s.tables[0].Put(t, key, make([]byte, w.cfg.ValueBytes)) },
		"gone": func(t *txn.Tx) error { _, err := s.tables[0].Delete(t, key); return err },
	} {
		if err := w.target.Machine(0).Run(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		c, err := w.NewClient(t.Context(), &bench.Thread{Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; err == nil && n < 100_000; n++ {
			_, err = c.Do(t.Context())
		}
		if !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSQL(t *testing.T) {
	run(t, loaded(t, bench.TargetConfig{API: bench.SQL}, Config{Keys: 500, Updates: 20, Zipf: 0.5}), 2, 500)
}

func TestDrop(t *testing.T) {
	w := loaded(t, bench.TargetConfig{API: bench.SQL}, Config{Keys: 10})
	if err := w.Load(t.Context(), nil); err == nil {
		t.Error("loaded into a database that is there")
	}
	w.cfg.Drop = true
	if err := errors.Join(w.Load(t.Context(), nil), w.Check(t.Context())); err != nil {
		t.Error(err)
	}
}

// A lookup that meets broken data catches them, and so does the check.
func TestBrokenData(t *testing.T) {
	value := func(i int) []byte { return fillValue(make([]byte, 32), i, 1) }
	torn := value(7)
	torn[31]++
	key := func(i int) []byte { return fillKey(make([]byte, keyBytes), i) }
	for name, change := range map[string]func(s *nativeStore, t *txn.Tx) error{
		"gone":     func(s *nativeStore, t *txn.Tx) error { _, err := s.tables[0].Delete(t, key(7)); return err },
		"torn":     func(s *nativeStore, t *txn.Tx) error { return s.tables[0].Put(t, key(7), torn) },
		"another":  func(s *nativeStore, t *txn.Tx) error { return s.tables[0].Put(t, key(7), value(8)) },
		"short":    func(s *nativeStore, t *txn.Tx) error { return s.tables[0].Put(t, key(7), value(7)[:24]) },
		"too many": func(s *nativeStore, t *txn.Tx) error { return s.tables[0].Put(t, key(70_000), value(70_000)) },
		"a word":   func(s *nativeStore, t *txn.Tx) error { return s.tables[0].Put(t, []byte("what"), value(7)) },
	} {
		w := loaded(t, bench.TargetConfig{}, Config{Keys: 100})
		s := w.store.(*nativeStore)
		if err := w.target.Machine(0).Run(t.Context(), func(t *txn.Tx) error { return change(s, t) }); err != nil {
			t.Fatal(err)
		}
		if err := w.Check(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
		_, err := bench.Run(t.Context(), w.target, w, bench.Options{Transactions: 2000, AnyBuild: true})
		if !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: run: %v", name, err)
		}
	}
	w := loaded(t, bench.TargetConfig{API: bench.SQL}, Config{Keys: 50})
	for _, statement := range []string{"UPDATE kv.pairs SET v = x'00' LIMIT 1", "DELETE FROM kv.pairs LIMIT 1"} {
		if _, err := w.target.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if err := w.Check(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", statement, err)
		}
		if _, err := bench.Run(t.Context(), w.target, w, bench.Options{Transactions: 2000, AnyBuild: true}); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: run: %v", statement, err)
		}
	}
}

// NSDI'14 figure 11: the share of keys and values in the memory of a table. It has 16 buckets of
// four slots, with one or two keys each.
func TestSpace(t *testing.T) {
	const (
		keys = 12
		// A bucket of 24 + 4*(4+16+32) bytes takes four lines. A bucket of hashes and pointers, of
		// 24 + 4*(4+8+16) bytes, takes three. There is one more bucket after the last.
		buckets = 17 * 64
		// A shard's header has 16 + 40*32 bytes: 48 on its first line and 62 on each of the 21
		// lines after it; there is a class of 22 lines. The anchor, of 56 + 32*8 bytes, takes six
		// lines.
		others = (22 + 6) * 64
		// A pair outside is an object of 8 + 16 + 32 bytes.
		outside = keys * 2 * 64
	)
	for _, machines := range []int{1, 2} {
		for inline, memory := range map[int]int64{32: 4*buckets + others, 1: 3*buckets + others + outside} {
			w := loaded(t, bench.TargetConfig{Machines: machines}, Config{Keys: keys, Occupancy: 20, InlineBytes: inline})
			if w.cfg.Keys != keys || w.store.(*nativeStore).buckets != 16 {
				t.Fatalf("%d keys in %d buckets", w.cfg.Keys, w.store.(*nativeStore).buckets)
			}
			want := bench.Space{PairBytes: keys * 48, MemoryBytes: memory, UsedPart: float64(keys*48) / float64(memory)}
			if got := run(t, w, 1, 10).Space; got == nil || *got != want {
				t.Errorf("values of up to %d bytes in slots, %d machines: %+v, want %+v", inline, machines, got, want)
			}
		}
	}
}

// Chains take memory, too.
func TestSpaceOfChains(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, Config{Keys: 1000, Occupancy: 90})
	s := w.store.(*nativeStore)
	shards := s.buckets / s.bucketsOfShard()
	const bucket, header, anchor = 4 * 64, 22 * 64, 6 * 64 // as above
	const block = 3 * 64                                   // of 24 + 2*(4+48) bytes
	chains := int(s.memory) - (s.buckets+shards)*bucket - shards*header - anchor
	if chains%block != 0 {
		t.Errorf("%d bytes of chains, in blocks of %d", chains, block)
	}
	if share := 100 * float64(chains/block) / float64(w.cfg.Keys); share < 1 || share > 8 {
		t.Errorf("chains have %d blocks for %d pairs", chains/block, w.cfg.Keys)
	}
}

// A table that has grown is less full than the benchmark states.
func TestGrown(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, Config{Keys: 1000})
	s := w.store.(*nativeStore)
	if err := s.tables[0].Reserve(t.Context(), 4*s.slots()); err != nil {
		t.Fatal(err)
	}
	if err := s.full(); err == nil || !strings.Contains(err.Error(), "less than 90 % full") {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{
		{Keys: -1}, {ValueBytes: 31}, {ValueBytes: 5000}, {Updates: 101}, {Zipf: 1}, {Zipf: -0.1}, {Zipf: math.NaN()},
		{Batch: -1}, {Batch: 1025}, {Batch: 2, Updates: 1},
		{Occupancy: 96}, {Neighbourhood: 7}, {Neighbourhood: 66}, {InlineBytes: -1}, {InlineBytes: 4001},
	} {
		if _, err := New(&bench.Target{}, cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	sql := loaded(t, bench.TargetConfig{API: bench.SQL}, Config{Keys: 1}).target
	if _, err := New(sql, Config{Batch: 2}); err == nil || !strings.Contains(err.Error(), "for the API") {
		t.Errorf("batches by SQL: %v", err)
	}
	for keys, want := range map[int]int{1: 14, 1000: 921, 1_000_000: 943_718, 10_000_000: 7_549_747, 12_000_000: 15_099_494} {
		w := &Workload{cfg: Config{Keys: keys}.withDefaults()}
		if got := newNativeStore(w).keys(); got != want {
			t.Errorf("%d keys become %d, want %d", keys, got, want)
		}
	}
	for h, want := range map[int]int{2: 512, 4: 256, 6: 128, 8: 128, 16: 64, 64: 16} {
		w := &Workload{cfg: Config{Neighbourhood: h}.withDefaults()}
		if got := newNativeStore(w).bucketsOfShard(); got != want {
			t.Errorf("H = %d: %d buckets in a shard, want %d", h, got, want)
		}
	}
	w := loaded(t, bench.TargetConfig{}, Config{Keys: 1000, Zipf: 0.99, Updates: 5})
	if name, unit := w.Name(), w.Scale().Unit; name != "key-value, Zipf 0.99, 5 % updates" || unit != "keys (16+32 bytes, 90 % full, H = 8)" {
		t.Errorf("%q, %q", name, unit)
	}
}

// A value that is too long for a slot is in an object of its own, which costs one more READ.
func TestInlineBytes(t *testing.T) {
	reads := make(map[int]float64)
	for _, inline := range []int{108, 107} {
		w := loaded(t, bench.TargetConfig{Machines: 2, Replicas: 1}, Config{Keys: 2000, ValueBytes: 108, InlineBytes: inline, Occupancy: 50})
		if outside := strings.HasSuffix(w.Scale().Unit, ", values in objects of their own)"); outside != (inline < 108) {
			t.Errorf("%d bytes in slots: %s", inline, w.Scale().Unit)
		}
		run(t, w, 1, 1000) // the directories
		reads[inline] = run(t, w, 1, 2000).Reads.Remote
	}
	if ratio := reads[107] / reads[108]; math.Abs(ratio-2) > 0.1 {
		t.Errorf("%.3f remote reads of a value outside, %.3f of one in its slot", reads[107], reads[108])
	}
}
