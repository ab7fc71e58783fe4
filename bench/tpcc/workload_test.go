package tpcc

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench"
)

// reduced is a scale for tests.
var reduced = Config{Warehouses: 2, Customers: 30, Items: 100, Seed: 1}

// open returns a target with the loaded workload.
func open(t testing.TB, target bench.TargetConfig, cfg Config) (*bench.Target, *Workload) {
	t.Helper()
	ctx := context.Background()
	tg, err := bench.Open(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := New(tg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Load(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return tg, w
}

// run runs the mix, and requires that each kind of transaction has run.
func run(t *testing.T, tg *bench.Target, w *Workload, o bench.Options) *bench.Result {
	t.Helper()
	o.AnyBuild = true
	res, err := bench.Run(context.Background(), tg, w, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range res.Kinds {
		if k.Count == 0 {
			t.Errorf("no %s", k.Name)
		}
	}
	return res
}

func TestLoadedIsConsistent(t *testing.T) {
	_, w := open(t, bench.TargetConfig{}, reduced)
	if err := w.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A check finds the orders that clients have entered, not those of Load.
func TestCommitted(t *testing.T) {
	for _, api := range []bench.API{bench.Native, bench.SQL} {
		tg, w := open(t, bench.TargetConfig{API: api}, reduced)
		if err := w.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kind, n := w.Committed(); kind != kindNewOrder || n != 0 {
			t.Errorf("%s: %d of %s after loading", api, n, kindNames[kind])
		}
		entered := run(t, tg, w, bench.Options{Transactions: 300, Seed: 1}).Kinds[kindNewOrder]
		rolledBack := int(math.Round(entered.MissedPart * float64(entered.Count)))
		if _, n := w.Committed(); n != int(entered.Count)-rolledBack {
			t.Errorf("%s: %d orders, of %d entered and %d rolled back", api, n, entered.Count, rolledBack)
		}
	}
}

func TestNative(t *testing.T) {
	tg, w := open(t, bench.TargetConfig{}, reduced)
	res := run(t, tg, w, bench.Options{Threads: 2, Transactions: 500, Seed: 1})
	if part := res.Kinds[kindNewOrder].MissedPart; part == 0 || part > 0.05 {
		t.Errorf("%.2f %% of New-Order rolled back, want about 1", 100*part)
	}
	// The clients of a second run differ from the first run's.
	run(t, tg, w, bench.Options{Threads: 2, Transactions: 200, Seed: 2})
}

func TestNativeOnThreeMachines(t *testing.T) {
	cfg := reduced
	cfg.Warehouses = 4
	tg, w := open(t, bench.TargetConfig{Machines: 3, Replicas: 2}, cfg)
	res := run(t, tg, w, bench.Options{Transactions: 300, Seed: 1})
	if res.Reads.Remote == 0 {
		t.Error("nothing was read from another machine")
	}
	if res.Reads.Local < 5*res.Reads.Remote {
		t.Errorf("%.1f local and %.1f remote reads a transaction: warehouses are not at their machines", res.Reads.Local, res.Reads.Remote)
	}
}

func TestSQL(t *testing.T) {
	tg, w := open(t, bench.TargetConfig{API: bench.SQL}, small)
	run(t, tg, w, bench.Options{Threads: 2, Transactions: 100, Seed: 1})
	ctx := context.Background()
	if err := w.Load(ctx, nil); err == nil {
		t.Fatal("loaded over what there is")
	}
	cfg := small
	cfg.Drop = true
	again, err := New(tg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Load(ctx, nil), again.Check(ctx)); err != nil {
		t.Fatal(err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for _, cfg := range []Config{{Warehouses: -1}, {Warehouses: 1 << 24}, {Customers: 9}, {Customers: 3001}, {Items: 19}, {Items: 100_001}} {
		if _, err := New(nil, cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestScaleSaysThatItIsReduced(t *testing.T) {
	whole, less := Config{Warehouses: 3}, reduced
	if err := errors.Join(whole.validate(), less.validate()); err != nil {
		t.Fatal(err)
	}
	if s := whole.scale(); s.N != 3 || s.Unit != "warehouses" {
		t.Errorf("the specification's scale is %+v", s)
	}
	if s := less.scale(); s.N != 2 || !strings.Contains(s.Unit, "reduced: 30 customers a district, 100 items") {
		t.Errorf("a reduced scale is %+v", s)
	}
}
