package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cli"
)

func TestSim(t *testing.T) {
	status, first, errs := execute(t, "", "sim", "--seed", "7", "--runs", "2", "--parallel", "2")
	if status != 0 || !strings.Contains(first, ": 2 runs from seed 7 on: ") || errs != "" {
		t.Fatalf("status %d\n%s%s", status, first, errs)
	}
	if _, again, _ := execute(t, "", "sim", "--seed", "7", "--runs", "2"); again != first {
		t.Errorf("again:\n%s\nand not\n%s", again, first)
	}
	for i, line := range strings.Split(first, "\n")[:2] {
		if !regexp.MustCompile(fmt.Sprintf(`^seed %d: passed, hash [0-9a-f]{16}, \d+ commits, \d+ faults, [0-9.]+m?s$`, 7+i)).MatchString(line) {
			t.Errorf("line %d is %s", i, line)
		}
	}
	if status, out, _ := execute(t, "", "sim", "--minutes", "0.0001", "--machines", "3"); status != 0 || !strings.Contains(out, ": 1 runs from seed ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if status, out, _ := execute(t, "", "sim", "--seed", "7", "--trace"); status != 0 || strings.Count(out, "\n") < 1000 {
		t.Errorf("status %d, a trace of %d lines", status, strings.Count(out, "\n"))
	}
}

func TestSimFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--machines 2":                  "--machines is 2, must be from 3 to 90",
		"--machines 91":                 "--machines is 91, must be from 3 to 90",
		"--parallel 0":                  "--parallel is 0, must be at least 1",
		"--spare":                       "--spare, --liveness and --without need --overlapping",
		"--liveness":                    "--spare, --liveness and --without need --overlapping",
		"--overlapping --without=flood": "--without: there is no fault \"flood\"",
		"--minutes=-1":                  "--minutes is -1, must not be negative",
	} {
		status, _, errs := execute(t, "", append([]string{"sim"}, strings.Fields(flags)...)...)
		if status != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s", flags, status, errs)
		}
	}
}
