package sql

import (
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/fast"
)

// planned has go-mysql-server run a statement with values for its parameters, as
// its handler does when a client executes what it has prepared.
func (c *client) planned(query string, bound []fast.Value) (gms.Schema, []gms.Row, error) {
	ctx := c.in.e.NewContext(context.Background(), c.s, gms.WithQuery(query))
	exprs := make(map[string]sqlparser.Expr)
	for i, v := range bound {
		exprs["v"+strconv.Itoa(i+1)] = v.Expr()
	}
	schema, iter, _, err := c.in.e.GMS().QueryWithBindings(ctx, query, nil, exprs, nil)
	if err != nil {
		return nil, nil, c.failed(err)
	}
	var rows []gms.Row
	for {
		row, err := iter.Next(ctx)
		if err == io.EOF {
			return schema, rows, iter.Close(ctx)
		}
		if err != nil {
			err = c.failed(err)
			_ = iter.Close(ctx)
			return schema, rows, err
		}
		rows = append(rows, row)
	}
}

// bind runs a prepared statement both ways and compares all that a client sees.
func (p *pair) bind(query string, bound ...fast.Value) bool {
	p.t.Helper()
	c := p.compiled
	var schema gms.Schema
	var rows []gms.Row
	var err error
	x := c.s.Compiled(query, true, bound)
	done := x.Compiled != nil
	c.byPlan = false
	if done {
		schema, rows, done, err = c.runStatement(x, query)
	}
	if !done {
		schema, rows, err = c.planned(query, bound)
	}
	got := c.outcome(schema, rows, err)
	schema, rows, err = p.gms.planned(query, bound)
	if want := p.gms.outcome(schema, rows, err); got != want {
		p.t.Fatalf("%s with %+v (compiled: %v)\ngot\n%swant\n%s", query, bound, done, got, want)
	}
	done = done && !c.byPlan
	p.all++
	if done {
		p.done++
	}
	return done
}

// mustBind runs a prepared statement and says if it has not run compiled.
func (p *pair) mustBind(query string, bound ...fast.Value) {
	p.t.Helper()
	p.bind(query, bound...)
	if !p.bind(query, bound...) {
		p.t.Errorf("not compiled: %s with %+v", query, bound)
	}
}

func bytesValue(s string) fast.Value { return fast.Value{Text: s} }
func intValue(n int64) fast.Value    { return fast.Value{Number: n, IsNumber: true} }

// A binary key is found by exactly its bytes, even if they are not valid characters, and not by fewer
// or more bytes.
func TestCompiledBinaryKeys(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE b (k BINARY(4) PRIMARY KEY, v VARBINARY(5) NOT NULL, x BLOB, UNIQUE KEY (v))")
	p.run("CREATE TABLE c (a INT, k VARBINARY(3), n INT, PRIMARY KEY (a, k))")
	keys := []string{"abcd", "\xff\xfe\x00\x01", "\x00\x00\x00\x00", "ab\x00\x00", "ab  ", "ABCD", "é\x80\x81"}
	for i, k := range keys {
		p.bind("INSERT INTO b (k, v, x) VALUES (?, ?, ?)", bytesValue(k), bytesValue(k[:i%4]+string(rune('0'+i))), bytesValue(k+k))
		p.bind("INSERT INTO c (a, k, n) VALUES (?, ?, ?)", intValue(int64(i)), bytesValue(k[:i%4]), intValue(7))
	}
	for i, k := range keys {
		p.mustBind("SELECT v FROM b WHERE k = ?", bytesValue(k))
		p.mustBind("SELECT * FROM b WHERE v = ?", bytesValue(k[:i%4]+string(rune('0'+i))))
		p.mustBind("SELECT * FROM c WHERE k = ? AND a = ?", bytesValue(k[:i%4]), intValue(int64(i)))
		p.mustBind("UPDATE b SET v = ? WHERE k = ?", bytesValue(k[:i%3]+string(rune('A'+i))), bytesValue(k))
		p.mustBind("UPDATE b SET x = ? WHERE k = ?", bytesValue(strings.Repeat(k, i)), bytesValue(k))
		p.mustBind("DELETE FROM c WHERE a = ? AND k = ?", intValue(int64(i)), bytesValue(k[:i%4]))
		p.same("b", "c")
	}
	p.mustBind("SELECT v FROM b WHERE k = ?", bytesValue("none"))
	for _, k := range []fast.Value{bytesValue(""), bytesValue("ab"), bytesValue("ab\x00"), bytesValue("abcde"), bytesValue("\xff"), intValue(0), intValue(5)} {
		if p.bind("SELECT v FROM b WHERE k = ?", k) {
			t.Errorf("compiled with a key of four bytes: %+v", k)
		}
		p.bind("UPDATE b SET v = 'no' WHERE k = ?", k)
		p.bind("UPDATE b SET k = ? WHERE k = 'ABCD'", k)
		p.bind("SELECT * FROM c WHERE k = ? AND a = 1", k)
		p.bind("UPDATE b SET v = ? WHERE k = 'abcd'", k)
		p.bind("INSERT INTO b (k, v) VALUES (?, ?)", k, k)
	}
	p.same("b", "c")
}

// Invalid characters are left to go-mysql-server, which refuses or replaces them.
func TestCompiledNoCharacters(t *testing.T) {
	p := newPair(t)
	p.create()
	for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
		p.run("SET sql_mode = '" + mode + "'")
		for i := range 3 {
			bad := bytesValue("s\xff" + strconv.Itoa(i))
			for q, bound := range map[string][]fast.Value{
				"SELECT * FROM n WHERE s = ?": {bad}, "UPDATE t SET c = ? WHERE id = 3": {bad}, "UPDATE t SET pad = ? WHERE id = ?": {bad, intValue(4)},
				"INSERT INTO n (s, x) VALUES (?, ?)": {bad, intValue(1)}, "DELETE FROM u WHERE d = ?": {bad},
			} {
				if p.bind(q, bound...) {
					t.Errorf("compiled: %s with %+v", q, bound)
				}
			}
		}
		p.same("t", "n", "u")
	}
}

// Random statements over keys of bytes.
func TestCompiledBinaryRandom(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE b (k BINARY(2) PRIMARY KEY, v VARBINARY(3), c CHAR(3), UNIQUE KEY (v))")
	r := rand.New(rand.NewPCG(3, 4))
	some := func() fast.Value {
		if r.IntN(9) == 0 {
			return intValue(int64(r.IntN(3)))
		}
		b := make([]byte, []int{2, 2, 2, 2, 0, 1, 3, 4}[r.IntN(8)])
		for i := range b {
			b[i] = []byte{0, 'a', 'A', ' ', 0x80, 0xff}[r.IntN(6)]
		}
		return bytesValue(string(b))
	}
	for range 1500 {
		switch r.IntN(6) {
		case 0:
			p.bind("INSERT INTO b VALUES (?, ?, ?)", some(), some(), some())
		case 1:
			p.bind("UPDATE b SET v = ?, c = ? WHERE k = ?", some(), some(), some())
		case 2:
			p.bind("UPDATE b SET k = ? WHERE v = ?", some(), some())
		case 3:
			p.bind("SELECT * FROM b WHERE v = ?", some())
		case 4:
			p.bind("DELETE FROM b WHERE k = ?", some())
		default:
			p.bind("SELECT * FROM b WHERE k = ?", some())
		}
	}
	p.same("b")
	t.Logf("%d of %d", p.done, p.all)
	if p.done < p.all/4 {
		t.Errorf("only %d of %d statements ran compiled", p.done, p.all)
	}
}

// NULL for a parameter is a value like others where a column may hold it, and elsewhere the
// statement is planned.
func TestCompiledNull(t *testing.T) {
	p := newPair(t)
	p.create()
	null := fast.Value{IsNull: true}
	p.mustBind("UPDATE t SET pad = ? WHERE id = ?", null, intValue(4))
	p.mustBind("UPDATE u SET v = ?, d = ?, e = ?, f = ?, j = ? WHERE a = 1 AND b = 3", null, null, null, null, null)
	p.mustBind("UPDATE h SET w = ?, x = ? WHERE id = 3", null, null)
	p.bind("INSERT INTO u (a, b, v, d) VALUES (7, ?, ?, ?)", intValue(0), null, null)
	for i := range 3 {
		if done := p.bind("INSERT INTO u (a, b, v, d) VALUES (7, ?, ?, ?)", intValue(int64(1+i)), null, null); !done {
			t.Error("an INSERT of NULL is not compiled")
		}
		if done := p.bind("INSERT INTO f (a, b, p, ps) VALUES (7, ?, ?, ?)", intValue(int64(1+i)), null, null); done != (i > 0) {
			t.Errorf("an INSERT of a row that refers to none: compiled %v", done)
		}
	}
	for q, bound := range map[string][]fast.Value{
		"SELECT * FROM t WHERE id = ?": {null}, "SELECT * FROM t WHERE id BETWEEN ? AND 3": {null}, "SELECT * FROM t WHERE id = 4 AND pad = ?": {null}, "DELETE FROM u WHERE d = ?": {null}, "UPDATE t SET k = ? WHERE id = 4": {null},
		"UPDATE u SET b = b + ? WHERE a = 1 AND b = 8": {null}, "UPDATE t SET k = -? WHERE id = 4": {null}, "UPDATE u SET v = v - ? WHERE a = 1 AND b = 8": {null}, "INSERT INTO t (id, c) VALUES (77, ?)": {null}, "UPDATE u SET a = ? WHERE a = 1 AND b = 8": {null},
	} {
		for range 3 {
			if p.bind(q, bound...) {
				t.Errorf("compiled with NULL: %s", q)
			}
		}
	}
	p.bind("INSERT INTO t (id, k, c, pad) VALUES (?, 1, 'c', 'p')", null) // draws a number
	p.bind("INSERT INTO t (id, k, c, pad) VALUES (?, 1, 'c', 'p')", null)
	p.same("t", "u", "h", "f")
}

// A change of a row under conditions beyond its key, as of programs that lock
// optimistically.
func TestCompiledConditionalChanges(t *testing.T) {
	p := newPair(t)
	p.create()
	p.must(
		"UPDATE t SET c = 'new', k = k + 1 WHERE id = 5 AND k = 4", "UPDATE t SET pad = 'z' WHERE id = 6 AND k >= 3 AND k < 9", "UPDATE t SET pad = 'z' WHERE id = 6 AND 9 < k", "UPDATE t SET pad = 'q' WHERE id = 9 AND c = 'O'",
		"UPDATE t SET pad = 'q' WHERE id = 9 AND pad = 'y'", "UPDATE u SET d = 'dd' WHERE a = 1 AND b = 3 AND d = 'd3'", "DELETE FROM t WHERE id = 7 AND k = 999", "DELETE FROM t WHERE id = 7 AND k = 6", "DELETE FROM u WHERE a = 1 AND b = 8 AND d = 'D8'",
		"DELETE FROM n WHERE s = 'S8' AND x BETWEEN -20 AND 0", "UPDATE h SET x = 3 WHERE w = 'w3' AND id = -7", "UPDATE t SET k = 1 WHERE id = 4000 AND k = 1",
	)
	for _, q := range []string{"UPDATE t SET pad = 'z' WHERE id = 6 AND k = 'a'", "UPDATE t SET pad = 'z' WHERE k = 3 AND c = 'x'", "UPDATE t SET pad = 'z' WHERE id = 6 AND k <> 3", "UPDATE t SET pad = 'z' WHERE id = 6 AND k < 99999999999", "DELETE FROM t WHERE id = 8 AND k = c", "DELETE FROM p WHERE id = 38 AND y = 3"} {
		for range 3 {
			if p.run(q) {
				t.Errorf("compiled: %s", q)
			}
		}
	}
	p.same("t", "u", "n", "h", "p")
}

// A difference with an unsigned number is unsigned, whatever it is assigned to.
func TestCompiledUnsigned(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE d (id INT PRIMARY KEY, s BIGINT, u TINYINT UNSIGNED)")
	p.run("INSERT INTO d VALUES (1, 1, 5)")
	p.must("UPDATE d SET s = u - 5 WHERE id = 1", "UPDATE d SET s = u + 1 WHERE id = 1", "UPDATE d SET s = s - 7 WHERE id = 1")
	for _, q := range []string{"UPDATE d SET s = u - 6 WHERE id = 1", "INSERT INTO d VALUES (1, 2, 9) ON DUPLICATE KEY UPDATE s = u - VALUES(u)", "INSERT INTO d VALUES (1, 2, 9) ON DUPLICATE KEY UPDATE s = s - VALUES(u)"} {
		for range 3 {
			p.run(q)
		}
	}
	p.same("d")
}
