package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/store"
)

// The engine's own cost of a statement, compiled and planned: most of the latter
// is go-mysql-server's.
func BenchmarkStatements(b *testing.B) {
	// The memory of statements is counted, as in a server.
	in := openWith(b, farm.Config{RegionBytes: 64 << 20, LogBytes: 8 << 20}, Options{Memory: store.NewMemory(clock.System{}, 0, 8<<30)})
	defer in.close()
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))")
	const rows = 1000
	for i := range rows {
		c.exec(fmt.Sprintf("INSERT INTO t (k, c, pad) VALUES (%d, 'ccccccccccccccccccccccc', 'ppppppppp')", i))
	}
	for _, s := range []struct{ name, query string }{
		{"point-select", "SELECT c FROM t WHERE id = %d"},
		{"range-100", "SELECT c FROM t WHERE id BETWEEN %d AND %h"},
		{"sum-100", "SELECT SUM(k) FROM t WHERE id BETWEEN %d AND %h"},
		{"order-100", "SELECT c FROM t WHERE id BETWEEN %d AND %h ORDER BY c"},
		{"distinct-100", "SELECT DISTINCT c FROM t WHERE id BETWEEN %d AND %h ORDER BY c"},
		{"alias", "SELECT x.c FROM t AS x WHERE x.id = %d AND x.k >= 0"},
		{"join", "SELECT x.c, y.pad FROM t x JOIN t y ON x.id = y.id WHERE y.id = %d"},
		{"list-100", "SELECT c FROM t WHERE id IN (%l)"},
		{"lookup-join-100", "SELECT /*+ LOOKUP_JOIN(x, y) JOIN_ORDER(x, y) */ y.c FROM t x JOIN t y ON y.id = x.k WHERE x.id BETWEEN %d AND %h"},
		{"limit-1", "SELECT * FROM t WHERE id = %d LIMIT 1"},
		{"one", "SELECT 1"},
		{"top-of-index", "SELECT id, c FROM t WHERE k >= %d ORDER BY k, id LIMIT 10"},
		{"max", "SELECT MAX(k) FROM t"},
		{"or", "SELECT c FROM t WHERE id = %d OR k = 7"},
		{"count-100", "SELECT COUNT(*) FROM t WHERE id BETWEEN %d AND %h"},
		{"scan", "SELECT COUNT(*) FROM t WHERE pad = 'x' AND id <> %d"},
		{"update-range", "UPDATE t SET c = 'changed' WHERE id BETWEEN %d AND %h"},
		{"update-first", "UPDATE t SET pad = 'other' WHERE k >= %d ORDER BY k LIMIT 1"},
		{"update-index", "UPDATE t SET k = k + 1 WHERE id = %d"},
		{"update-non-index", "UPDATE t SET c = 'other' WHERE id = %d"},
		{"insert", "INSERT INTO t (k, c, pad) VALUES (%d, 'ccccccccccccccccccccccc', 'ppppppppp')"},
	} {
		for _, way := range []struct {
			name string
			run  func(query string) error
		}{
			{"compiled", func(q string) error { return c.execute(q) }},
			{"planned", func(q string) error { _, _, err := c.run(q); return err }},
		} {
			b.Run(s.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					id := 1 + i%(rows-99)
					if err := way.run(strings.NewReplacer("%d", strconv.Itoa(id), "%h", strconv.Itoa(id+99), "%l", listed(id%7, 100, "%d")).Replace(s.query)); err != nil {
						b.Fatal(err)
					}
					c.s.Settle()
				}
			})
		}
	}
}

// BenchmarkInsertMany inserts 100 rows with a statement, into a table of this machine and of another of
// three.
func BenchmarkInsertMany(b *testing.B) {
	here, other := machinesOf(b, farm.Config{Machines: 3, Replicas: 3, RegionBytes: 64 << 20, LogBytes: 8 << 20})
	here.client("").exec("CREATE DATABASE d")
	creator := here.client("d")
	for _, s := range []struct{ name, columns, row string }{
		{"key", "id INT PRIMARY KEY, c CHAR(20)", "(%, 'ccccccccccccccc')"},
		{"three-keys", "id INT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE, k INT, KEY (k)", "(%, 'u%', %)"},
	} {
		for _, on := range []struct {
			name string
			in   *instance
		}{{"here", here}, {"elsewhere", other}} {
			b.Run(s.name+"/"+on.name, func(b *testing.B) {
				creator.exec("DROP TABLE IF EXISTS t")
				creator.exec("CREATE TABLE t (" + s.columns + ")")
				c, m := on.in.client("d"), on.in.e.Store.Machine
				creator.exec("INSERT INTO t VALUES " + tuples(0, 1000, 1_000_000, s.row))
				b.ReportAllocs()
				before, n := m.Stats(), 0
				for b.Loop() {
					n++
					c.exec("INSERT INTO t VALUES " + tuples(n, 100, 7_000_000, s.row))
				}
				b.ReportMetric(float64(m.Stats().Sub(before).RoundTrips)/float64(n), "round-trips/op")
			})
		}
	}
}

// execute runs a statement compiled, if it can be, and makes nothing of its result.
func (c *client) execute(query string) error {
	x := c.s.Compiled(query, false, nil)
	if x.Compiled == nil {
		_, _, err := c.run(query)
		return err
	}
	_, err := c.s.Run(c.in.e.NewContext(context.Background(), c.s, gms.WithQuery(query)), x)
	if errors.Is(err, fast.ErrPlan) {
		_, _, err = c.run(query)
	}
	return err
}
