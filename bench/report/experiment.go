package report

import (
	"slices"
	"strings"
)

// An experiment is a program that measures, and writes what came out to a file.
type experiment struct {
	// name is that of its files. What is before the first "-" is its group.
	name string
	// args are those of farmsql bench, without --json and --seed.
	args string
	// once says that one run is enough: it is a curve, or a distribution of many by
	// itself.
	once bool
	// isLarge says that it takes minutes, or most of the memory: it is left out
	// unless it is asked for.
	isLarge bool
}

// quickValues are of flags in a run that is only to see that it works: the program
// has little to do, and its figures mean nothing.
var quickValues = map[string]string{
	"--warm-up":     "0s",
	"--duration":    "100ms",
	"--rate":        "500,1000",
	"--subscribers": "200",
	"--keys":        "2000",
}

// quickMore are flags that a benchmark is given besides then.
var quickMore = map[string][]string{
	"tpcc": {"--customers", "20", "--items", "50"},
}

// command is what farmsql is to be called with, but for where the result goes.
func (e experiment) command(seed string, isQuick bool) []string {
	args := strings.Fields(e.args)
	if isQuick {
		for i, a := range args {
			if v, ok := quickValues[a]; ok {
				args[i+1] = v
			}
		}
		args = append(args, quickMore[args[0]]...)
	}
	return append([]string{"bench"}, append(args, "--seed", seed)...)
}

// isAskedFor reports whether the experiment, or its group, is among names; none
// means all.
func (e experiment) isAskedFor(names []string) bool {
	return len(names) == 0 || slices.Contains(names, e.name) || slices.Contains(names, e.group())
}

func (e experiment) group() string {
	group, _, _ := strings.Cut(e.name, "-")
	return group
}
