package test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// suiteTimeout is for one suite: the longest takes minutes.
const suiteTimeout = time.Hour

// A suite is a set of foreign tests of a MySQL client, which run against farmsql.
type suite struct {
	name string
	// needs returns the reason why the suite cannot run here, or "" if it can.
	needs func(*testing.T) string
	// run runs all tests except those that are left out, or few of them if small is set.
	run func(t *testing.T, s *server, small bool) outcomes
	// prepare are SQL statements that the suite expects to have run.
	prepare []string
}

var suites = []suite{
	{name: "go-sql-driver", needs: goModule, run: goTests("github.com/go-sql-driver/mysql", func(s *server) []string {
		return []string{"MYSQL_TEST_ADDR=" + s.addr, "MYSQL_TEST_DBNAME=suites"}
	}), prepare: []string{"set global local_infile = 1"}},
	{name: "sqlx", needs: goModule, run: goTests("github.com/jmoiron/sqlx", func(s *server) []string {
		return []string{"SQLX_MYSQL_DSN=root@tcp(" + s.addr + ")/suites?parseTime=true", "SQLX_POSTGRES_DSN=skip", "SQLX_SQLITE_DSN=skip"}
	})},
	{name: "gorm", needs: goModule, run: goTests("github.com/jinzhu/gorm", func(s *server) []string {
		return []string{"GORM_DIALECT=mysql", "GORM_DSN=root@tcp(" + s.addr + ")/suites?charset=utf8&parseTime=true"}
	})},
	{name: "Django", needs: djangoSource, run: djangoTests, prepare: []string{"create database django", "create database django_other"}},
}

// TestSuites runs the tests of drivers and libraries over the wire. suites_differences_test.go
// lists the tests that fail or are left out, with the reason. A test that fails and is not listed
// is an error, and so is a listed one that passes. TestSuites runs few of the long suites' tests,
// or all with FARMSQL_NIGHTLY=1. It shows left-out tests as skipped.
func TestSuites(t *testing.T) {
	for _, su := range suites {
		t.Run(su.name, func(t *testing.T) {
			if why := su.needs(t); why != "" {
				if _, err := os.Stat(debianKeyring); os.Getenv("REQUIRE_CLIENTS") == "" || su.name == "Django" && err != nil {
					t.Skip(why) // CI says so, too, and goes on where there is no Debian
				}
				t.Fatal(why)
			}
			s := start(t, t.TempDir(), "--region-size", "64MiB", "--log-size", "64MiB")
			exec1(t, s.open(t, "suites"), su.prepare...)
			out := su.run(t, s, !nightly)
			out.judge(t, su.name, !nightly)
			out.showLeftOut(t, su.name)
		})
	}
}

// An outcome is how one test of a suite ended.
type outcome struct {
	action string // pass, fail or skip
	output string
}

// outcomes are the outcomes of a suite, by the names of the tests and their parts.
type outcomes struct {
	byTest map[string]outcome
	// separator is between the name of a test and that of its part.
	separator string
}

// failed returns the tests that failed. If parts of a test failed, it returns only these parts.
func (o outcomes) failed() []string {
	var names []string
	for name, r := range o.byTest {
		if r.action == "fail" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(names, func(part string) bool { return part != name && o.covers(name, part) })
	})
}

// covers reports whether test is the test with the given name, or a part of it.
func (o outcomes) covers(name, test string) bool {
	return test == name || strings.HasPrefix(test, name+o.separator)
}

// judge compares the failed tests with the list. In a small run, listed tests may be missing.
func (o outcomes) judge(t *testing.T, suite string, small bool) {
	t.Helper()
	failed := o.failed()
	excused := make(map[string]bool)
	listed := 0
	for _, d := range differences {
		if d.suite != suite {
			continue
		}
		fails, runs := false, false
		for name, r := range o.byTest {
			runs = runs || r.action != "skip" && o.covers(d.test, name)
		}
		for _, name := range failed {
			if o.covers(d.test, name) {
				excused[name], fails = true, true
			}
		}
		switch {
		case fails:
			listed++
		case runs:
			t.Errorf("%s does not fail any more: delete it from suites_differences_test.go", d.test)
		case !small:
			t.Errorf("there is no test %s, or it skips itself: delete it from suites_differences_test.go", d.test)
		}
	}
	for _, name := range failed {
		if !excused[name] {
			output := o.byTest[name].output
			t.Errorf("%s fails, and is not listed:\n%s", name, output[max(0, len(output)-4000):])
		}
	}
	counts := make(map[string]int)
	for _, r := range o.byTest {
		counts[r.action]++
	}
	if counts["pass"] == 0 {
		t.Error("no test passed")
	}
	t.Logf("%d passed, %d failed as listed (%d lines of the list), %d skipped themselves", counts["pass"], len(excused), listed, counts["skip"])
}

// showLeftOut shows the tests that were not run, and those that are known to fail, by reason. Each
// is a skipped test: go test prints nothing else about a test that passes.
func (o outcomes) showLeftOut(t *testing.T, suite string) {
	reasons := make(map[string]int)
	for _, l := range leftOut {
		if l.suite == suite {
			reasons["not run: "+l.test+": "+l.why]++
		}
	}
	for _, d := range differences {
		if d.suite == suite {
			reasons["fails: "+d.why]++
		}
	}
	for _, r := range o.byTest {
		if r.action == "skip" {
			reasons["skips itself: "+lastLine(r.output)]++
		}
	}
	if !nightly && suite == "Django" {
		reasons["not run: all but "+strings.Join(djangoSmall, ", ")+": FARMSQL_NIGHTLY=1 runs them"]++
	}
	for _, why := range slices.SortedFunc(keysOf(reasons), cmp.Compare) {
		t.Run("left out", func(t *testing.T) { t.Skipf("%d: %s", reasons[why], why) })
	}
}

func keysOf[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// lastLine returns the line of a test's output with the reason why it skips itself: the last line
// that is not from the go command.
func lastLine(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			last = line
		}
	}
	return last
}

// skipPattern matches the tests of a suite that are left out.
func skipPattern(suite string) string {
	var names []string
	for _, l := range leftOut {
		if l.suite == suite {
			names = append(names, "^"+l.test+"$")
		}
	}
	return strings.Join(names, "|")
}

// goSuites is a module that pins the modules whose tests are run.
const goSuites = "testdata/suites"

func goModule(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "-C", goSuites, "mod", "download").CombinedOutput(); err != nil {
		return fmt.Sprintf("the modules of %s cannot be had: %v: %s", goSuites, err, bytes.TrimSpace(out))
	}
	return ""
}

// goTests runs the tests of a package.
func goTests(pkg string, env func(*server) []string) func(*testing.T, *server, bool) outcomes {
	return func(t *testing.T, s *server, _ bool) outcomes {
		ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "go", "-C", goSuites, "test", "-json", "-count=1", "-vet=off", "-timeout", fmt.Sprint(suiteTimeout),
			"-skip", skipPattern(suiteOf(t)), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		cmd.Env = append(cmd.Env, env(s)...)
		out, err := cmd.Output() // fails if a test does
		return goOutcomes(t, out, err)
	}
}

// suiteOf returns the name of a test's suite.
func suiteOf(t *testing.T) string { return t.Name()[strings.LastIndexByte(t.Name(), '/')+1:] }

// goOutcomes reads the output of go test -json. It fails the test if the run ended before its
// tests: nobody would miss the remaining ones.
func goOutcomes(t *testing.T, out []byte, failure error) outcomes {
	o := outcomes{make(map[string]outcome), "/"}
	var whole strings.Builder
	running := make(map[string]bool)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Errorf("not a line of go test -json: %q", lines.Bytes())
			continue
		}
		r := o.byTest[e.Test]
		switch e.Action {
		case "run":
			running[e.Test] = true
		case "output":
			r.output += e.Output
			whole.WriteString(e.Output)
		case "pass", "fail", "skip":
			r.action = e.Action
			delete(running, e.Test)
		}
		if e.Test != "" {
			o.byTest[e.Test] = r
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("what go test -json says cannot be read to its end: %v", err)
	}
	text := whole.String()
	text = text[max(0, len(text)-4000):]
	if len(running) > 0 || strings.Contains(text, "\npanic: ") {
		t.Errorf("ended in the middle of %d tests:\n%s", len(running), text)
	}
	if failure != nil && len(o.failed()) == 0 {
		t.Errorf("%v, and no test failed:\n%s", failure, text)
	}
	return o
}
