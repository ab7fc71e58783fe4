package explain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/sqltest"
)

func client(t *testing.T) *sqltest.Client {
	return sqltest.New(t, "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10), KEY v (v), UNIQUE KEY sv (s, v))",
		"CREATE TABLE u (id BIGINT NOT NULL, t INT, PRIMARY KEY (id), KEY t (t))",
		"INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 2, 'c'), (4, 4, 'd')", "INSERT INTO u VALUES (1, 1), (2, 1), (3, 2)")
}

// EXPLAIN says which tables are read, in which order, by which index, and how many rows
// that gives.
func TestExplain(t *testing.T) {
	c := client(t)
	for _, q := range []struct{ query, want string }{
		{"SELECT * FROM t", "1 | SIMPLE | t | NULL | ALL | NULL | NULL | NULL | NULL | 4 | 100 | NULL\n"},
		{"SELECT * FROM t WHERE id = 1", "1 | SIMPLE | t | NULL | const | PRIMARY | PRIMARY | 4 | const | 1 | NULL | Using where\n"},
		{"SELECT * FROM t x WHERE v = 2", "1 | SIMPLE | x | NULL | ref | v | v | 5 | const | 2 | NULL | Using where\n"},
		{"SELECT * FROM t WHERE id BETWEEN 2 AND 3", "1 | SIMPLE | t | NULL | range | PRIMARY | PRIMARY | 4 | NULL | 2 | NULL | Using where\n"},
		{"SELECT * FROM t WHERE s = 'a' AND v > 0", "1 | SIMPLE | t | NULL | range | sv | sv | 48 | NULL | 1 | NULL | Using where\n"},
		{"SELECT * FROM t WHERE id IN (1, 3)", "1 | SIMPLE | t | NULL | range | PRIMARY | PRIMARY | 4 | NULL | 2 | NULL | Using where\n"},
		{"SELECT * FROM t WHERE v + 1 = 2", "1 | SIMPLE | t | NULL | ALL | NULL | NULL | NULL | NULL | 4 | NULL | Using where\n"},
		{"SELECT v + 1, COUNT(*) FROM t GROUP BY v + 1 ORDER BY COUNT(*)", "1 | SIMPLE | t | NULL | ALL | NULL | NULL | NULL | NULL | 4 | 100 | Using temporary; Using filesort\n"},
		{"SELECT 1", "1 | SIMPLE | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | No tables used\n"},
		{"SELECT * FROM t WHERE id = 1 AND 1 = 0", "1 | SIMPLE | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | Impossible WHERE\n"},
		{"SELECT /*+ JOIN_ORDER(u, t) LOOKUP_JOIN(u, t) */ * FROM u JOIN t ON u.t = t.id", "1 | SIMPLE | u | NULL | ALL | NULL | NULL | NULL | NULL | 3 | 100 | NULL\n" +
			"1 | SIMPLE | t | NULL | eq_ref | PRIMARY | PRIMARY | 4 | u.t | 1 | 100 | NULL\n"},
		{"SELECT id FROM t UNION SELECT id FROM u", "1 | PRIMARY | t | NULL | ALL | NULL | NULL | NULL | NULL | 4 | 100 | NULL\n" +
			"2 | UNION | u | NULL | ALL | NULL | NULL | NULL | NULL | 3 | 100 | NULL\n" +
			"NULL | UNION RESULT | <union1,2> | NULL | ALL | NULL | NULL | NULL | NULL | NULL | 100 | Using temporary\n"},
		{"SELECT (SELECT MAX(id) FROM u WHERE u.t = t.id) FROM t", "1 | PRIMARY | t | NULL | ALL | NULL | NULL | NULL | NULL | 4 | 100 | NULL\n" +
			"2 | DEPENDENT SUBQUERY | u | NULL | ref | t | t | 5 | t.id | NULL | NULL | Using where\n"},
		{"INSERT INTO t VALUES (9, 9, 'x')", "1 | INSERT | t | NULL | ALL | NULL | NULL | NULL | NULL | NULL | 100 | NULL\n"},
		{"UPDATE t SET v = 3 WHERE id = 2", "1 | UPDATE | t | NULL | const | PRIMARY | PRIMARY | 4 | const | 1 | NULL | Using where\n"},
		{"DELETE FROM t WHERE v = 2", "1 | DELETE | t | NULL | ref | v | v | 5 | const | 2 | NULL | Using where\n"},
	} {
		for _, verb := range []string{"EXPLAIN ", "DESC FORMAT=TRADITIONAL "} {
			if got := c.Result(verb + q.query); got != q.want {
				t.Errorf("%s%s:\n%swant\n%s", verb, q.query, got, q.want)
			}
		}
	}
	if rows := c.Result("SELECT * FROM t"); strings.Count(rows, "\n") != 4 {
		t.Errorf("EXPLAIN has changed the table: %s", rows)
	}
}

func TestExplainFormats(t *testing.T) {
	c := client(t)
	for query, want := range map[string]string{
		"SELECT * FROM t WHERE id = 1":                "run by sql/exec",
		"SELECT t.id FROM t JOIN u ON t.id = u.t + 1": "Join",
	} {
		if got := c.Result("EXPLAIN FORMAT=TREE " + query); !strings.Contains(got, want) {
			t.Errorf("tree of %s: %s", query, got)
		}
	}
	for query, code := range map[string]int{"EXPLAIN ANALYZE FORMAT=JSON SELECT 1": mysql.ERNotSupportedYet, "EXPLAIN FORMAT=xyz SELECT 1": myerr.UnknownFormat.Number, "EXPLAIN FORMAT=farmsql_json SELECT 1": myerr.UnknownFormat.Number} {
		if got := c.Result(query); got != fmt.Sprintf("error %d", code) {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// EXPLAIN FORMAT=JSON has the rows of EXPLAIN as a document, and runs nothing.
func TestExplainJSON(t *testing.T) {
	c := client(t)
	for _, q := range []struct{ query, want string }{
		{"SELECT * FROM t WHERE id = 1", `{"query_block":{"select_id":1,"table":{"table_name":"t","access_type":"const","possible_keys":["PRIMARY"],"key":"PRIMARY","key_length":4,"ref":["const"],"rows_examined_per_scan":1,"extra":["Using where"]}}}`},
		{"SELECT (SELECT MAX(id) FROM u WHERE u.t = t.id) FROM t", `{"query_block":{"select_id":1,"table":{"table_name":"t","access_type":"ALL","rows_examined_per_scan":4}},` +
			`"other_query_blocks":[{"select_type":"DEPENDENT SUBQUERY","query_block":{"select_id":2,"table":{"table_name":"u","access_type":"ref","possible_keys":["t"],"key":"t","key_length":5,"ref":["t.id"],"extra":["Using where"]}}}]}`},
		{"DELETE FROM t WHERE v = 2", `{"query_block":{"select_id":1,"table":{"table_name":"t","access_type":"ref","possible_keys":["v"],"key":"v","key_length":5,"ref":["const"],"rows_examined_per_scan":2,"extra":["Using where"]}}}`},
	} {
		for _, verb := range []string{"EXPLAIN FORMAT=JSON ", "desc format = 'json' "} {
			var b bytes.Buffer
			text := c.Result(verb + q.query)
			if err := json.Compact(&b, []byte(text)); err != nil || b.String() != q.want {
				t.Errorf("%s%s: %v\n%s\nwant\n%s", verb, q.query, err, text, q.want)
			}
		}
	}
	if got := c.Result("EXPLAIN FORMAT=JSON SELECT * FROM t JOIN u ON u.t = t.id"); strings.Count(got, "table_name") != 2 || !strings.Contains(got, "nested_loop") {
		t.Errorf("of two tables:\n%s", got)
	}
	if rows := c.Result("SELECT * FROM t"); strings.Count(rows, "\n") != 4 {
		t.Errorf("EXPLAIN has changed the table: %s", rows)
	}
}

// EXPLAIN ANALYZE tells what has happened, in every node.
func TestExplainAnalyze(t *testing.T) {
	c := client(t)
	actual := regexp.MustCompile(`\(actual time=\d+\.\d{3}\.\.\d+\.\d{3} rows=([\d.]+) loops=(\d+)\)`)
	for _, q := range []string{"EXPLAIN ANALYZE SELECT * FROM t WHERE v + 1 = 3", "EXPLAIN ANALYZE FORMAT=TREE SELECT * FROM t WHERE v + 1 = 3"} {
		got := c.Result(q)
		var rows []string
		for _, m := range actual.FindAllStringSubmatch(got, -1) {
			rows = append(rows, m[1]+"/"+m[2])
		}
		if strings.Join(rows, " ") != "2/1 4/1" {
			t.Errorf("%s: rows %v, want 2 of 4:\n%s", q, rows, got)
		}
	}
	got := c.Result("EXPLAIN ANALYZE SELECT /*+ JOIN_ORDER(u, t) LOOKUP_JOIN(u, t) */ * FROM u JOIN t ON u.t = t.id ORDER BY t.v")
	if !strings.Contains(got, "loops=3") {
		t.Errorf("a lookup for each of three rows:\n%s", got)
	}
	if got := c.Result("EXPLAIN ANALYZE UPDATE t SET v = 1"); !strings.HasPrefix(got, "error ") {
		t.Errorf("EXPLAIN ANALYZE of an UPDATE: %s", got)
	}
}
