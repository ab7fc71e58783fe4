package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestBenchRDMA(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	file := filepath.Join(t.TempDir(), "result")
	args := []string{"rdma", "--providers", "local,tcp", "--only", "batch", "--max", "4", "--turn", "1ms"}
	status, out, errs := execute(t, "", append(args, "--json", file+".json", "--plot", file, "--page", file+".md")...)
	if status != 0 || !strings.Contains(out, "batch: READs") || strings.Contains(out, "| 8 ") || !strings.Contains(errs, "tcp batch: ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, suffix := range []string{".json", ".svg", ".png", ".md"} {
		if s, err := os.Stat(file + suffix); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	if status, again, errs := execute(t, "", "rdma", "--from", file+".json"); status != 0 || again != out {
		t.Errorf("status %d, %s\n%s\n%s", status, errs, again, out)
	}
	for _, more := range [][]string{{"--providers", "pigeon"}, {"--only", "luck"}, {"--turn", "0s"}} {
		status, _, errs := execute(t, "", append(args, more...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, "not to be measured") {
			t.Errorf("%v: status %d, %q", more, status, errs)
		}
	}
	for _, flag := range []string{"--json", "--plot", "--page", "--from"} {
		status, _, errs := execute(t, "", append(args, flag, filepath.Join(file, "nowhere"))...)
		if status != 1 || !strings.Contains(errs, "no such file") {
			t.Errorf("%s: status %d, %q", flag, status, errs)
		}
	}
	if status, _, errs := execute(t, "", "rdma", "--from", file+".md"); status != 1 || !strings.Contains(errs, "invalid character") {
		t.Errorf("status %d, %q", status, errs)
	}
}
