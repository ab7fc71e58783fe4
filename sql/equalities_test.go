package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dolthub/go-mysql-server/sql/analyzer"

	"github.com/farmsql/farmsql/sql/compat"
)

// equalTables are three tables whose columns have the same names and types, among them
// strings that a collation takes for equal, and that are different numbers and bytes.
func equalTables(c *client) {
	c.exec("CREATE DATABASE d")
	c.s.SetCurrentDatabase("d")
	texts := []string{"'1'", "'１'", "'a'", "'A'", "'á'", "''", "'2'", "NULL"}
	for _, name := range []string{"x", "y", "z"} {
		c.exec("CREATE TABLE " + name + " (a INT, b INT, l BIGINT, s VARCHAR(10) COLLATE utf8mb4_0900_ai_ci, w VARCHAR(10) COLLATE utf8mb4_bin, v VARBINARY(10), PRIMARY KEY (a, b), KEY (b), KEY (s), KEY (w))")
		for i := range 24 {
			c.exec(fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, %s, %s, %[5]s)", name, i%6, i/6, i%3, texts[i%8], texts[i*5%8]))
		}
	}
}

// A join whose columns are all given reads no table as a whole.
func TestImpliedEqualities(t *testing.T) {
	c := newInstance(t).client("")
	equalTables(c)
	for query, want := range map[string]int{
		"SELECT x.l FROM x, y WHERE x.a = 2 AND x.b = 1 AND y.a = x.a AND x.b = y.b AND y.l < 3":                          2,
		"SELECT x.l FROM x JOIN y ON y.a = x.a AND y.b = x.b WHERE 2 = x.a AND x.b = 1":                                   2,
		"SELECT x.l FROM x JOIN y ON y.a = x.a AND y.b = x.b AND x.a = 2 AND x.b = 1":                                     2,
		"SELECT x.l FROM x JOIN y ON y.a = x.a AND y.b = x.b JOIN z ON z.a = y.a AND z.b = y.b WHERE z.a = 2 AND z.b = 1": 3,
		"SELECT x.l FROM x JOIN y ON y.s = x.s WHERE x.s = 'a'":                                                           2,
	} {
		_, rows, err := c.run("EXPLAIN PLAN " + query)
		if err != nil {
			t.Fatal(err)
		}
		plan := fmt.Sprint(rows)
		if n := strings.Count(plan, "filters: [{["); n != want {
			t.Errorf("%s: %d tables are read by keys that are given, want %d:\n%s", query, n, want, plan)
		}
	}
	for _, query := range []string{
		"SELECT x.l FROM x, y WHERE x.s = 1 AND y.s = x.s", "SELECT x.l FROM x, y WHERE x.s = x'61' AND y.s = x.s", "SELECT x.l FROM x, y WHERE x.w = 'a' AND y.s = x.w",
		"SELECT x.l FROM x, y WHERE x.a = '2x' AND y.a = x.a", "SELECT x.l FROM x LEFT JOIN y ON y.a = x.a AND x.a = 2", "SELECT x.l FROM x LEFT JOIN y ON y.b = x.b JOIN z ON x.a = z.a AND y.a = z.a AND x.a = 2", "SELECT x.l FROM x, y WHERE x.a = 2 OR y.a = x.a",
	} {
		_, rows, err := c.run("EXPLAIN PLAN " + query)
		if err != nil {
			t.Fatal(err)
		}
		if plan := fmt.Sprint(rows); strings.Contains(plan, "y.s = ") && strings.Count(plan, "y.s = ") > 1 || strings.Contains(plan, "y.a = 2") || strings.Contains(plan, "y.a = '2x'") {
			t.Errorf("%s: what does not follow is in\n%s", query, plan)
		}
	}
}

// withoutEqualities is a client of an engine whose rule is go-mysql-server's own.
func withoutEqualities(t *testing.T) *client {
	in := newInstance(t)
	for _, b := range in.e.gms.Analyzer.Batches {
		for i := range b.Rules {
			for _, r := range analyzer.OnceAfterDefault {
				if r.Id == b.Rules[i].Id && r.Id.String() == compat.MoveJoinConds {
					b.Rules[i].Apply = r.Apply
				}
			}
		}
	}
	return in.client("")
}

// A join has the same rows as without what follows from its conditions, and as with
// conditions that are wrapped so that nothing follows. If these two differ, the mistake is
// go-mysql-server's own: it makes some about outer joins, which are not in here.
func TestImpliedEqualitiesRandom(t *testing.T) {
	c, without := newInstance(t).client(""), withoutEqualities(t)
	equalTables(c)
	equalTables(without)
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	table := func() string { return pick("x", "y", "z") }
	condition := func() string {
		switch r.IntN(6) {
		case 0, 1:
			return table() + "." + pick("a", "b", "l") + " = " + table() + "." + pick("a", "b", "l")
		case 2:
			return table() + ".w = " + table() + ".w"
		case 3:
			return table() + "." + pick("a", "b", "l", "s") + " = " + pick("0", "1", "2", "'1'", "1.0")
		case 4:
			return table() + "." + pick("s", "w") + " = " + pick("'1'", "'a'", "'A'", "x'61'", "1", "''", "NULL")
		}
		return pick("1", "2", "'a'") + " = " + table() + "." + pick("a", "b", "s")
	}
	all, mistakes := 0, 0
	for range 250 {
		from, where := pick("x, y, z", "x JOIN y ON %s JOIN z ON z.a = y.a"), "TRUE"
		wrapped := where
		if strings.Contains(from, "%s") {
			from = fmt.Sprintf(from, pick("x.a = y.a", "x.w = y.w", "x.w = y.w AND x.l = y.l"))
		}
		for range 1 + r.IntN(5) {
			e := condition()
			where += " AND " + e
			wrapped += " AND (" + e + ") IS TRUE"
		}
		query := "SELECT x.a, x.b, y.a, y.b, z.a, z.b FROM " + from + " WHERE "
		got, want := sortedRows(t, c, query+where), sortedRows(t, without, query+where)
		if !slices.Equal(want, sortedRows(t, without, query+wrapped)) {
			mistakes++
			continue
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s\n%d rows, want %d", query+where, len(got), len(want))
		}
		all += len(got)
	}
	if all < 1000 || mistakes > 0 {
		t.Errorf("%d rows of joins, and %d that go-mysql-server is wrong about", all, mistakes)
	}
}

func sortedRows(t *testing.T, c *client, query string) (s []string) {
	_, rows, err := c.run(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, row := range rows {
		s = append(s, fmt.Sprint(row))
	}
	slices.Sort(s)
	return s
}
