package test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench/shapes"
	"github.com/farmsql/farmsql/bench/tpch"
)

// TestTPCH: the queries of TPC-H have the same results at farmsql and MariaDB, which are processes with few rows, in
// the first execution, and in those by a plan.
func TestTPCH(t *testing.T) {
	res, err := tpch.Measure(t.Context(), tpch.Config{Program: binary, Folder: t.TempDir(), Scale: 0.001, Rounds: 3, Patience: time.Minute, Seed: 1})
	if errors.Is(err, shapes.ErrMissing) && os.Getenv("REQUIRE_CLIENTS") == "" {
		t.Skipf("SKIPPED: the queries of TPC-H are not compared with MariaDB: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Wrong(); err != nil {
		t.Error(err)
	}
	found := 0
	for _, r := range res.Rows {
		found += r.Rows
	}
	if len(res.Rows) != 22 || found < 100 {
		t.Errorf("%d queries, %d rows", len(res.Rows), found)
	}
}
