// Package coststest makes profiles for tests.
package coststest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench/costs"
	"github.com/google/pprof/profile"
)

var foreign = regexp.MustCompile(`^(runtime\.|time\.|github\.com/)`)

// Write writes a profile to a file. stacks maps each stack to its weight; weight is the type of the
// weights, such as costs.ProcessorTime. A stack is the names of its functions, the innermost first, with
// spaces between them. Names that are not of the module begin with "runtime.", "time." or "github.com/".
func Write(t *testing.T, file, weight string, stacks map[string]int64) {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: weight, Unit: "nanoseconds"}}}
	for stack, n := range stacks {
		sample := &profile.Sample{Value: []int64{1, n}}
		for name := range strings.FieldsSeq(stack) {
			if !foreign.MatchString(name) {
				name = costs.Module + name
			}
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, sample.Location = append(p.Function, f), append(p.Location, l), append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
}
