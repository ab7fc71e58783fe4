package costs

import (
	"slices"
	"strings"
)

// A Cost is what some functions are for.
type Cost struct {
	Name string
	// Why says what it is, and why there is such a cost.
	Why string
	// own are functions whose own time belongs to the cost, and that of their callees unless
	// these belong to another cost; all are functions that belong to it with everything that
	// they call. Each is a function's name, or the beginning of several ones', if it ends with
	// a dot.
	own, all []string
}

// All returns all costs except Rest.
func All() []Cost { return slices.Clone(table) }

// Rest is the name for samples that belong to no cost.
const Rest = "the rest"

// Costs are the samples by what they are for, the largest first.
func (p *Profile) Costs() []Part { return p.parts(costOf) }

func costOf(stack []string) string {
	for _, function := range slices.Backward(stack) {
		if c := lookUp(function, wholes); c != nil {
			return c.Name
		}
	}
	for _, function := range stack {
		if c := lookUp(function, owns); c != nil {
			return c.Name
		}
	}
	return Rest
}

// By name, what costs have as their own, and what they have with all that it calls.
var owns, wholes = index(func(c *Cost) []string { return c.own }), index(func(c *Cost) []string { return c.all })

func index(names func(*Cost) []string) map[string]*Cost {
	m := make(map[string]*Cost)
	for i := range table {
		for _, name := range names(&table[i]) {
			m[inStack(name)] = &table[i]
		}
	}
	return m
}

// inStack is a name in the table as stacks have it.
func inStack(name string) string {
	if isForeign(name) {
		return name
	}
	return inModule + name
}

// isForeign reports whether a name in the table is not of this module: it has a host,
// or is of the runtime.
func isForeign(name string) bool {
	return strings.HasPrefix(name, "github.com/") || strings.HasPrefix(name, "runtime.")
}

// lookUp finds the cost of a function by the longest name: its own, that of a function
// that it stands in, as func1 does, or one that is the beginning of several.
func lookUp(function string, names map[string]*Cost) *Cost {
	for name := function; name != ""; {
		if c, ok := names[name]; ok {
			return c
		}
		if before, ok := strings.CutSuffix(name, "."); ok {
			name = before
		} else {
			name = name[:strings.LastIndexByte(name, '.')+1]
		}
	}
	return nil
}
