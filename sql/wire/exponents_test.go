package wire

import (
	"context"
	stdsql "database/sql"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	driverlib "github.com/go-sql-driver/mysql"
)

// exponents are numbers whose exponents no decimal holds. Each was computed digit by digit, for minutes, and no KILL ended that.
var exponents = []string{"0e111111111", "1e111111111", "-1e111111111", "1e-111111111", "1e99999999", "1e99999999999999", " 1e111111111x", "0x1p1000000000", "1_0e999999999"}

// statementBound is long even for a busy machine, and short against what such a number takes.
const statementBound = time.Minute

// Statements with great exponents end, whatever they answer: as texts in the statement, as parameters, and in a column.
func TestExponents(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/?interpolateParams=false")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(q string) {
		t.Helper()
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, q := range []string{"SET GLOBAL local_infile = 1", "CREATE DATABASE test", "USE test", "CREATE TABLE d (id INT PRIMARY KEY AUTO_INCREMENT, a DECIMAL(10,2), b DECIMAL(38,0), KEY (a))", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(40))",
		"INSERT INTO d (a, b) VALUES (1.5, 2), (-3, 4)"} {
		exec(q)
	}
	for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
		exec("SET sql_mode = '" + mode + "'")
		for _, e := range exponents {
			exec("DELETE FROM t")
			_, err := db.Exec("INSERT INTO t (s) VALUES (?), ('1.5')", e)
			must(t, err)
			for _, q := range []string{
				"INSERT INTO d (a, b) VALUES (?, 0)", "INSERT INTO d (a, b) VALUES (0, ?), (1, ?)", "INSERT INTO d (id, a) VALUES (1, 0) ON DUPLICATE KEY UPDATE a = ?", "UPDATE d SET a = ? WHERE id = 2",
				"SELECT 1.5 = ?", "SELECT 1.5 < ?", "SELECT CAST(? AS DECIMAL(10,2)), CAST(? AS DECIMAL(38,0))", "SELECT id FROM d WHERE a = ?", "SELECT id FROM d WHERE a < ?", "SELECT id FROM d WHERE b IN (?, 2)",
				"SELECT id FROM d WHERE a BETWEEN ? AND 1", "SELECT ROUND(?, 2)", "SELECT TRUNCATE(?, 2)", "SELECT FORMAT(?, 2)", "SELECT 1.5 + ?", "SELECT GREATEST(1.5, ?)", "SELECT NULLIF(1.5, ?)", "SELECT CAST(? AS SIGNED)", "SELECT SEC_TO_TIME(?)",
				"SELECT CAST(JSON_EXTRACT(CONCAT('[', ?, ']'), '$[0]') AS DECIMAL(10,2))", "SELECT 1.5 UNION SELECT ?",
				"SELECT -?", "SELECT ABS(?), CEIL(?), FLOOR(?), MOD(?, 1.5), SQRT(?), SIGN(?)", "SELECT ? DIV 2, ? DIV 1.5", "SELECT ? % 1.5, 1.5 % ?", "SELECT 1.5 / ?, ? / 1.5, ? - 1.5, ? * 1.5", "SELECT COALESCE(1.5, ?), IFNULL(1.5, ?), IF(0, 1.5, ?)",
				"SELECT LEAST(1.5, ?)", "SELECT CASE 1.5 WHEN ? THEN 1 END", "SELECT CASE ? WHEN 1.5 THEN 1 END", "SELECT CASE WHEN a = 1 THEN a ELSE ? END FROM d", "SELECT NULLIF(?, 1.5)", "SELECT FIELD(1.5, ?)", "SELECT INTERVAL(?, 1.5)",
				"SELECT (a, b) = (?, 2) FROM d", "SELECT 1 FROM d WHERE (a, b) IN ((?, 2), (3, 4))", "SELECT ? IN (1.5, 2.5), 1.5 IN (?, 2.5), 1.5 NOT IN (?, 3)", "SELECT 1.5 BETWEEN ? AND ?, ? BETWEEN 1.5 AND 2.5", "SELECT 1.5 <=> ?, 1.5 <> ?, 1.5 > ?", "SELECT ? | 1.5, ~?, BIT_COUNT(?)",
				"SELECT FROM_UNIXTIME(?), MAKETIME(1, 1, ?)", "SELECT CONVERT(?, DECIMAL(10,2)), CAST(? AS DECIMAL)", "SELECT CAST(CAST(CONCAT('\"', ?, '\"') AS JSON) AS DECIMAL(10,2))", "SELECT JSON_VALUE(CONCAT('[\"', ?, '\"]'), '$[0]' RETURNING DECIMAL(10,2))",
				"SELECT a FROM d WHERE a = ? OR a = 2", "SELECT a FROM d WHERE a IN (?, ?)", "DELETE FROM d WHERE a = ?", "UPDATE d SET b = 1 WHERE a > ?", "SELECT a FROM d HAVING a = ?", "SELECT SUM(a) FROM d GROUP BY b HAVING SUM(a) = ?", "SELECT a FROM d ORDER BY a = ?",
				"SELECT SUM(a = ?) FROM d", "SELECT a + ?, a - ?, a * ?, a / ? FROM d", "UPDATE d SET a = a + ? WHERE id = 2", "UPDATE d SET a = 1 WHERE id = ?", "INSERT INTO d (a) SELECT ?", "REPLACE INTO d (id, a) VALUES (1, ?)", "INSERT IGNORE INTO d (a) VALUES (?)", "UPDATE IGNORE d SET a = ? WHERE id = 2", "SELECT VAR_POP(?), STD(?), AVG(?), MAX(?)", "SELECT EXISTS (SELECT 1 FROM d WHERE a = ?)",
				"SELECT COUNT(*) FROM d WHERE a >= ? AND a <= ?", "SELECT MAX(a) FROM d WHERE a < ?", "SELECT id FROM d WHERE a NOT IN (?, 1)", "SELECT id FROM d WHERE NOT (a = ?)", "SELECT LEAST(a, ?), GREATEST(a, ?) FROM d", "SELECT id FROM d WHERE COALESCE(a, 1.5) = ?", "SELECT TRUNCATE(a, ?), ROUND(a, ?) FROM d",
			} {
				ends(t, db, q, slices.Repeat([]any{e}, strings.Count(q, "?"))...)
				ends(t, db, strings.ReplaceAll(q, "?", "'"+e+"'"))
				ends(t, db, strings.ReplaceAll(q, "?", e)) // a number, or a syntax error
				if strings.HasPrefix(q, "SELECT") {
					ends(t, db, strings.ReplaceAll(strings.Replace(q, " FROM d WHERE", " FROM d, t WHERE", 1), "?", "(SELECT MIN(s) FROM t)"))
				}
			}
			for _, q := range []string{"SELECT SUM(s), AVG(s) FROM t", "SELECT SUM(CAST(s AS DECIMAL(10,2))) FROM t", "SELECT id FROM t ORDER BY CAST(s AS DECIMAL(10,2))", "SELECT DISTINCT CAST(s AS DECIMAL(38,0)) FROM t", "SELECT d.id FROM d JOIN t ON d.a = t.s",
				"SELECT id FROM d WHERE a IN (SELECT s FROM t)", "INSERT INTO d (a) SELECT s FROM t",
				"SELECT d.id FROM d LEFT JOIN t ON d.b = t.s", "SELECT d.id FROM t LEFT JOIN d ON d.a = t.s", "SELECT d.id FROM d, t WHERE d.b < t.s", "SELECT id FROM d WHERE a > ALL (SELECT s FROM t)", "SELECT id FROM d WHERE EXISTS (SELECT 1 FROM t WHERE s = d.b)", "SELECT id FROM d WHERE b NOT IN (SELECT s FROM t)",
				"UPDATE d JOIN t ON d.b = t.s SET d.a = 1", "UPDATE d, t SET d.a = t.s WHERE d.id = 2", "DELETE d FROM d JOIN t ON d.b = t.s", "SELECT s FROM t WHERE s IN (1.5, 2.5)", "SELECT s FROM t WHERE s IN (SELECT a FROM d)", "SELECT CASE s WHEN 1.5 THEN 1 END FROM t", "SELECT NULLIF(s, 1.5) FROM t",
				"SELECT ROUND(s, 1), TRUNCATE(s, 1), -s, s + 1.5, s DIV 1.5, s % 1.5 FROM t", "SELECT MAX(s + 1.5) FROM t GROUP BY s = 1.5", "SELECT AVG(s) OVER () FROM t",
				"CREATE TABLE n (a DECIMAL(10,2)) SELECT s AS a FROM t", "DROP TABLE IF EXISTS n", "CREATE TABLE n (s VARCHAR(40), g DECIMAL(10,2) AS (s), CHECK (s <> 1.5))", "INSERT INTO n (s) SELECT s FROM t", "ALTER TABLE n DROP COLUMN g, MODIFY s DECIMAL(10,2)", "DROP TABLE IF EXISTS n",
				"CREATE TABLE n (i INT, a DECIMAL(10,2) DEFAULT '" + e + "')", "INSERT INTO n (i) VALUES (1)", "DROP TABLE IF EXISTS n",
				"CREATE TABLE n (i INT)", "ALTER TABLE n ADD COLUMN a DECIMAL(10,2) DEFAULT '" + e + "'", "ALTER TABLE n ALTER COLUMN a SET DEFAULT '" + e + "'", "ALTER TABLE n MODIFY a DECIMAL(12,2) DEFAULT '" + e + "'", "INSERT INTO n (i) VALUES (1)", "DROP TABLE IF EXISTS n",
				"CREATE TABLE n (s VARCHAR(40), CHECK (s <> 1.5), CHECK (CAST(s AS DECIMAL(10,2)) <> 3))", "INSERT INTO n (s) SELECT s FROM t", "UPDATE n SET s = '" + e + "'", "DROP TABLE IF EXISTS n",
				"CREATE TABLE n (i INT, a DECIMAL(10,2) DEFAULT (CONCAT('" + e + "', '')))", "INSERT INTO n (i) VALUES (1)", "DROP TABLE IF EXISTS n",
				"CREATE PROCEDURE p() BEGIN DECLARE x DECIMAL(10,2) DEFAULT '" + e + "'; SET x = '" + e + "'; SELECT x = '" + e + "'; END", "CALL p()", "DROP PROCEDURE p", "CREATE FUNCTION f(x DECIMAL(10,2)) RETURNS DECIMAL(10,2) RETURN '" + e + "'", "SELECT f('" + e + "')", "DROP FUNCTION f", "SELECT SUM(s) OVER (ORDER BY id) FROM t", "SELECT id FROM t WHERE s = 1.5"} {
				ends(t, db, q)
			}
			driverlib.RegisterReaderHandler("exponents", func() io.Reader { return strings.NewReader(e + "\n") })
			ends(t, db, "LOAD DATA LOCAL INFILE 'Reader::exponents' INTO TABLE d (a)")
			driverlib.DeregisterReaderHandler("exponents")
		}
	}
}

// ends fails the test if a statement does not end within the bound. With arguments it is prepared.
func ends(t *testing.T, db *stdsql.DB, q string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), statementBound)
	defer cancel()
	rows, err := db.QueryContext(ctx, q, args...)
	if err == nil {
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %v did not end: %v", q, args, err)
	}
}

// What such numbers are: beyond the range of a DECIMAL column, or 0.
func TestStoredExponents(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE test", "USE test", "CREATE TABLE d (a DECIMAL(10,2))"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, c := range []struct{ text, lax string }{
		{"0e9", "0.00"}, {"0e111111111", "0.00"}, {"0e99999999999999", "0.00"}, {"1e-400", "0.00"}, {"1e-111111111", "0.00"}, {"1e-99999999999999", "0.00"}, {"15e-1", "1.50"},
		{"1e400", "99999999.99"}, {"1e111111111", "99999999.99"}, {"-1e111111111", "-99999999.99"}, {"1e99999999999999", "99999999.99"}, {" 1e99999999 ", "99999999.99"},
	} {
		for _, q := range []string{"INSERT INTO d VALUES (?)", "INSERT INTO d VALUES ('" + c.text + "')"} {
			for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
				_, err := db.Exec("SET sql_mode = '" + mode + "'")
				must(t, err)
				var args []any
				if strings.Contains(q, "?") {
					args = []any{c.text}
				}
				want, number, got := c.lax, uint16(0), ""
				if mode != "" && strings.Contains(c.lax, "9999") {
					want, number = "", 1264
				}
				_, err = db.Exec(q, args...)
				var failed *driverlib.MySQLError
				if errors.As(err, &failed) != (number != 0) || (failed != nil && failed.Number != number) {
					t.Errorf("%s of %s in %q: %v", q, c.text, mode, err)
				}
				if err := db.QueryRow("SELECT a FROM d").Scan(&got); err != nil && !errors.Is(err, stdsql.ErrNoRows) {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("%s of %s in %q: stored %q, want %q", q, c.text, mode, got, want)
				}
				_, err = db.Exec("DELETE FROM d")
				must(t, err)
			}
		}
	}
}
