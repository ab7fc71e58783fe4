package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; review the diff as code")

// errorLine matches the line that the client prints for an error. The test compares numbers and
// SQLSTATEs, but not texts.
var errorLine = regexp.MustCompile(`(?m)^(ERROR \d+ \([0-9A-Z]+\) at line \d+):.*$`)

// TestSession runs each script in testdata/session with the mariadb command
// line client. The golden files hold what MySQL 8 answers.
func TestSession(t *testing.T) {
	needs(t, "mariadb")
	scripts, err := filepath.Glob("testdata/session/*.sql")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), l.flags()...)
			for _, script := range scripts {
				t.Run(filepath.Base(script), func(t *testing.T) {
					compare(t, script, runClient(t, s, script))
				})
			}
		})
	}
}

func runClient(t *testing.T, s *server, script string) string {
	t.Helper()
	in, err := os.Open(script)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	host, port := s.hostPort()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-h", host, "-P", port, "-u", "root",
		"--default-character-set=utf8mb4", "--force", "--table", "--unbuffered", "-v")
	client.Stdin = in
	out, err := client.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("mariadb: %v\n%s", err, out) // 1 only says that a statement failed
	}
	return errorLine.ReplaceAllString(string(out), "$1")
}

func compare(t *testing.T, script, got string) {
	t.Helper()
	golden := strings.TrimSuffix(script, ".sql") + ".golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	gotParts, wantParts := statements(got), statements(string(want))
	for i := range min(len(gotParts), len(wantParts)) {
		if gotParts[i] != wantParts[i] {
			t.Errorf("got:\n%s\nwant:\n%s", gotParts[i], wantParts[i])
		}
	}
	if len(gotParts) != len(wantParts) {
		t.Errorf("%d answers, want %d", len(gotParts), len(wantParts))
	}
}

// statements splits a client's output into statements, each with its answer.
func statements(output string) []string {
	const bar = "--------------\n"
	parts := strings.Split(output, bar)
	var out []string
	for i := 1; i+1 < len(parts); i += 2 {
		out = append(out, parts[i]+parts[i+1])
	}
	return out
}

// TestDriver uses go-sql-driver/mysql as programs do, with the driver's own choice of the statement
// protocol, and with the text protocol only.
func TestDriver(t *testing.T) {
	for _, l := range layouts {
		s := start(t, t.TempDir(), l.flags()...)
		for _, options := range []string{"", "interpolateParams=true", "multiStatements=true"} {
			t.Run(l.String()+" "+options, func(t *testing.T) {
				schema := "driver_" + strings.NewReplacer("=", "_").Replace(options)
				s.open(t, schema)
				db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/%s?parseTime=true&%s", s.addr, schema, options))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				driverSession(t, db)
			})
		}
	}
}

func driverSession(t *testing.T, db *stdsql.DB) {
	ctx := t.Context()
	exec1(t, db, `create table people (
		id bigint primary key auto_increment, name varchar(50) not null unique, born date, score double,
		amount decimal(12,4), blob_ blob, at datetime(6), flag boolean not null default false)`)
	at := time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	ins, err := db.PrepareContext(ctx, "insert into people (name, born, score, amount, blob_, at, flag) values (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer ins.Close()
	for i := range 50 {
		var born any
		if i%2 == 0 {
			born = time.Date(1990, 1, 1+i, 0, 0, 0, 0, time.UTC)
		}
		res, err := ins.ExecContext(ctx, fmt.Sprintf("p%02d", i), born, float64(i)/3, fmt.Sprintf("%d.0625", i), []byte{0, byte(i), 255}, at, i%3 == 0)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := res.LastInsertId()
		n, _ := res.RowsAffected()
		if id != int64(i+1) || n != 1 {
			t.Fatalf("row %d: id %d, %d affected", i, id, n)
		}
	}
	_, err = ins.ExecContext(ctx, "p00", nil, nil, nil, nil, nil, false)
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != 1062 || string(e.SQLState[:]) != "23000" {
		t.Fatalf("duplicate name: %v", err)
	}
	var (
		name   string
		born   stdsql.NullTime
		score  float64
		amount string
		bytes  []byte
		when   time.Time
		flag   bool
	)
	for i := range 50 {
		err := db.QueryRowContext(ctx, "select name, born, score, amount, blob_, at, flag from people where id = ?", i+1).
			Scan(&name, &born, &score, &amount, &bytes, &when, &flag)
		if err != nil {
			t.Fatal(err)
		}
		if name != fmt.Sprintf("p%02d", i) || born.Valid != (i%2 == 0) || score != float64(i)/3 ||
			amount != fmt.Sprintf("%d.0625", i) || string(bytes) != string([]byte{0, byte(i), 255}) || !when.Equal(at) || flag != (i%3 == 0) {
			t.Fatalf("row %d: %q %v %v %v %v %v %v", i, name, born, score, amount, bytes, when, flag)
		}
		if born.Valid && !born.Time.Equal(time.Date(1990, 1, 1+i, 0, 0, 0, 0, time.UTC)) {
			t.Fatalf("row %d: born %v", i, born.Time)
		}
	}
	driverTransactions(t, db)
}

func driverTransactions(t *testing.T, db *stdsql.DB) {
	ctx := t.Context()
	count := func(q interface {
		QueryRowContext(context.Context, string, ...any) *stdsql.Row
	}) (n int) {
		if err := q.QueryRowContext(ctx, "select count(*) from people").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tx, err := db.BeginTx(ctx, &stdsql.TxOptions{Isolation: stdsql.LevelSerializable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "delete from people where id > ?", 40); err != nil {
		t.Fatal(err)
	}
	if n := count(tx); n != 40 {
		t.Fatalf("inside: %d", n)
	}
	if n := count(db); n != 50 {
		t.Fatalf("outside: %d", n)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := count(db); n != 50 {
		t.Fatalf("after rollback: %d", n)
	}
	if tx, err = db.BeginTx(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "update people set score = score + ? where name like ?", 1.5, "p1%"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var sum float64
	if err := db.QueryRowContext(ctx, "select sum(score) from people where name like ?", "p1%").Scan(&sum); err != nil || sum < 63.32 || sum > 63.34 {
		t.Fatal(sum, err)
	}
}
