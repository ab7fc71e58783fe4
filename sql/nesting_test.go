package sql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
)

// repeated joins n copies of term; a %d in it becomes the number of the copy.
func repeated(n int, term, between string) string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = term
		if strings.Contains(term, "%d") {
			terms[i] = fmt.Sprintf(term, i)
		}
	}
	return strings.Join(terms, between)
}

// Wherever a statement takes an expression or a query, one that is nested too deep is
// refused, in a second, and does not end the process.
func TestNesting(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	for _, where := range []string{
		"SELECT %s", "SELECT 1 FROM t WHERE v = %s", "SELECT v FROM t GROUP BY %s", "SELECT v FROM t ORDER BY %s", "SELECT v FROM t HAVING %s", "SELECT COUNT(*) FROM t GROUP BY v HAVING %s",
		"SELECT (SELECT %s)", "SELECT * FROM (SELECT %s) x", "SELECT * FROM t JOIN t u ON t.v = %s", "SELECT 1 IN (%s)", "SELECT CASE WHEN %s THEN 1 END", "SELECT ABS(%s)",
		"SELECT SUM(%s) OVER ()", "SELECT SUM(v) OVER (PARTITION BY %s) FROM t", "SELECT SUM(v) OVER w FROM t WINDOW w AS (ORDER BY %s)", "SELECT 1 UNION SELECT %s", "WITH x AS (SELECT %s) SELECT * FROM x", "SELECT * FROM JSON_TABLE(%s, '$' COLUMNS (a INT PATH '$.a')) j",
		"SELECT GROUP_CONCAT(v ORDER BY %s) FROM t", "SELECT CAST(%s AS CHAR)", "SELECT DATE_ADD(NOW(), INTERVAL %s DAY)", "SELECT EXISTS (SELECT %s)", "SELECT 1 BETWEEN %s AND 2", "SELECT (%s) IS NULL", "VALUES ROW(%s)", "TABLE t UNION SELECT %s, 1",
		"INSERT INTO t VALUES (1, %s)", "INSERT INTO t SELECT %s, 1", "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE v = %s", "INSERT INTO t SET id = %s", "REPLACE INTO t VALUES (1, %s)",
		"UPDATE t SET v = %s", "UPDATE t SET v = 1 WHERE v = %s", "UPDATE t SET v = 1 ORDER BY %s LIMIT 1", "UPDATE t JOIN t u ON t.v = %s SET t.v = 1", "DELETE FROM t WHERE v = %s", "DELETE FROM t ORDER BY %s LIMIT 1",
		"SET @a = %s", "SET SESSION sort_buffer_size = %s", "CALL p(%s)", "EXPLAIN SELECT %s", "SHOW TABLES WHERE %s", "PREPARE s FROM 'SELECT %s'", "KILL %s",
		"CREATE TABLE u (id INT PRIMARY KEY, v INT DEFAULT (%s))", "CREATE TABLE u (id INT PRIMARY KEY, v INT AS (%s))", "CREATE TABLE u (id INT PRIMARY KEY, CHECK (%s))", "CREATE TABLE u (id INT PRIMARY KEY CHECK (%s))", "CREATE TABLE u AS SELECT %s",
		"CREATE INDEX i ON t ((%s))", "CREATE VIEW w AS SELECT %s", "ALTER TABLE t ADD COLUMN w INT DEFAULT (%s)", "ALTER TABLE t ADD CHECK (%s)", "ALTER TABLE t ALTER COLUMN v SET DEFAULT (%s)", "ALTER VIEW w AS SELECT %s",
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.v = %s", "CREATE PROCEDURE p() SELECT %s", "CREATE PROCEDURE p() BEGIN IF %s THEN SELECT 1; END IF; END", "CREATE PROCEDURE p() BEGIN DECLARE a INT DEFAULT %s; END",
		"CREATE PROCEDURE p() BEGIN WHILE %s DO SELECT 1; END WHILE; END", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT %s", "CREATE EVENT e ON SCHEDULE AT %s DO SELECT 1", "LOAD DATA INFILE 'x' INTO TABLE t (id) SET v = %s",
	} {
		n := 3000
		if where == "SELECT %s" {
			n = 300_000 // overflows
		}
		for _, deep := range []string{repeated(n, "1", "+"), strings.Repeat("NOT ", n) + "1", repeated(n, "(v)", " XOR "), strings.Repeat("(", n) + "1" + strings.Repeat(")", n)} {
			begin := cputime.Now(t)
			_, _, err := c.run(fmt.Sprintf(where, deep))
			if err == nil {
				t.Errorf("%s of %.20s...: no error", where, deep)
			} else if n := myerr.Of(err).Num; n != myerr.StackOverrun.Number && n != 1064 {
				t.Errorf("%s of %.20s...: %.200v", where, deep, err)
			}
			wantSoon(t, begin, 20*time.Second, where+" of "+deep) // a second
		}
	}
}

// Chains of AND and OR, and of UNION, may be longer, and have bounds of their own.
func TestChains(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{
		"SELECT 1 FROM dual WHERE " + repeated(150_000, "1", " OR "), "SELECT 1 FROM dual WHERE " + repeated(150_000, "1", " AND "), repeated(400, "SELECT 1", " UNION "),
		repeated(300, "SELECT 1", " UNION ") + " UNION SELECT " + repeated(3000, "1", "+"), "SELECT 1 OR " + repeated(3000, "1", "+") + " OR 1",
		"WITH x AS (SELECT " + repeated(3000, "1", "+") + ") SELECT 1 UNION SELECT 2", "SELECT 1 UNION SELECT 2 LIMIT " + repeated(3000, "1", "+"),
		"SELECT 1 AS a UNION SELECT 2 ORDER BY " + repeated(3000, "a", "+"),
	} {
		if _, _, err := c.run(q); err == nil || myerr.Of(err).Num != myerr.StackOverrun.Number && myerr.Of(err).Num != 1064 {
			t.Errorf("%.60s: %.200v", q, err)
		}
	}
}

// Views and procedures that use each other in a circle do not end the process; many that do
// not are used, and so is a procedure that calls itself a few times.
func TestCircles(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW v AS SELECT 1 a", "CREATE VIEW w AS SELECT * FROM v", "CREATE OR REPLACE VIEW v AS SELECT * FROM w",
		"CREATE PROCEDURE p() CALL p()", "CREATE PROCEDURE q() CALL r()", "CREATE PROCEDURE r() CALL q()", "CREATE PROCEDURE n(n INT) BEGIN IF n > 0 THEN CALL n(n - 1); END IF; END",
		"CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW CALL q()", "CREATE VIEW x AS SELECT 1 a",
	} {
		c.exec(q)
	}
	for q, number := range map[string]int{
		"SELECT * FROM v": myerr.ViewRecursion.Number, "SELECT * FROM x, w": myerr.ViewRecursion.Number, "CALL p()": myerr.ProcedureRecursion.Number, "CALL q()": myerr.ProcedureRecursion.Number, "INSERT INTO t VALUES (1)": myerr.ProcedureRecursion.Number,
		"CALL n(1000)": myerr.ProcedureRecursion.Number,
	} {
		if _, _, err := c.run(q); err == nil || myerr.Of(err).Num != number {
			t.Errorf("%s: %v", q, err)
		}
	}
	for range 3 { // each statement has a bound of its own
		for _, q := range []string{"CALL n(50)", repeated(100, "SELECT * FROM x", " UNION ALL "), "SHOW TABLES", "SHOW FULL TABLES", "DROP VIEW IF EXISTS none"} {
			if _, _, err := c.run(q); err != nil {
				t.Errorf("%.40s: %v", q, err)
			}
		}
	}
	c.exec("DROP VIEW v")
	c.exec("DROP VIEW w")
}

// Ordinary nesting is planned.
func TestNestedStatements(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{
		"SELECT " + repeated(1900, "1", "+"), "SELECT 1 FROM dual WHERE " + repeated(20000, "1=%d", " OR "), "SELECT 1 FROM dual WHERE NOT (" + repeated(20000, "1=%d", " OR ") + ") AND " + repeated(20000, "1=1", " AND "),
		"SELECT 1 IN (" + repeated(50000, "%d", ",") + ")", repeated(200, "SELECT %d", " UNION ALL "), "SELECT CASE " + repeated(2000, "WHEN 1=%d THEN 0", " ") + " END",
	} {
		if _, _, err := c.run(q); err != nil {
			t.Errorf("%.60s: %.200v", q, err)
		}
	}
}

// BenchmarkNesting is what the look at a long INSERT costs, and what parsing it does.
func BenchmarkNesting(b *testing.B) {
	q := "INSERT INTO t VALUES " + repeated(30000, "(%d, 'something of a text', 1.5)", ",")
	stmt, err := sqlparser.Parse(q)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := sqlparser.Parse(q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if err := compat.CheckNesting(q, stmt); err != nil {
				b.Fatal(err)
			}
		}
	})
}
