package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestBenchTPCHIsRefused(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--scale 0", "--scale"}, {"--scale 11", "--scale"}, {"--rounds 1", "--rounds"}, {"--patience 0s", "--patience"},
	} {
		status, _, errs := execute(t, "", append([]string{"tpch"}, strings.Fields(c.flags)...)...)
		want := cli.ExitUsage
		if invariant.Enabled {
			c.says, want = "race detector", cli.ExitFailure
		}
		if status != want || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %q", c.flags, status, errs)
		}
	}
}

// A server that does not start ends the benchmark. TestTPCH in folder test runs it with the real program.
func TestBenchTPCHFails(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	folder := t.TempDir()
	status, _, errs := execute(t, "", "tpch", "--program", filepath.Join(folder, "nothing"), "--data", folder)
	// Where MariaDB is installed it starts first.
	if status != cli.ExitFailure || !strings.Contains(errs, "nothing: no such file") && !strings.Contains(errs, "mariadb-server") {
		t.Errorf("status %d, %q", status, errs)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v: left behind", left, err)
	}
}
