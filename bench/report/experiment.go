package report

import (
	"slices"
	"strconv"
	"strings"
)

// An experiment is a program that measures, and writes what came out to a file.
type experiment struct {
	// name is the name of its files. The part before the first "-" is its group.
	name string
	// args are those of the tool: farmsql bench, without --json and --seed, if it is
	// not said.
	args string
	tool tool
	// isForeign says that what farmsql bench writes is no bench.Result.
	isForeign bool
	// once says that one run is enough: it is a curve, or a distribution of many by
	// itself.
	once bool
	// isLarge says that it takes many minutes, or most of the memory: it is left out
	// unless all that is large, or it, or its group, is asked for.
	isLarge bool
	// isProfiled says that profiles are taken, into files beside the result.
	isProfiled bool
}

// resultsFolder stands in args for the folder of the results.
const resultsFolder = "RESULTS"

// quickValues are of flags in a run that is only to see that it works: the program
// has little to do, and its figures mean nothing.
var quickValues = map[string]string{
	"--warm-up":     "0s",
	"--duration":    "100ms",
	"--rate":        "500,1000",
	"--subscribers": "200",
	"--keys":        "2000",
	"--nodes":       "300",
	"-benchtime":    "1x",
	"-count":        "1",
	"--runs":        "1",
}

// quickMore are flags that a benchmark is given besides then.
var quickMore = map[string][]string{
	"tpcc":    {"--customers", "20", "--items", "50"},
	"micro":   {"-short"},
	"compare": {"--quick"},
	"lease":   {"--lease", "50ms,400ms"},
	"failure": {"--region-size", "4MiB", "--pace", "aggressive", "--subscribers", "200", "--warm-up", "100ms", "--before", "200ms", "--after", "200ms"},
}

// A tool is what runs an experiment.
type tool int

const (
	// farmsqlBench is farmsql bench, which writes a bench.Result, or several, to
	// --json.
	farmsqlBench tool = iota
	// goTest is go test -bench, whose output becomes an output.
	goTest
	// compareScript is bench/compare/run.
	compareScript
)

// command returns the command line of an experiment, without the file of the result.
func (e experiment) command(o *Options, n int) []string {
	args := strings.Fields(e.args)
	if o.Quick {
		for i, a := range args {
			if v, ok := quickValues[a]; ok {
				args[i+1] = v
			}
		}
		args = append(args, quickMore[e.benchmark()]...)
	}
	if i := slices.Index(args, resultsFolder); i >= 0 {
		args[i] = o.Folder
	}
	switch e.tool {
	case goTest:
		return append([]string{"go", "test"}, args...)
	case compareScript:
		return append([]string{"bench/compare/run"}, args...)
	}
	if !e.isForeign {
		args = append(args, "--seed", strconv.Itoa(n))
	}
	return append(slices.Clone(o.Program), args...)
}

// isAskedFor reports whether the experiment, or its group, is among names; none
// means all that are not large.
func (e experiment) isAskedFor(names []string) bool {
	return len(names) == 0 && !e.isLarge || slices.Contains(names, e.name) || slices.Contains(names, e.group())
}

func (e experiment) group() string {
	group, _, _ := strings.Cut(e.name, "-")
	return group
}

// replicas is how many of each region there are.
func (e experiment) replicas() int {
	args := strings.Fields(e.args)
	if i := slices.Index(args, "--replicas"); i >= 0 {
		n, _ := strconv.Atoi(args[i+1]) // 0 if it is no number
		return n
	}
	return 1
}

// benchmark is what farmsql bench runs, or the group where another tool does.
func (e experiment) benchmark() string {
	if e.tool != farmsqlBench {
		return e.group()
	}
	name, _, _ := strings.Cut(e.args, " ")
	return name
}
