package skiplist

import (
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/txn/lookup"
)

// BenchmarkLookups looks up keys at another machine, over each provider, by each way: keys whose nodes are cached, and keys
// that have to be found. Its processor time is that of both machines.
func BenchmarkLookups(b *testing.B) {
	keys := 10_000
	if testing.Short() {
		keys = 200
	}
	for _, way := range []testnet.Way{testnet.Local, overShm, testnet.TCP, testnet.Verbs} {
		b.Run(string(way), func(b *testing.B) {
			if way == testnet.Verbs && !testnet.HasCard(b) {
				b.Skip("no RDMA device")
			}
			c := open(b, way, 2, 1)
			fill(b, c.lists[0], keys)
			for _, w := range []lookup.Way{lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
				for _, state := range []string{"known", "unknown"} {
					b.Run(w.String()+"/"+state, func(b *testing.B) {
						c.use(b, w)
						benchmark(b, c.lists[1], keys, state == "known")
					})
				}
			}
		})
	}
}

// benchmark looks up random keys, which the cache knows or does not.
func benchmark(b *testing.B, l *List, keys int, isKnown bool) {
	r := rand.New(rand.NewPCG(1, 1))
	draw := func() []byte { return keyOf(r.IntN(keys/2) * 2) }
	if isKnown {
		for i := 0; i < keys; i += 2 {
			look(b, l, keyOf(i))
		}
	}
	before, asked, taken, n := l.m.Stats(), l.Asked(), cputime.Now(b), 0
	for b.Loop() {
		if !isKnown {
			l.cache.reset()
		}
		if _, ok, err := l.Lookup(ctx, draw()); err != nil || !ok {
			b.Fatal(ok, err)
		}
		n++
	}
	taken = cputime.Now(b) - taken
	b.ReportMetric(float64(taken.Nanoseconds())/float64(n), "cpu-ns/op")
	b.ReportMetric(float64(l.m.Stats().Sub(before).RemoteReads)/float64(n), "READs/op")
	b.ReportMetric(float64(l.Asked()-asked)/float64(n), "messages/op")
}
