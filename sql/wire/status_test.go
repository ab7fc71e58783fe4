package wire

import (
	"bytes"
	stdsql "database/sql"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dolthub/vitess/go/mysql"
)

// statusOf returns what SHOW STATUS shows.
func statusOf(t *testing.T, c *mysql.Conn, scope string) map[string]string {
	t.Helper()
	res, err := c.ExecuteFetch("SHOW "+scope+" STATUS", 1000, false)
	must(t, err)
	all := make(map[string]string)
	for _, row := range res.Rows {
		all[row[0].ToString()] = row[1].ToString()
	}
	return all
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}

// Every number that SHOW STATUS shows counts what its name says, and what is not counted is
// not shown.
func TestStatusCounts(t *testing.T) {
	s := newFarmServer(t)
	c, other := s.connect("root", 0), s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "CREATE PROCEDURE d.p() BEGIN SELECT 1; SELECT 2; END"} {
		seen(c, q)
	}
	statements := map[string][]string{
		"Com_select":         {"SELECT * FROM d.t WHERE id = 1", "SELECT 1 UNION SELECT 2"},
		"Com_insert":         {"INSERT INTO d.t VALUES (1, 1)", "INSERT INTO d.t VALUES (2, 1)", "INSERT INTO d.t VALUES (3, 1)"},
		"Com_insert_select":  {"INSERT INTO d.t SELECT id + 10, v FROM d.t"},
		"Com_replace":        {"REPLACE INTO d.t VALUES (1, 1)"},
		"Com_replace_select": {"REPLACE INTO d.t SELECT id + 20, v FROM d.t"},
		"Com_update":         {"UPDATE d.t SET v = 2 WHERE id = 1"},
		"Com_update_multi":   {"UPDATE d.t a JOIN d.t b ON a.id = b.id SET a.v = 3"},
		"Com_delete":         {"DELETE FROM d.t WHERE id = 1"},
		"Com_delete_multi":   {"DELETE a FROM d.t a JOIN d.t b ON a.id = b.id WHERE a.id = 2"},
		"Com_begin":          {"BEGIN", "START TRANSACTION"},
		"Com_commit":         {"COMMIT"},
		"Com_rollback":       {"ROLLBACK"},
		"Com_set_option":     {"SET @a = 1"},
		"Com_change_db":      {"USE d"},
		"Com_call_procedure": {"CALL d.p()"},
	}
	before, session := statusOf(t, other, "GLOBAL"), statusOf(t, c, "SESSION")
	asked := 1 // SHOW SESSION STATUS
	for _, queries := range statements {
		for _, q := range queries {
			for range 3 {
				seen(c, q) // whether it fails or not
				asked++
			}
		}
	}
	after, sessionAfter := statusOf(t, other, "GLOBAL"), statusOf(t, c, "SESSION")
	for name, queries := range statements {
		for _, d := range [][2]string{{before[name], after[name]}, {session[name], sessionAfter[name]}} {
			if got, want := number(t, d[1])-number(t, d[0]), 3*len(queries); got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
	}
	asked++ // SHOW GLOBAL STATUS
	if got := number(t, after["Questions"]) - number(t, before["Questions"]); got != asked {
		t.Errorf("Questions: %d, want %d", got, asked)
	}
	if got := number(t, after["Queries"]) - number(t, before["Queries"]); got != asked+3*2 {
		t.Errorf("Queries: %d, want %d", got, asked+6)
	}
	for name, want := range map[string]string{"Threads_connected": "2", "Connections": "2", "Max_used_connections": "2", "Threads_running": "1", "Aborted_connects": "0"} {
		if after[name] != want {
			t.Errorf("%s: %q, want %s", name, after[name], want)
		}
	}
	for _, name := range []string{"Bytes_received", "Bytes_sent"} {
		if mine, all := number(t, sessionAfter[name]), number(t, after[name]); mine < 1000 || all < mine {
			t.Errorf("%s: %d of %d", name, mine, all)
		}
	}
	if _, ok := after["Handler_read_first"]; ok {
		t.Error("what is not counted is shown")
	}
	// The counts of connections that are closed are kept.
	other.Close()
	eventually(t, "the connection is gone", func() bool { return statusOf(t, c, "GLOBAL")["Threads_connected"] == "1" })
	if got := number(t, statusOf(t, c, "GLOBAL")["Com_select"]); got < number(t, after["Com_select"]) {
		t.Errorf("Com_select falls to %d", got)
	}
	if _, err := mysql.Connect(t.Context(), &mysql.ConnParams{Host: "127.0.0.1", Port: s.addr.Port, Uname: "nobody"}); err == nil {
		t.Error("nobody is let in")
	}
	if got := statusOf(t, c, "GLOBAL")["Aborted_connects"]; got != "1" {
		t.Errorf("Aborted_connects: %s", got)
	}
}

func TestStatusOfPrepared(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	stmt, err := db.Prepare("SELECT ?")
	must(t, err)
	for range 4 {
		var n int
		must(t, stmt.QueryRow(7).Scan(&n))
	}
	must(t, stmt.Close())
	got := statusOf(t, s.connect("root", 0), "GLOBAL")
	if got["Com_stmt_prepare"] != "1" || got["Com_stmt_execute"] != "4" || got["Com_select"] != "4" {
		t.Errorf("prepared %s, executed %s, selected %s", got["Com_stmt_prepare"], got["Com_stmt_execute"], got["Com_select"])
	}
}

// safeBuffer is a buffer that a server may log to.
type safeBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) text() string {
	b.Lock()
	defer b.Unlock()
	return b.String()
}

func TestSlowLog(t *testing.T) {
	var log safeBuffer
	s := newFarmServerWith(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := s.connect("root", 0)
	lines := func(query string) int {
		before := strings.Count(log.text(), "slow statement")
		seen(c, query)
		return strings.Count(log.text(), "slow statement") - before
	}
	if n := lines("SELECT SLEEP(0.05)"); n != 0 {
		t.Errorf("%d lines without slow_query_log", n)
	}
	seen(c, "SET long_query_time = 0.02")
	if n := lines("SELECT SLEEP(0.05)"); n != 0 {
		t.Errorf("%d lines without slow_query_log", n)
	}
	seen(c, "SET GLOBAL slow_query_log = ON")
	defer seen(c, "SET GLOBAL slow_query_log = OFF")
	if n := lines("SELECT SLEEP(0.05), 'this one'"); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
	if got := log.text(); !strings.Contains(got, "user=root") || !strings.Contains(got, "rows_sent=1") || !strings.Contains(got, "'this one'") {
		t.Errorf("log: %s", got)
	}
	seen(c, "SET long_query_time = 0")
	if n := lines("SELECT 1"); n != 1 {
		t.Errorf("%d lines with long_query_time = 0", n)
	}
	seen(c, "CREATE USER joe IDENTIFIED BY 'secret'")
	seen(c, "ALTER USER joe IDENTIFIED BY 'secret'")
	seen(c, "SET PASSWORD FOR joe = 'secret'")
	if strings.Contains(log.text(), "secret") {
		t.Errorf("a password is logged: %s", log.text())
	}
	if got := number(t, statusOf(t, c, "SESSION")["Slow_queries"]); got < 5 {
		t.Errorf("Slow_queries: %d", got)
	}
}
