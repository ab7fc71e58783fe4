package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Compiled statements with conditions beyond a key, or with joins, return the same as when they are
// planned.
func TestCompiledJoins(t *testing.T) {
	p := newPair(t)
	p.create()
	p.must(
		"SELECT c FROM t WHERE id=5 AND k=5", "SELECT c FROM t WHERE id=5 AND k=4", "SELECT x.c FROM t x WHERE id=5", "SELECT x.c FROM t AS x WHERE x.id = 5 AND x.k >= 2",
		"SELECT id FROM t WHERE id = 7 AND k <= 6 AND k > -1 AND 2 < k", "SELECT pad FROM t WHERE id = 3 AND c = 'k'", "SELECT pad FROM t WHERE id = 3 AND c = 'K'",
		"SELECT id FROM t WHERE id = 3 AND pad = 'y'", "SELECT id FROM t WHERE id = 5 AND pad = 'x'", "SELECT v FROM u WHERE a = 1 AND b > 10", "SELECT v, b FROM u WHERE a = 1 AND b > 3 AND b < 30 ORDER BY v",
		"SELECT SUM(v) FROM u WHERE a = 1 AND b <= 20", "SELECT * FROM u WHERE d = 'd5' AND a BETWEEN -2 AND 0", "SELECT w FROM h WHERE id = 4 AND w = 'W14'", "SELECT w FROM h WHERE id = 4 AND w = 'w14'",
		"SELECT f.z, p.x FROM f, p WHERE f.a = 3 AND f.b = 9 AND f.p = p.id AND p.id = 4", "SELECT f.z, q.x FROM f JOIN p AS q ON q.id = 5 WHERE f.a = 5 AND f.b = 11", "SELECT * FROM p JOIN f ON f.a = p.id WHERE p.id = 3",
		"SELECT f.* FROM p, f WHERE f.a = p.id AND 3 = p.id AND f.b >= 15 AND p.x = 0", "SELECT SUM(f.z), AVG(z) FROM p INNER JOIN f ON f.a = p.id AND f.z > 5 WHERE p.id = 3", "SELECT DISTINCT p.x FROM p, f WHERE f.a = p.id AND p.id = 3 ORDER BY p.x",
		"SELECT t.c, u.v, n.x FROM t, u, n WHERE t.id = 5 AND u.a = 2 AND u.b = 4 AND n.s = 's7'", "SELECT x.c, y.c FROM t x, t y WHERE x.id = 5 AND y.id = 6", "SELECT x.c, y.c AS z FROM t x JOIN t y ON x.id = y.id WHERE y.id = 6",
		"SELECT p.x, h.x FROM p, h WHERE p.id = h.id AND p.id = 6", "SELECT p.x FROM p, f WHERE f.a = p.id AND p.id = 3000", "SELECT t.c FROM t, p WHERE t.id = 4 AND p.s = 's4' FOR UPDATE", "SELECT p.x FROM p, n WHERE p.id = 5 AND n.s = p.s AND p.s = 's5'", "SELECT t.c FROM d2.t, d2.p WHERE t.id = 4 AND p.s = 's4'",
	)
	for _, q := range []string{
		"SELECT f.z FROM f, p WHERE f.a = 3 AND f.b = 9 AND f.p = p.id", "SELECT * FROM p JOIN f ON f.a = p.id WHERE p.x = 1", "SELECT * FROM p LEFT JOIN f ON f.a = p.id AND f.b = 4 WHERE p.id = 3", "SELECT c FROM t WHERE id=5 AND id=6",
		"SELECT x.c FROM t x, t y WHERE x.id = 5 AND y.k = 2 AND x.k = y.k AND y.id <> 7", "SELECT z FROM f JOIN ff USING (z) WHERE f.a = 1", "SELECT p.x FROM p NATURAL JOIN h WHERE p.id = 5 AND h.id = 5", "SELECT x FROM p, h WHERE p.id = 5 AND h.id = 5",
		"SELECT c FROM t WHERE id = 5 AND nosuch = 1", "SELECT c FROM t x WHERE t.id = 5", "SELECT u.v FROM u, p WHERE u.a = 1 AND p.y = 2", "SELECT c FROM t WHERE id = 5 AND c > 'a'",
		"SELECT t.c FROM t, p WHERE t.id = p.id AND t.id = 4 AND p.id = 4", "SELECT c FROM t WHERE id = 5 AND k < 99999999999", "SELECT c FROM t WHERE id = 5 AND k = 'a'", "SELECT t.c FROM t, p x, p X WHERE t.id = 5 AND x.id = 4", "SELECT c FROM t WHERE id = 5 AND k = c", "SELECT c FROM t WHERE id = 5 AND (k = 2 OR k = 5)",
		"SELECT t.c FROM t, nosuch WHERE t.id = 5 AND nosuch.id = 5", "SELECT t.c FROM t IGNORE INDEX (k) WHERE t.id = 5 AND k = 5", "SELECT j FROM u WHERE a = 1 AND b = 3 AND f = 5", "SELECT t.c FROM (t, p) WHERE t.id = 5 AND p.id = 5", "SELECT t.c FROM t STRAIGHT_JOIN p WHERE t.id = 5 AND p.id = 5",
	} {
		for range 3 {
			if p.run(q) {
				t.Errorf("compiled: %s", q)
			}
		}
	}
	for _, q := range []string{"BEGIN", "UPDATE p SET x = 77 WHERE id = 3", "SELECT * FROM p JOIN f ON f.a = p.id WHERE p.id = 3", "DELETE FROM f WHERE a = 3 AND b = 9", "SELECT * FROM p JOIN f ON f.a = p.id WHERE p.id = 3", "ROLLBACK", "SELECT * FROM p JOIN f ON f.a = p.id WHERE p.id = 3"} {
		p.run(q)
	}
}

// A join is compiled anew when any of its tables has changed.
func TestCompiledJoinAfterDDL(t *testing.T) {
	p := newPair(t)
	p.create()
	reads := []string{"SELECT * FROM p JOIN f ON f.a = p.id WHERE p.id = 3", "SELECT SUM(f.z) FROM p JOIN f ON f.a = p.id WHERE p.id = 3", "SELECT q.x FROM p q WHERE q.id = 3 AND y = 3"}
	p.must(reads...)
	for _, q := range []string{"ALTER TABLE f ADD COLUMN e INT FIRST", "ALTER TABLE p ADD COLUMN e INT FIRST", "ALTER TABLE f MODIFY z BIGINT", "CREATE INDEX za ON f (z, a)", "ALTER TABLE p MODIFY x VARCHAR(10)"} {
		p.run(q)
		for range 2 {
			for _, r := range reads {
				p.run(r)
			}
		}
		p.must(reads...)
	}
	p.run("CREATE INDEX other ON f (a, z)")
	for range 2 {
		if p.run(reads[0]) {
			t.Errorf("compiled with a choice of two indexes")
		}
	}
}

// Random joins and conditions.
func TestCompiledJoinsRandom(t *testing.T) {
	p := newPair(t)
	texts := []string{"'1'", "'１'", "'a'", "'A'", "'á'", "''", "'2'", "NULL"}
	for _, name := range []string{"x", "y"} {
		p.run("CREATE TABLE " + name + " (a INT, b BIGINT UNSIGNED, l TINYINT, s VARCHAR(10) COLLATE utf8mb4_0900_ai_ci, w CHAR(10) COLLATE utf8mb4_bin, v VARBINARY(10), PRIMARY KEY (a, b), UNIQUE KEY (b, a))")
		for i := range 24 {
			p.run(fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, %s, %s, %[5]s)", name, i%4, i/4, i%5-2, texts[i%8], texts[i*5%8]))
		}
	}
	g := generator{rand.New(rand.NewPCG(5, 6))}
	value := map[string]func() string{
		"a": func() string { return g.pick("0", "1", "2", "3", "-1", "99999999999", "'1'", "NULL") }, "b": func() string { return g.pick("0", "1", "2", "3", "4", "5", "-1", "1.5") },
		"l": func() string { return g.pick("0", "1", "2", "-1", "-2", "127", "128", "NULL") },
		"s": func() string { return g.pick(texts...) }, "w": func() string { return g.pick(append(texts, "'a '")...) }, "v": func() string { return g.pick(texts...) },
	}
	condition := func(table string) string {
		column := g.pick("a", "b", "l", "l", "s", "w", "v")
		op := g.pick("=", "=", "<", "<=", ">", ">=")
		if strings.Contains("swv", column) && g.IntN(8) > 0 {
			op = "="
		}
		if g.IntN(5) == 0 {
			return value[column]() + " " + op + " " + table + "." + column
		}
		return table + "." + column + " " + op + " " + value[column]()
	}
	for range 1500 {
		q := "SELECT " + g.pick("*", "x.*", "x.l, x.s", "SUM(x.l)", "DISTINCT x.s, x.w", "x.v AS y, x.a") + " FROM x"
		var where []string
		if g.IntN(2) == 0 {
			q += ", y"
			where = append(where, g.pick("x.a = y.a", "x.a = y.a AND y.b = x.b", "y.a = 1", "y.a = 1 AND y.b = 2", "y.b = x.b AND y.a = 2", "x.l = y.l", "x.s = y.s"))
			for range g.IntN(2) {
				where = append(where, condition("y"))
			}
		}
		where = append(where, g.pick("x.a = ", "x.a = ", "x.l = ")+g.pick("0", "1", "2", "3"))
		if g.IntN(2) == 0 {
			where = append(where, "x.b = "+value["b"]())
		}
		for range g.IntN(3) {
			where = append(where, condition("x"))
		}
		q += " WHERE " + strings.Join(where, " AND ") + g.pick("", "", " ORDER BY x.l", " FOR UPDATE")
		if g.IntN(3) > 0 {
			p.run(q)
		}
		p.run(q)
	}
	t.Logf("%d of %d statements ran compiled", p.done, p.all)
	if p.done < p.all/10 {
		t.Errorf("only %d of %d statements ran compiled", p.done, p.all)
	}
}
