package growth

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/farmsql/farmsql/bench"
)

// Plot plots the throughput of each second to base.svg and base.png, with marks at the steps. A
// second plot below shows the number of replicas of each machine.
func (r *Result) Plot(base string) error {
	if len(r.PerSecond) == 0 {
		return errors.New("growth: plot: nothing was measured")
	}
	throughput := bench.NewPlot(r.title()+"\n(a) throughput", "seconds", "transactions in each second")
	var points plotter.XYs
	highest := 0.0
	for i, n := range r.PerSecond {
		points = append(points, plotter.XY{X: float64(i), Y: float64(n)})
		highest = max(highest, float64(n))
	}
	points = append(points, plotter.XY{X: float64(len(r.PerSecond)), Y: points[len(points)-1].Y}) // the end of the last second
	if err := addStairs(throughput, points, 2); err != nil {
		return err
	}
	if err := r.name(throughput, highest); err != nil {
		return err
	}
	replicas := bench.NewPlot("(b) replicas of regions at each machine", "seconds", "replicas")
	if err := r.plotReplicas(replicas); err != nil {
		return err
	}
	for _, p := range []*plot.Plot{throughput, replicas} {
		p.X.Min, p.X.Max, p.Y.Min = 0, float64(len(r.PerSecond)), 0
		if err := r.mark(p); err != nil {
			return err
		}
	}
	return bench.SavePlots(base, throughput, replicas)
}

// addStairs adds a line in the form of stairs, in a colour.
func addStairs(p *plot.Plot, points plotter.XYs, colour int) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("growth: plot: %w", err)
	}
	l.StepStyle, l.Color = plotter.PostStep, plotutil.Color(colour)
	p.Add(l)
	return nil
}

// plotReplicas plots how many replicas each machine had.
func (r *Result) plotReplicas(p *plot.Plot) error {
	p.Legend.Top = true
	p.Y.Max = 1
	for machine := range r.Machines {
		var points plotter.XYs
		for _, s := range r.Samples {
			points = append(points, plotter.XY{X: s.Seconds, Y: float64(s.Replicas[machine])})
			p.Y.Max = max(p.Y.Max, 1.05*float64(s.Replicas[machine]))
		}
		if len(points) == 0 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("growth: plot: %w", err)
		}
		l.StepStyle, l.Color, l.Width = plotter.PostStep, plotutil.Color(machine), vg.Points(1.5)
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("machine %d", machine), l)
	}
	return nil
}

// name writes the names of the steps above the curve, each at its mark.
func (r *Result) name(p *plot.Plot, highest float64) error {
	p.Y.Max = max(1, 1.5*highest)
	names := plotter.XYLabels{}
	for _, s := range r.Steps {
		names.XYs, names.Labels = append(names.XYs, plotter.XY{X: s.Began, Y: 1.05 * highest}), append(names.Labels, s.Name)
	}
	l, err := plotter.NewLabels(names)
	if err != nil {
		return fmt.Errorf("growth: plot: %w", err)
	}
	for i := range l.TextStyle {
		l.TextStyle[i].Rotation, l.TextStyle[i].YAlign = math.Pi/2, text.YTop
	}
	p.Add(l)
	return nil
}

// mark marks the times at which steps began.
func (r *Result) mark(p *plot.Plot) error {
	for _, s := range r.Steps {
		l, err := plotter.NewLine(plotter.XYs{{X: s.Began, Y: 0}, {X: s.Began, Y: p.Y.Max}})
		if err != nil {
			return fmt.Errorf("growth: plot: %w", err)
		}
		l.Color, l.Dashes = color.Gray{128}, plotutil.Dashes(1)
		p.Add(l)
	}
	return nil
}
