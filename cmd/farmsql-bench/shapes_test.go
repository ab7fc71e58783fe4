package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench/shapes"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/invariant"
)

func TestBenchShapesIsRefused(t *testing.T) {
	for _, c := range []struct{ flags, says string }{
		{"--rows 1", "--rows"}, {"--rounds 0", "--rounds"}, {"--turn 0s", "--turn"}, {"--modes spoken", "--modes"}, {"--only nowhere", "--only"},
	} {
		status, _, errs := execute(t, "", append([]string{"shapes"}, strings.Fields(c.flags)...)...)
		want := cli.ExitUsage
		if invariant.Enabled {
			c.says, want = "race detector", cli.ExitFailure
		}
		if status != want || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %q", c.flags, status, errs)
		}
	}
}

// A server that does not start ends the benchmark. TestShapes in folder test runs it with the real program.
func TestBenchShapesFails(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	folder := t.TempDir()
	status, _, errs := execute(t, "", "shapes", "--program", filepath.Join(folder, "nothing"), "--data", folder)
	// Where MariaDB is installed it starts first.
	if status != cli.ExitFailure || !strings.Contains(errs, "nothing: no such file") && !strings.Contains(errs, "mariadb-server") {
		t.Errorf("status %d, %q", status, errs)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v: left behind", left, err)
	}
}

func TestWriteJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "j")
	if err := writeJSONTo(file, &shapes.Result{Rounds: 7}); err != nil {
		t.Fatal(err)
	}
	var res shapes.Result
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &res)
	}
	if err != nil || res.Rounds != 7 {
		t.Errorf("%v: %s", err, text)
	}
	if err := writeJSONTo(filepath.Join(file, "nowhere"), &res); err == nil {
		t.Error("a file in a file is written")
	}
	if err := writeJSONTo("", &res); err != nil {
		t.Error(err)
	}
}
