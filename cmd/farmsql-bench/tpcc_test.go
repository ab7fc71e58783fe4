package main

import (
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestBenchTPCCIsRefused(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	for _, args := range [][]string{{"--warehouses=-1"}, {"--customers", "3001"}, {"--items", "19"}} {
		status, _, errs := execute(t, "", append([]string{"tpcc"}, args...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, "warehouses (1 to") {
			t.Errorf("%v: status %d, %q", args, status, errs)
		}
	}
}
