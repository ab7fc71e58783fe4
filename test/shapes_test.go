package test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench/shapes"
)

// TestShapes: all shapes of statements run at farmsql and MariaDB, which are processes with few rows, and
// both answer the same.
func TestShapes(t *testing.T) {
	res, err := shapes.Measure(t.Context(), shapes.Config{
		Program: binary, Folder: t.TempDir(), Rows: shapes.RowsMin, Rounds: 1, Turn: time.Microsecond, Modes: shapes.Modes(), Seed: 1,
	})
	if errors.Is(err, shapes.ErrMissing) && os.Getenv("REQUIRE_CLIENTS") == "" {
		t.Skipf("SKIPPED: shapes of statements are not compared with MariaDB: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Wrong(); err != nil {
		t.Error(err)
	}
	for _, s := range res.Summaries {
		if s.Measured < 150 || s.Mean <= 0 {
			t.Errorf("%+v, want at least 150 shapes", s)
		}
	}
}
