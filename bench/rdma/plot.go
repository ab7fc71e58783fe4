package rdma

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"github.com/farmsql/farmsql/bench"
)

// Plot plots the rate of each experiment over x, to base.svg and base.png.
func (res *Result) Plot(base string) error {
	var plots []*plot.Plot
	for i := range experiments {
		if e := &experiments[i]; len(res.rowsOf(e)) > 0 {
			p, err := res.plot(e)
			if err != nil {
				return fmt.Errorf("bench/rdma: plot: %w", err)
			}
			plots = append(plots, p)
		}
	}
	return bench.SavePlots(base, plots...)
}

// plot plots one experiment: a line for each provider and series.
func (res *Result) plot(e *experiment) (*plot.Plot, error) {
	p := bench.NewPlot(e.title, e.x, "operations per second")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	names, points := res.curves(e)
	var all []float64
	for i, name := range names {
		line, dots, err := plotter.NewLinePoints(points[i])
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, dots)
		p.Legend.Add(name, line, dots)
		for _, xy := range points[i] {
			all = append(all, xy.Y)
		}
	}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(slices.Min(all))))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(slices.Max(all))))
	p.Legend.Top = true
	return p, nil
}

// curves returns the lines of an experiment, and their names.
func (res *Result) curves(e *experiment) (names []string, points []plotter.XYs) {
	for _, r := range res.rowsOf(e) {
		name := r.Provider + " " + r.Series
		i := slices.Index(names, name)
		if i < 0 {
			i = len(names)
			names, points = append(names, name), append(points, nil)
		}
		points[i] = append(points[i], plotter.XY{X: float64(r.X), Y: r.PerSecond})
	}
	return names, points
}
