//go:build sabotage

package simtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
)

// The test of the tests: each protocol of internal/sabotage leaves out a step or does it wrongly.
// Runs of the simulator, or a test, must catch that, and must pass with the step. With -table the
// test writes the table of protocols into docs/testing.md.
//
//	go test -tags gms_pure_go,sabotage -timeout 2h -run TestSabotage ./internal/simtest [-steps "drain,votes"] [-within 20s] [-table]

var (
	stepNames  = flag.String("steps", "", "only these, separated by commas")
	within     = flag.Duration("within", 0, "leave out what took longer to catch when the table was made; 0: nothing")
	writeTable = flag.Bool("table", false, "write docs/testing.md")
)

// seedsMax bounds how many seeds it may take to catch a protocol.
const seedsMax = 1000

// testRuns bounds how often a test may run until it catches one.
const testRuns = 5

// testPatience bounds a test of a broken protocol. Some of these tests would wait forever.
const testPatience = time.Minute

// A catch describes what catches a protocol: runs of the simulator with options, or a test of a
// package.
type catch struct {
	step sabotage.Step
	// options are given a name in the table; with makes them.
	options string
	with    func(*Options)
	// pkg and test are the test, if that is what catches it.
	pkg, test string
}

// A caught is how a protocol was caught.
type caught struct {
	catch
	seed uint64 // of the simulator
	what string
	took time.Duration // with the step left out only
}

func TestSabotage(t *testing.T) {
	listed := make(map[sabotage.Step]bool)
	for _, c := range catches {
		if listed[c.step] {
			t.Errorf("%v is listed twice", c.step)
		}
		listed[c.step] = true
	}
	before := tableSeconds(t)
	for s := range sabotage.Step(sabotage.Steps) {
		if !listed[s] {
			t.Errorf("nothing is said to catch %v", s)
		}
		if _, ok := before[s.String()]; !ok && !*writeTable {
			t.Errorf("%v is not in the table of %s: make it with -table", s, tableFile)
		}
	}
	binaries := &binaries{folder: t.TempDir(), built: make(map[string]string)}
	var rows []caught
	for _, c := range catches {
		if !wanted(c.step, before) {
			continue
		}
		t.Run(c.step.String(), func(t *testing.T) {
			var got caught
			var err error
			if c.test != "" {
				got, err = c.byTest(binaries)
			} else {
				got, err = c.bySeeds()
			}
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, got)
			t.Logf("caught by %s in %.1f s: %s", got.by(), got.took.Seconds(), got.what)
		})
	}
	if *writeTable {
		replaceTable(t, rows)
	}
}

// wanted reports whether this run leaves out a step.
func wanted(s sabotage.Step, before map[string]time.Duration) bool {
	if *stepNames != "" {
		return slices.Contains(strings.Split(*stepNames, ","), s.String())
	}
	return *within == 0 || before[s.String()] <= *within
}

// bySeeds looks for the first seed whose run is wrong without the step, and right with
// it.
func (c catch) bySeeds() (caught, error) {
	var took time.Duration
	for seed := uint64(1); seed <= seedsMax; seed++ {
		o := Draw(seed)
		if c.with != nil {
			c.with(&o)
		}
		begin := time.Now()
		undo := sabotage.Skip(c.step)
		r := Run(o)
		undo()
		took += time.Since(begin)
		runtime.GC() // unmaps the run's memory
		if r.Err == nil || Run(o).Err != nil {
			continue
		}
		what, _, _ := strings.Cut(r.Err.Error(), "\n")
		return caught{c, seed, what, took}, nil
	}
	return caught{}, fmt.Errorf("not caught with %d seeds in %v", seedsMax, took)
}

// byTest runs a test without the step, and with it. Without the step the test must fail in one of a
// few runs, since the order of its threads is up to the kernel. With the step it must pass.
func (c catch) byTest(b *binaries) (caught, error) {
	binary, err := b.of(c.pkg)
	if err != nil {
		return caught{}, err
	}
	begin := time.Now()
	var failed bool
	var out string
	for try := 0; try < testRuns && err == nil && !failed; try++ {
		failed, out, err = runTest(binary, c.pkg, c.test, c.step.String())
	}
	took := time.Since(begin)
	if err != nil {
		return caught{}, err
	}
	if !failed {
		return caught{}, fmt.Errorf("%s %s does not notice in %d runs", c.pkg, c.test, testRuns)
	}
	if fails, out, err := runTest(binary, c.pkg, c.test, ""); err != nil || fails {
		return caught{}, fmt.Errorf("%s %s fails with the step, too: %v\n%s", c.pkg, c.test, err, out)
	}
	return caught{c, 0, complaint(out), took}, nil
}

// runTest runs one test of a binary without a step, or with all steps. A test that does not end
// counts as failed. It returns an error if there is no such test.
func runTest(binary, pkg, test, step string) (failed bool, out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$", "-test.v", "-test.timeout", "30s")
	cmd.Dir = filepath.Join("..", "..", pkg)
	cmd.Env = append(os.Environ(), sabotage.Environment+"="+step)
	b, err := cmd.CombinedOutput()
	out = string(b)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, out, err
	}
	if !strings.Contains(out, "=== RUN   "+test) {
		return false, out, fmt.Errorf("%s has no test %s: %s", pkg, test, out)
	}
	return err != nil, out, nil
}

// complaint returns the message of a failed test.
func complaint(out string) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "panic: test timed out"):
			return "does not end"
		case strings.HasPrefix(line, "panic: "):
			return line
		case strings.Contains(line, "_test.go:"):
			return line
		}
	}
	return "fails"
}

// binaries are tests of packages, built when they are asked for.
type binaries struct {
	folder string
	built  map[string]string
}

func (b *binaries) of(pkg string) (string, error) {
	if path := b.built[pkg]; path != "" {
		return path, nil
	}
	path := filepath.Join(b.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.Command("go", "test", "-vet=off", "-c", "-tags", "gms_pure_go,sabotage", "-o", path, "./"+pkg)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	b.built[pkg] = path
	return path, nil
}
