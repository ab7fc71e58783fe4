package wire

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"sync"
	"testing"
)

// TestPreparedAgain: a prepared statement whose text has been read once goes by its present database, settings, table and
// values in each later execution.
func TestPreparedAgain(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := func(query string) {
		t.Helper()
		if _, err := c.ExecContext(t.Context(), query); err != nil {
			t.Fatal(query, err)
		}
	}
	for _, name := range []string{"d", "e"} {
		run("CREATE DATABASE " + name)
		run(fmt.Sprintf("CREATE TABLE %s.t (id INT PRIMARY KEY, a VARCHAR(20), b INT)", name))
		run(fmt.Sprintf("INSERT INTO %s.t VALUES (1, '%[1]s1', 10), (2, '%[1]s2', 20), (3, NULL, 30)", name))
	}
	run("USE d")
	st, err := c.PrepareContext(t.Context(), "SELECT CONCAT('<', a, '>'), b FROM t WHERE id = ? AND b >= 10 AND b <= ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	want := func(id, most any, want string) {
		t.Helper()
		for range 3 {
			var a *string
			var b int
			got := "nothing"
			if err := st.QueryRowContext(context.Background(), id, most).Scan(&a, &b); err == nil && a != nil {
				got = fmt.Sprint(*a, b)
			} else if err == nil {
				got = fmt.Sprint("NULL", b)
			}
			if got != want {
				t.Errorf("(%v, %v): %s, want %s", id, most, got, want)
			}
		}
	}
	want(1, 10, "<d1>10")
	want(2, 10, "nothing")
	want(2, 20, "<d2>20")
	want("2", 20, "<d2>20")
	want(nil, 20, "nothing")
	want(3, 100, "NULL30")
	before := s.server.Stats()
	want(1, 10, "<d1>10")
	if got := s.server.Stats().Sub(before); got.Compiled+got.Planned != 3 {
		t.Errorf("not each execution had a plan of ours: %v", got)
	}
	run("USE e")
	want(1, 10, "<e1>10")
	run("ALTER TABLE t MODIFY a VARCHAR(30), ADD COLUMN z INT FIRST")
	run("UPDATE t SET a = 'changed' WHERE id = 2")
	want(2, 20, "<changed>20")
	run("USE d")
	want(2, 20, "<d2>20")
	run("DROP TABLE e.t")
	want(2, 20, "<d2>20")
}

// TestPreparedUnderSettings: an execution goes by the present settings, not by those of an earlier one.
func TestPreparedUnderSettings(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	st, err := db.Prepare("SELECT id, UPPER('ä') = 'A' FROM d.t WHERE id = ?")
	must(t, err)
	defer st.Close()
	for _, same := range []bool{true, false, true, false} {
		collation := "utf8mb4_bin"
		if same {
			collation = "utf8mb4_0900_ai_ci"
		}
		_, err := db.Exec("SET collation_connection = " + collation)
		must(t, err)
		for range 3 {
			var id int
			var got bool
			must(t, st.QueryRow(1).Scan(&id, &got))
			if got != same {
				t.Errorf("under %s Ä = A is %v", collation, got)
			}
		}
	}
}

// TestResultsAreOfTheirStatement: a result whose memory comes from the result before has nothing of that.
func TestResultsAreOfTheirStatement(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a TEXT, b TEXT)",
		"INSERT INTO d.t VALUES (1, 'long enough to be seen', 'b'), (2, NULL, 'x'), (3, 'y', NULL), (4, REPEAT('z', 5000), '')"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	st, err := db.Prepare("SELECT a, b FROM d.t WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	want := map[int]string{1: "long enough to be seen|b", 2: "NULL|x", 3: "y|NULL", 4: "5000|"}
	for n := range 40 {
		id := n*7%4 + 1
		var a, b *string
		if err := st.QueryRow(id).Scan(&a, &b); err != nil {
			t.Fatal(err)
		}
		if got := nullable(a) + "|" + nullable(b); got != want[id] {
			t.Errorf("row %d is %s", id, got)
		}
	}
}

func nullable(s *string) string {
	switch {
	case s == nil:
		return "NULL"
	case len(*s) > 100:
		return fmt.Sprint(len(*s))
	}
	return *s
}

// TestHeadersAreShared: connections run one plan at once, and its header does not change.
func TestHeadersAreShared(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, f DOUBLE, j JSON, ts DATETIME(3))", "INSERT INTO d.t VALUES (1, 1e20, '{\"a\": 1}', '2024-01-02 03:04:05.678')"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	var running sync.WaitGroup
	for _, q := range []string{"SELECT f, j, ts FROM d.t WHERE id = ? ORDER BY id LIMIT 1", "SELECT a.f, b.j, a.ts FROM d.t a JOIN d.t b ON b.id = a.id WHERE a.id = ?"} {
		for range 4 {
			running.Go(func() {
				for range 20 {
					var f, j, ts string
					if err := db.QueryRow(q, 1).Scan(&f, &j, &ts); err != nil || f != "1e+20" && f != "1e20" || j != `{"a": 1}` || ts != "2024-01-02 03:04:05.678" {
						t.Errorf("%s: %s, %s, %s, %v", q, f, j, ts, err)
					}
				}
			})
		}
	}
	running.Wait()
}
