package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/cli/clitest"
	"github.com/farmsql/farmsql/internal/invariant"
)

// quick are flags for a short run, which only shows that the benchmark works.
var quick = []string{"--seed", "1", "--warm-up", "0s"}

func TestBench(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	t.Setenv(clitest.AsProgram, "1") // for machines that are processes
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		args []string
		want []string
		runs int
	}{
		"tatp":     {[]string{"tatp", "--subscribers", "200"}, []string{"TATP, native, 1 machine, 200 subscribers, 1 thread", "get subscriber data", "closed loop"}, 1},
		"rates":    {[]string{"tatp", "--subscribers", "200", "--rate", "500,1000"}, []string{"open loop, 500 transactions a second", "open loop, 1,000 tr"}, 2},
		"local":    {[]string{"tpcc", "--warehouses", "2", "--customers", "20", "--items", "50", "--machines", "2", "--replicas", "2"}, []string{"TPC-C, native, 2 machines", "replicas: compared after the run, and alike"}, 1},
		"runs":     {[]string{"tatp", "--subscribers", "200", "--runs", "3"}, []string{"data: 200 subscribers, ", "; 3 runs, the median one", "durability: volatile anonymous memory"}, 1},
		"folder":   {[]string{"tatp", "--subscribers", "200", "--data", "/dev/shm"}, []string{"regions in files in /dev/shm", "durability: tmpfs\n", "; 1 run, "}, 1},
		"kv":       {[]string{"kv", "--keys", "1000", "--updates", "20", "--zipf", "0.99"}, []string{"key-value, Zipf 0.99, 20 % updates, native, 1 machine, 921 keys (16+32 bytes, 90 % full, H = 8)", "lookup", " MB of objects are keys and values"}, 1},
		"tatp sql": {[]string{"tatp", "--subscribers", "40", "--api", "sql"}, []string{"TATP, sql, 1 machine"}, 1},
		"tpcc":     {[]string{"tpcc", "--warehouses", "2", "--customers", "20", "--items", "50", "--threads", "2"}, []string{"TPC-C, native, 1 machine, 2 warehouses (reduced: 20 customers a district, 50 items), 2 threads", "New-Order"}, 1},
		"tatp shm": {[]string{"tatp", "--subscribers", "200", "--machines", "3", "--replicas", "2", "--transport", "shm"}, []string{"TATP, native, 3 machines, 2 replicas over shm, 200 subscribers, 1 thread each", "each machine a process", "replicas: compared after the run, and alike"}, 1},
		"tao":      {[]string{"tao", "--nodes", "300"}, []string{"TAO, native, 1 machine, 300 nodes, 1 thread", "assoc_range"}, 1},
		"tao shm":  {[]string{"tao", "--nodes", "300", "--lock-free", "--machines", "3", "--replicas", "2", "--transport", "shm"}, []string{"TAO, lock-free reads only, native, 3 machines, 2 replicas over shm", "obj_get"}, 1},
		"kv batch": {[]string{"kv", "--keys", "1000", "--batch", "16"}, []string{"key-value, uniform keys, lookups of 16, native"}, 1},
		"kv asked": {[]string{"kv", "--keys", "1000", "--machines", "2", "--batch", "16", "--by-message"}, []string{"key-value, uniform keys, by messages, lookups of 16, native"}, 1},
		"kv shm":   {[]string{"kv", "--keys", "1000", "--updates", "50", "--machines", "2", "--transport", "shm", "--lookups", "one-two-sided", "--rate", "500,1000"}, []string{"2 machines, 1 replica over shm, 921 keys", " MB of objects are keys and values"}, 2},
		"tpcc shm": {[]string{"tpcc", "--warehouses", "3", "--customers", "20", "--items", "50", "--machines", "2", "--replicas", "2", "--transport", "shm"}, []string{"TPC-C, native, 2 machines", "New-Order", "replicas: compared after the run, and alike"}, 1},
		"sql shm":  {[]string{"tatp", "--subscribers", "40", "--machines", "2", "--transport", "shm", "--api", "sql"}, []string{"TATP, sql, 2 machines"}, 1},
		"tpcc sql": {[]string{"tpcc", "--customers", "10", "--items", "20", "--api", "sql"}, []string{"TPC-C, sql, 1 machine, 1 warehouse (reduced"}, 1},
	} {
		args := slices.Concat(c.args, quick)
		args = append(args, "--json", at("out.json"), "--plot", at("plot.png"), "--profile", at("cpu"))
		status, out, errs := executeLonger(t, args)
		if status != 0 {
			t.Errorf("%s: status %d\n%s", name, status, errs)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if n := countResults(t, at("out.json")); n != c.runs {
			t.Errorf("%s: %d results", name, n)
		}
		files := append([]string{"plot.svg", "plot.png"}, profiles("cpu")...)
		if slices.Contains(c.args, "shm") {
			files = slices.Concat([]string{"plot.svg", "plot.png"}, profiles("cpu.0"), profiles("cpu.1"))
		}
		for _, file := range files {
			if info, err := os.Stat(at(file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", name, file, err)
			}
			if err := os.Remove(at(file)); err != nil {
				t.Error(err)
			}
		}
	}
}

// profiles are the files that --profile makes.
func profiles(file string) []string {
	return []string{file, file + ".allocs", file + ".allocs.base", file + ".mutex", file + ".block"}
}

// executeLonger executes a benchmark again while the computer was too busy for a single
// transaction, each time with ten times the duration.
func executeLonger(t *testing.T, args []string) (status int, out, errs string) {
	t.Helper()
	for d := 100 * time.Millisecond; ; d *= 10 {
		status, out, errs = execute(t, "", append(args, "--duration", d.String())...)
		if d > time.Minute || !strings.Contains(errs, "no transaction ended") {
			return status, out, errs
		}
	}
}

func countResults(t *testing.T, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; n++ {
		var r bench.Result
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return n
		} else if err != nil || r.Total.Count == 0 {
			t.Fatalf("%v: %+v", err, r)
		}
	}
}

func TestBenchIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--threads", "0"}, {"--duration", "0s"}, {"--warm-up", "-1s"}, {"--rate", "5,-1"}, {"--workers", "-1"}, {"--drop"}, {"--api", "x"},
		{"--replicas", "2"}, {"--runs", "0"}, {"--saves", "/tmp"}, {"--data", "/tmp", "--transport", "shm"}, {"--dsn", "x"}, {"--server-pid", "1"}, {"--subscribers", "-5"},
	} {
		status, _, errs := execute(t, "", append([]string{"tatp", "--subscribers", "10"}, args...)...)
		if status == 0 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d, %q", args, status, errs)
		}
		if !invariant.Enabled && status != cli.ExitUsage {
			t.Errorf("%v: status %d, %q", args, status, errs)
		}
	}
	if invariant.Enabled {
		if status, _, errs := execute(t, "", "tatp"); status != cli.ExitFailure || !strings.Contains(errs, "race detector") {
			t.Errorf("status %d, %q", status, errs)
		}
		return
	}
	if status, _, errs := execute(t, "", "kv", "--batch", "2", "--rate", "5"); status != cli.ExitUsage || !strings.Contains(errs, "--batch") {
		t.Errorf("batches in the open loop: status %d, %q", status, errs)
	}
	if status, _, errs := execute(t, "", "kv", "--by-message", "--lookups", "one-sided"); status != cli.ExitUsage || !strings.Contains(errs, "--by-message") {
		t.Errorf("messages, and no messages: status %d, %q", status, errs)
	}
	if status, _, errs := execute(t, "", "tao", "--api", "sql"); status != cli.ExitUsage || !strings.Contains(errs, `for the API "native"`) {
		t.Errorf("the graph store through SQL: status %d, %q", status, errs)
	}
	t.Setenv(clitest.AsProgram, "1")
	if status, _, errs := execute(t, "", "tatp", "--transport", "shm", "--subscribers=-5"); status != cli.ExitUsage || !strings.Contains(errs, "-5 subscribers") {
		t.Errorf("refused by a machine: status %d, %q", status, errs)
	}
	for name, args := range map[string][]string{
		"json":    {"--json", "no/such/folder"},
		"plot":    {"--plot", "no/such/folder"},
		"profile": {"--profile", "no/such/folder"},
		"server":  {"--api", "sql", "--dsn", "root@tcp(127.0.0.1:1)/"},
		"machine": {"--transport", "shm", "--profile", "no/such/folder"},
	} {
		status, _, errs := execute(t, "", slices.Concat([]string{"tatp", "--subscribers", "20", "--duration", "100ms"}, quick, args)...)
		if status != cli.ExitFailure || errs == "" {
			t.Errorf("%s: status %d, %q", name, status, errs)
		}
	}
}

// No matter how the benchmark ends, it leaves nothing of its machines.
func TestBenchLeavesNothing(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		s := clitest.Start(t, "tatp", "--subscribers", "200", "--machines", "2", "--replicas", "2", "--transport", "shm", "--duration", "1h")
		s.Until("loading subscribers: ")
		machines, folder := machinesOf(t, s.Process.Process.Pid)
		if len(machines) != 2 || !exists(t, folder) {
			t.Fatalf("processes %v in %q", machines, folder)
		}
		if err := s.Process.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if err := s.Process.Wait(); err == nil {
			t.Error("it has succeeded")
		}
		for _, p := range machines {
			for ; exists(t, p); time.Sleep(10 * time.Millisecond) {
			}
		}
		if exists(t, folder) {
			t.Errorf("%v: %s is left", end, folder)
		}
	}
}

// machinesOf returns the folders in /proc of machines that a process has started, and the folder
// that the machines share.
func machinesOf(t *testing.T, parent int) (machines []string, folder string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		process := filepath.Dir(file)
		status, err := os.ReadFile(filepath.Join(process, "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			continue // it has ended, or is another's
		}
		line, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Split(string(line), "\x00")
		if i := slices.Index(args, "--folder"); i >= 0 {
			machines, folder = append(machines, process), args[i+1]
		}
	}
	return machines, folder
}

func exists(t *testing.T, file string) bool {
	t.Helper()
	_, err := os.Stat(file)
	return err == nil
}
