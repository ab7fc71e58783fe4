package test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestForeignTPCC runs TPC-C as programs of others do: the statements of py-tpcc and go-tpc with
// PyMySQL, and those of sysbench-tpcc. The programs check TPC-C's conditions of consistency.
func TestForeignTPCC(t *testing.T) {
	for _, p := range []struct {
		name           string
		probe, command []string
	}{
		{"pytpcc", []string{python, "-c", "import pymysql"}, []string{python, "tpcc.py"}},
		{"sysbench", []string{"sysbench", "--version"}, []string{"bash", "sysbench.sh"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			if out, err := exec.Command(p.probe[0], p.probe[1:]...).CombinedOutput(); err != nil {
				if os.Getenv("REQUIRE_CLIENTS") != "" {
					t.Fatalf("%v: %v\n%s", p.probe, err, out)
				}
				t.Skipf("%v: %v", p.probe, err)
			}
			s := start(t, t.TempDir())
			host, port := s.hostPort()
			s.open(t, p.name)
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:len(p.command):len(p.command)], host, port, p.name)...)
			cmd.Dir = "testdata/tpcc"
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
			var figures strings.Builder
			cmd.Stderr = &figures
			if out, err := cmd.Output(); err != nil || string(out) != "ok\n" {
				t.Errorf("%v: %v\n%s%s", cmd.Args, err, out, figures.String())
			}
			t.Log(figures.String())
		})
	}
}
