// Command table turns the output of the benchmarks of package micro into the
// table of docs/benchmarks.md: the median of each benchmark's runs.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// A row is one benchmark, with what each of its runs measured by unit.
type row struct {
	name  string
	units map[string][]float64
}

func run(in io.Reader, out io.Writer) error {
	var rows []*row
	var where []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if key, value, ok := strings.Cut(line, ": "); ok && slices.Contains([]string{"goos", "goarch", "cpu"}, key) {
			where = append(where, value)
			continue
		}
		r, err := parse(line)
		if err != nil {
			return err
		}
		if r != nil {
			rows = merge(rows, r)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("no benchmark in the input: pipe the output of go test -bench into this command")
	}
	fmt.Fprintf(out, "Machine: %s.\n\n%s\n", strings.Join(where, ", "), render(rows))
	return nil
}

// parse parses one line, or returns nil if it is no benchmark's result.
func parse(line string) (*row, error) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
		return nil, nil
	}
	name := strings.TrimPrefix(f[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i]
	}
	r := &row{name: name, units: make(map[string][]float64)}
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return nil, fmt.Errorf("bad number %q in %q", f[i], line)
		}
		r.units[f[i+1]] = append(r.units[f[i+1]], v)
	}
	return r, nil
}

func merge(rows []*row, r *row) []*row {
	for _, have := range rows {
		if have.name == r.name {
			for unit, v := range r.units {
				have.units[unit] = append(have.units[unit], v...)
			}
			return rows
		}
	}
	return append(rows, r)
}

func render(rows []*row) string {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"operation", "ns", "dependent misses", "allocations", "runs"})
	for _, r := range rows {
		w.AppendRow(table.Row{r.name, r.median("ns/op", 0), r.median("misses", 1), r.median("allocs/op", 0), len(r.units["ns/op"])})
	}
	return w.RenderMarkdown()
}

func (r *row) median(unit string, digits int) string {
	v := slices.Sorted(slices.Values(r.units[unit]))
	if len(v) == 0 {
		return ""
	}
	return strconv.FormatFloat(v[len(v)/2], 'f', digits, 64)
}
