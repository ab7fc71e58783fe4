package failure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/bench"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Smallest range of the zoomed-in view, in milliseconds around the kill.
const (
	zoomBefore = 50
	zoomAfter  = 150
)

// intervalsMax is how many intervals the zoomed-out view has at most.
const intervalsMax = 400

// Plot plots the timeline to base.svg and base.png, as SOSP'15's Figure 9. The upper plot shows the
// time around the failure. The lower plot shows the whole run, with the replicas that have been filled.
func (res *Result) Plot(base string) error {
	series, r := res.Timeline.PerMillisecond, &res.Runs[res.Timeline.Run]
	killed := 0.0 // in milliseconds of the series
	if len(res.Timeline.Events) > 0 {
		killed = 1000 * res.Timeline.Events[0].Seconds
	}
	near, err := throughput(res.title()+"\n(a) time to full throughput", series, killed, 1)
	if err != nil {
		return err
	}
	last := r.AllActive
	if r.Throughput != nil {
		last = max(last, *r.Throughput)
	}
	near.X.Min, near.X.Max = -min(killed, zoomBefore), max(zoomAfter, 1.5*last)
	far, err := throughput("(b) time to full data recovery", series, killed, 1+len(series)/intervalsMax)
	if err != nil {
		return err
	}
	far.X.Min, far.X.Max = -killed, float64(len(series))-killed
	if err := mark(near, r.steps()); err != nil {
		return err
	}
	if err := res.plotFilled(far, killed); err != nil {
		return err
	}
	if err := mark(far, slices.DeleteFunc(r.steps(), func(s step) bool { return !slices.Contains(marksFar, s.name) })); err != nil {
		return err
	}
	return bench.SavePlots(base, near, far)
}

// throughput plots a series in intervals of n milliseconds over the time since the
// kill.
func throughput(title string, series []uint32, killed float64, n int) (*plot.Plot, error) {
	p := bench.NewPlot(title, "milliseconds since the kill", fmt.Sprintf("transactions per second, in intervals of %d ms", n))
	var points plotter.XYs
	highest := 0.0
	for i, perSecond := range smooth(series, n) {
		points = append(points, plotter.XY{X: float64(i*n) - killed, Y: perSecond})
		highest = max(highest, perSecond)
	}
	if len(points) == 0 {
		return nil, errors.New("failure: plot: nothing was measured")
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("failure: plot: %w", err)
	}
	line.StepStyle, line.Color = plotter.PostStep, plotutil.Color(2)
	p.Add(line)
	p.Y.Min, p.Y.Max = 0, 1.05*highest
	p.Legend.Top = true
	return p, nil
}

// marksFar are the steps that the zoomed-out view marks: the others would coincide.
var marksFar = []string{stepKilled, stepStopped, stepActive, stepStarted, stepRecovered}

// mark marks the steps within the plot with lines of different colours, and explains
// them in the legend.
func mark(p *plot.Plot, steps []step) error {
	top := p.Y.Max
	for i, s := range steps {
		if s.ms > p.X.Max {
			continue
		}
		l, err := plotter.NewLine(plotter.XYs{{X: s.ms, Y: 0}, {X: s.ms, Y: top}})
		if err != nil {
			return fmt.Errorf("failure: plot: %w", err)
		}
		l.Color, l.Dashes, l.Width = plotutil.Color(i+3), plotutil.Dashes(i%4), vg.Points(1.2)
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("%s %s", milliseconds(s.ms), s.name), l)
		p.Y.Max += 0.07 * top // the legend is above the curve
	}
	return nil
}

// plotFilled plots how many replicas have been filled; the last one is at the top.
func (res *Result) plotFilled(p *plot.Plot, killed float64) error {
	n := len(res.Timeline.Filled)
	if n == 0 {
		return nil
	}
	points := plotter.XYs{{X: 0, Y: 0}}
	for i, seconds := range res.Timeline.Filled {
		points = append(points, plotter.XY{X: 1000*seconds - killed, Y: float64(i+1) / float64(n) * p.Y.Max})
	}
	points = append(points, plotter.XY{X: p.X.Max, Y: p.Y.Max})
	l, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("failure: plot: %w", err)
	}
	l.StepStyle, l.Dashes, l.Width = plotter.PostStep, plotutil.Dashes(1), vg.Points(1.5)
	p.Add(l)
	p.Legend.Add(fmt.Sprintf("replicas filled, of %d", n), l)
	return nil
}
