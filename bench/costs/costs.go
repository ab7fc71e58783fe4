package costs

import (
	"slices"
	"strings"
)

// A Cost is a purpose for which a group of functions runs.
type Cost struct {
	Name string
	// Why says what the cost is, and why it exists.
	Why string
	// A function in own belongs to the cost, and so do its callees, except those that belong to
	// another cost. A function in all belongs to the cost with every callee. An entry is a
	// function's name or, if it ends with a dot, the beginning of several names.
	own, all []string
}

// All returns all costs except Rest.
func All() []Cost { return slices.Clone(table) }

// Rest is the name of the samples that belong to no cost.
const Rest = "the rest"

// Costs returns the samples by cost, the largest first.
func (p *Profile) Costs() []Part { return p.parts(costOf) }

// costOf returns the name of the cost that a sample with this stack, the innermost function first,
// belongs to: that of the outermost function in a list all, otherwise that of the innermost in a
// list own.
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

// The costs by the functions in own, and by those in all.
var owns, wholes = index(func(c *Cost) []string { return c.own }), index(func(c *Cost) []string { return c.all })

// index returns a map from functions to their costs. names returns the functions of a cost that are
// entered.
func index(names func(*Cost) []string) map[string]*Cost {
	m := make(map[string]*Cost)
	for i := range table {
		for _, name := range names(&table[i]) {
			m[inStack(name)] = &table[i]
		}
	}
	return m
}

// inStack returns a function's name in the cost table as stack traces spell it.
func inStack(name string) string {
	if isForeign(name) {
		return name
	}
	return inModule + name
}

// isForeign reports whether a name of the table is outside of this module: in a module with a host
// name, or in the runtime.
func isForeign(name string) bool {
	return strings.HasPrefix(name, "github.com/") || strings.HasPrefix(name, "runtime.")
}

// lookUp returns the cost that the table has for the function's full name or, if there is none, for
// the longest beginning of the name. It tries a.b.func1, a.b., a.b, a., and a.
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
