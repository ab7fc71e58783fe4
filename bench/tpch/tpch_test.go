package tpch

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench/shapes"
)

// tiny is a run that only shows that all works.
var tiny = Config{Scale: scaleMin, Rounds: roundsMin, Patience: time.Minute, Seed: 1}

// serve starts farmsql in this process, under a name.
func serve(t *testing.T, name string) *shapes.Server {
	t.Helper()
	db, err := farmsql.Open(farmsql.Config{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- db.Serve(context.WithoutCancel(t.Context()), l) }()
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return &shapes.Server{Name: name, Address: l.Addr().String(), Process: os.Getpid()}
}

// Two servers that are the same answer the same. A query that fails, or takes too long, has no figures.
func TestSameServers(t *testing.T) {
	if testing.Short() {
		t.Skip("executes all queries")
	}
	servers := [2]*shapes.Server{serve(t, "farmsql"), serve(t, "other")}
	all := append(queries(queriesText, tiny.Scale), "select nothing from region", "select sleep(5), tpch.region.* from tpch.region", "select rand()")
	cfg := tiny
	cfg.Patience = 3 * time.Second
	res, err := measure(t.Context(), cfg, servers, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Rows[:22] {
		if r.isTroubled() || r.Ratio <= 0 || r.Latency <= 0 || r.First <= 0 || r.Lowest > r.Ratio || r.Highest < r.Ratio {
			t.Errorf("%+v", r)
		}
	}
	err = res.Wrong()
	for _, says := range []string{"Q23: other fails: ", "nothing", "Q24: other fails: it had not ended after 3s", "Q25: WRONG, row 1: ", ": 3:\n"} {
		if err == nil || !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	var b bytes.Buffer
	if err := res.Print(&b); err != nil || !strings.Contains(b.String(), "| Q22 ") || !strings.Contains(b.String(), "scale 0.0005, 2 rounds") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A run ends with its context, and with a server that is not there.
func TestMeasureEnds(t *testing.T) {
	servers := [2]*shapes.Server{serve(t, "farmsql"), serve(t, "other")}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(2*time.Second, func() { cancel(errors.New("the test has seen enough")) })
	if _, err := measure(ctx, tiny, servers, []string{"select sleep(50), tpch.region.* from tpch.region"}); err == nil {
		t.Error("a run does not end with its context")
	}
	servers[1].Address = "127.0.0.1:1"
	if _, err := measure(t.Context(), tiny, servers, nil); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("error %v", err)
	}
}

// Equal seeds make equal rows. Rows meet the references between tables, and have what the queries look for.
func TestRows(t *testing.T) {
	of := func(seed uint64) (all []record) { return slices.Collect(newGenerator(0.001, seed).all()) }
	all := of(1)
	if !slices.Equal(all, of(1)) || slices.Equal(all, of(2)) {
		t.Error("rows do not depend on the seed alone")
	}
	texts := make(map[string]string)
	counts := make(map[string]int)
	for _, r := range all {
		texts[r.table] += r.values + "\n"
		counts[r.table]++
	}
	for table, n := range map[string]int{"region": 5, "nation": 25, "supplier": 10, "part": 200, "partsupp": 800, "customer": 150, "orders": 1500} {
		if counts[table] != n {
			t.Errorf("%d rows of %s, want %d", counts[table], table, n)
		}
	}
	if n := counts["lineitem"]; n < 5500 || n > 6500 {
		t.Errorf("%d lines", n)
	}
	for table, has := range map[string][]string{
		"supplier": {"Customer", "Complaints"}, "orders": {"special packages requests", "'F'", "'P'", "'O'"}, "lineitem": {"'R'", "'A'", "'N'"},
		"part": {"green", "BRASS", "Brand#23"}, "customer": {"BUILDING", ", -"},
	} {
		for _, word := range has {
			if !strings.Contains(texts[table], word) {
				t.Errorf("no %s in %s", word, table)
			}
		}
	}
	for range newGenerator(0.02, 1).all() { // texts of all lengths
	}
	for range newGenerator(0.001, 1).all() {
		break // a range that ends early ends the generator
	}
}

func TestDifference(t *testing.T) {
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }
	of := func(column string, isDouble bool, values ...sql.NullString) *answer {
		a := &answer{columns: []string{column}, isDouble: []bool{isDouble}}
		for _, v := range values {
			a.rows = append(a.rows, []sql.NullString{v})
		}
		return a
	}
	null := sql.NullString{}
	for _, c := range []struct {
		a, b *answer
		says string
	}{
		{of("x", false, text("1.0"), null), of("x", false, text("1.0"), null), ""},
		{of("x", true, text("0.1")), of("x", false, text("0.10000000001")), ""},
		{of("x", true, text("0.1")), of("x", true, text("0.1001")), "row 1: 0.1 (one) and 0.1001 (other)"},
		{of("x", false, text("0.1")), of("x", false, text("0.10")), "row 1: 0.1 (one) and 0.10 (other)"},
		{of("x", true, text("a")), of("x", true, text("b")), "row 1"},
		{of("x", true, null), of("x", true, text("0")), "row 1: NULL (one) and 0 (other)"},
		{of("x", false, null), of("x", false), "1 rows (one) and 0 (other)"},
		{of("x", false), of("y", false), "columns [x] (one) and [y] (other)"},
	} {
		if d := difference(c.a, c.b, "one", "other"); (d == "") != (c.says == "") || !strings.HasPrefix(d, c.says) {
			t.Errorf("%q, want %q", d, c.says)
		}
	}
}

func TestSlow(t *testing.T) {
	res := &Result{Rows: []Row{{Query: 1, Ratio: 0.3}, {Query: 2, Ratio: 0.4}, {Query: 3}}}
	if all := res.Slow(); !slices.Equal(all, []int{1}) {
		t.Error(all)
	}
	if m := res.Mean(); m < 0.34 || m > 0.35 {
		t.Error(m)
	}
	if m := new(Result).Mean(); m != 0 {
		t.Error(m)
	}
}
