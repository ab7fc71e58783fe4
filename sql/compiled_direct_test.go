package sql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// isDirect reports whether a compiled statement runs directly with the present settings of the
// session.
func (c *client) isDirect(query string) bool {
	x := c.s.Compiled(query, false, nil)
	if x.Compiled == nil {
		return false
	}
	res, err := c.s.Run(c.in.e.NewContext(context.Background(), c.s, gms.WithQuery(query)), x)
	return err == nil && res.Values != nil
}

func (p *pair) createDirect() {
	p.t.Helper()
	p.run(`CREATE TABLE o (id INT PRIMARY KEY, g INT NOT NULL, s SMALLINT, u BIGINT UNSIGNED, b BIGINT, c CHAR(20), v VARCHAR(10) COLLATE utf8mb4_bin, m MEDIUMINT UNSIGNED, x TEXT, d DECIMAL(6,2), l VARCHAR(9) CHARACTER SET latin1, KEY (g))`)
	texts := []string{"'b'", "'B'", "NULL", "'a'", "''", "'ab'", "'ＡB'", "'Straße'", "'strasse'", "'日本'", "'b '"}
	for i := range 60 {
		number := []string{"NULL", "0", fmt.Sprint(i), fmt.Sprint(-i), "32767"}[i%5]
		large := []string{"18446744073709551615", "0", fmt.Sprint(i), "NULL"}[i%4]
		far := []string{"9223372036854775807", "9223372036854775806", "-1", "NULL"}[i%4]
		text := texts[i%len(texts)]
		p.run(fmt.Sprintf("INSERT INTO o VALUES (%d, %d, %s, %s, %s, %s, %s, %d, %s, %d.5, 'é')", i, i%4, number, large, far, text, texts[(i*7)%len(texts)], i%3, text, i))
	}
	for i := 60; i < 63; i++ { // texts that are only compared by go-mysql-server
		p.run(fmt.Sprintf("INSERT INTO o (id, g, c) VALUES (%d, 9, 'a\ufffd%d')", i, i%2))
	}
}

// Sorting, DISTINCT and SUM without a plan give the same rows as the plan.
func TestDirect(t *testing.T) {
	p := newPair(t)
	p.createDirect()
	for _, q := range []string{
		"SELECT c FROM o WHERE id = 5", "SELECT s, u, c, v, s FROM o WHERE id BETWEEN 0 AND 59", "SELECT x, m AS y FROM o WHERE g = 2", "SELECT c FROM o WHERE id BETWEEN 4 AND 5", "SELECT c FROM o WHERE id BETWEEN 5 AND 4",
		"SELECT c FROM o WHERE id BETWEEN 0 AND 59 ORDER BY c", "SELECT id, c FROM o WHERE id BETWEEN 0 AND 59 ORDER BY c DESC", "SELECT id FROM o WHERE id BETWEEN 0 AND 59 ORDER BY s, u DESC",
		"SELECT id, v FROM o WHERE id BETWEEN 0 AND 59 ORDER BY v", "SELECT id FROM o WHERE id BETWEEN 0 AND 59 ORDER BY m DESC, b, c", "SELECT id FROM o WHERE g = 1 ORDER BY x",
		"SELECT DISTINCT m FROM o WHERE id BETWEEN 0 AND 59", "SELECT DISTINCT s, m FROM o WHERE id BETWEEN 0 AND 59 ORDER BY m", "SELECT DISTINCT u FROM o WHERE g = 3", "SELECT DISTINCT b, u FROM o WHERE id BETWEEN 0 AND 59 ORDER BY u DESC, b",
		"SELECT DISTINCT c FROM o WHERE id BETWEEN 0 AND 9", "SELECT DISTINCT c FROM o WHERE id BETWEEN 0 AND 9 ORDER BY c DESC", "SELECT DISTINCT v, c FROM o WHERE id BETWEEN 0 AND 5 ORDER BY c",
		"SELECT SUM(s) FROM o WHERE id BETWEEN 0 AND 59", "SELECT SUM(s), SUM(m) AS k, SUM(s) FROM o WHERE g = 1", "SELECT SUM(b) FROM o WHERE id BETWEEN 0 AND 59", "SELECT SUM(b), SUM(id) FROM o WHERE g = 3",
		"SELECT SUM(s) FROM o WHERE id BETWEEN 100 AND 200",
	} {
		p.must(q)
		if !p.compiled.isDirect(q) {
			t.Errorf("not direct: %s", q)
		}
	}
	for _, q := range []string{
		"SELECT d FROM o WHERE id = 5", "SELECT c, l FROM o WHERE id = 5", "SELECT SUM(u) FROM o WHERE id BETWEEN 0 AND 59", "SELECT SUM(d) FROM o WHERE id BETWEEN 0 AND 59", "SELECT AVG(s) FROM o WHERE id BETWEEN 0 AND 59",
		"SELECT c FROM o WHERE id BETWEEN 0 AND 59 ORDER BY d", "SELECT DISTINCT d FROM o WHERE g = 1", "SELECT c FROM o WHERE id = 5 FOR UPDATE",
	} {
		p.run(q)
		p.run(q)
	}
	for _, q := range []string{"SELECT d FROM o WHERE id = 5", "SELECT SUM(u) FROM o WHERE id BETWEEN 0 AND 59", "SELECT DISTINCT c FROM o WHERE id BETWEEN 58 AND 70", "SELECT c FROM o WHERE id BETWEEN 58 AND 70 ORDER BY c", "SELECT c FROM o WHERE g = 9 ORDER BY c, id DESC"} {
		p.must(q)
		if p.compiled.isDirect(q) {
			t.Errorf("direct: %s", q)
		}
	}
}

// Orders and lists of columns at random, in transactions and outside.
func TestDirectRandom(t *testing.T) {
	p := newPair(t)
	p.createDirect()
	r := generator{rand.New(rand.NewPCG(9, 10))}
	const n = 600
	columns := []string{"id", "g", "s", "u", "b", "c", "v", "m", "x", "d", "l"}
	for i := range n {
		list := r.pick("", "", "DISTINCT ")
		for j := range 1 + r.IntN(3) {
			if j > 0 {
				list += ", "
			}
			list += r.pick(columns...)
		}
		q := "SELECT " + list + " FROM o WHERE " + r.pick(fmt.Sprintf("id BETWEEN %d AND %d", r.IntN(20), 20+r.IntN(45)), fmt.Sprintf("g = %d", r.IntN(5)))
		for j := range r.IntN(3) {
			q += []string{" ORDER BY ", ", "}[j] + r.pick(columns...) + r.pick("", " DESC")
		}
		p.run(q)
		p.run(q)
		switch i % 50 {
		case 10:
			p.run("BEGIN")
		case 20:
			p.run(fmt.Sprintf("UPDATE o SET s = %d WHERE id = %d", i, r.IntN(60)))
		case 30:
			p.run("COMMIT")
		case 40:
			p.run(r.pick("SET NAMES latin1", "SET NAMES utf8mb4", "SET character_set_results = NULL"))
		}
	}
	t.Logf("%d of %d statements ran compiled", p.done, p.all)
	if p.done < n {
		t.Errorf("only %d of %d statements ran compiled", p.done, p.all)
	}
}

// Rows are not sent directly while the session asks for another character set than the stored one;
// they are again once it asks for the stored one.
func TestDirectCharacterSets(t *testing.T) {
	p := newPair(t)
	p.createDirect()
	const q = "SELECT c FROM o WHERE id = 7"
	for set, direct := range map[string]bool{"utf8mb4": true, "latin1": false, "binary": true} {
		p.must(q)
		p.run("SET character_set_results = '" + set + "'")
		p.must(q)
		if p.compiled.isDirect(q) != direct {
			t.Errorf("%s: direct %v", set, !direct)
		}
	}
}

// If too many rows would be collected, the direct form is not used: the plan runs, or the statement is
// planned. SUM collects no rows, so it may be of any number of them.
func TestDirectLong(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE l (id INT PRIMARY KEY, k INT, c MEDIUMTEXT)")
	for i := range 2 {
		p.run("INSERT INTO l SELECT " + fmt.Sprint(i*600) + " + a.n * 30 + b.n, a.n, 'c' FROM (WITH RECURSIVE r (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 19) SELECT n FROM r) a, (WITH RECURSIVE r (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 29) SELECT n FROM r) b")
	}
	for i := range 2 {
		p.run(fmt.Sprintf("UPDATE l SET c = REPEAT('x', 600000) WHERE id = %d", i))
	}
	for q, direct := range map[string]bool{
		"SELECT SUM(k) FROM l WHERE id BETWEEN 0 AND 2000": true, "SELECT DISTINCT k FROM l WHERE id BETWEEN 0 AND 2000": false,
		"SELECT DISTINCT k FROM l WHERE id BETWEEN 0 AND 999": true, "SELECT k FROM l WHERE id BETWEEN 2 AND 1001": true, "SELECT DISTINCT c FROM l WHERE id BETWEEN 0 AND 1": false,
	} {
		p.must(q)
		if p.compiled.isDirect(q) != direct {
			t.Errorf("%s: direct %v", q, !direct)
		}
	}
}

// A transaction that has read a range directly conflicts with changes to the columns and rows that it has
// read, and with no others.
func TestDirectConflicts(t *testing.T) {
	in := newInstance(t)
	c, other := in.client(""), in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(20) NOT NULL)")
	for i := range 40 {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, 1, 'c')", i))
	}
	const q = "SELECT DISTINCT c FROM t WHERE id BETWEEN 10 AND 19 ORDER BY c"
	for _, tc := range []struct {
		change   string
		conflict bool
	}{
		{"UPDATE d.t SET k = k + 1 WHERE id = 15", false}, {"UPDATE d.t SET c = 'other' WHERE id = 25", false},
		{"UPDATE d.t SET c = 'other' WHERE id = 15", true}, {"DELETE FROM d.t WHERE id = 16", true}, {"INSERT INTO d.t VALUES (16, 1, 'c')", true},
	} {
		for range 2 {
			if _, _, _, err := c.compiled(q); err != nil {
				t.Fatal(err)
			}
		}
		c.exec("BEGIN")
		if !c.isDirect(q) {
			t.Fatal("not direct")
		}
		other.exec(tc.change)
		c.exec("UPDATE t SET k = 5 WHERE id = 1")
		if _, _, err := c.run("COMMIT"); myerr.IsConflict(err) != tc.conflict || err != nil && !tc.conflict {
			t.Errorf("%s: %v", tc.change, err)
		}
	}
}

// A stored row that is damaged is an error.
func TestDirectDamage(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT, c VARCHAR(30))")
	c.exec("INSERT INTO t VALUES (1, 5, 'twenty characters...')")
	const ends = row.HeaderBytes + 1 // where the first column's end is
	for _, q := range []string{"SELECT id, c FROM t WHERE id = 1", "SELECT id FROM t WHERE id BETWEEN 1 AND 2 ORDER BY c", "SELECT SUM(id) FROM t WHERE id BETWEEN 1 AND 2"} {
		for range 2 {
			if _, _, _, err := c.compiled(q); err != nil {
				t.Fatal(err)
			}
		}
		for name, damage := range map[string]func(b []byte){
			"its outline":                func(b []byte) { b[0] = 0xff },
			"a value that ends too far":  func(b []byte) { b[ends] = 200 },
			"an integer of twelve bytes": func(b []byte) { b[ends] = 12 },
		} {
			whole := c.changeRow(damage)
			if _, _, done, err := c.compiled(q); !done || !errors.Is(err, row.ErrCorrupt) {
				t.Errorf("%s, %s: %v, compiled %v", q, name, err, done)
			}
			c.changeRow(func(b []byte) { copy(b, whole) })
		}
	}
}

// changeRow changes the bytes of the only row of table d.t, and returns what they were.
func (c *client) changeRow(change func(b []byte)) (was []byte) {
	c.in.t.Helper()
	tx := c.in.cluster.Machine(0).Begin()
	defer tx.Abort()
	tbl, err := c.in.e.Store.Catalog.Table(tx, "d", "t")
	if err != nil {
		c.in.t.Fatal(err)
	}
	_, p, ok, err := c.in.e.Store.Access(&tbl.Primary).Scan(tx, nil, nil, false).Next()
	if err != nil || !ok {
		c.in.t.Fatal(ok, err)
	}
	b, err := tx.Write(p)
	if err != nil {
		c.in.t.Fatal(err)
	}
	was = bytes.Clone(b)
	change(b)
	if err := tx.Commit(context.Background()); err != nil {
		c.in.t.Fatal(err)
	}
	return was
}
