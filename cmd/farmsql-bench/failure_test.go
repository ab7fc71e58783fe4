package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench/failure"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/cli/clitest"
	"github.com/farmsql/farmsql/internal/invariant"
)

// quickFailure are flags for short runs, which only show that failures can be measured.
var quickFailure = []string{"failure", "--seed", "1", "--subscribers", "200", "--region-size", "4MiB", "--pace", "aggressive",
	"--warm-up", "100ms", "--before", "1s", "--after", "200ms"}

func TestBenchFailure(t *testing.T) {
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	t.Setenv(clitest.AsProgram, "1") // for the machines
	for _, c := range []struct {
		args   string
		killed int
		title  string
	}{
		{"--machines 4 --runs 2", 1, "4 machines, 3 replicas, 200 subscribers: a machine killed, aggressive data recovery"},
		{"--machines 3 --replicas 2 --kill cm --lease 400ms --api sql --transport shm", 1, "TATP, sql, 3 machines, 2 replicas, 200 subscribers: the CM killed"},
		{"--machines 3 --replicas 2 --by stop", 1, "a machine stopped, aggressive data recovery"},
		{"--machines 5 --replicas 2 --kill domain --domains 3", 2, "one of 3 failure domains killed"},
	} {
		dir := t.TempDir()
		files := []string{"--json", filepath.Join(dir, "j"), "--plot", filepath.Join(dir, "p.svg")}
		status, out, errs := execute(t, "", append(append(slices.Clone(quickFailure), strings.Fields(c.args)...), files...)...)
		if status != 0 {
			t.Errorf("%s: status %d\n%s", c.args, status, errs)
			continue
		}
		if !strings.Contains(out, c.title) || !strings.Contains(out, "suspected to data recovered") || !strings.Contains(out, "\nreplicas: compared after the last run, and alike\n") {
			t.Errorf("%s: no %q in\n%s", c.args, c.title, out)
		}
		var res failure.Result
		text, err := os.ReadFile(filepath.Join(dir, "j"))
		if err == nil {
			err = json.Unmarshal(text, &res)
		}
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		for _, r := range res.Runs {
			if len(r.Killed) != c.killed || r.Before <= 0 || r.AllActive < r.Suspected || r.Recovered == nil || r.FilledBytes == 0 {
				t.Errorf("%s: %+v", c.args, r)
			}
		}
		for _, ending := range []string{"svg", "png"} {
			if info, err := os.Stat(filepath.Join(dir, "p."+ending)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", c.args, err)
			}
		}
	}
}

func TestBenchFailureIsRefused(t *testing.T) {
	t.Setenv(clitest.AsProgram, "1") // for the machines that refuse
	for _, c := range []struct{ flags, says string }{
		{"--runs=-1", "--runs"}, {"--replicas 1", "--replicas"}, {"--machines 2 --replicas 2", "--machines"}, {"--kill all", "--kill"}, {"--by fire", "--by"},
		{"--pace fast", "--pace"}, {"--threads 0", "--threads"}, {"--warm-up=-1s", "--warm-up"}, {"--before 1ms", "1ms before"},
		{"--kill domain --domains 2", "--domains"}, {"--domains 9", "9 failure domains"}, {"--subscribers=-5", "-5 subscribers"},
		{"--lease 1ms", "--lease"}, {"--api telepathy", "--api"}, {"--transport local", `over "local" (--transport) are not processes, which can be killed`},
		{"--dsn root@tcp(127.0.0.1:3306)/", "--dsn"},
	} {
		status, _, errs := execute(t, "", append([]string{"failure"}, strings.Fields(c.flags)...)...)
		if status == 0 || !invariant.Enabled && !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %q", c.flags, status, errs)
		}
	}
	if invariant.Enabled {
		return
	}
	for _, file := range []string{"--json", "--plot"} {
		args := append(slices.Clone(quickFailure), file, "no/such/folder", "--machines", "3", "--replicas", "2")
		if status, _, errs := execute(t, "", args...); status != cli.ExitFailure || errs == "" {
			t.Errorf("%s: status %d, %q", file, status, errs)
		}
	}
}
