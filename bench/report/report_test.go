package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/shapes"
	"github.com/farmsql/farmsql/internal/invariant"
)

// script is a program in place of farmsql. It records its arguments, and then runs body, where $OUT
// is the file of the result.
func script(t *testing.T, body string) Options {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "program")
	text := "echo \"$@\" >> " + filepath.Join(dir, "calls") + "\nfor OUT; do :; done\n" + body
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return Options{Program: []string{"sh", file}, Folder: filepath.Join(dir, "results"), Runs: 2, Only: []string{"tatp-1m", "kv-h4", "tatp-open-1"}, Progress: t.Output()}
}

// calls are the arguments of each call of the script, without the file of the result.
func calls(t *testing.T, o Options) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(o.Folder), "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		args, _, _ := strings.Cut(line, " --json")
		all = append(all, args)
	}
	return all
}

const works = `echo '{"total": {"perSecond": 1000}}' > $OUT`

// Memory that is to be on a disk is in the folder of the results. The command line that identifies
// a result does not contain that folder.
func TestMemoryInTheFolderOfTheResults(t *testing.T) {
	o := Options{Folder: "/x/y", Program: []string{"p"}}
	if got := strings.Join(tpcc1Disk.command(&o, 1), " "); !strings.HasSuffix(got, " --data /x/y --seed 1") {
		t.Errorf("the command is %q", got)
	}
	if got := o.heading(turn{tpcc1Disk, 1}); !strings.HasSuffix(got, " --data RESULTS --seed 1") {
		t.Errorf("the heading is %q", got)
	}
}

// A program built without the profile is a different program, and its results are marked as such.
func TestUnguided(t *testing.T) {
	o := script(t, works)
	plain := pairs[0].unguided
	if err := Measure(t.Context(), Options{Program: o.Program, Unguided: append(slices.Clone(o.Program), "unguided"), Folder: o.Folder, Runs: 1,
		Only: []string{plain.name, tatp1M.name}, Progress: o.Progress}); err != nil {
		t.Fatal(err)
	}
	if got := calls(t, o); len(got) != 2 || strings.HasPrefix(got[0], "unguided") || !strings.HasPrefix(got[1], "unguided tatp --subscribers 1000000") {
		t.Errorf("called with %q", got)
	}
	if got := o.heading(turn{plain, 1}); !strings.HasPrefix(got, "farmsql bench (built with -pgo=off) tatp ") {
		t.Errorf("the heading is %q", got)
	}
	// In a folder without the source, building it fails.
	t.Chdir(t.TempDir())
	o.Only = []string{"unguided"}
	if err := Measure(t.Context(), o); err == nil || !strings.Contains(err.Error(), "go build -pgo=off") {
		t.Errorf("error %v", err)
	}
}

func TestExperimentsTakeTurns(t *testing.T) {
	o := script(t, works)
	if err := Measure(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range calls(t, o) {
		f := strings.Fields(c)
		names = append(names, f[0]+" "+f[2]+" seed "+f[len(f)-1])
	}
	want := []string{"tatp 1000000 seed 1", "kv 1000000 seed 1", "tatp 100000 seed 1", "tatp 1000000 seed 2", "kv 1000000 seed 2"}
	if !slices.Equal(names, want) { // a curve is run once
		t.Errorf("%v, want %v", names, want)
	}
}

func TestWhatIsThereIsNotMeasuredAgain(t *testing.T) {
	o := script(t, works)
	for range 2 {
		if err := Measure(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(calls(t, o)); n != 5 {
		t.Fatalf("%d runs, want 5: %v", n, calls(t, o))
	}
	// A result of another command line is measured again, and so is one without a log.
	other := o.file(turn{tatp1M, 1}, ".log")
	if err := os.WriteFile(other, []byte("farmsql bench tatp\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.file(turn{tatp1M, 2}, ".log")); err != nil {
		t.Fatal(err)
	}
	if err := Measure(t.Context(), o); err != nil || len(calls(t, o)) != 7 {
		t.Errorf("%v: %v", err, calls(t, o))
	}
	// Quick runs have files of their own.
	o.Quick = true
	if err := Measure(t.Context(), o); err != nil || len(calls(t, o)) != 12 {
		t.Errorf("%v: %v", err, calls(t, o))
	}
}

func TestWhatFailsDoesNotKeepOthersFromRunning(t *testing.T) {
	o := script(t, `case "$*" in *neighbourhood*) echo {} > $OUT; echo first; echo it is broken >&2; exit 3;; esac`+"\n"+works)
	err := Measure(t.Context(), o)
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "kv-h4, run 1 (exit status 3: it is broken); kv-h4, run 2") {
		t.Errorf("error %v", err)
	}
	if n := len(calls(t, o)); n != 5 {
		t.Errorf("%d runs", n)
	}
	files, err := filepath.Glob(filepath.Join(o.Folder, "kv-h4.*"))
	if err != nil || len(files) != 2 || !strings.HasSuffix(files[0], "kv-h4.1.log") {
		t.Errorf("%v, %v, want only the logs", files, err)
	}
}

func TestProgramWithoutAResultFails(t *testing.T) {
	for name, o := range map[string]Options{"writes nothing": script(t, ""), "cannot be started": {Program: []string{"/no/such/program"}}} {
		o.Folder, o.Runs, o.Only, o.Progress = t.TempDir(), 1, []string{"tatp-1m"}, t.Output()
		if err := Measure(t.Context(), o); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestMeasureIsInterrupted(t *testing.T) {
	o := script(t, `trap 'echo stopped >> `+t.TempDir()+`/x; exit 1' INT; echo ready >&2; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // once it is at work
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(filepath.Dir(o.Folder), "calls")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := Measure(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := len(calls(t, o)); n != 1 {
		t.Errorf("%d runs after the interruption", n)
	}
}

func TestOptionsAreRefused(t *testing.T) {
	good := script(t, works)
	for name, change := range map[string]func(o *Options){
		"runs": func(o *Options) { o.Runs = 0 },
		"only": func(o *Options) { o.Only = []string{"kv", "kw"} },
	} {
		o := good
		change(&o)
		if err := Measure(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := Write(o, "x.md"); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	o := good
	o.Folder = o.Program[1] // a file
	if err := Measure(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Folder) {
		t.Errorf("error %v", err)
	}
	o = good
	o.Progress = brokenWriter{}
	if err := Measure(t.Context(), o); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestSuite(t *testing.T) {
	commands := make(map[string]string)
	for _, e := range suite() {
		c := strings.Join(e.command(&Options{Unguided: []string{"unguided"}}, 1), " ")
		if other, ok := commands[c]; ok {
			t.Errorf("%s and %s are the same: %s", e.name, other, c)
		}
		commands[c] = e.name
	}
	names := make(map[string]string)
	for _, s := range sections {
		for _, e := range s.experiments {
			if args, ok := names[e.name]; ok && args != e.args {
				t.Errorf("two experiments are called %s", e.name)
			}
			names[e.name] = e.args
		}
	}
	o := Options{Runs: 2}
	for _, x := range o.turns() {
		if x.isLarge {
			t.Errorf("%s is large, and was not asked for", x.name)
		}
	}
	o.Large = true
	if !slices.ContainsFunc(o.turns(), func(x turn) bool { return x.isLarge }) {
		t.Error("nothing large, though it was asked for")
	}
	for only, want := range map[string]int{"compare": 1, "large": 2, "large-kv": 1, "tatp-1m": 2} {
		o := Options{Runs: 2, Only: []string{only}}
		if n := len(o.turns()); n != want {
			t.Errorf("%s: %d runs", only, n)
		}
	}
}

func TestQuickCommandHasLittleToDo(t *testing.T) {
	got := strings.Join(tpcc3.command(&Options{Quick: true, Program: []string{"farmsql", "bench"}}, 7), " ")
	want := "farmsql bench tpcc --warehouses 3 --transport shm --machines 3 --replicas 3 --workers 1 --warm-up 0s --duration 100ms --customers 20 --items 50 --seed 7"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The output of programs other than farmsql becomes a result, with the conditions.
func TestOtherTools(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for file, text := range map[string]string{
		"go":                "echo 'BenchmarkDependentLoad/far-2 10 300 ns/op 1.0 misses'; echo \"BenchmarkArgs 1 $# args\"",
		"bench/compare/run": `for OUT; do :; done; echo '{"rows": [{"work": "w", "system": "s", "perSecond": [5], "median": 5, "ratio": 1}]}' > $OUT`,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Folder: filepath.Join(dir, "results"), Runs: 1, Only: []string{"micro", "compare"}, Quick: true, Progress: t.Output()}
	if err := Measure(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text := written(t, o, document(t, "Old.\n"))
	for _, want := range []string{"| DependentLoad/far | 300 |  | 1 | 1.00 |  |  |\n", "| w | s | 5.00 |  | 1 | 1.00 |  |\n", runtime.Version() + "; commit "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	log, err := os.ReadFile(o.file(turn{micro, 1}, ".log"))
	if err != nil || !strings.Contains(string(log), "go test -tags gms_pure_go -run ^$ -bench . -benchtime 1x -count 1 ./bench/micro -short\n") || !strings.Contains(string(log), "Args 1 13 args") {
		t.Errorf("%v: %s", err, log)
	}
}

// The benchmarks of single operations run, and the table has those with goals.
func TestMicro(t *testing.T) {
	if invariant.Enabled {
		t.Skip("the benchmarks are a program of their own, which has no checks")
	}
	t.Chdir("../..")
	o := Options{Folder: t.TempDir(), Runs: 1, Only: []string{"micro"}, Quick: true, Progress: t.Output()}
	if err := Measure(t.Context(), o); err != nil {
		log, _ := os.ReadFile(o.file(turn{micro, 1}, ".log"))
		t.Fatalf("%v\n%s", err, log)
	}
	text := written(t, o, document(t, "Old.\n"))
	for name, goal := range microGoals {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \| [0-9,.]+ \|  \| 1 \| [0-9,.]+ \| ` + goal + ` \| [0-9,.]+ \|$`)
		if !row.MatchString(text) {
			t.Errorf("no row of %s with the goal %s in\n%s", name, goal, text)
		}
	}
	if !regexp.MustCompile(`\| DependentLoad/far \| [0-9,.]+ \|  \| 1 \|`).MatchString(text) {
		t.Errorf("no miss to compare with in\n%s", text)
	}
}

func TestCompare(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, compare, 1, `{"conditions": {"cpu": "Abacus", "others": 0.5},
		"systems": [{"name": "SQLite", "version": "3", "settings": "in memory"}], "missing": [{"name": "Redis", "text": "not installed"}],
		"works": [{"name": "TATP", "text": "one client"}],
		"rows": [{"work": "TATP", "system": "SQLite", "perSecond": [100, 110, 120], "ratio": 1, "cpuMicroseconds": 3.3},
			{"work": "TATP", "system": "farmsql", "perSecond": [250], "ratio": 2.27},
			{"work": "keys", "system": "MariaDB", "perSecond": [10], "ratio": 1}, {"work": "keys", "system": "farmsql", "perSecond": [50], "ratio": 5}]}`)
	text := written(t, o, document(t, "Old.\n"))
	for _, want := range []string{
		"- SQLite 3: in memory\n- Redis was not measured: not installed\n\n- TATP: one client\n",
		"| TATP | SQLite | 110 | 100 to 120 | 3 | 1.00 | 3.30 |\n|  | farmsql | 250 |  | 1 | 2.27 |  |\n| keys | MariaDB | 10.0 |  | 1 | 1.00 |  |\n|  | farmsql | 50.0 |  | 1 | 5.00 |  |\n",
		"farmsql does 2.27 times the transactions of TATP that SQLite does in memory. The goal is at least 2.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	put(t, &o, compare, 1, `{"rows": [{"work": "keys", "system": "farmsql", "perSecond": [1], "ratio": 1}]}`)
	if text := written(t, o, document(t, "")); !strings.Contains(text, "does (not measured) times") {
		t.Errorf("a ratio from nowhere:\n%s", text)
	}
	put(t, &o, compare, 1, `{"rows": 5}`)
	if err := Write(o, document(t, "")); err == nil || !strings.Contains(err.Error(), "report: compare: ") {
		t.Errorf("error %v", err)
	}
}

func TestTPCH(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, queried, 1, `{"conditions": {"scale": {"n": 150000, "unit": "orders"}, "durability": "tmpfs"}, "servers": ["farmsql", "MariaDB"], "versions": ["1", "2"],
		"settings": ["x", "y"], "scale": 0.1, "rounds": 6, "rows": [
		{"query": 1, "rows": 4, "figures": [{"processor": 500, "latency": 510, "firstProcessor": 1000}, {"processor": 100, "latency": 102, "firstProcessor": 150}],
			"ratio": 0.2, "lowest": 0.1, "highest": 0.3, "first": 0.15, "latency": 0.2},
		{"query": 2, "figures": [{}, {}], "difference": "row 1: 1 | 2"}]}`)
	file := document(t, "Old.\n")
	text := written(t, o, file)
	for _, want := range []string{
		"farmsql 1 (x) beside MariaDB 2 (`y`)", "scale 0.1, 150,000 orders; 1 run of 6 executions", "memory of both: tmpfs.",
		"| Q1 | 4 | 100 | 500 | 0.200 | 0.100 to 0.300 | 102 | 510 | 0.200 | 150 | 1000 | 0.150 |\n", `| Q2 | WRONG, row 1: 1 \| 2 |`,
		"processor times is 0.20. Slower than a third of MariaDB: Q1.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	put(t, &o, queried, 1, `{"rows": 5}`)
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "report: tpch: ") {
		t.Errorf("error %v", err)
	}
}

func TestShapes(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	row := func(shape, mode, rest string) string {
		return `{"group": "lookup", "shape": "` + shape + `", "mode": "` + mode + `", ` + rest + `}`
	}
	var rows []string
	for i := range 40 { // more than there is room for
		rows = append(rows, row(fmt.Sprint("s", i), "text", fmt.Sprintf(`"figures": [{"processor": 100}, {"processor": %d}], "ratio": %g, "lowest": 0.001, "highest": 9, "latency": 1`, 10+10*i, 0.1+0.1*float64(i))))
	}
	rows = append(rows, row("other", "text", `"figures": [{}, {}], "difference": "1 and 2"`), row("broken", "prepared", `"figures": [{"error": "no"}, {}]`))
	put(t, &o, shaped, 1, `{"conditions": {"scale": {"n": 5000, "unit": "rows"}, "durability": "tmpfs"}, "servers": ["farmsql", "MariaDB"], "versions": ["1", "2"],
		"settings": ["x", "y"], "rounds": 3, "turnSeconds": 0.1, "modes": ["text", "prepared"], "rows": [`+strings.Join(rows, ",")+`]}`)
	file := document(t, "Old.\n")
	text := written(t, o, file)
	for _, want := range []string{
		"farmsql 1 (x) beside MariaDB 2 (`y`)", "each shape has 3 turns of 0.1 s", "; 5,000 rows; memory of both: tmpfs.", "| lookup | text | 40 | 1.58 | 1.00 | 31 | 7 | 4 | 0 | 1 | 0 |\n",
		"|  | prepared | 0 | - | - | 0 | 0 | 0 | 0 | 0 | 1 |\n", "| all | text | 40 |", "| lookup: s0 | 10.0 | 100 | 0.100 | 0.0010 to 9.00 | 1.00 |\n", "| lookup: s19 |", "| lookup: s39 | 400 |", "| lookup: s30 |", "(benchmarks/shapes.md)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"lookup: s20 ", "lookup: s29 "} {
		if strings.Contains(text, not) {
			t.Errorf("%q is neither among the worst nor among the best:\n%s", not, text)
		}
	}
	all, err := os.ReadFile(filepath.Join(strings.TrimSuffix(file, ".md"), "shapes.md"))
	if err != nil || !strings.Contains(string(all), "| s25 | text | 260 |") || !strings.Contains(string(all), "WRONG, 1 and 2") {
		t.Errorf("%v:\n%s", err, all)
	}
	put(t, &o, shaped, 1, `{"rows": 5}`)
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "report: shapes: ") {
		t.Errorf("error %v", err)
	}
	p := &page{results: &results{}, plots: filepath.Join(t.TempDir(), "nowhere")}
	if err := p.allShapes(new(shapes.Result)); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error %v", err)
	}
}

func TestLease(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, leases, 1, `{"conditions": {"threads": 2}, "seconds": 20, "leases": ["5ms", "10ms"],
		"rows": [{"variant": "calls", "counts": [70, 4]}, {"variant": "thread", "counts": [3, 0]}]}`)
	file := document(t, "Old.\n")
	text := written(t, o, file)
	for _, want := range []string{
		"while 2 goroutines allocate; each variant 20 s, all lease times at once; 1 run:\n", "| leases that ran out | 5ms | 10ms |\n", "| calls | 70 | 4 |\n| thread | 3 | 0 |\n", "(benchmarks/leases.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSuffix(file, ".md"), "leases.svg")); err != nil {
		t.Error(err)
	}
	put(t, &o, leases, 1, `{"rows": 5}`)
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "report: lease: ") {
		t.Errorf("error %v", err)
	}
}

func TestFailure(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, failures[1].experiment, 1, `{"conditions": {"machines": 5, "replicas": 3, "workload": "TATP", "transport": "shm", "scale": {"n": 30000, "unit": "subscribers"}, "durability": "tmpfs", "warmUpSeconds": 1, "durationSeconds": 86400}, "kind": "cm", "leaseMilliseconds": 150, "leaseKeptBy": "thread",
		"runs": [{"killed": [0], "suspected": 5, "probed": 6, "stored": 7, "committed": 8, "allActive": 30}],
		"distribution": [{"name": "killed to suspected", "runs": 40, "minimum": 4.25, "median": 9, "p90": 30, "maximum": 95}, {"name": "suspected to data recovered"}],
		"timeline": {"perMillisecond": [80, 79, 81, 0, 0, 5, 70, 80], "events": [{"seconds": 0.003, "text": "killed"}]}}`)
	file := document(t, "Old.\n")
	text := written(t, o, file)
	for _, want := range []string{
		"| a machine that is not the CM | not measured |  |  |  |  |  |  |  |\n| the CM | killed to suspected | 40 | 4.25 | 9.00 | 30.0 | 95.0 | 30,000 subscribers | tmpfs |\n",
		"|  | suspected to data recovered | 0 |  |  |  |  | 30,000 subscribers | tmpfs |\n", "The median run, of the CM; 5 machines, 3 replicas, leases of 150 ms kept by a thread.", "(benchmarks/failure-cm.svg)",
		"Seconds of warm-up: 1, measured: 0.01; seeds", "each kind's median run,", // not a day
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, ending := range []string{".svg", ".png"} {
		if _, err := os.Stat(filepath.Join(strings.TrimSuffix(file, ".md"), "failure-cm"+ending)); err != nil {
			t.Error(err)
		}
	}
	put(t, &o, failures[1].experiment, 1, `{"runs": [{}], "timeline": {}}`) // nothing to plot
	if err := Write(o, file); err == nil {
		t.Error("no error")
	}
	put(t, &o, failures[1].experiment, 1, `{"runs": 5}`)
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "report: failure-cm: ") {
		t.Errorf("error %v", err)
	}
}

func TestMisses(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, tatp1M, 1, sample(500_000, 0)) // 2 µs each
	if text := written(t, o, document(t, "")); !strings.Contains(text, "(not measured ns each): not measured.\nThe goal is at most 6.\n") {
		t.Errorf("misses of nothing:\n%s", text)
	}
	put(t, &o, micro, 1, `{"text": "BenchmarkDependentLoad/far-2 10 410 ns/op\nBenchmarkDependentLoad/far-2 10 390 ns/op\n"}`)
	if text := written(t, o, document(t, "")); !strings.Contains(text, "(400 ns each): 5.00.\n") {
		t.Errorf("2 µs are not 5 times 400 ns:\n%s", text)
	}
	put(t, &o, micro, 1, `{"text": "PASS"}`)
	if err := Write(o, document(t, "")); err == nil || !strings.Contains(err.Error(), "report: micro: ") {
		t.Errorf("error %v", err)
	}
}

// sample is a result of an experiment: one object for each rate.
func sample(perSecond, others float64, rates ...float64) string {
	var objects []string
	for _, rate := range append(rates, 0)[:max(1, len(rates))] {
		objects = append(objects, fmt.Sprintf(`{
			"conditions": {"cpu": "Abacus", "processors": 2, "memoryBytes": 34359738368, "kernel": "Linux 6", "go": "go1", "commit": "abc",
				"began": "2026-11-22T01:02:03Z", "others": %v, "rate": %v, "scale": {"n": 921, "unit": "rows"}, "memory": "anonymous memory", "workload": "toy", "transport": "local", "machines": 1,
				"replicas": 1, "workers": 1, "threads": 1, "warmUpSeconds": 0.5, "durationSeconds": 3, "seed": 7},
			"total": {"name": "all", "count": 9, "perSecond": %v, "p50Microseconds": 1, "p99Microseconds": 2, "p999Microseconds": 3},
			"kinds": [{"name": "lookup", "count": 9, "perSecond": %v, "p50Microseconds": 1.5, "p99Microseconds": 2.5},
				{"name": "New-Order", "count": 5, "perSecond": 500, "missedPart": 0.01}],
			"processorMicroseconds": 2, "reads": {"local": 2.1, "remote": 0, "messages": 0.25}}`, others, rate, perSecond+rate, perSecond))
	}
	return strings.Join(objects, "\n")
}

// put writes a result into the folder.
func put(t *testing.T, o *Options, e experiment, n int, json string) {
	t.Helper()
	x := turn{e, n}
	for ending, text := range map[string]string{".json": json, ".log": o.heading(x) + "\n"} {
		if err := os.WriteFile(o.file(x, ending), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// document writes a document whose sections all have the given text.
func document(t *testing.T, said string) string {
	t.Helper()
	text := "# Title\n\nText `<!-- farmsql bench report: ... -->` text.\n\n"
	for _, s := range sections {
		text += "## " + s.name + "\n\n" + markerBegin + s.name + " -->\n" + said + markerEnd + "\nAfter.\n"
	}
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// written is the document after Write.
func written(t *testing.T, o Options, file string) string {
	t.Helper()
	if err := Write(o, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocument(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 3}
	put(t, &o, tatp1M, 1, sample(600_000, 0.1))
	put(t, &o, tatp1M, 2, sample(700_000, 0.1))
	put(t, &o, tatp1M, 3, sample(650_000, 0.1))
	put(t, &o, tpcc1, 1, sample(40_000, 0.1))
	put(t, &o, tpcc3, 1, strings.NewReplacer("anonymous memory", "x", `"memory"`, `"durability": "tmpfs", "memory"`).Replace(sample(41_000, 0.1)))
	put(t, &o, kv1M, 1, sample(4_000_000, 0.1)) // from before there was a figure of space
	put(t, &o, kvVariants[1].experiment, 1, strings.Replace(sample(4_000_000, 0.1), `"reads"`, `"space": {"usedPart": 0.656}, "reads"`, 1))
	put(t, &o, graphs[1].experiment, 1, strings.Replace(sample(500_000, 0.1), `"remote": 0`, `"remote": 0.7`, 1))
	put(t, &o, curves[0].experiment, 1, sample(0, 0.1, 1000, 2000))
	put(t, &o, curves[1].experiment, 1, strings.NewReplacer(`"memory"`, `"durability": "tmpfs", "memory"`, `"reads"`, `"arrivals": {"lateP99Microseconds": 0.75, "waiting": 12}, "reads"`).Replace(sample(0, 0.1, 1000, 2000)))
	put(t, &o, pairs[0].unguided, 1, sample(500_000, 0.1))
	put(t, &o, tatp100K, 1, "{}")
	if err := os.Remove(o.file(turn{tatp100K, 1}, ".log")); err != nil { // so it is of nobody knows what
		t.Fatal(err)
	}
	text := written(t, o, document(t, "Old.\n"))
	for _, want := range []string{
		"# Title\n\nText `<!-- farmsql bench report: ... -->` text.\n",
		"Abacus, 2 processors, 32 GiB, Linux 6, go1; commit abc; 2026-11-22 01:02 to 01:02 UTC; medians of 1 to 3 runs in turns",
		"Other processes kept 0.1 processors busy meanwhile in the median run, 0.1 to 0.1 in all.\n",
		"| TATP, 1 machine, 1 thread, 1,000,000 subscribers: transactions | 650,000 | 600,000 to 700,000 | 3 | 921 rows | volatile anonymous memory | 650,000 | 2.00 | 500,000 | 51,900 |  |\n",
		"1 warehouse: all transactions | 40,000 |  | 1 | 921 rows | volatile anonymous memory | 40,000 | 2.00 | 500,000 |  |  |\n| the same: new orders | 495 |  | 1 | 921 rows | volatile anonymous memory |  | 2.00 | 6,188 | 1,667 |  |\n",
		"3 warehouses, 1 thread each: all transactions | 41,000 |  | 1 | 921 rows | tmpfs |  | 2.00 | 500,000 |  |  |\n| the same: new orders | 495 |  | 1 | 921 rows | tmpfs | 3,333 | 2.00 | 6,037 | 1,667 | 3.62 |\n",
		"Seconds of warm-up: 0.5, measured: 3; seeds: 7. Set-ups: 1 machine, 1 replica, transport local, 1 worker, 1 thread.\n",
		"3 replicas, 1 thread each: transactions | not measured |  |  |  |  | 104,000 | not measured | not measured | 51,900 |  |\n",
		"| TATP, data | 100,000 subscribers, 1 M rows | not measured |  |  |  |  | not measured | not measured |  |\n",
		"| H = 8, values of 32 bytes, 90 % full, uniform, 1 machine | 4,000,000 |  | 1 | 921 rows | volatile anonymous memory |  | 2.00 | 2.10 | 0.00 | 0.25 | 1.50 | 2.50 |  |  |\n",
		"| H = 2 | 4,000,000 |  | 1 | 921 rows | volatile anonymous memory | 65.6 |", "| H = 4 | not measured |  |  |  |  | not measured |",
		"| local reads | remote reads | together; the paper: 1.02 | messages |\n", "| 2.10 | 0.70 | 2.80 | 0.25 |\n",
		"![TATP, one machine, one thread: latency over throughput](benchmarks/tatp-open-1.svg)\n",
		"| 1,000 | 1,000 |  | 1 | 921 rows | volatile anonymous memory | 1.00 | 2.00 | 3.00 | not measured | not measured | 0.1 |\n| 2,000 | 2,000 |",
		"1,000 |  | 1 | 921 rows | tmpfs | 1.00 | 2.00 | 3.00 | 0.75 | 12 | 0.1 |\n",
		"| TATP, 1 machine, 1 thread, 1,000,000 subscribers | 650,000 | 500,000 | 1.30 |  | 1 | 921 rows | volatile anonymous memory | 2.00 | 2.00 |\n",
		"After.\n## kv\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The table of transports divides each throughput by that over shared memory.
func TestTransports(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	put(t, &o, tatp3, 1, sample(200_000, 1))
	for _, s := range transports {
		if len(s.rows) != 4 || s.rows[1].label != overSHM {
			t.Errorf("%s: the second of %d rows is %s, want shared memory", s.what, len(s.rows), s.rows[1].label)
		}
		for _, v := range s.rows {
			if v.name == "tatp-tcp-3" {
				put(t, &o, v.experiment, 1, sample(50_000, 1))
			}
		}
	}
	text := written(t, o, document(t, ""))
	for _, want := range []string{"| TATP, 1 thread each | " + overLocal + " | not measured |  |", "|  | " + overSHM + " | 200,000 | 1.00 |", "|  | " + overTCP + " | 50,000 | 0.25 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The table of messages divides the throughput of each by that of READs over the same network.
func TestAsked(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	tcp := askings[2].rows[2]
	if strings.Contains(tcp.byReads.args, "--by-message") || tcp.byMessages.args == tcp.byReads.args {
		t.Errorf("%s, %s", tcp.byReads.args, tcp.byMessages.args)
	}
	put(t, &o, tcp.byReads, 1, sample(200_000, 1))
	put(t, &o, tcp.byMessages, 1, sample(250_000, 1))
	text := written(t, o, document(t, ""))
	for _, want := range []string{
		"| 32 keys together, 1 thread each | " + overLocal + " | READs | not measured |",
		"|  | " + overTCP + " | READs | 200,000 | 1.00 |", "|  | " + overTCP + " | messages | 250,000 | 1.25 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestSectionWithoutAResult(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 3}
	file := document(t, "By hand.\n")
	put(t, &o, tpcc1, 1, sample(1, 1))
	if text := written(t, o, file); strings.Count(text, "By hand.\n") != len(sections)-3 || !strings.Contains(text, "**The computer was not quiet") {
		t.Errorf("what was there before is not:\n%s", text)
	}
	// Options.Only selects the measurements, not the results that are shown.
	o.Only = []string{"micro"}
	put(t, &o, kvVariants[1].experiment, 1, sample(1, 0.1))
	text := written(t, o, file)
	for _, s := range sections {
		if kept := s.name != "throughput" && s.name != "scaling" && s.name != "guided" && s.name != "kv"; strings.Contains(text, markerBegin+s.name+" -->\nBy hand.\n"+markerEnd) != kept {
			t.Errorf("%s: kept what was there: %v", s.name, !kept)
		}
	}
	o.Quick = true // of which there is none
	if text := written(t, o, document(t, "")); strings.Count(text, "\nNot measured.\n") != len(sections) || strings.Count(text, "figures mean nothing") != len(sections) {
		t.Errorf("it is not said that nothing was measured:\n%s", text)
	}
}

func TestDocumentIsRefused(t *testing.T) {
	whole, err := os.ReadFile(document(t, "Old.\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Folder: t.TempDir(), Runs: 1}
	for name, change := range map[string]func(string) string{
		"section missing": func(s string) string { return strings.Replace(s, markerBegin+"kv -->\nOld.\n"+markerEnd, "", 1) },
		"section twice":   func(s string) string { return s + markerBegin + "kv -->\n" + markerEnd },
		"section unknown": func(s string) string { return s + markerBegin + "x -->\n" + markerEnd },
		"end missing":     func(s string) string { return strings.Replace(s, markerEnd, "", 1) },
		"last end":        func(s string) string { return s[:strings.LastIndex(s, markerEnd)] },
	} {
		file := filepath.Join(t.TempDir(), "x.md")
		text := change(string(whole))
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Write(o, file); !errors.Is(err, ErrDocument) {
			t.Errorf("%s: error %v", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("%s: the document has changed: %v", name, err)
		}
	}
	if err := Write(o, filepath.Join(t.TempDir(), "none.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestWriteFails(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	file := document(t, "Old.\n")
	put(t, &o, tpcc1, 1, "{ broken")
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "tpcc-1.1.json") {
		t.Errorf("error %v", err)
	}
	put(t, &o, tpcc1, 1, "")
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("of an empty result: error %v", err)
	}
	put(t, &o, tpcc1, 1, sample(1, 1))
	put(t, &o, curves[0].experiment, 1, sample(1, 1, 1000)) // a curve has more points
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "at least two runs") {
		t.Errorf("error %v", err)
	}
	put(t, &o, curves[0].experiment, 1, sample(1, 1, 1000, 2000))
	plots := strings.TrimSuffix(file, ".md")
	if err := os.MkdirAll(filepath.Join(plots, "tatp-open-1.svg"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), "tatp-open-1.svg") {
		t.Errorf("error %v", err)
	}
	if err := os.RemoveAll(plots); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plots, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(o, file); err == nil || !strings.Contains(err.Error(), plots) {
		t.Errorf("error %v", err)
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want string
	}{
		{nil, "not measured, "},
		{[]float64{3}, "3.00, "},
		{[]float64{3, 1}, "2.00, 1.00 to 3.00"},
		{[]float64{30, 10, math.NaN(), 20}, "20.0, 10.0 to 30.0"},
	} {
		if got := figureOf(c.v).short() + ", " + figureOf(c.v).spread(); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
	for x, want := range map[float64]string{0: "0.00", 9.999: "10.0", 99.96: "100", 1234: "1,234", 9_999: "9,999", 12_345: "12,300", 1_234_567: "1,230,000", 999_600: "1,000,000"} {
		if got := number(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestConditionsOfSeveralDays(t *testing.T) {
	a := bench.Conditions{CPU: "A", Commit: "1", Others: -1, Began: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)}
	b := a
	b.Commit, b.Began = "2", a.Began.Add(-24*time.Hour)
	got := describe([]bench.Conditions{a, b, a}, 1, 1)
	want := "commit 1, 2; 2026-11-21 to 2026-11-22.\nHow busy the computer was with other things is not known."
	if !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The head of a section says the number of runs only if all of its results have that many.
func TestConditionsSayHowManyRuns(t *testing.T) {
	one := run{conditions: []bench.Conditions{{CPU: "A"}}}
	r := &results{runs: map[string][]run{"a": {one}, "b": {one, one, one}, "c": {one}}}
	for want, es := range map[string][]experiment{
		"; medians of 1 to 3 runs in turns, each a process of its own.\n": {{name: "a"}, {name: "b"}, {name: "not measured"}},
		"; median of 3 runs in turns, each a process of its own.\n":       {{name: "b"}, {name: "not measured"}},
		" UTC.\n": {{name: "a"}, {name: "c"}},
	} {
		if got := r.conditions(es); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q in it", es, got, want)
		}
	}
}

func TestDataOf(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "1 warehouse", 30000: "30,000 warehouse", 15_123_456: "15,100,000 warehouse"} {
		if got := dataOf(&bench.Conditions{Scale: bench.Scale{N: n, Unit: "warehouse"}}); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
