// Package table parses the output of package micro's benchmarks.
package table

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Row is one benchmark, with the measurements of its runs by unit, such as
// "ns/op" and "misses".
type Row struct {
	Name  string
	Units map[string][]float64
}

// ErrEmpty means that there is no benchmark in what was read.
var ErrEmpty = errors.New("table: no benchmark in the input, which is to be the output of go test -bench")

// Read reads the output of go test -bench, with any number of runs.
func Read(in io.Reader) (rows []*Row, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		r, err := parse(lines.Text())
		if err != nil {
			return nil, err
		}
		if r != nil {
			rows = merge(rows, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if len(rows) == 0 {
		return nil, ErrEmpty
	}
	return rows, nil
}

// parse parses one line, or returns nil if it is not a benchmark's result.
func parse(line string) (*Row, error) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
		return nil, nil
	}
	name := strings.TrimPrefix(f[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i] // without the number of processors
	}
	r := &Row{Name: name, Units: make(map[string][]float64)}
	for i := 2; i+1 < len(f); i += 2 { // after the name and the number of iterations: pairs of a value and its unit
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return nil, fmt.Errorf("table: bad number %q in %q", f[i], line)
		}
		r.Units[f[i+1]] = append(r.Units[f[i+1]], v)
	}
	return r, nil
}

func merge(rows []*Row, r *Row) []*Row {
	i := slices.IndexFunc(rows, func(have *Row) bool { return have.Name == r.Name })
	if i < 0 {
		return append(rows, r)
	}
	for unit, v := range r.Units {
		rows[i].Units[unit] = append(rows[i].Units[unit], v...)
	}
	return rows
}
