package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/cli/clitest"
	"github.com/farmsql/farmsql/internal/invariant"
)

// The suite runs with tiny data, except for experiments with other systems, and the repository's
// document has a place for each result.
func TestBenchReport(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	t.Setenv(clitest.AsProgram, "1") // for the processes of the benchmarks
	dir := t.TempDir()
	docs := filepath.Join(dir, "benchmarks.md")
	text, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(docs, text, 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"report", "--results", filepath.Join(dir, "results"), "--runs", "1", "--quick", "--docs", docs, "--only", "tatp,tpcc,kv,tao,lease,failure-cm,profile"}
	status, _, errs := execute(t, "", args...)
	for range 10 { // what the computer was too busy for is measured again, and nothing else
		if status == 0 || !strings.Contains(errs, "no transaction ended") {
			break
		}
		status, _, errs = execute(t, "", args...)
	}
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errs)
	}
	text, err = os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"figures mean nothing", "| the same: new orders | ", "(benchmarks/tatp-open-3.svg)", "(benchmarks/leases.svg)", "(benchmarks/failure-cm.svg)", "M rows | not measured", "| TPC-C, 3 machines |", "It waits for "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// The second time, nothing is left to measure.
	if status, _, errs := execute(t, "", args...); status != 0 || errs != "" {
		t.Errorf("status %d\n%s", status, errs)
	}
}

func TestBenchReportIsRefused(t *testing.T) {
	t.Setenv(clitest.AsProgram, "1") // without it the benchmark is this test again
	dir := t.TempDir()
	if status, _, errs := execute(t, "", "report"); status != cli.ExitUsage || !strings.Contains(errs, "--results") {
		t.Errorf("status %d: %s", status, errs)
	}
	args := []string{"report", "--results", dir}
	if invariant.Enabled {
		if status, _, errs := execute(t, "", args...); status != cli.ExitFailure || !strings.Contains(errs, "race detector") {
			t.Errorf("status %d: %s", status, errs)
		}
		return
	}
	if status, _, errs := execute(t, "", append(args, "--only", "nothing")...); status != cli.ExitUsage || !strings.Contains(errs, "there are tatp, tpcc, kv") {
		t.Errorf("status %d: %s", status, errs)
	}
	// The report names experiments that failed, and writes the other results nevertheless.
	docs := filepath.Join(dir, "benchmarks.md")
	if err := os.Mkdir(filepath.Join(dir, "tatp-1m.1.quick.part"), 0o777); err != nil { // where the result is to be
		t.Fatal(err)
	}
	status, _, errs := execute(t, "", append(args, "--quick", "--runs", "1", "--only", "tatp-1m", "--docs", docs)...)
	if status != cli.ExitFailure || !strings.Contains(errs, "experiments failed: tatp-1m") || !strings.Contains(errs, docs) {
		t.Errorf("status %d: %s", status, errs)
	}
}
