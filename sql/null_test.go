package sql

import (
	"context"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// No statement puts a NULL where there may be none, whatever go-mysql-server planned.
func TestNoNulls(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d",
		"CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, w INT, u INT NOT NULL DEFAULT 5, UNIQUE KEY (v))",
		"CREATE TABLE two (a INT, b INT, v INT NOT NULL, PRIMARY KEY (a, b))", "CREATE TABLE auto (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL)",
		"CREATE TABLE src (a INT)", "INSERT INTO src VALUES (NULL)", "INSERT INTO t VALUES (1, 1, 1, 1), (2, 2, 2, 2)", "INSERT INTO two VALUES (1, 1, 1)", "INSERT INTO auto VALUES (1, 1)",
	} {
		c.exec(q)
	}
	for _, q := range []string{
		"INSERT INTO t VALUES (1, 9, 9, 9) ON DUPLICATE KEY UPDATE id = NULL", "INSERT INTO t VALUES (1, 9, 9, 9) ON DUPLICATE KEY UPDATE v = NULL",
		"INSERT INTO t VALUES (9, 1, 9, 9) ON DUPLICATE KEY UPDATE u = VALUES(w) - NULL", "INSERT INTO t SELECT 1, 9, a, 9 FROM src ON DUPLICATE KEY UPDATE v = NULL",
		"INSERT INTO two VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE b = NULL", "INSERT INTO auto VALUES (1, 1) ON DUPLICATE KEY UPDATE id = NULL",
		"INSERT INTO t VALUES (NULL, 3, 3, 3)", "INSERT INTO t VALUES (3, NULL, 3, 3)", "INSERT INTO t VALUES (3, 3, 3, NULL)", "INSERT INTO t SELECT a, 3, 3, 3 FROM src", "INSERT INTO t SELECT 3, a, 3, 3 FROM src",
		"INSERT INTO t SET id = 3, v = NULL", "REPLACE INTO t VALUES (1, NULL, 1, 1)", "REPLACE INTO t SELECT 1, a, 1, 1 FROM src", "UPDATE t SET id = NULL WHERE id = 1", "UPDATE t SET v = NULL WHERE id = 1", "UPDATE t SET v = NULL", "UPDATE t SET u = w - NULL",
		"UPDATE t JOIN src SET t.v = src.a", "UPDATE t, src SET t.id = src.a WHERE t.id = 1", "UPDATE t SET v = (SELECT a FROM src)", "UPDATE two SET a = NULL WHERE a = 1 AND b = 1",
		"ALTER TABLE src MODIFY a INT NOT NULL", "ALTER TABLE src ADD PRIMARY KEY (a)",
	} {
		if _, _, err := c.run(q); err == nil {
			t.Errorf("%s: no error", q)
		} else if e := myerr.Of(err); e.Num != 1048 && e.Num != 1364 && e.Num != 1265 && e.Num != 1138 {
			t.Errorf("%s: %d %v", q, e.Num, err)
		}
		for table, want := range map[string]string{"t": "1 | 1 | 1 | 1\n2 | 2 | 2 | 2\n", "two": "1 | 1 | 1\n", "auto": "1 | 1\n"} {
			schema, rows, err := c.run("SELECT * FROM " + table + " ORDER BY 1")
			if got := c.show(schema, rows); got != want || err != nil {
				t.Fatalf("%s has changed %s: %s%v", q, table, got, err)
			}
		}
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// A NULL that an earlier version has stored where there may be none is found by a check, and can be
// mended.
func TestNullOfTheVersionBefore(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, w INT NOT NULL)"} {
		c.exec(q)
	}
	set := func(notNull bool) {
		s := in.e.NewSession("", gms.Client{}, 0)
		ctx := in.e.NewContext(context.Background(), s)
		tbl, ok, err := in.e.Store.Table(ctx, store.Began(ctx), "d", "t")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		tbl.Info.Rows.Columns[1].NotNull = notNull
		s.Abort()
	}
	c.exec("INSERT INTO t VALUES (1, 1, 1)")
	c.exec("SELECT * FROM t")
	set(false)
	c.exec("INSERT INTO t VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE v = NULL")
	set(true)
	if err := in.check(); err == nil || !strings.Contains(err.Error(), "NULL in column v") {
		t.Errorf("check: %v", err)
	}
	if _, _, err := c.run("UPDATE t SET w = 2"); err == nil || myerr.Of(err).Num != 1048 { // the row has to be mended first
		t.Errorf("another column: %v", err)
	}
	c.exec("UPDATE t SET v = 2 WHERE v IS NULL")
	if err := in.check(); err != nil {
		t.Error(err)
	}
}
