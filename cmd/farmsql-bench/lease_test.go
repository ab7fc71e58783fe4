package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestBenchLease(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	file := filepath.Join(t.TempDir(), "result")
	args := []string{"lease", "--lease", "50ms,200ms", "--duration", "100ms", "--variants", "calls,locked"}
	status, out, errs := execute(t, "", append(args, "--json", file+".json", "--plot", file)...)
	if status != 0 || !strings.Contains(out, "locked") || !strings.Contains(out, "200ms") || !strings.Contains(errs, "calls: ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, suffix := range []string{".json", ".svg", ".png"} {
		if s, err := os.Stat(file + suffix); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	for _, more := range [][]string{{"--variants", "smoke"}, {"--lease", "0s"}, {"--duration", "0s"}} {
		status, _, errs := execute(t, "", append(args, more...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, "not to be measured") {
			t.Errorf("%v: status %d, %q", more, status, errs)
		}
	}
	for _, flag := range []string{"--json", "--plot"} {
		status, _, errs := execute(t, "", append(args, flag, filepath.Join(file, "nowhere"))...)
		if status != 1 || !strings.Contains(errs, "no such file") {
			t.Errorf("%s: status %d, %q", flag, status, errs)
		}
	}
}
