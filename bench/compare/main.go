// Command compare makes one table of the measurements of the script bench/compare/run: farmsql and
// other systems at the same work.
//
// It reads the script's notes from standard input, one on a line, with tabs between fields:
//
//	began   TIME                    when the script began
//	system  NAME VERSION SETTINGS   a system that was measured, and how it was set up
//	missing NAME REASON             a system that was not measured
//	work    NAME TEXT               what systems were to do
//	run     WORK SYSTEM PERSECOND [MICROSECONDS]   one run, with the processor time of an operation
//	others  PROCESSORS              how many other processes kept busy before and between rounds
//
// The result is a table, with --json a file as well:
//
//	{"conditions": {...}, "systems": [...], "works": [...], "missing": [...],
//	 "rows": [{"work", "system", "perSecond": [runs], "median", "ratio", "cpuMicroseconds"}]}
//
// A ratio is a system's median divided by the median of the first system with the same work.
//
//	compare --result FILE WORK SYSTEM
//
// reads a result of farmsql bench --json and prints it as a note of the kind run. If the result has
// settings, which programs that are not servers write into it, it prints a note of the kind system
// first.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/jedib0t/go-pretty/v6/table"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	file := flags.String("json", "", "write the table there, too")
	result := flags.String("result", "", "print what this result of farmsql bench says")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *result != "" {
		if flags.NArg() != 2 {
			return errors.New("--result needs a work and a system")
		}
		return printResult(out, *result, flags.Arg(0), flags.Arg(1))
	}
	c, err := read(in)
	if err != nil {
		return err
	}
	if *file != "" {
		b, err := json.MarshalIndent(c, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, append(b, '\n'), 0o666); err != nil {
			return err
		}
	}
	return c.print(out)
}

// printResult prints a result as notes.
func printResult(out io.Writer, file, work, name string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r struct {
		Conditions struct {
			API      bench.API `json:"api"`
			Server   string    `json:"server"`
			Settings string    `json:"settings"`
		} `json:"conditions"`
		Total     bench.KindResult `json:"total"`
		Processor float64          `json:"processorMicroseconds"`
		Server    float64          `json:"serverProcessorMicroseconds"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !(r.Total.PerSecond > 0) {
		return fmt.Errorf("%s: no throughput", file)
	}
	if r.Conditions.Settings != "" {
		fmt.Fprintf(out, "system\t%s\t%s\t%s\n", name, r.Conditions.Server, r.Conditions.Settings)
	}
	taken, processor := r.Processor, ""
	if r.Conditions.API == bench.SQL { // over SQL, Processor is the client's
		taken = r.Server
	}
	if taken > 0 {
		processor = fmt.Sprintf("\t%.3f", taken)
	}
	_, err = fmt.Fprintf(out, "run\t%s\t%s\t%.1f%s\n", work, name, r.Total.PerSecond, processor)
	return err
}

// A comparison has all measurements.
type comparison struct {
	Conditions bench.Conditions `json:"conditions"`
	Systems    []system         `json:"systems"`
	Works      []remark         `json:"works"`
	Missing    []remark         `json:"missing"`
	Rows       []*row           `json:"rows"`
}

type system struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
}

type remark struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A row is one system at one work. Processor is the median over the runs of the processor time of an
// operation, in microseconds; 0 if unknown.
type row struct {
	Work      string    `json:"work"`
	System    string    `json:"system"`
	PerSecond []float64 `json:"perSecond"`
	Median    float64   `json:"median"`
	Ratio     float64   `json:"ratio"`
	Processor float64   `json:"cpuMicroseconds,omitempty"`

	processor []float64 // of each run in which it is known
}

func read(in io.Reader) (*comparison, error) {
	c := &comparison{Conditions: bench.Computer()}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := c.note(strings.Split(lines.Text(), "\t")); err != nil {
			return nil, fmt.Errorf("%w: %q", err, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(c.Rows) == 0 {
		return nil, errors.New("nothing was measured")
	}
	c.compute()
	return c, nil
}

// note reads one line of input: its kind, and then its fields, separated by tabs.
func (c *comparison) note(f []string) error {
	switch {
	case f[0] == "system" && len(f) == 4:
		if s := (system{f[1], f[2], f[3]}); !slices.Contains(c.Systems, s) {
			c.Systems = append(c.Systems, s)
		}
	case f[0] == "work" && len(f) == 3:
		c.Works = append(c.Works, remark{f[1], f[2]})
	case f[0] == "missing" && len(f) == 3:
		c.Missing = append(c.Missing, remark{f[1], f[2]})
	case f[0] == "began" && len(f) == 2:
		var err error
		c.Conditions.Began, err = time.Parse(time.RFC3339, f[1])
		return err
	case f[0] == "others" && len(f) == 2:
		v, err := numbers(f[1:])
		if err != nil {
			return err
		}
		c.Conditions.Others = max(c.Conditions.Others, v[0])
	case f[0] == "run" && (len(f) == 4 || len(f) == 5):
		v, err := numbers(f[3:])
		if err != nil {
			return err
		}
		r := c.row(f[1], f[2])
		r.PerSecond, r.processor = append(r.PerSecond, v[0]), append(r.processor, v[1:]...)
	default:
		return errors.New("a line that means nothing")
	}
	return nil
}

// numbers parses numbers that must not be negative.
func numbers(fields []string) (v []float64, err error) {
	for _, f := range fields {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil || !(n >= 0) {
			return nil, fmt.Errorf("bad number %q", f)
		}
		v = append(v, n)
	}
	return v, nil
}

// row returns the row of a system at a work. It inserts a new row after the last row of that work, or
// at the end.
func (c *comparison) row(work, system string) *row {
	last := -1 // index of the last row of the work
	for i, r := range c.Rows {
		if r.Work == work && r.System == system {
			return r
		}
		if r.Work == work {
			last = i
		}
	}
	r := &row{Work: work, System: system}
	if last < 0 {
		last = len(c.Rows) - 1 // a new work comes at the end
	}
	c.Rows = slices.Insert(c.Rows, last+1, r)
	return r
}

// compute computes the medians, and the ratios to the first system at each work, whose rows are side
// by side.
func (c *comparison) compute() {
	var first *row
	for _, r := range c.Rows {
		r.Median, r.Processor = median(r.PerSecond), median(r.processor)
		if first == nil || first.Work != r.Work {
			first = r
		}
		if first.Median > 0 {
			r.Ratio = r.Median / first.Median
		}
	}
}

// median returns the median; the mean of the middle two for an even number of values, 0 for none.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (c *comparison) print(out io.Writer) error {
	d := &c.Conditions
	fmt.Fprintf(out, "%s, %d processors, %.0f GiB, %s, %s, commit %s; before and between the rounds others kept up to %.1f processors busy.\n\n",
		d.CPU, d.Processors, float64(d.MemoryBytes)/(1<<30), d.Kernel, d.Go, d.Commit, max(0, d.Others))
	for _, s := range c.Systems {
		fmt.Fprintf(out, "- %s %s: %s\n", s.Name, s.Version, s.Settings)
	}
	for _, m := range c.Missing {
		fmt.Fprintf(out, "- %s is missing: %s\n", m.Name, m.Text)
	}
	fmt.Fprintln(out)
	for _, w := range c.Works {
		fmt.Fprintf(out, "- %s: %s\n", w.Name, w.Text)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", c.table())
	return err
}

// table returns the comparison as a table in Markdown.
func (c *comparison) table() string {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"work", "system", "per second, median", "runs", "ratio to the first", "processor time, µs"})
	work := ""
	for _, r := range c.Rows {
		name, processor := "", ""
		if r.Work != work {
			name, work = r.Work, r.Work
		}
		if r.Processor > 0 {
			processor = strconv.FormatFloat(r.Processor, 'f', 2, 64)
		}
		w.AppendRow(table.Row{name, r.System, fmt.Sprintf("%.0f", r.Median), runs(r.PerSecond), fmt.Sprintf("%.2f", r.Ratio), processor})
	}
	return w.RenderMarkdown()
}

// runs returns the rates of all runs as text.
func runs(perSecond []float64) string {
	var s []string
	for _, v := range perSecond {
		s = append(s, fmt.Sprintf("%.0f", v))
	}
	return strings.Join(s, ", ")
}
