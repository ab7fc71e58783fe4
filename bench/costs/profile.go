package costs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// ErrProfile is wrapped by all errors about a profile.
var ErrProfile = errors.New("costs: a profile cannot be used")

// Weights of samples, as the profiles of Go's runtime name them.
const (
	ProcessorTime = "cpu"           // nanoseconds
	Objects       = "alloc_objects" // number of allocated objects
	Waited        = "delay"         // nanoseconds of waiting for locks
)

// A Profile has the samples of one or more processes that do the same work.
type Profile struct {
	samples []sample
	// Total is the weight of all samples.
	Total int64
}

type sample struct {
	stack  []string // functions, the innermost first, inModule in place of the module's path
	weight int64
}

// A Part is a group of samples.
type Part struct {
	Name   string
	Weight int64
}

// Read reads profiles, one file per process, and weighs their samples by one of the weights above.
func Read(weight string, files ...string) (*Profile, error) {
	p := &Profile{}
	for _, file := range files {
		if err := p.add(weight, file, 1); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Subtract subtracts profiles that were taken of the same processes earlier.
func (p *Profile) Subtract(weight string, files ...string) error {
	for _, file := range files {
		if err := p.add(weight, file, -1); err != nil {
			return err
		}
	}
	return nil
}

// add adds the samples of a profile, or subtracts them if sign is -1.
func (p *Profile) add(weight, file string, sign int64) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProfile, err)
	}
	defer f.Close()
	read, err := profile.Parse(f)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrProfile, file, err)
	}
	column := slices.IndexFunc(read.SampleType, func(t *profile.ValueType) bool { return t.Type == weight })
	if column < 0 {
		return fmt.Errorf("%w: %s has no %s", ErrProfile, file, weight)
	}
	for _, s := range read.Sample {
		p.samples = append(p.samples, sample{stackOf(s), sign * s.Value[column]})
		p.Total += sign * s.Value[column]
	}
	return nil
}

// Module is the beginning of the names of this module's functions in profiles.
const Module = "github.com/farmsql/farmsql/"

// inModule replaces Module in stacks; no other names begin with it.
const inModule = "/"

// stackOf returns the functions of a sample's stack, the innermost first.
func stackOf(s *profile.Sample) (stack []string) {
	for _, l := range s.Location {
		for _, line := range l.Line {
			name := withoutTypes(line.Function.Name)
			if own, ok := strings.CutPrefix(name, Module); ok {
				name = inModule + own
			}
			stack = append(stack, name)
		}
	}
	return stack
}

// Places returns the samples by the innermost function of this module, the largest first:
// the function that allocates, or waits.
func (p *Profile) Places() []Part {
	return p.parts(func(stack []string) string {
		for _, f := range stack {
			if own, ok := strings.CutPrefix(f, inModule); ok {
				return own
			}
		}
		return "outside of this module"
	})
}

// withoutTypes removes the type arguments of a function's name.
func withoutTypes(name string) string {
	begin, end := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if begin < 0 || end < begin {
		return name
	}
	return name[:begin] + name[end+1:]
}

// parts sums the weights of samples by the name that nameOf gives their stack, the largest sum first.
// It drops sums that Subtract has left at 0 or below.
func (p *Profile) parts(nameOf func(stack []string) string) (parts []Part) {
	index := make(map[string]int)
	for _, s := range p.samples {
		name := nameOf(s.stack)
		i, ok := index[name]
		if !ok {
			i = len(parts)
			index[name] = i
			parts = append(parts, Part{Name: name})
		}
		parts[i].Weight += s.weight
	}
	parts = slices.DeleteFunc(parts, func(p Part) bool { return p.Weight <= 0 })
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Weight, a.Weight) })
	return parts
}
