//go:build sabotage

package sabotage

import (
	"fmt"
	"os"
)

// Environment is the environment variable that names a step to leave out from the start.
const Environment = "FARMSQL_SABOTAGE"

var skipped [steps]bool

func init() {
	name := os.Getenv(Environment)
	if name == "" {
		return
	}
	s, ok := Named(name)
	if !ok {
		panic(fmt.Sprintf("sabotage: %s=%q is no step", Environment, name))
	}
	skipped[s] = true
}

// Skipped reports whether the step is left out.
func (s Step) Skipped() bool { return skipped[s] }

// Skip leaves the step out until undo is called. Nothing else may run meanwhile.
func Skip(s Step) (undo func()) {
	skipped[s] = true
	return func() { skipped[s] = false }
}
