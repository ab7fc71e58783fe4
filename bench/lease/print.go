package lease

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
)

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// Print writes the result for people.
func (res *Result) Print(w io.Writer) error {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"leases that ran out"}
	var right []table.ColumnConfig
	for i, l := range res.Leases {
		header = append(header, l)
		right = append(right, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(right)
	for _, r := range res.Rows {
		row := table.Row{r.Variant}
		for _, n := range r.Counts {
			row = append(row, n)
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", t.Render(), res.describe())
	return err
}

// describe returns the conditions of the figures.
func (res *Result) describe() string {
	c := &res.Conditions
	others := "how busy the computer was with other things is not known"
	if c.Others >= 0 {
		others = fmt.Sprintf("other processes kept %.1f of them busy", c.Others)
	}
	return fmt.Sprintf("1 run, without data, so that nothing is known of the spread; durability: %s\n%d machines in one process, %g s each, while %d goroutines allocated; commit %s, %s\n%s, %d processors, %.0f GiB, %s, %s; %s",
		c.Durability, c.Machines, res.Seconds, c.Threads, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC"),
		c.CPU, c.Processors, float64(c.MemoryBytes)/(1<<30), c.Kernel, c.Go, others)
}

// Plot plots false positives in ten minutes over the lease time, as Figure 16 does,
// to base.svg and base.png. A logarithmic axis has no zero: a curve ends where no
// lease ran out.
func (res *Result) Plot(base string) error {
	title := fmt.Sprintf("leases that run out although nobody has failed, %d machines", res.Conditions.Machines)
	p := bench.NewPlot(title, "lease time, ms", "false positives in 10 minutes")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	all := []float64{}
	for i, r := range res.Rows {
		points, err := res.points(r)
		if err != nil {
			return err
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("bench/lease: plot: %w", err)
		}
		line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, dots)
		p.Legend.Add(r.Variant, line, dots)
		for _, xy := range points {
			all = append(all, xy.Y)
		}
	}
	if err := res.axes(p, all); err != nil {
		return err
	}
	return bench.SavePlots(base, p)
}

// axes extends the axes to whole powers of ten, so that each has at least two
// labels.
func (res *Result) axes(p *plot.Plot, counts []float64) error {
	var ms []float64
	for _, l := range res.Leases {
		x, err := milliseconds(l)
		if err != nil {
			return err
		}
		ms = append(ms, x)
	}
	if len(counts) == 0 { // no lease ran out
		counts = []float64{1}
	}
	p.X.Min, p.X.Max = decades(ms)
	p.Y.Min, p.Y.Max = decades(counts)
	return nil
}

// decades returns the whole powers of ten around values.
func decades(xs []float64) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, x := range xs {
		low, high = min(low, x), max(high, x)
	}
	low = math.Pow(10, math.Floor(math.Log10(low)))
	return low, max(10*low, math.Pow(10, math.Ceil(math.Log10(high))))
}

// points returns the curve of a variant: false positives in ten minutes, over the lease time. It
// leaves out lease times without false positives.
func (res *Result) points(r Row) (points plotter.XYs, err error) {
	for i, n := range r.Counts {
		x, err := milliseconds(res.Leases[i])
		if err != nil {
			return nil, err
		}
		if n > 0 {
			points = append(points, plotter.XY{X: x, Y: float64(n) * 600 / res.Seconds})
		}
	}
	return points, nil
}

func milliseconds(s string) (float64, error) {
	l, err := time.ParseDuration(s)
	if err != nil || l <= 0 {
		return 0, fmt.Errorf("bench/lease: plot: lease time %s", strconv.Quote(s))
	}
	return l.Seconds() * 1e3, nil
}
