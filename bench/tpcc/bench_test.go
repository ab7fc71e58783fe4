package tpcc

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/bench"
)

// Benchmarks of single kinds of transactions, for profiles. farmsql bench tpcc measures the mix.
func BenchmarkNewOrder(b *testing.B)    { benchmark(b, func(*random) int { return kindNewOrder }) }
func BenchmarkPayment(b *testing.B)     { benchmark(b, func(*random) int { return kindPayment }) }
func BenchmarkOrderStatus(b *testing.B) { benchmark(b, func(*random) int { return kindOrderStatus }) }
func BenchmarkStockLevel(b *testing.B)  { benchmark(b, func(*random) int { return kindStockLevel }) }
func BenchmarkMix(b *testing.B)         { benchmark(b, (*random).kind) }

// benchmark runs one client on one warehouse, with -short on a reduced one.
func benchmark(b *testing.B, kind func(*random) int) {
	if err := bench.Refuse(); err != nil {
		b.Skip(err)
	}
	cfg := Config{Seed: 1}
	if testing.Short() {
		cfg = reduced
	}
	ctx := context.Background()
	_, w := open(b, bench.TargetConfig{}, cfg)
	c, err := w.NewClient(ctx, &bench.Thread{Seed: 1, Number: 1})
	if err != nil {
		b.Fatal(err)
	}
	x := c.(*client)
	b.ReportAllocs()
	for b.Loop() {
		if err := x.enter(ctx, kind(x.random), 1); err != nil && !errors.Is(err, errUnusedItem) {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := errors.Join(c.Close(), w.Check(ctx)); err != nil {
		b.Fatal(err)
	}
}
