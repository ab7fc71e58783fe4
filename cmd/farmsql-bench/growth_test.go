package main

import (
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

// TestGrowth in folder test grows and shrinks a cluster of the real program.
func TestBenchGrowthIsRefused(t *testing.T) {
	for _, c := range []struct {
		flags, says string
		status      int
	}{
		{"--replicas=-1", "--replicas", cli.ExitUsage}, {"--machines 1", "--machines", cli.ExitUsage}, {"--replicas 3 --back 2", "--back", cli.ExitUsage},
		{"--clients=-1", "--clients", cli.ExitUsage}, {"--between=-1s", "--between", cli.ExitUsage}, {"--pace fast", "--pace", cli.ExitUsage},
		{"--program /no/such/program", "/no/such/program", cli.ExitFailure},
		{"--data /no/such/folder", "/no/such/folder", cli.ExitFailure},
	} {
		status, _, errs := execute(t, "", append([]string{"growth"}, strings.Fields(c.flags)...)...)
		if invariant.Enabled && c.status == cli.ExitFailure {
			c.says = "race detector"
		}
		if status != c.status || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %q", c.flags, status, errs)
		}
	}
}
