package report

import (
	"slices"
	"strconv"
	"strings"
)

// An experiment is a program that measures, and writes its results to a file.
type experiment struct {
	// name is the name of its files. The part before the first "-" is its group.
	name string
	// args are the arguments of the tool. For farmsql bench, which is the default, they lack --json
	// and --seed.
	args string
	tool tool
	// isForeign is set if farmsql bench writes no bench.Result for it.
	isForeign bool
	// once is set if one run is enough: the result is a curve, or a distribution of
	// many failures.
	once bool
	// isLarge is set if it takes many minutes, or most of the memory: it runs only
	// if it, its group or all large experiments are asked for.
	isLarge bool
	// isProfiled is set if profiles are taken, into files beside the result.
	isProfiled bool
	// isUnguided is set if farmsql-bench is built without cmd/farmsql/default.pgo for it.
	isUnguided bool
}

// resultsFolder in args stands for the folder of the results.
const resultsFolder = "RESULTS"

// quickValues replace values of flags in a quick run, which only checks that
// everything works: the program has little to do, and its figures mean nothing.
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

// quickMore are further flags in a quick run, by benchmark.
var quickMore = map[string][]string{
	"tpcc":    {"--customers", "20", "--items", "50"},
	"micro":   {"-short"},
	"compare": {"--quick"},
	"lease":   {"--lease", "50ms,400ms"},
	"tpch":    {"--scale", "0.001", "--rounds", "2"},
	"shapes":  {"--rows", "2000", "--rounds", "1", "--turn", "1ms"},
	"failure": {"--region-size", "4MiB", "--pace", "aggressive", "--subscribers", "200", "--warm-up", "100ms", "--before", "200ms", "--after", "200ms"},
}

// A tool runs an experiment.
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

// command returns the command line of run n of an experiment, without the file of the result. The
// number of the run is its seed.
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
	if e.isUnguided {
		return append(slices.Clone(o.Unguided), args...)
	}
	return append(slices.Clone(o.Program), args...)
}

// isAskedFor reports whether names has the experiment or its group. Without names, all experiments
// that are not large are asked for.
func (e experiment) isAskedFor(names []string) bool {
	return (len(names) == 0 && !e.isLarge) || slices.Contains(names, e.name) || slices.Contains(names, e.group())
}

func (e experiment) group() string {
	group, _, _ := strings.Cut(e.name, "-")
	return group
}

// replicas returns the number of replicas of each region.
func (e experiment) replicas() int {
	args := strings.Fields(e.args)
	if i := slices.Index(args, "--replicas"); i >= 0 {
		n, _ := strconv.Atoi(args[i+1]) // 0 if it is not a number
		return n
	}
	return 1
}

// benchmark returns the benchmark that farmsql bench runs, or the group for other
// tools.
func (e experiment) benchmark() string {
	if e.tool != farmsqlBench {
		return e.group()
	}
	name, _, _ := strings.Cut(e.args, " ")
	return name
}
