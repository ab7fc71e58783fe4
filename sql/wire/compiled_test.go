package wire

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	_ "github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/account"
)

// A farmServer is a Server over this database's own storage.
type farmServer struct {
	t      *testing.T
	server *Server
	addr   *net.TCPAddr
}

func newFarmServer(t *testing.T) *farmServer {
	t.Helper()
	return newFarmServerWith(t, Config{})
}

func newFarmServerWith(t *testing.T, cfg Config) *farmServer {
	t.Helper()
	cluster, err := farm.Open(farm.Config{RegionBytes: 8 << 20, LogBytes: 4 << 20})
	must(t, err)
	cat, err := sql.OpenCatalog(context.Background(), cluster.Machine(0), cluster.Root(), catalog.Config{})
	must(t, err)
	engine, err := sql.NewEngine(cluster.Machine(0), cat, sql.Options{Accounts: account.New(clock.System{}, false)})
	must(t, err)
	server, err := New(cfg, OverSQL(engine))
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(context.Background(), l) }) // Close ends it
	t.Cleanup(func() {
		must(t, server.Close())
		serving.Wait()
		must(t, engine.Close(context.Background()))
		must(t, cat.Close(context.Background()))
		must(t, cluster.Close())
	})
	return &farmServer{t, server, l.Addr().(*net.TCPAddr)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *farmServer) connect(user string, flags uint64) *mysql.Conn {
	s.t.Helper()
	c, err := mysql.Connect(context.Background(), &mysql.ConnParams{Host: "127.0.0.1", Port: s.addr.Port, Uname: user, Flags: flags})
	must(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// seen is all that a client sees of a statement.
func seen(c *mysql.Conn, query string) string {
	res, warnings, err := c.ExecuteFetchWithWarningCount(query, 1000, true)
	if err != nil {
		return err.Error()[:strings.Index(err.Error(), "during query:")] // the query follows
	}
	var b strings.Builder
	for _, f := range res.Fields {
		fmt.Fprintf(&b, "%v\n", f)
	}
	for _, row := range res.Rows {
		fmt.Fprintf(&b, "%v\n", row)
	}
	fmt.Fprintf(&b, "affected %d, id %d, warnings %d, status %x\n", res.RowsAffected, res.InsertID, warnings, c.StatusFlags)
	return b.String()
}

// planned is a statement that does not run compiled, because of its comment.
func planned(query string) string { return strings.Replace(query, " ", " /*!*/ ", 1) }

const compiledTable = `CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, u BIGINT UNSIGNED, d DECIMAL(8,3), f DOUBLE, c CHAR(10) NOT NULL, v VARCHAR(10) COLLATE utf8mb4_bin,
	b VARBINARY(5), x BLOB, dt DATETIME(3), tm TIME, y YEAR, e ENUM('a','b'), j JSON, bit BIT(4), UNIQUE KEY (u))`

// Compiled statements look the same on the wire as planned ones.
func TestCompiledOnTheWire(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", compiledTable, "USE d",
		"INSERT INTO t VALUES (1, 10, 1.5, 1e20, 'c', 'v', 'b', 'x', '2024-01-02 03:04:05.678', '01:02:03', 2024, 'a', '{\"a\": 1}', b'101')",
		"INSERT INTO t (id, u, c) VALUES (2, NULL, ''), (3, 18446744073709551615, 'ä')"} {
		seen(c, q)
	}
	run := func(queries ...string) {
		t.Helper()
		for _, q := range queries {
			before := s.server.Stats().Compiled
			for range 3 {
				got, want := seen(c, q), seen(c, planned(q))
				if got != want {
					t.Errorf("%s\ngot\n%s\nwant\n%s", q, got, want)
				}
			}
			if s.server.Stats().Compiled < before+2 && !strings.Contains(q, "nosuch") {
				t.Errorf("not compiled: %s", q)
			}
		}
	}
	reads := []string{"SELECT * FROM t WHERE id=1", "SELECT * FROM t WHERE id=2;", "SELECT c AS other, d FROM t WHERE id = 77", "SELECT * FROM t WHERE id BETWEEN 1 AND 3",
		"SELECT SUM(u) FROM t WHERE id BETWEEN 1 AND 2", "SELECT DISTINCT c FROM t WHERE id BETWEEN 1 AND 3 ORDER BY c", "SELECT id FROM t WHERE u = 10", "SELECT v, u, c, id AS x, v FROM t WHERE id BETWEEN 1 AND 3", "SELECT u FROM t WHERE id BETWEEN 1 AND 3 ORDER BY c DESC", "SELECT DISTINCT v FROM t WHERE id BETWEEN 1 AND 3",
		"SELECT SUM(id), SUM(id) AS other FROM t WHERE id BETWEEN 1 AND 3", "SELECT SUM(id) FROM t WHERE id BETWEEN 100 AND 300", "SELECT b.c AS x, a.*, b.id FROM t a, t AS b WHERE a.id = 1 AND b.id = 3",
		"SELECT SUM(b.d), a.u FROM t a JOIN t b ON a.id = b.id WHERE a.id = 1", "SELECT nosuch FROM t WHERE id = 1"}
	run(reads...)
	changes := []string{"UPDATE t SET c = 'new' WHERE id = 1", "UPDATE t SET u = u + 1 WHERE id = 1", "UPDATE t SET c = 'new' WHERE id = 99", "DELETE FROM t WHERE id = 99"}
	seen(c, changes[0])
	run(changes[0]) // to what it is already
	run(changes[2:]...)
	run("START TRANSACTION", "COMMIT WORK", "ROLLBACK WORK")
	found := s.connect("root", mysql.CapabilityClientFoundRows)
	seen(found, "USE d")
	for _, q := range changes {
		for range 3 {
			if got := seen(found, q); strings.Contains(q, "99") != strings.Contains(got, "affected 0") {
				t.Errorf("%s, counting what is found: %s", q, got)
			}
		}
	}
	for _, q := range []string{"SET NAMES latin1", "SET autocommit = 0", "BEGIN", "SET character_set_results = NULL"} {
		seen(c, q)
		run(reads...)
	}
}

// SELECT ... FOR UPDATE conflicts when it runs compiled, too.
func TestCompiledForUpdate(t *testing.T) {
	s := newFarmServer(t)
	a, b := s.connect("root", 0), s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", compiledTable, "INSERT INTO d.t (id, u, c) VALUES (1, 1, 'c'), (2, 2, 'd')"} {
		seen(a, q)
	}
	for _, read := range []string{"SELECT c FROM d.t WHERE id = 1 FOR UPDATE", "SELECT SUM(u) FROM d.t WHERE id BETWEEN 1 AND 2 FOR UPDATE"} {
		seen(a, read)
		seen(a, read)
		seen(a, "BEGIN")
		before := s.server.Stats().Compiled
		seen(a, read)
		if s.server.Stats().Compiled != before+1 {
			t.Errorf("not compiled: %s", read)
		}
		seen(b, "UPDATE d.t SET u = u + 10 WHERE id = 1")
		if got := seen(a, "COMMIT"); !strings.Contains(got, "1213") {
			t.Errorf("%s: commit after another's change: %s", read, got)
		}
	}
}

// Prepared statements run compiled, too.
func TestCompiledPrepared(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/", s.addr))
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"CREATE DATABASE d", compiledTable, "USE d", "CREATE TABLE s (id INT PRIMARY KEY, c CHAR(10) NOT NULL, v VARCHAR(10), n INT, UNIQUE KEY (v))", "INSERT INTO s VALUES (1, 'x', 'y', 1), (2, 'a', '1', 3)",
		"CREATE TABLE k (k BINARY(2) PRIMARY KEY, v VARBINARY(3))", "INSERT INTO k VALUES (x'ff01', x'00'), ('ab', 'v')", "INSERT INTO t (id, u, d, c, dt) VALUES (1, 10, 1.5, 'c', '2024-01-02'), (2, 11, NULL, 'ä', NULL)"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	before := s.server.Stats().Compiled
	for _, q := range []string{"SELECT * FROM t WHERE id = ?", "SELECT c FROM t WHERE u = ?", "SELECT c, d, dt FROM t WHERE id BETWEEN 1 AND ?", "SELECT SUM(u) FROM t WHERE id BETWEEN ? AND 5", "SELECT DISTINCT c, u, v FROM t WHERE id BETWEEN ? AND 5 ORDER BY u DESC", "SELECT SUM(id) FROM t WHERE id BETWEEN ? AND 5",
		"SELECT * FROM s WHERE v = ?", "UPDATE s SET c = ? WHERE id = 1", "UPDATE s SET n = n + ? WHERE id = 77", "DELETE FROM s WHERE v = ?", "INSERT INTO s (id, c) VALUES (1, ?)",
		"SELECT * FROM k WHERE k = ?", "UPDATE k SET v = ? WHERE k = 'ab'", "UPDATE s SET n = ? WHERE id = 2", "UPDATE s SET n = 1 WHERE id = 2 AND n = ?"} {
		stmt, err := db.Prepare(q)
		must(t, err)
		other, err := db.Prepare(planned(q))
		must(t, err)
		for _, v := range []any{1, 2, 2, 3, -1, 10, 11, "1", "x", nil, 1.5, []byte("1"), []byte("\xff\x01"), uint64(1<<64 - 1)} {
			if got, want := fetched(stmt, v), fetched(other, v); got != want {
				t.Errorf("%s with %v\ngot\n%swant\n%s", q, v, got, want)
			}
		}
		must(t, stmt.Close())
		must(t, other.Close())
	}
	if n := s.server.Stats().Compiled - before; n < 58 {
		t.Errorf("%d statements ran compiled", n)
	}
}

// A result larger than the result buffer is an error, whether the statement is compiled or not.
func TestCompiledResultLimit(t *testing.T) {
	s := newFarmServerWith(t, Config{ResultBufferBytes: 64 << 10})
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, k INT, c VARCHAR(1000))"} {
		seen(c, q)
	}
	for i := range 100 {
		seen(c, fmt.Sprintf("INSERT INTO d.t VALUES (%d, 1, '%01000d')", i, i))
	}
	for q, large := range map[string]bool{
		"SELECT c FROM d.t WHERE id BETWEEN 0 AND 99": true, "SELECT c FROM d.t WHERE id BETWEEN 0 AND 20": false, "SELECT id FROM d.t WHERE id BETWEEN 0 AND 99": false, "SELECT DISTINCT c FROM d.t WHERE id BETWEEN 0 AND 70": true,
	} {
		seen(c, q)
		before := s.server.Stats().Compiled
		got := seen(c, q)
		if strings.Contains(got, "3170") != large || got != seen(c, planned(q)) {
			t.Errorf("%s: %.200s", q, got)
		}
		if s.server.Stats().Compiled != before+1 {
			t.Errorf("not compiled: %s", q)
		}
	}
}

// fetched is what a prepared statement returns.
func fetched(stmt *stdsql.Stmt, args ...any) string {
	rows, err := stmt.Query(args...)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	var b strings.Builder
	columns, err := rows.ColumnTypes()
	if err != nil {
		return err.Error()
	}
	values, to := make([]any, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		nullable, _ := c.Nullable()
		fmt.Fprintf(&b, "%s %s %v %v; ", c.Name(), c.DatabaseTypeName(), nullable, c.ScanType())
		to[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "\n%q", values)
	}
	return fmt.Sprintln(b.String(), rows.Err())
}

// Grants are asked with every statement: what is taken away is gone at once.
func TestCompiledGrants(t *testing.T) {
	s := newFarmServer(t)
	root := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", compiledTable, "INSERT INTO d.t (id, c) VALUES (1, 'c')", "CREATE USER joe@localhost", "GRANT SELECT ON d.t TO joe@localhost"} {
		seen(root, q)
	}
	joe := s.connect("joe", 0)
	const read = "SELECT c FROM d.t WHERE id = 1"
	good := seen(joe, read)
	for range 3 {
		if got := seen(joe, read); got != good || !strings.Contains(got, "CHAR(\"c\")") {
			t.Errorf("granted: %s", got)
		}
	}
	const join = "SELECT t.c FROM d.t, d.other WHERE t.id = 1 AND other.id = 1"
	for _, q := range []string{"CREATE TABLE d.other (id INT PRIMARY KEY)", "INSERT INTO d.other VALUES (1)", join, join} {
		seen(root, q)
	}
	if got, want := seen(joe, join), seen(joe, planned(join)); got != want || !strings.Contains(got, "denied") {
		t.Errorf("a join with a table that is not granted: %s, planned %s", got, want)
	}
	seen(root, "REVOKE SELECT ON d.t FROM joe@localhost")
	if got, want := seen(joe, read), seen(joe, planned(read)); got != want || !strings.Contains(got, "denied") {
		t.Errorf("revoked: %s, planned %s", got, want)
	}
	seen(root, "GRANT SELECT ON d.* TO joe@localhost")
	if got := seen(joe, read); got != good {
		t.Errorf("granted again: %s", got)
	}
	seen(root, "DROP USER joe@localhost")
	if got, want := seen(joe, read), seen(joe, planned(read)); got != want || got == good {
		t.Errorf("dropped: %s, planned %s", got, want)
	}
}

// Counters and the list of processes know compiled statements.
func TestCompiledIsCounted(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", compiledTable} {
		seen(c, q)
	}
	count := func(name, query string) string {
		value := func() int64 {
			res, err := c.ExecuteFetch("SHOW STATUS LIKE '"+name+"'", 1, false)
			must(t, err)
			n, err := sqltypes.ToInt64(sqltypes.MakeTrusted(sqltypes.Int64, res.Rows[0][1].Raw()))
			must(t, err)
			return n
		}
		before := value()
		seen(c, query)
		return fmt.Sprint(value() - before)
	}
	const read, change, remove = "SELECT c FROM d.t WHERE id = 1", "UPDATE d.t SET u = u + 1 WHERE id = 1", "DELETE FROM d.t WHERE id = 1"
	for name, q := range map[string]string{"Questions": read, "Com_select": read, "Com_update": change, "Com_delete": remove} {
		for range 3 {
			if got, want := count(name, q), count(name, planned(q)); got != want {
				t.Errorf("%s: %s, planned %s", name, got, want)
			}
		}
	}
	before := s.server.Stats()
	seen(c, read)
	if d := s.server.Stats().Sub(before); d.Statements != 1 || d.Compiled != 1 {
		t.Errorf("one statement is %v", d)
	}
}

// REPLACE tells how many rows it has deleted, and the first number it has drawn,
// whichever way it comes; what a trigger replaces does not count.
func TestReplaceTells(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE, b INT UNIQUE)",
		"INSERT INTO t (a, b) VALUES (1, 1), (2, 2), (3, 3)", "PREPARE p FROM 'REPLACE INTO t (a, b) VALUES (7, 8)'",
		"CREATE TABLE log (a INT UNIQUE, b INT UNIQUE)", "INSERT INTO log VALUES (1, 1), (2, 2)",
		"CREATE TABLE s (i INT)", "CREATE TRIGGER tr AFTER INSERT ON s FOR EACH ROW REPLACE INTO log VALUES (1, 2)"} {
		seen(c, q)
	}
	for _, tc := range []struct {
		statement string
		affected  uint64
		id        uint64
		last      string
	}{
		{"REPLACE INTO t (a, b) VALUES (1, 2)", 3, 4, "4"},
		{"REPLACE INTO t VALUES (3, 9, 9)", 2, 3, "4"},
		{"REPLACE INTO t (a, b) VALUES (7, 7), (8, 8)", 2, 5, "5"},
		{"EXECUTE p", 3, 7, "7"},
		{"INSERT INTO s VALUES (1)", 1, 0, "7"},
		{"REPLACE INTO t (a, b) VALUES (20, 20)", 1, 8, "8"},
	} {
		res, err := c.ExecuteFetch(tc.statement, 10, false)
		must(t, err)
		told, err := c.ExecuteFetch("SELECT ROW_COUNT(), LAST_INSERT_ID()", 10, false)
		must(t, err)
		if row := told.Rows[0]; res.RowsAffected != tc.affected || res.InsertID != tc.id ||
			row[0].ToString() != fmt.Sprint(tc.affected) || row[1].ToString() != tc.last {
			t.Errorf("%s: %d affected, id %d, and then %v", tc.statement, res.RowsAffected, res.InsertID, row)
		}
	}
}

// TestInsertIDs: clients were told the last id of any table after ON DUPLICATE KEY UPDATE and
// REPLACE, and 0 after an UPDATE that sets one with LAST_INSERT_ID(n). The first generated number was
// lost where rows before it were updated or ignored. The results are MariaDB's, but for gaps.
func TestInsertIDs(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE, n INT)", "CREATE TABLE u (id INT PRIMARY KEY, n INT)",
		"CREATE TABLE logged (i INT PRIMARY KEY)", "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, i INT)", "CREATE TRIGGER tr AFTER INSERT ON logged FOR EACH ROW INSERT INTO log (i) VALUES (NEW.i)",
		"INSERT INTO u VALUES (1, 1)", "INSERT INTO t (a) VALUES (1), (2), (3)", "PREPARE p FROM 'INSERT INTO u VALUES (1, 5) ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + 2)'"} {
		seen(c, q)
	}
	for _, tc := range []struct {
		statement string
		id        uint64
		last      string
	}{
		{"INSERT INTO u VALUES (1, 2) ON DUPLICATE KEY UPDATE n = 2", 0, "1"},
		{"REPLACE INTO u VALUES (1, 3)", 0, "1"},
		{"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE n = 4", 1, "1"},
		{"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE n = 4", 0, "1"},
		{"INSERT INTO t (a) VALUES (3) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = 5", 3, "3"},
		{"INSERT INTO t (a) VALUES (3) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = 6", 3, "3"},
		{"UPDATE u SET n = 7", 0, "3"},
		{"UPDATE u SET n = LAST_INSERT_ID(77)", 77, "77"},
		{"UPDATE u SET n = 8", 0, "77"},
		{"EXECUTE p", 10, "10"},
		{"UPDATE u SET n = LAST_INSERT_ID(NULL)", 0, "0"},
		{"INSERT INTO t (id, n) VALUES (1, 0), (2, 0), (DEFAULT, 0) ON DUPLICATE KEY UPDATE n = n + 10", 8, "8"},
		{"INSERT INTO t (id, n) VALUES (2, 1), (1, 1) ON DUPLICATE KEY UPDATE n = 90", 1, "8"},
		{"INSERT IGNORE INTO t (id, n) VALUES (2, 1), (NULL, 1), (NULL, 2)", 9, "9"},
		{"INSERT IGNORE INTO t (id) VALUES (2)", 0, "9"},
		{"INSERT INTO t (id) VALUES (21), (22)", 22, "9"},
		{"INSERT INTO t (id) SELECT NULL FROM u", 23, "23"},
		{"INSERT INTO t (id, n) SELECT id, 91 FROM u ON DUPLICATE KEY UPDATE n = 91", 0, "23"},
		{"INSERT INTO t (id) VALUES (NULL + 0)", 24, "24"},
		{"INSERT INTO t (id, a) VALUES (NULL, 2), (40, 40) ON DUPLICATE KEY UPDATE n = 92", 40, "24"},
		{"INSERT INTO t (n, a) VALUES (1, 41), (2, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", 41, "41"},
		{"INSERT INTO t (id) VALUES (-5)", 1<<64 - 5, "41"},
		{"INSERT INTO logged VALUES (1)", 0, "41"},
	} {
		res, err := c.ExecuteFetch(tc.statement, 10, false)
		must(t, err)
		last, err := c.ExecuteFetch("SELECT LAST_INSERT_ID()", 10, false)
		must(t, err)
		if got := last.Rows[0][0].ToString(); res.InsertID != tc.id || got != tc.last {
			t.Errorf("%s: id %d, and then %s; want %d and %s", tc.statement, res.InsertID, got, tc.id, tc.last)
		}
	}
}

// A prepared statement has the parameters that are executed, wherever they stand.
func TestParametersInComments(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, tt := range []struct {
		query string
		args  []any
	}{
		{"select ? /*!99999 + ? */ + ?", []any{1, 2}},
		{"select ? /*!80031 + ? */ + ? /*M! + ? */", []any{0, 1, 2}},
		{"select 3 + ? where ':v1' = ':v1'", []any{0}},
	} {
		stmt, err := db.Prepare(tt.query)
		if err != nil {
			t.Errorf("%s: %v", tt.query, err)
			continue
		}
		var sum int
		if err := stmt.QueryRow(tt.args...).Scan(&sum); err != nil || sum != 3 {
			t.Errorf("%s: %d, %v", tt.query, sum, err)
		}
		_ = stmt.Close()
	}
}
