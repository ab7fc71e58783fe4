package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tatp"
)

// cached opens a file that another program will read, so that the go command runs
// the test again when it has changed.
func cached(t *testing.T, file string) {
	if _, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
}

// sqlite compiles TATP on SQLite. Without a compiler or SQLite it skips the test.
func sqlite(t *testing.T) (program string) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("SKIPPED: gcc is not in the PATH")
	}
	if _, err := os.Stat("/usr/include/sqlite3.h"); err != nil {
		t.Skip("SKIPPED: libsqlite3-dev is not installed")
	}
	cached(t, "sqlite/tatp.c")
	program = filepath.Join(t.TempDir(), "sqlite")
	out, err := exec.Command("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, "sqlite/tatp.c", "-lsqlite3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// SQLite runs the same transactions as bench/tatp. Of each kind, the same number of transactions
// have an effect; with one different row or parameter, the numbers would differ.
func TestSQLite(t *testing.T) {
	const subscribers, seed, transactions = 1000, 42, 20_000
	out, err := exec.Command(sqlite(t), fmt.Sprint(subscribers), fmt.Sprint(seed), fmt.Sprint(transactions)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kinds []struct {
			Name          string
			Count, Missed int
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	want := native(t, subscribers, seed, transactions)
	if len(got.Kinds) != len(want.Kinds) {
		t.Fatalf("%d kinds of transactions, want %d", len(got.Kinds), len(want.Kinds))
	}
	for i, w := range want.Kinds {
		missed := int(w.MissedPart*float64(w.Count) + 0.5)
		if g := got.Kinds[i]; g.Name != w.Name || g.Count != int(w.Count) || g.Missed != missed {
			t.Errorf("SQLite: %+v; native: %s, %d, of which %d missed", g, w.Name, w.Count, missed)
		}
	}
}

// native runs bench/tatp natively.
func native(t *testing.T, subscribers int, seed uint64, transactions int) *bench.Result {
	target, err := bench.Open(t.Context(), bench.TargetConfig{Workers: 1, RegionSize: 32 * farmsql.MiB, LogSize: farmsql.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	}()
	w, err := tatp.New(target, tatp.Config{Subscribers: subscribers, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	res, err := bench.Run(t.Context(), target, w, bench.Options{Transactions: transactions, Seed: seed, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSQLiteArguments(t *testing.T) {
	program := sqlite(t)
	for _, args := range [][]string{nil, {"1", "2"}, {"none", "1", "10"}} {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "tatp: ") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
}

// compared runs the script and returns its measurements.
func compared(t *testing.T, env []string, args ...string) *comparison {
	if testing.Short() {
		t.Skip("starts servers and measures for a minute")
	}
	cached(t, "run")
	cached(t, "sqlite/tatp.c")
	file := filepath.Join(t.TempDir(), "json")
	cmd := exec.Command("./run", append(args, "--quick", "--rounds", "1", "--json", file)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c comparison
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func (c *comparison) measured(system string) bool {
	return slices.ContainsFunc(c.Rows, func(r *row) bool { return r.System == system && r.Median > 0 })
}

// systems counts the systems with a result for a work whose name begins with work.
func (c *comparison) systems(work string) (n int) {
	for _, r := range c.Rows {
		if strings.HasPrefix(r.Work, work) && r.Median > 0 {
			n++
		}
	}
	return n
}

func (c *comparison) missing(system string) bool {
	return slices.ContainsFunc(c.Missing, func(m remark) bool { return m.Name == system })
}

// The script measures everything that is installed.
func TestRun(t *testing.T) {
	c := compared(t, nil)
	for _, system := range []string{"SQLite", "MariaDB", "PostgreSQL", "Redis", "farmsql"} {
		missing := c.missing(system)
		if c.measured(system) == missing {
			t.Errorf("%s: measured is %v, missing is %v", system, c.measured(system), missing)
		}
		if missing {
			t.Logf("SKIPPED: %s is not installed", system)
		}
	}
	for _, r := range c.Rows {
		if r.Processor <= 0 {
			t.Errorf("%s, %s: no processor time", r.Work, r.System)
		}
	}
	servers := 1
	for _, system := range []string{"MariaDB", "PostgreSQL"} {
		if !c.missing(system) {
			servers++
		}
	}
	for _, work := range []string{"TATP over SQL", "TPC-C over SQL"} {
		if n := c.systems(work); n != servers {
			t.Errorf("%s: %d systems, want %d", work, n, servers)
		}
	}
}

// The script reports systems that are not installed, and measures the others.
func TestRunWithout(t *testing.T) {
	path := pathWithout(t, []string{"gcc", "sysbench", "redis-server", "mariadb"})
	compilerWithout(t, path)
	c := compared(t, []string{"PATH=" + path}, "--only", "sqlite,sysbench,kv")
	for _, system := range []string{"SQLite", "sysbench", "Redis", "MariaDB"} {
		if !c.missing(system) || c.measured(system) {
			t.Errorf("%s: measured is %v, missing is %v", system, c.measured(system), c.missing(system))
		}
	}
	if !c.measured("farmsql") {
		t.Error("farmsql is not measured")
	}
}

// pathWithout returns a PATH without some programs.
func pathWithout(t *testing.T, absent []string) string {
	folder := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(from) // a folder need not be there
		for _, e := range entries {
			if !slices.Contains(absent, e.Name()) {
				_ = os.Symlink(filepath.Join(from, e.Name()), filepath.Join(folder, e.Name())) // the first of a name counts
			}
		}
	}
	return folder
}

// compilerWithout puts a gcc that finds no headers of libraries into a folder, if there is a gcc.
// Without any gcc, go would compile everything again for programs without cgo.
func compilerWithout(t *testing.T, folder string) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" != '-E -' ] && exec %s \"$@\"\n", gcc)
	if err := os.WriteFile(filepath.Join(folder, "gcc"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRunArguments(t *testing.T) {
	for _, args := range [][]string{{"--tables"}, {"--rounds", "0"}, {"--seconds", "x"}} {
		out, err := exec.Command("./run", args...).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "compare: ") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
}
