package test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var sysbenchScripts = []string{
	"oltp_point_select", "oltp_read_only", "oltp_write_only", "oltp_read_write",
	"oltp_insert", "oltp_update_index", "oltp_update_non_index", "oltp_delete",
}

// TestSysbench runs every oltp script: prepare, run with 1, 8 and 32 threads, cleanup, with
// prepared and with plain statements. sysbench counts errors 1213, and stops at the first other
// error.
func TestSysbench(t *testing.T) {
	needs(t, "sysbench")
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			s := start(t, t.TempDir(), l.flags()...)
			s.open(t, "sbtest")
			for _, mode := range []string{"auto", "disable"} {
				for _, script := range sysbenchScripts {
					t.Run(script+" "+mode, func(t *testing.T) { runSysbench(t, s, script, mode) })
				}
			}
		})
	}
}

// sysbenchBounds returns how long each of the 96 runs takes at most, and after how many transactions it ends; 0 is never.
func sysbenchBounds() (seconds, events int) {
	if nightly {
		return 20, 0
	}
	return 1, 3000
}

func runSysbench(t *testing.T, s *server, script, mode string) {
	rows := 1000
	if nightly {
		rows = 100_000
	}
	seconds, events := sysbenchBounds()
	bench := func(command string, threads int) string {
		host, port := s.hostPort()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds+60)*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "sysbench", script,
			"--mysql-host="+host, "--mysql-port="+port, "--mysql-user=root", "--mysql-db=sbtest",
			"--tables=2", fmt.Sprintf("--table-size=%d", rows), fmt.Sprintf("--threads=%d", threads),
			fmt.Sprintf("--time=%d", seconds), fmt.Sprintf("--events=%d", events), "--db-ps-mode="+mode, "--mysql-ignore-errors=1213", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s with %d threads: %v\n%s", command, threads, err, out)
		}
		return string(out)
	}
	bench("prepare", 1)
	for _, threads := range []int{1, 8, 32} {
		out := bench("run", threads)
		queries, ignored := sysbenchCount(t, out, "queries"), sysbenchCount(t, out, "ignored errors")
		if queries == 0 {
			t.Errorf("%d threads: no queries\n%s", threads, out)
		}
		if threads == 1 && ignored != 0 {
			t.Errorf("one client alone got %d conflicts", ignored)
		}
		if strings.Contains(out, "FATAL") {
			t.Errorf("%d threads:\n%s", threads, out)
		}
		t.Logf("%2d threads: %d queries, %s/s, %d conflicts", threads, queries, sysbenchRate(t, out), ignored)
	}
	bench("cleanup", 1)
}

func sysbenchCount(t *testing.T, out, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s+` + name + `:\s+(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no count of %s in\n%s", name, out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sysbenchRate returns how many queries a run has done in a second.
func sysbenchRate(t *testing.T, out string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s+queries:\s+\d+\s+\((\S+) per sec`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no rate of queries in\n%s", out)
	}
	return m[1]
}
