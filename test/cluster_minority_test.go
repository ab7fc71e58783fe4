package test

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// errUnavailable is MySQL's error number for a server that cannot serve at present.
const errUnavailable = 1047

func numberOf(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// lineCount returns how many lines the machine has logged.
func (m *machine) lineCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.lines)
}

// countSince counts the lines since the first n that contain text.
func (m *machine) countSince(n int, text string) (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines[n:] {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

// quick runs f, which must end long before the patience of a client.
func quick(t *testing.T, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

// TestMinority: a machine loses the majority, because the others are killed or stand still. It
// tells its clients, on existing and on new connections, for COM_PING and for the status, too. It
// logs that once, and ends quickly on SIGTERM. When the others go on, so does the machine, on the
// same connections.
func TestMinority(t *testing.T) {
	for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(by.String(), func(t *testing.T) {
			f := filled(t, 3, 3)
			m := f.machines[0]
			kept := openOne(t, m, "kept")
			before := m.lineCount()
			for _, other := range f.machines[1:] { // at the same moment, as nearly as can be
				if by == syscall.SIGSTOP {
					other.signal(by)
				} else {
					other.mu.Lock()
					other.killed, other.serving = true, false
					other.mu.Unlock()
					_ = other.cmd.Process.Kill()
				}
			}
			f.isTold(t, m, kept)
			id := f.configuration().ID
			time.Sleep(2 * time.Second)
			if now := f.configuration().ID; now > id {
				t.Errorf("without a majority the configuration went from %d to %d", id, now)
			}
			for _, text := range []string{"waiting for a majority", "not available"} {
				if n := m.countSince(before, text); n < 1 || n > 3 {
					t.Errorf("%q was logged %d times", text, n)
				}
			}
			if n := m.lineCount() - before; n > 30 {
				t.Errorf("%d lines were logged", n)
			}
			if by == syscall.SIGSTOP {
				for _, other := range f.machines[1:] {
					other.signal(syscall.SIGCONT)
				}
				f.wait("the same connection to be served again", func() bool { return kept.PingContext(t.Context()) == nil && read1(t.Context(), kept) == nil })
				f.wait("that to be logged", func() bool { return m.countSince(before, "available again") > 0 })
				if n := m.countSince(before, "available again"); n != 1 {
					t.Errorf("%d times available again", n)
				}
				for _, other := range f.machines[1:] {
					other.signal(syscall.SIGSTOP)
				}
				f.wait("statements to fail again", func() bool { return numberOf(read1(t.Context(), kept)) == errUnavailable })
			}
			m.mu.Lock()
			m.killed = true
			m.mu.Unlock()
			begin := time.Now()
			m.signal(syscall.SIGTERM)
			select {
			case <-m.exited:
			case <-time.After(startTimeout):
				t.Fatal("SIGTERM does not end it")
			}
			// 0.5 s if nobody else wants the processors.
			if took := time.Since(begin); took > 6*time.Second || m.err != nil {
				t.Errorf("SIGTERM took %v: %v", took, m.err)
			}
		})
	}
}

// isTold checks the errors that clients of a machine get while it is alone.
func (f *fleet) isTold(t *testing.T, m *machine, kept *stdsql.Conn) {
	t.Helper()
	quick(t, "a statement", func() {
		f.wait("reading to fail", func() bool { return read1(t.Context(), kept) != nil })
		if err := read1(t.Context(), kept); numberOf(err) != errUnavailable || !strings.Contains(err.Error(), "does not answer") && !strings.Contains(err.Error(), "do not answer") {
			t.Errorf("reading: %v", err)
		}
	})
	quick(t, "a change", func() {
		if _, err := kept.ExecContext(t.Context(), "update t set n = n + 1"); numberOf(err) != errUnavailable {
			t.Errorf("changing: %v", err)
		}
	})
	quick(t, "COM_PING", func() {
		if err := kept.PingContext(t.Context()); numberOf(err) != errUnavailable {
			t.Errorf("COM_PING: %v", err)
		}
	})
	quick(t, "connecting", func() {
		db, err := stdsql.Open("mysql", "root@tcp("+m.address()+")/")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Ping(); numberOf(err) != errUnavailable {
			t.Errorf("connecting: %v", err)
		}
	})
	quick(t, "status", func() {
		var out bytes.Buffer
		cmd := exec.Command(binary, "status", "--data", f.folder, "--machine-id", "0")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "NOT AVAILABLE: machine 0 serves nobody") {
			t.Errorf("status: %v\n%s", err, out.String())
		}
	})
}

func openOne(t *testing.T, m *machine, schema string) *stdsql.Conn {
	t.Helper()
	db, err := stdsql.Open("mysql", "root@tcp("+m.address()+")/"+schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read1(ctx context.Context, c *stdsql.Conn) error {
	var n int
	return c.QueryRowContext(ctx, "select n from t where id = 1").Scan(&n)
}

// TestMinorityRespectsTimes: max_execution_time and KILL QUERY end a statement that waits for a
// majority, even if --unavailable-after is long.
func TestMinorityRespectsTimes(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.more = []string{"--unavailable-after", "2m"}
	f.start()
	f.awaitWhole()
	m := f.machines[0]
	admin := openOne(t, m, "")
	for _, q := range []string{"create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)"} {
		if _, err := admin.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	limited := openOne(t, m, "kept")
	if _, err := limited.ExecContext(t.Context(), "set max_execution_time = 300"); err != nil {
		t.Fatal(err)
	}
	if err := read1(t.Context(), limited); err != nil {
		t.Fatal(err)
	}
	for _, other := range f.machines[1:] {
		other.mu.Lock()
		other.killed, other.serving = true, false
		other.mu.Unlock()
		_ = other.cmd.Process.Kill()
	}
	quick(t, "max_execution_time", func() {
		f.wait("a SELECT to end", func() bool {
			err := read1(t.Context(), limited)
			if err != nil && numberOf(err) != 3024 {
				t.Errorf("after max_execution_time: %v", err)
			}
			return err != nil
		})
	})
}
