package test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/growth"
	"github.com/farmsql/farmsql/bench/tpcc"
)

// TestGrowth: a cluster grows from one machine to five, with one replica and, in another run, from one replica to three,
// and shrinks to three while clients run TPC-C at all of them. Measure fails if a consistency condition is violated, an acknowledged order is missing, or a client
// meets an error that a machine that stops or is evicted does not explain. Regions and primaries are even within 20 %, or
// within one region where that is more.
func TestGrowth(t *testing.T) {
	if !nightly {
		t.Skip("two minutes (FARMSQL_NIGHTLY=1)")
	}
	for name, replicas := range map[string]int{"one replica": 0, "to three replicas": 3} {
		t.Run(name, func(t *testing.T) { grow(t, replicas) })
	}
}

// grow lets a cluster of one machine and one replica grow, to another number of replicas unless that is 0, and shrink.
func grow(t *testing.T, replicas int) {
	t.Helper()
	c := growth.Config{
		Program: binary, Replicas: 1, Machines: 5, Back: 3, Resize: replicas, RegionSize: farmsql.MiB, Clients: 5, Seed: seedOf(t), AnyBuild: true,
		Lease:   150 * time.Millisecond, // regions begin to move 100 leases after the last machine has joined, or was evicted and is back
		Between: 300 * time.Millisecond,
	}
	res, err := growth.Measure(t.Context(), c, func(target *bench.Target) (bench.Workload, error) {
		return tpcc.New(target, tpcc.Config{Warehouses: 4, Customers: 60, Items: 500, Seed: c.Seed})
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	for _, e := range res.Evenness {
		mostlyEven(t, &e, "replicas", func(s growth.Share) int { return s.Replicas })
		mostlyEven(t, &e, "primaries", func(s growth.Share) int { return s.Primaries })
	}
	if len(res.Evenness) != 2 || res.Transactions == 0 {
		t.Errorf("%d looks at the machines, %d transactions", len(res.Evenness), res.Transactions)
	}
}

// mostlyEven requires that machines differ by 20 % of the mean at most, or by one.
func mostlyEven(t *testing.T, e *growth.Evenness, what string, of func(growth.Share) int) {
	t.Helper()
	by := func(a, b growth.Share) int { return cmp.Compare(of(a), of(b)) }
	least, most, sum := of(slices.MinFunc(e.Machines, by)), of(slices.MaxFunc(e.Machines, by)), 0
	for _, m := range e.Machines {
		sum += of(m)
	}
	if d := float64(most - least); d > max(1, growth.SpreadMost*float64(sum)/float64(len(e.Machines))) {
		t.Errorf("%s: from %d to %d: %v", what, least, most, e)
	}
}
