package wire

import (
	stdsql "database/sql"
	"errors"
	"math"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Doubles have as many digits behind their point as there are, and years no sign, in
// planned statements and compiled ones.
func TestColumnsAreDescribed(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, q := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, f FLOAT, d DOUBLE, y YEAR)", "INSERT INTO test.t VALUES (1, 1.5, 0.1, 2024)"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, query := range []string{"SELECT f, d, y FROM test.t WHERE id = ?", "SELECT a.f, a.d, a.y FROM test.t a WHERE a.id + 0 = ?"} {
		rows, err := db.Query(query, 1)
		must(t, err)
		columns, err := rows.ColumnTypes()
		must(t, err)
		for _, c := range columns[:2] {
			if _, scale, ok := c.DecimalSize(); !ok || scale != math.MaxInt64 {
				t.Errorf("%s: %s has %d digits, %t", query, c.Name(), scale, ok)
			}
		}
		if got := columns[2].ScanType().String(); got != "sql.NullInt64" && got != "uint16" && got != "*uint16" {
			t.Errorf("%s: a year is a %s", query, got)
		}
		if got := columns[2].DatabaseTypeName(); got != "YEAR" {
			t.Errorf("%s: a year is of type %s", query, got)
		}
		must(t, rows.Close())
	}
}

// Columns have the lengths, digits, flags and character sets that clients tell their types
// by, in planned statements and compiled ones: drivers of Java take TINYINT(1) for BOOLEAN, and
// drivers of binary rows print as many digits of a TIMESTAMP as it is said to have.
func TestColumnsAreDescribedWhole(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	defer c.Close()
	for _, q := range []string{
		"CREATE DATABASE test", "USE test",
		"CREATE TABLE t (id INT PRIMARY KEY, b TINYINT(1), i TINYINT, ts TIMESTAMP(3) NULL, dt DATETIME(6), d DATE, n DECIMAL(6,2), u INT UNSIGNED NOT NULL, v VARBINARY(5) NOT NULL, s TEXT, e ENUM('x','y'), j JSON)",
		"INSERT INTO t VALUES (1, 1, 2, '2024-01-01 00:00:00.123', '2024-01-01 00:00:00.123456', '2024-01-01', 1.5, 1, 'a', 's', 'x', '{}')",
	} {
		_, err := c.ExecuteFetch(q, 1, false)
		must(t, err)
	}
	const (
		notNull, blob, unsigned, binary, enum = 1, 16, 32, 128, 256
		number                                = 32768 // is the client's
		text, bytes                           = 255, 63
	)
	want := map[string][4]uint32{ // length, decimals, flags, character set
		"b": {1, 0, binary, bytes}, "i": {4, 0, binary, bytes}, "ts": {0, 3, binary, bytes}, "dt": {0, 6, binary, bytes}, "d": {0, 0, binary, bytes},
		"n": {0, 2, binary, bytes}, "u": {0, 0, notNull | unsigned | binary, bytes}, "v": {0, 0, notNull | binary, bytes}, "s": {0, 0, blob, text},
		"e": {0, 0, enum, text}, "j": {0, 0, blob | binary, bytes},
	}
	for _, query := range []string{"SELECT b, i, ts, dt, d, n, u, v, s, e, j FROM t WHERE id = 1", "SELECT x.b, x.i, x.ts, x.dt, x.d, x.n, x.u, x.v, x.s, x.e, x.j FROM t x WHERE x.id + 0 = 1 ORDER BY x.i DESC"} {
		res, err := c.ExecuteFetch(query, 1, true)
		must(t, err)
		for _, f := range res.Fields {
			w, got := want[f.Name], [4]uint32{f.ColumnLength, f.Decimals, f.Flags &^ number, f.Charset}
			if w[0] == 0 {
				got[0] = 0
			}
			if got != w {
				t.Errorf("%s: %s has length, digits, flags, character set %v, want %v", query, f.Name, got, w)
			}
		}
	}
}

// The errors that refuse changes, DDL included, in a read-only session have MySQL's number.
func TestReadOnlyNumbers(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (a INT)", "USE test", "SET SESSION TRANSACTION READ ONLY"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, q := range []string{"INSERT INTO test.t VALUES (1)", "DROP TABLE test.t", "TRUNCATE test.t", "ALTER TABLE test.t ADD b INT", "CREATE TABLE test.u (a INT)", "CREATE VIEW test.v AS SELECT 1"} {
		_, err := db.Exec(q)
		if e := new(mysql.MySQLError); !errors.As(err, &e) || e.Number != 1792 || string(e.SQLState[:]) != "25006" {
			t.Errorf("%s: %v", q, err)
		}
	}
}
