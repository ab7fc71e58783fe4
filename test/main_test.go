// Package test holds the tests that a user would make: they start the farmsql
// binary as a process of its own and talk to it as clients do.
package test

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// binary is the farmsql under test, built once.
var binary string

// nightly selects the long modes.
var nightly = os.Getenv("FARMSQL_NIGHTLY") != ""

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "farmsql-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "farmsql")
		build := exec.Command("go", "build", "-tags", "gms_pure_go", "-o", binary, "../cmd/farmsql")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building farmsql: %v\n%s", err, out)
			return 1
		}
		_ = mysql.SetLogger(&mysql.NopLogger{}) // broken connections are expected here
		return m.Run()
	}())
}

// TestCacheSeesTheProgram reads every source file. The go command does not know that the tests
// depend on the program: without this test it would use cached results after the program has
// changed.
func TestCacheSeesTheProgram(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, ".go") || filepath.Base(path) == "go.sum") {
			seen++
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("found only %d source files", seen)
	}
}

// layout is a choice of machines and replicas that tests run on.
type layout struct{ machines, replicas int }

func (l layout) String() string { return fmt.Sprintf("%d of %d", l.replicas, l.machines) }

var layouts = []layout{{1, 1}, {3, 3}}

// flags keep a test's folder small.
func (l layout) flags() []string {
	return []string{
		"--machines", fmt.Sprint(l.machines), "--replicas", fmt.Sprint(l.replicas),
		"--region-size", "64MiB", "--log-size", "4MiB",
	}
}

// A server is a running farmsql serve.
type server struct {
	addr   string
	cmd    *exec.Cmd
	stderr *lockedBuffer
	exited chan struct{}
	err    error // of Wait, after exited
}

// lockedBuffer collects a process's log while tests may look at it.
type lockedBuffer struct {
	mu sync.Mutex
	sb strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sb.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sb.String()
}

var readyPattern = regexp.MustCompile(`farmsql is ready on (\S+):`)

// startTimeout allows for recovery and for a busy computer.
const startTimeout = 60 * time.Second

// launch starts farmsql serve on the folder and waits until it is ready, or has
// exited, which is an error.
func launch(folder string, flags ...string) (*server, error) {
	return launchProgram(binary, folder, flags...)
}

func launchProgram(program, folder string, flags ...string) (*server, error) {
	args := append([]string{"serve", "--data", folder, "--listen", "127.0.0.1:0", "--log-level", "warn"}, flags...)
	s := &server{cmd: exec.Command(program, args...), stderr: &lockedBuffer{}, exited: make(chan struct{})}
	s.cmd.Stderr = s.stderr
	// A test that dies must not leave its server behind.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(stdout)
		if line, err := lines.ReadString('\n'); err == nil {
			ready <- line
		}
		_, _ = io.Copy(io.Discard, lines)
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	select {
	case line := <-ready:
		m := readyPattern.FindStringSubmatch(line)
		if m == nil {
			s.kill()
			return nil, fmt.Errorf("not the ready line: %q", line)
		}
		s.addr = m[1]
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("exited before it was ready: %v\n%s", s.err, s.stderr)
	case <-time.After(startTimeout):
		s.kill()
		return nil, fmt.Errorf("not ready after %v\n%s", startTimeout, s.stderr)
	}
}

// start launches a server that ends, in good order, with the test.
func start(t *testing.T, folder string, flags ...string) *server {
	t.Helper()
	s, err := launch(folder, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	return s
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// stop ends the server with SIGTERM, after which it must exit with status 0.
func (s *server) stop(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		if s.err != nil {
			t.Errorf("serve: %v\n%s", s.err, s.stderr)
		}
	case <-time.After(startTimeout):
		s.kill()
		t.Errorf("serve did not end on SIGTERM\n%s", s.stderr)
	}
}

// open connects to a database of the server, creating it.
func (s *server) open(t *testing.T, schema string) *stdsql.DB {
	t.Helper()
	admin := s.connect(t, "")
	if _, err := admin.Exec("create database if not exists " + schema); err != nil {
		t.Fatal(err)
	}
	return s.connect(t, schema)
}

func (s *server) connect(t *testing.T, schema string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/%s", s.addr, schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *server) hostPort() (host, port string) {
	host, port, _ = strings.Cut(s.addr, ":")
	return host, port
}

var objectsPattern = regexp.MustCompile(`(?m)^(\d+) objects?(?:, and \d+ being dropped,)? on \d+ machines?: all is well$`)

// check runs farmsql check on a stopped database, which must find it sound and
// not empty.
func check(t *testing.T, folder string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "check", "--data", folder).CombinedOutput()
	if m := objectsPattern.FindSubmatch(out); err != nil || m == nil || string(m[1]) == "0" {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// needs skips the test without the program, unless CI says that it must be here.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("REQUIRE_CLIENTS") != "" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("%s is not installed", program)
	}
}

// isConflict reports whether err is MySQL's 1213.
func isConflict(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1213
}

func exec1(t *testing.T, db *stdsql.DB, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}
