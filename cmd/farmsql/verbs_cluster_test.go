//go:build verbs && linux && cgo

package main

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/cli/clitest"
)

const (
	// verbsMax bounds each step of a cluster in a virtual machine, whose processor is emulated: it is for what hangs.
	verbsMax  = 5 * time.Minute
	verbsPort = 21510
)

// A verbsMachine is a process that is one machine of a cluster, with an RDMA device of its own.
type verbsMachine struct {
	t       *testing.T
	id      int
	data    string
	process *exec.Cmd
	mu      sync.Mutex
	said    strings.Builder // on stdout and stderr
}

// Write collects what the process says.
func (m *verbsMachine) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said.Write(b)
}

func (m *verbsMachine) hasSaid() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said.String()
}

// start starts the process, with what else its flags are.
func (m *verbsMachine) start(devices []string, more ...string) {
	m.t.Helper()
	own, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	args := append([]string{
		"serve", "--data", m.data, "--listen", fmt.Sprintf("127.0.0.1:%d", verbsPort+m.id), "--advertise", fmt.Sprintf("127.0.0.1:%d", verbsPort+10+m.id),
		"--transport", "verbs", "--rdma-device", devices[m.id%len(devices)], "--rdma-port", "1", "--lease", "10s", "--unavailable-after", "60s", "--log-size", "2MiB",
	}, more...)
	m.process = exec.Command(own, args...)
	m.process.Env = append(os.Environ(), clitest.AsProgram+"=1")
	m.process.Stdout, m.process.Stderr = m, m
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
	process := m.process
	m.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if m.t.Failed() {
			m.t.Logf("machine %d has said:\n%s", m.id, m.hasSaid())
		}
	})
}

// until waits until a condition holds.
func (m *verbsMachine) until(what string, holds func() error) {
	m.t.Helper()
	begin := time.Now()
	for {
		err := holds()
		if err == nil {
			m.t.Logf("machine %d: %s after %.1f s", m.id, what, time.Since(begin).Seconds())
			return
		}
		if time.Since(begin) > verbsMax {
			m.t.Fatalf("machine %d: not %s: %v", m.id, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (m *verbsMachine) database() *stdsql.DB {
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/?timeout=60s", verbsPort+m.id))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (m *verbsMachine) exec(statements ...string) error {
	db := m.database()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// sum returns number and sum of the rows of shop.item.
func (m *verbsMachine) sum() (n, sum int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), verbsMax)
	defer cancel()
	err = m.database().QueryRowContext(ctx, "SELECT COUNT(*), SUM(v) FROM shop.item").Scan(&n, &sum)
	return n, sum, err
}

func (m *verbsMachine) hasRows(n, sum int) {
	m.t.Helper()
	m.until(fmt.Sprintf("has %d rows that sum to %d", n, sum), func() error {
		gotN, gotSum, err := m.sum()
		if err == nil && (gotN != n || gotSum != sum) {
			m.t.Fatalf("machine %d has %d rows that sum to %d, want %d and %d", m.id, gotN, gotSum, n, sum)
		}
		return err
	})
}

var tokenText = regexp.MustCompile(`--join (\S+)`)

// TestClusterOverVerbs: three processes, each with an RDMA device, keep the configuration themselves, have keys of memory handed out over TLS, and serve
// SQL. One is killed: the others have all that was committed, and go on.
func TestClusterOverVerbs(t *testing.T) {
	found, _ := filepath.Glob("/sys/class/infiniband/*")
	var devices []string
	for _, f := range found {
		devices = append(devices, filepath.Base(f))
	}
	if len(devices) == 0 {
		t.Skip("no RDMA device: go run ./test/vm -hosts 3 ./cmd/farmsql")
	}
	var machines []*verbsMachine
	for id := range 3 {
		machines = append(machines, &verbsMachine{t: t, id: id, data: filepath.Join(t.TempDir(), "data")})
	}
	machines[0].start(devices, "--cluster", "raft:", "--replicas", "3", "--workers", "1", "--region-size", "16MiB")
	token := ""
	machines[0].until("has printed a token", func() error {
		if found := tokenText.FindStringSubmatch(machines[0].hasSaid()); found != nil {
			token = found[1]
			return nil
		}
		return io.ErrNoProgress
	})
	for _, m := range machines[1:] {
		m.start(devices, "--join", token)
	}
	for _, m := range machines {
		m.until("serves", func() error { return m.exec("SELECT 1") })
	}
	must(t, machines[0].exec("CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.item VALUES (1, 10), (2, 20)"))
	must(t, machines[1].exec("INSERT INTO shop.item VALUES (3, 30)", "UPDATE shop.item SET v = v + 1 WHERE id = 1"))
	must(t, machines[2].exec("BEGIN", "INSERT INTO shop.item VALUES (4, 40)", "COMMIT"))
	for _, m := range machines {
		m.hasRows(4, 101)
	}
	must(t, machines[0].process.Process.Kill())
	for _, m := range machines[1:] {
		m.hasRows(4, 101)
	}
	machines[1].until("goes on", func() error { return machines[1].exec("REPLACE INTO shop.item VALUES (5, 50)") })
	machines[2].hasRows(5, 151)
	for _, m := range machines {
		s := bufio.NewScanner(strings.NewReader(m.hasSaid()))
		for s.Scan() {
			if strings.Contains(s.Text(), "cannot register memory") {
				t.Errorf("machine %d: %s", m.id, s.Text())
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
