package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/kv"
	"github.com/farmsql/farmsql/bench/tatp"
	"github.com/farmsql/farmsql/bench/tpcc"
)

// MySQL's statements run on PostgreSQL, with PostgreSQL's conflicts.
func TestPostgreSQL(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL server")
	}
	dsn, server := postgreSQL(t)
	t.Run("kv", func(t *testing.T) {
		runs(t, opened(t, dsn, nil), func(tg *bench.Target) (bench.Workload, error) {
			return kv.New(tg, kv.Config{Keys: 500, Updates: 50, Seed: 1, Drop: true})
		})
	})
	t.Run("tatp", func(t *testing.T) {
		runs(t, opened(t, dsn, nil), func(tg *bench.Target) (bench.Workload, error) {
			return tatp.New(tg, tatp.Config{Subscribers: 100, Seed: 1, Drop: true})
		})
	})
	t.Run("tpcc", func(t *testing.T) {
		res := runs(t, opened(t, dsn, []int{server}), func(tg *bench.Target) (bench.Workload, error) {
			return tpcc.New(tg, tpcc.Config{Customers: 30, Items: 50, Seed: 1, Drop: true})
		})
		if res.ServerProcessor == 0 {
			t.Error("18,000 statements took the server no time")
		}
	})
	t.Run("deadlock", func(t *testing.T) { deadlock(t, opened(t, dsn, nil)) })
	t.Run("not serializable", func(t *testing.T) {
		skew(t, opened(t, dsn+"&default_transaction_isolation=serializable", nil))
	})
	t.Run("settle", func(t *testing.T) { noSettle(t, opened(t, dsn, nil)) })
}

// runs loads a workload twice; the second time replaces the first. Then it runs and checks the
// workload.
func runs(t *testing.T, tg *bench.Target, workload func(*bench.Target) (bench.Workload, error)) *bench.Result {
	w, err := workload(tg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	res, err := bench.Run(t.Context(), tg, w, bench.Options{Threads: 3, Transactions: 200, Seed: 1, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Total.Count != 600 || !strings.HasPrefix(res.Conditions.Server, "PostgreSQL ") {
		t.Errorf("%d transactions at %s", res.Total.Count, res.Conditions.Server)
	}
	return res
}

func opened(t *testing.T, dsn string, server []int) *bench.Target {
	t.Helper()
	tg, err := bench.Open(t.Context(), bench.TargetConfig{API: bench.SQL, DSN: dsn, ServerProcesses: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

// pair makes a table of two rows and returns two connections.
func pair(t *testing.T, tg *bench.Target) [2]*sql.Conn {
	t.Helper()
	var conns [2]*sql.Conn
	for i := range conns {
		conn, err := tg.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the server may have ended it
		conns[i] = conn
	}
	must(t, conns[0], "DROP DATABASE IF EXISTS pair")
	must(t, conns[0], "CREATE DATABASE pair")
	must(t, conns[0], "CREATE TABLE pair.t (id INT NOT NULL PRIMARY KEY, n INT NOT NULL)")
	must(t, conns[0], "INSERT INTO pair.t VALUES (?, ?), (?, ?)", 0, 0, 1, 0)
	return conns
}

func must(t *testing.T, conn *sql.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// deadlock makes two transactions wait for each other. One of them must be retried.
func deadlock(t *testing.T, tg *bench.Target) {
	conns := pair(t, tg)
	for i, conn := range conns {
		must(t, conn, "START TRANSACTION")
		must(t, conn, "UPDATE pair.t SET n = n + 1 WHERE id = ?", i)
	}
	ended := make(chan error, len(conns))
	for i, conn := range conns {
		go func() {
			_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "UPDATE pair.t SET n = n + 1 WHERE id = ?", 1-i)
			_, rollback := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK") // the other waits for it
			if reason, again := bench.Conflict(err); again && reason == "deadlock (40P01)" {
				err = errDeadlock
			}
			ended <- errors.Join(err, rollback)
		}()
	}
	if err := errors.Join(<-ended, <-ended); !errors.Is(err, errDeadlock) || err.Error() != errDeadlock.Error() {
		t.Errorf("%v", err)
	}
}

var errDeadlock = errors.New("it was a deadlock")

// skew makes two transactions each read a row that the other changes. One of them must be retried
// if the isolation level does not allow that.
func skew(t *testing.T, tg *bench.Target) {
	conns := pair(t, tg)
	for i, conn := range conns {
		must(t, conn, "START TRANSACTION")
		var n int
		if err := conn.QueryRowContext(t.Context(), "SELECT n FROM pair.t WHERE id = ?", i).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	var errs []error
	for i, conn := range conns {
		_, err := conn.ExecContext(t.Context(), "UPDATE pair.t SET n = 1 WHERE id = ?", 1-i)
		if err == nil {
			_, err = conn.ExecContext(t.Context(), "COMMIT")
		}
		errs = append(errs, err)
	}
	if reason, again := bench.Conflict(errors.Join(errs...)); !again || reason != "not serializable (40001)" {
		t.Errorf("%q, %v", reason, errs)
	}
}

// noSettle checks that a run fails if its server cannot be told to settle.
func noSettle(t *testing.T, tg *bench.Target) {
	w, err := kv.New(tg, kv.Config{Keys: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := tg.SQL().Close(); err != nil {
		t.Fatal(err)
	}
	_, err = bench.Run(t.Context(), tg, w, bench.Options{Transactions: 1, AnyBuild: true})
	if err == nil || !strings.Contains(err.Error(), "VACUUM ANALYZE: ") {
		t.Errorf("a run on a server that could not be told to settle: %v", err)
	}
}

// postgreSQL starts a server that ends with the test, and returns its DSN and its process. If none
// is installed, it skips the test.
func postgreSQL(t *testing.T) (dsn string, server int) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Skip("SKIPPED: PostgreSQL is not in /usr/lib/postgresql")
	}
	programs := found[len(found)-1]
	folder, err := os.MkdirTemp("", "bench") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	owner := ownerOf(t, folder)
	start := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(programs, name), append([]string{"-D", folder + "/data"}, args...)...)
		c.Dir, c.SysProcAttr = folder, owner
		return c
	}
	if out, err := start("initdb", "-U", "postgres", "--auth=trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	process := start("postgres", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "deadlock_timeout=10ms")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGINT)
		_ = process.Wait()
	})
	dsn = fmt.Sprintf("postgres:///postgres?user=postgres&host=%s", folder)
	for range 600 {
		tg, err := bench.Open(t.Context(), bench.TargetConfig{API: bench.SQL, DSN: dsn})
		if err == nil {
			if err := tg.Close(); err != nil {
				t.Fatal(err)
			}
			return dsn, process.Process.Pid
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("PostgreSQL did not start")
	return "", 0
}

// ownerOf gives the folder to the user who runs the server, which refuses to be root.
func ownerOf(t *testing.T, folder string) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if err := errors.Join(errUID, errGID, os.Chown(folder, uid, gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
