package main

import (
	stdsql "database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, run) }

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// In the demonstration, the others continue without the killed machine, it comes back, and in the
// end nothing is left.
func TestDemo(t *testing.T) {
	s := clitest.Start(t, "demo", "--restart", "100ms", "--lease", "400ms")
	data := s.Until(`starting 3 machines in (\S+)`)[1]
	var ports, processes []int
	for range 3 {
		m := s.Until(`machine \d   mariadb -h 127.0.0.1 -P (\d+) -u root   \(process (\d+)\)`)
		ports, processes = append(ports, number(t, m[1])), append(processes, number(t, m[2]))
	}
	query := func(port int, q string) (n int) {
		t.Helper()
		db, err := stdsql.Open("mysql", "root@tcp(127.0.0.1:"+strconv.Itoa(port)+")/")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow(q).Scan(&n); err != nil && err != stdsql.ErrNoRows {
			t.Errorf("%s: %v", q, err)
		}
		return n
	}
	query(ports[0], "create database d")
	query(ports[1], "create table d.t (a int primary key)")
	query(ports[2], "insert into d.t values (42)")
	s.Until(`Ctrl-C stops everything`)

	if err := syscall.Kill(processes[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Until(`machine 0 has ended: signal: killed`)
	if n := query(ports[1], "select a from d.t"); n != 42 {
		t.Errorf("after the failure: %d", n)
	}
	again := s.Until(`machine 0 is ready: process (\d+)`)
	if n := query(ports[0], "select a from d.t"); n != 42 {
		t.Errorf("at the machine that is back: %d", n)
	}
	if status, out, errs := execute(t, "", "status", "--data", data); status != 0 || !strings.Contains(out, "as machine ") {
		t.Errorf("status: %d %s%s", status, out, errs)
	}
	processes[0] = number(t, again[1])

	if err := s.Process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.Until("stopping")
	said := s.Rest()
	if err := s.Process.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	for _, folder := range []string{data, filepath.Join(sharedParent, filepath.Base(data))} {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", folder, err)
		}
	}
	for _, pid := range processes {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
	for _, want := range []string{"without machine 0: all regions active after", "with machine 0: all regions active after"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

func TestDemoFlags(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--machines 0", "--machines is 0"},
		{"--machines 8", "--machines is 8"},
		{"--port 65535", "--port is 65535"},
		{"--restart -1s", "--restart is -1s"},
		{"--lease 1ms", "--lease"},
	} {
		status, _, errs := execute(t, "", append([]string{"demo"}, strings.Fields(strings.Replace(c.flags, " -1s", "=-1s", 1))...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %s", c.flags, status, errs)
		}
	}
}

func TestReadableEvents(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"level":"WARN","msg":"machine suspected","machine":1,"suspect":2}`, "suspects machine 2"},
		{`{"level":"INFO","msg":"reconfigured","configuration":5,"dead":[2],"took":4100000}`, "leads configuration 5, without machine 2: all regions active after 4.1ms"},
		{`{"level":"INFO","msg":"reconfigured","configuration":6,"dead":null,"took":4100000,"joined":0}`, "leads configuration 6, with machine 0: all regions active after 4.1ms"},
		{`{"level":"INFO","msg":"reconfigured","configuration":7,"took":1000}`, "leads configuration 7, as before: all regions active after 0s"},
		{`{"level":"INFO","msg":"replica filled","region":3,"bytes":2048,"took":3000000}`, "has filled its replica of region 3: 2 KiB in 3ms"},
		{`{"level":"ERROR","msg":"evicted","reason":"late"}`, "has been evicted: late"},
		{`{"level":"WARN","msg":"waiting for a majority","missing":[0,2]}`, "waits for a majority; missing: 0 2"},
		{`{"level":"ERROR","msg":"bad","error":"worse"}`, "says: bad: worse"},
		{`{"level":"INFO","msg":"ready","machines":1}`, ""},
		{`farmsql: no room`, "says: farmsql: no room"},
	} {
		if got := readable(c.line); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}
