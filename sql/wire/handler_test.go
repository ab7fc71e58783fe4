package wire

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/dolthub/go-mysql-server/memory"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	driverlib "github.com/go-sql-driver/mysql"
)

// conflictUntil makes the first n attempts of every statement conflict.
func conflictUntil(n int) func(Statement, int, error) error {
	return func(_ Statement, attempt int, err error) error {
		if attempt <= n {
			return gms.ErrLockDeadlock.New("lost")
		}
		return err
	}
}

func wantError(t *testing.T, err error, number uint16, state, text string) {
	t.Helper()
	var e *driverlib.MySQLError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want MySQL error %d", err, number)
	}
	if e.Number != number || string(e.SQLState[:]) != state || !strings.Contains(e.Message, text) {
		t.Fatalf("got %d (%s) %q, want %d (%s) with %q", e.Number, e.SQLState, e.Message, number, state, text)
	}
}

func TestConflictIsRetriedUnseen(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key)", "insert into t values (1),(2)")
	before := s.Stats()
	for _, query := range []string{"select count(*) from t", "select a from t where a > 1", "show tables"} {
		s.script.reset(conflictUntil(3))
		var v string
		if err := db.QueryRow(query).Scan(&v); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if s.script.ended != 4 {
			t.Errorf("%s: %d attempts, want 4", query, s.script.ended)
		}
	}
	if got := s.Stats().Sub(before); got.Retries != 9 || got.Conflicts != 9 {
		t.Errorf("stats: %v, want 9 conflicts and retries", got)
	}
}

func TestConflictIsRetriedForPrepared(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key, b varchar(10))", "insert into t values (1,'x')")
	st, err := db.Prepare("select b from t where a = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s.script.reset(conflictUntil(2))
	var b string
	if err := st.QueryRow(1).Scan(&b); err != nil || b != "x" {
		t.Fatalf("got %q, %v", b, err)
	}
	if s.script.ended != 3 {
		t.Errorf("%d attempts, want 3", s.script.ended)
	}
}

func TestRetryIsBounded(t *testing.T) {
	s := startServer(t, Config{RetryMax: 5})
	db := s.open(t, "")
	s.script.reset(conflictUntil(1 << 30))
	_, err := db.Exec("create table t (a int)")
	wantError(t, err, 1213, "40001", "Deadlock found")
	if s.script.ended != 6 {
		t.Errorf("%d attempts, want 1 and 5 retries", s.script.ended)
	}
}

func TestNoRetryInsideTransaction(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key)")
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustExec(t, c, "begin")
	s.script.reset(conflictUntil(1))
	_, err = c.ExecContext(t.Context(), "insert into t values (1)")
	wantError(t, err, 1213, "40001", "Deadlock found")
	if s.script.ended != 1 {
		t.Errorf("%d attempts inside a transaction, want 1", s.script.ended)
	}
}

// A statement whose effects cannot be rolled back must not be run twice.
func TestNoRetryOfSideEffects(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "multiStatements=true")
	mustExec(t, db, "select 1")
	for _, query := range []string{
		"set @a = 1",
		"select @a := 1",
		"select get_lock('x', 1)",
		"select 1 into @b",
	} {
		s.script.reset(conflictUntil(1))
		_, err := db.Exec(query)
		wantError(t, err, 1213, "40001", "Deadlock found")
		if s.script.ended != 1 {
			t.Errorf("%s: %d attempts, want 1", query, s.script.ended)
		}
	}
}

// A SELECT whose transaction fails at its very end has sent nothing: the client
// gets the error, not rows and a broken connection.
func TestNoRowsBeforeTheEnd(t *testing.T) {
	s := startServer(t, Config{RetryMax: -1})
	db := s.open(t, "")
	db.SetMaxOpenConns(1)
	mustExec(t, db, "create table t (a int primary key)")
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprintf("(%d)", i))
	}
	mustExec(t, db, "insert into t values "+strings.Join(values, ","))
	for _, query := range []string{"select a from t", "select a from t where a = 7", "select count(*) from t"} {
		s.script.reset(conflictUntil(1))
		rows, err := db.Query(query)
		if err == nil {
			for rows.Next() {
				t.Fatalf("%s: a row of a failed statement arrived", query)
			}
			err = rows.Err()
		}
		wantError(t, err, 1213, "40001", "Deadlock found")
	}
	s.script.reset(nil)
	var n int
	if err := db.QueryRow("select count(*) from t").Scan(&n); err != nil || n != 1000 {
		t.Fatalf("the connection did not survive: %d, %v", n, err)
	}
}

// The engine reuses its row memory while later rows are made: what is held back
// must be copied.
func TestBufferedRowsKeepTheirValues(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key, b varchar(200), c double, d datetime)")
	for i := 0; i < 3000; i += 100 {
		var values []string
		for j := i; j < i+100; j++ {
			values = append(values, fmt.Sprintf("(%d,'%s',%d.5,'2026-01-02 03:04:05')", j, strings.Repeat(fmt.Sprint(j), 20), j))
		}
		mustExec(t, db, "insert into t values "+strings.Join(values, ","))
	}
	for _, prepared := range []bool{false, true} {
		var args []any
		query := "select a, b, c from t order by a"
		if prepared {
			query, args = "select a, b, c from t where a >= ? order by a", []any{0}
		}
		rows, err := db.Query(query, args...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			var a int
			var b string
			var c float64
			if err := rows.Scan(&a, &b, &c); err != nil {
				t.Fatal(err)
			}
			if a != n || b != strings.Repeat(fmt.Sprint(n), 20) || c != float64(n)+0.5 {
				t.Fatalf("row %d: got %d %q %v", n, a, b, c)
			}
			n++
		}
		if rows.Err() != nil || n != 3000 {
			t.Fatalf("%d rows, %v", n, rows.Err())
		}
	}
}

func TestResultBufferLimit(t *testing.T) {
	s := startServer(t, Config{ResultBufferBytes: 64 << 10})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key, b varchar(1000))")
	for i := range 100 {
		mustExec(t, db, fmt.Sprintf("insert into t values (%d, repeat('x', 1000))", i))
	}
	_, err := db.Query("select * from t")
	wantError(t, err, 3170, "HY000", "--result-buffer")
	var n int
	if err := db.QueryRow("select count(*) from (select * from t limit 20) q").Scan(&n); err != nil || n != 20 {
		t.Fatalf("below the limit: %d, %v", n, err)
	}
}

func TestLockingClauses(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key)", "insert into t values (1)")
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := func(query string, args ...any) Statement {
		rows, err := c.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for rows.Next() {
		}
		rows.Close()
		return s.script.lastBegun()
	}
	for query, want := range map[string]Locking{
		"select * from t":                                               LockNone,
		"select * from t FOR Update":                                    LockUpdate,
		"select * from t where a = 1 lock in share mode":                LockShare,
		"select 'for update' from t":                                    LockNone,
		"(select * from t) union (select * from t) for update":          LockUpdate,
		"select * from (select * from t for update) q":                  LockUpdate,
		"select * from t for update skip locked":                        LockUpdate,
		"with q as (select * from t for update) select count(*) from q": LockUpdate,
	} {
		if got := run(query).Locking; got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if got := run("select * from t where a = ? for update", 1).Locking; got != LockUpdate {
		t.Errorf("prepared: %v, want update", got)
	}
	mustExec(t, c, "prepare p from 'select * from t for update'")
	if got := run("execute p").Locking; got != LockUpdate {
		t.Errorf("execute: %v, want update", got)
	}
}

func TestMultiStatements(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "multiStatements=true")
	mustExec(t, db, "create table t (a int primary key); insert into t values (1); insert into t values (2);")
	rows, err := db.Query("select a from t order by a; select count(*) from t ; ")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if !rows.NextResultSet() {
			break
		}
		got = append(got, "|")
	}
	if rows.Err() != nil || strings.Join(got, " ") != "1 2 | 2" {
		t.Fatalf("got %v, %v", got, rows.Err())
	}
	_, err = db.Exec("insert into t values (3); insert into t values (3); insert into t values (4)")
	wantError(t, err, 1062, "23000", "duplicate")
	var n int
	if err := db.QueryRow("select count(*) from t").Scan(&n); err != nil || n != 3 {
		t.Fatalf("after the failed one nothing runs: %d, %v", n, err)
	}
}

// The error for a missing object has a number of its own if the object was to be dropped.
func TestErrorsThatDependOnTheStatement(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key, b int)")
	for query, want := range map[string]struct {
		number uint16
		state  string
	}{
		"select * from nothing":             {1146, "42S02"},
		"drop table nothing":                {1051, "42S02"},
		"use nothing":                       {1049, "42000"},
		"drop database nothing":             {1008, "HY000"},
		"select nothing from t":             {1054, "42S22"},
		"alter table t drop column nothing": {1091, "42000"},
	} {
		_, err := db.Exec(query)
		wantError(t, err, want.number, want.state, "nothing")
	}
}

// The error for a missing table names the table's database, if the statement shows which that is.
func TestMissingTable(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key)", "create database other", "create table gone (a int primary key)",
		"create view v as select * from gone", "drop table gone", "create table other.nothing (a int primary key)")
	for query, want := range map[string]string{
		"select * from nothing":                           "Table 'test.nothing' doesn't exist",
		"select * from nothin join other.nothing":         "Table 'test.nothin' doesn't exist",
		"select * from other.t":                           "Table 'other.t' doesn't exist",
		"insert into missing values (1)":                  "Table 'test.missing' doesn't exist",
		"update missing set a = 1":                        "Table 'test.missing' doesn't exist",
		"delete from other.missing":                       "Table 'other.missing' doesn't exist",
		"select * from t where a in (select a from none)": "Table 'test.none' doesn't exist",
		"select missing.a from other.missing":             "Table 'other.missing' doesn't exist",
		"delete missing from other.missing":               "Table 'other.missing' doesn't exist",
		"select * from other.nothing join nothing":        "Table 'nothing' doesn't exist", // of which database is not told
	} {
		_, err := db.Exec(query)
		wantError(t, err, 1146, "42S02", want)
		_, err = db.Prepare(query)
		wantError(t, err, 1146, "42S02", want)
	}
	_, err := db.Exec("drop table missing")
	wantError(t, err, 1051, "42S02", "Unknown table 'test.missing'")
	_, err = db.Exec("signal sqlstate '45000' set message_text = 'table not found: x'")
	wantError(t, err, 1644, "45000", "table not found: x")
	_, err = db.Exec("select * from v")
	wantError(t, err, 1356, "HY000", "View 'test.v' references invalid table(s)")
}

// The words beside an OK once made clients see a malformed packet.
func TestPrepareByStatement(t *testing.T) {
	s := startServer(t, Config{})
	c := dialRaw(t, s.addr)
	ok := c.command(t, append([]byte{3}, "prepare p from 'select 1'"...))
	if len(ok) != 7 {
		t.Errorf("the OK packet has %d bytes, want 7: %q", len(ok), ok)
	}
	if got := c.exec(t, "execute p"); !strings.Contains(got, "1") {
		t.Errorf("got %q", got)
	}
}

func TestSyntaxErrorAndEmptyStatement(t *testing.T) {
	s := startServer(t, Config{})
	for _, options := range []string{"", "multiStatements=true"} {
		db := s.open(t, options)
		_, err := db.Exec("selec 1")
		wantError(t, err, 1064, "42000", "syntax error")
		mustExec(t, db, "-- nothing", "")
	}
}

func TestReadOnlyTransaction(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key)", "insert into t values (1)")
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustExec(t, c, "start transaction read only", "select * from t")
	for _, query := range []string{"insert into t values (2)", "update t set a = 2", "delete from t"} {
		_, err := c.ExecContext(t.Context(), query)
		wantError(t, err, 1792, "25006", "READ ONLY")
	}
	_, err = c.ExecContext(t.Context(), "delete from t where a = ?", 1)
	wantError(t, err, 1792, "25006", "READ ONLY")
	mustExec(t, c, "commit", "delete from t")
}

// Where the engine writes a value unlike MySQL, it is put right.
func TestValuesAreWrittenAsMySQLDoes(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db, "create table t (a int primary key, d decimal(10,2), e decimal(10,3), t time, u time)",
		"insert into t values (1, 10, 1.5, '12:30:45', '-01:02:03.25'), (2, 20.5, 0.125, null, null)")
	for query, want := range map[string]string{
		"select d from t where a = 1":     "10.00",
		"select 1.25 + 1.5":               "2.75",
		"select t from t where a = 1":     "12:30:45",
		"select u from t where a = 1":     "-01:02:03.250000",
		"select cast(7 as decimal(20,4))": "7.0000",
		"select group_concat(d) from t":   "10.00,20.50",
	} {
		var got string
		if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", query, got, err, want)
		}
	}
}

func TestPanicIsTheStatementsError(t *testing.T) {
	h := handler{cfg: Config{}.WithDefaults(), log: Config{}.WithDefaults().Logger}
	err := h.guard(statement{text: "select boom"}, func() error { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "internal error: boom") {
		t.Fatalf("got %v", err)
	}
}

// A UNION whose first SELECT has more columns than the second made go-mysql-server panic.
func TestUnionsOfUnequalColumns(t *testing.T) {
	db := startServer(t, Config{}).open(t, "")
	mustExec(t, db, "create table t (a int, b int)")
	for _, query := range []string{
		"select 1, 2 union select 1", "select 1, 2 except select 1", "select * from t union select 1",
		"select * from (select 1, 2 union select 1) d", "(select 1, 2) union (select 1) limit 1", "create view v as select 1, 2 union select 1",
	} {
		for range 3 {
			_, err := db.Exec(query)
			wantError(t, err, 1222, "21000", "different number of columns")
		}
	}
}

// The parameters of a UNION's ORDER BY and LIMIT, and of what EXPLAIN explains, are counted.
func TestParametersOfUnions(t *testing.T) {
	db := startServer(t, Config{}).open(t, "")
	mustExec(t, db, "create table t (a int primary key)", "insert into t values (1), (2), (3)")
	for _, s := range []struct {
		query string
		args  []any
		want  string
	}{
		{"select a from t union select a + ? from t order by a limit ?, ?", []any{3, 3, 1}, "4"},
		{"(select a from t order by a limit ?) union (select 9 limit ?) order by 1 desc limit ?", []any{1, 1, 1}, "9"},
		{"with w as (select ? x) select x from w union select ? limit ?, ?", []any{7, 8, 1, 1}, "8"},
	} {
		var got string
		if err := db.QueryRow(s.query, s.args...).Scan(&got); err != nil || got != s.want {
			t.Errorf("%s: %v (%v), want %s", s.query, got, err, s.want)
		}
	}
	rows, err := db.Query("explain select a from t where a = ?", 1)
	if err != nil {
		t.Fatal(err)
	}
	rows.Close()
}

// A panic in a goroutine of the engine comes as an error with the stack, which is logged.
func TestStackIsNotTheClients(t *testing.T) {
	var logged bytes.Buffer
	h := handler{cfg: Config{}.WithDefaults(), log: slog.New(slog.NewTextHandler(&logged, nil))}
	err := h.guard(statement{text: "select boom"}, func() error { return fmt.Errorf("panic recovered: boom\n%s", debug.Stack()) })
	if err == nil || !strings.HasSuffix(err.Error(), "internal error: boom (errno 1105) (sqlstate HY000)") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"select boom", "handler_test.go"} {
		if !strings.Contains(logged.String(), text) {
			t.Errorf("logged: %s, without %s", &logged, text)
		}
	}
	err = h.guard(statement{}, func() error { return errors.New("a\ngoroutine b") })
	if err == nil || err.Error() != "a\ngoroutine b" {
		t.Errorf("got %v", err)
	}
}

func TestKill(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	_, err := db.Exec("kill 424242")
	wantError(t, err, 1094, "HY000", "Unknown thread id: 424242")

	victim, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	var id int
	if err := victim.QueryRowContext(t.Context(), "select connection_id()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		var v string
		result <- victim.QueryRowContext(context.Background(), "select sleep(60)").Scan(&v)
	}()
	eventually(t, "the victim sleeps", func() bool {
		var n int
		_ = db.QueryRow(fmt.Sprintf("select count(*) from information_schema.processlist where id = %d and info like '%%sleep%%'", id)).Scan(&n)
		return n == 1
	})
	mustExec(t, db, fmt.Sprintf("kill query %d", id))
	select {
	case err := <-result:
		wantError(t, err, 1317, "70100", "interrupted")
	case <-time.After(20 * time.Second):
		t.Fatal("KILL QUERY did not end the statement")
	}
	if err := victim.PingContext(t.Context()); err != nil {
		t.Fatalf("KILL QUERY ended the connection: %v", err)
	}
	mustExec(t, db, fmt.Sprintf("kill %d", id))
	eventually(t, "the killed connection is gone", func() bool {
		return victim.PingContext(context.Background()) != nil
	})
}

// A driver without client-side interpolation prepares and closes a statement
// for every query: the notes must not pile up.
func TestPreparedNotesAreSwept(t *testing.T) {
	session := &testSession{Session: memory.NewSession(gms.NewBaseSession(), nil)}
	state := &connState{session: session, engine: session.Session, prepared: make(map[uint32]statement)}
	c := &mysql.Conn{PrepareData: map[uint32]*mysql.PrepareData{1: {StatementID: 1}}}
	state.remember(c, 1, "select a from t for update")
	for id := uint32(2); id < 1000; id++ {
		state.remember(c, id, "select 1")
		if n := len(state.prepared); n > 20 {
			t.Fatalf("%d notes for one open statement", n)
		}
	}
	if _, ok := state.prepared[1]; !ok {
		t.Fatal("the open statement was swept out")
	}
}

func TestFailedPrepareLeavesNothing(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	for range 3 {
		_, err := db.Prepare("select * from missing where a = ?")
		wantError(t, err, 1146, "42S02", "missing")
	}
	var v int
	if err := db.QueryRow("select ?", 5).Scan(&v); err != nil || v != 5 {
		t.Fatal(v, err)
	}
}

func TestUserMatters(t *testing.T) {
	s := startServer(t, Config{})
	db := s.open(t, "")
	mustExec(t, db,
		"create table t (a int primary key)", "insert into t values (1)",
		"create view v as select a from t",
		"create user reader@localhost identified by 'secret'",
		"grant select on test.* to reader@localhost")
	reader, err := stdsql.Open("mysql", fmt.Sprintf("reader:secret@tcp(%s)/test", s.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var n int
	if err := reader.QueryRow("select count(*) from v").Scan(&n); err != nil || n != 1 {
		t.Fatalf("select: %d, %v", n, err)
	}
	if err := reader.QueryRow("select count(*) from information_schema.tables where table_schema = 'test'").Scan(&n); err != nil || n != 2 {
		t.Fatalf("information_schema: %d, %v", n, err)
	}
	_, err = reader.Exec("insert into t values (2)")
	wantError(t, err, 1142, "42000", "denied")
	wrong, err := stdsql.Open("mysql", fmt.Sprintf("reader:wrong@tcp(%s)/test", s.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	wantError(t, wrong.Ping(), 1045, "28000", "Access denied")
}
