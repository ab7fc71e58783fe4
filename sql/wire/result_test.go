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

// What a session that may only read is refused has MySQL's number, DDL too.
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
