package test

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// machines connect to the first of a cluster's machines that answers.
type machines []driver.Connector

// Connect implements driver.Connector.
func (ms machines) Connect(ctx context.Context) (driver.Conn, error) {
	var all error
	for _, m := range ms {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second) // a machine may hang
		c, err := m.Connect(limited)
		cancel()
		if err == nil {
			return c, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// Driver implements driver.Connector.
func (ms machines) Driver() driver.Driver { return ms[0].Driver() }

// TestGoDriverOfTheDocuments: the code for go-sql-driver in docs/deploy.md is that of this file, which
// TestDriversWithSeveralMachines tries.
func TestGoDriverOfTheDocuments(t *testing.T) {
	document, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("drivers_machines_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "\n```go\n")
	code, _, found := strings.Cut(rest, "```\n")
	if !found || !strings.Contains(string(own), code) {
		t.Errorf("the code of docs/deploy.md is not in this file:\n%s", code)
	}
}

// A numbering is a client that inserts numbers, one after the other. When a machine fails it finds out whether the last
// number is there, and goes on at another machine.
type numbering struct {
	name string
	// probe succeeds if the program can run. Both are nil for the client in this process.
	probe, command []string

	inserted atomic.Int64
	ended    chan error
}

// TestDriversWithSeveralMachines: clients that know all machines of a cluster go on when the one that they are connected to is
// killed, and when the next one is stopped. What they were told is there, once.
func TestDriversWithSeveralMachines(t *testing.T) {
	f := newJoiningFleet(t, 3, newPeers(t))
	f.start()
	f.awaitWhole()
	var addresses []string
	for _, m := range f.machines {
		addresses = append(addresses, m.address())
	}
	db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[2], "")
	exec1(t, db, "create database shop", "create table shop.numbers (client varchar(20), number int, primary key (client, number))")

	all := []*numbering{
		{name: "go-sql-driver"},
		{name: "PyMySQL", probe: []string{python, "-c", "import pymysql"}, command: []string{python, "machines.py"}},
		{name: "Connector/J", probe: []string{"javac", "-version"}, command: []string{"java", "-cp", "/usr/share/java/mariadb-java-client.jar", "Machines.java"}},
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all = slices.DeleteFunc(all, func(n *numbering) bool { return !n.start(t, ctx, addresses) })
	proceed := func(when string) {
		t.Helper()
		for _, n := range all {
			from, begin := n.inserted.Load(), time.Now()
			f.wait(fmt.Sprintf("%s to go on %s", n.name, when), func() bool {
				select {
				case err := <-n.ended:
					t.Fatalf("%s has ended: %v", n.name, err)
				default:
				}
				return n.inserted.Load() > from+20
			})
			t.Logf("%s: 20 more %s after %v", n.name, when, time.Since(begin).Round(time.Millisecond))
		}
	}
	proceed("at the first machine")
	f.machines[0].kill()
	proceed("without the first machine, which was killed")
	f.machines[0].start() // at another port, which clients do not know
	f.awaitWhole()
	f.machines[1].stopInOrder()
	proceed("without the second machine, which was stopped")
	stop()
	for _, n := range all {
		if err := <-n.ended; err != nil {
			t.Errorf("%s: %v", n.name, err)
		}
		var rows, last int64
		if err := db.QueryRow("select count(*), max(number) from shop.numbers where client = ?", n.name).Scan(&rows, &last); err != nil {
			t.Fatal(err)
		}
		// One more may be there, of which the client was not told before its end.
		if told := n.inserted.Load(); last != rows-1 || rows < told || rows > told+1 {
			t.Errorf("%s was told that %d numbers are there; there are %d, up to %d", n.name, told, rows, last)
		}
	}
}

// stopInOrder ends the process with SIGTERM.
func (m *machine) stopInOrder() {
	m.fleet.t.Helper()
	m.mu.Lock()
	m.killed, m.serving = true, false
	m.mu.Unlock()
	m.signal(syscall.SIGTERM)
	select {
	case <-m.exited:
		if m.err != nil {
			m.fleet.t.Fatalf("machine %d: %v\n%s", m.id, m.err, m.fleet.tails())
		}
	case <-time.After(startTimeout):
		m.fleet.t.Fatalf("machine %d does not end\n%s", m.id, m.fleet.remains())
	}
}

// start starts the client, which runs until ctx is done. It returns false if it cannot run here.
func (n *numbering) start(t *testing.T, ctx context.Context, addresses []string) bool {
	t.Helper()
	n.ended = make(chan error, 1)
	if n.command == nil {
		go func() { n.ended <- n.insert(ctx, addresses) }()
		return true
	}
	if out, err := exec.Command(n.probe[0], n.probe[1:]...).CombinedOutput(); err != nil {
		if os.Getenv("REQUIRE_CLIENTS") != "" {
			t.Fatalf("%v: %v\n%s", n.probe, err, out)
		}
		t.Logf("SKIPPED: %s: %v: %v", n.name, n.probe, err)
		return false
	}
	cmd := exec.Command(n.command[0], append(n.command[1:len(n.command):len(n.command)], strings.Join(addresses, ","), "shop", n.name)...)
	cmd.Dir = "testdata/drivers"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = &lockedBuffer{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	isOver := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-isOver
	})
	context.AfterFunc(ctx, func() { _ = stdin.Close() })
	go func() {
		defer close(isOver)
		last := ""
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			last = lines.Text()
			switch {
			case strings.HasPrefix(last, "error "):
				t.Logf("%s: %s", n.name, last)
			case last != "ok":
				n.inserted.Add(1)
			}
		}
		err := cmd.Wait()
		if err != nil || last != "ok" {
			err = fmt.Errorf("%w: its last line is %q; %s", errors.Join(err, errors.New("not ok")), last, cmd.Stderr)
		}
		n.ended <- err
	}()
	return true
}

// insert is the client in this process.
func (n *numbering) insert(ctx context.Context, addresses []string) error {
	var ms machines
	for _, address := range addresses {
		c, err := mysql.MySQLDriver{}.OpenConnector("root@tcp(" + address + ")/shop?timeout=1s&readTimeout=20s")
		if err != nil {
			return err
		}
		ms = append(ms, c)
	}
	db := stdsql.OpenDB(ms)
	defer db.Close()
	for number := 0; ; number++ {
		isThere := false
		for err := error(nil); !isThere; {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				err = db.QueryRow("select count(*) from numbers where client = ? and number = ?", n.name, number).Scan(&isThere)
			}
			if err == nil && !isThere {
				_, err = db.Exec("insert into numbers values (?, ?)", n.name, number)
				isThere = err == nil
			}
			if err != nil {
				time.Sleep(50 * time.Millisecond)
			}
		}
		n.inserted.Add(1)
	}
}
