package bench

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // PNG
	_ "gonum.org/v1/plot/vg/vgsvg"
)

// Size of the plots.
const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 14 * vg.Centimeter
	plotMargin = 0.3 * vg.Centimeter
)

// SavePlots writes plots, one below the other, to base.svg and base.png.
func SavePlots(base string, plots ...*plot.Plot) error {
	for _, format := range []string{"svg", "png"} {
		c, err := draw.NewFormattedCanvas(plotWidth, vg.Length(len(plots))*plotHeight, format)
		if err != nil {
			return fmt.Errorf("bench: plot: %w", err)
		}
		for i, p := range plots {
			above, below := vg.Length(i)*plotHeight, vg.Length(len(plots)-1-i)*plotHeight
			// Crop moves the left, right, bottom and top edge; negative numbers move left or down.
			p.Draw(draw.Crop(draw.New(c), plotMargin, -2*plotMargin, below+plotMargin, -above-plotMargin))
		}
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			return fmt.Errorf("bench: plot: %w", err)
		}
		if err := os.WriteFile(base+"."+format, b.Bytes(), 0o666); err != nil {
			return fmt.Errorf("bench: plot: %w", err)
		}
	}
	return nil
}

// NewPlot returns a plot in the style of all benchmarks.
func NewPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.Padding = vg.Points(4)
	}
	p.BackgroundColor, p.Legend.Padding = color.White, vg.Points(2)
	p.X.Tick.Marker, p.Y.Tick.Marker = round{}, round{}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{230}, color.Gray{230}
	p.Add(grid)
	return p
}

// ticksWanted is the approximate number of labels of an axis.
const ticksWanted = 8

// round places ticks at round numbers, printed with thousands separated.
type round struct{}

// Ticks implements plot.Ticker.
func (round) Ticks(low, high float64) (ticks []plot.Tick) {
	step := roundStep((high - low) / ticksWanted)
	for n := math.Ceil(low/step) + 0; n*step <= high; n++ { // + 0 turns -0 into 0
		decimals := max(0, -int(math.Floor(math.Log10(step)))) // as many as step has
		label := strconv.FormatFloat(n*step, 'f', decimals, 64)
		if decimals == 0 {
			label = count(n * step)
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at
// least step.
func roundStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= step {
			return n * power
		}
	}
	return 10 * power
}

// powers places ticks on a logarithmic axis of latencies, in microseconds.
type powers struct{}

// Ticks implements plot.Ticker.
func (powers) Ticks(low, high float64) (ticks []plot.Tick) {
	for p := math.Floor(math.Log10(low)); p <= math.Ceil(math.Log10(high)); p++ {
		for n := 1.0; n < 10; n++ {
			t := plot.Tick{Value: n * math.Pow(10, p)}
			if n == 1 {
				t.Label = shortLatency(t.Value)
			}
			if t.Value >= low && t.Value <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

// shortLatency prints a power of ten microseconds.
func shortLatency(us float64) string {
	switch {
	case us < 1:
		return count(us*1e3) + " ns"
	case us < 1e3:
		return count(us) + " µs"
	case us < 1e6:
		return count(us/1e3) + " ms"
	}
	return count(us/1e6) + " s"
}

// intervalsMax bounds the intervals of a plot over time.
const intervalsMax = 500

// intervalOf returns how long the intervals of a plot over ms milliseconds are, in milliseconds: a
// round number.
func intervalOf(ms int) int {
	for _, n := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		if ms <= n*intervalsMax {
			return n
		}
	}
	return 1000 * ((ms-1)/(1000*intervalsMax) + 1) // whole seconds, rounded up
}

// PlotTime plots throughput over time to base.svg and base.png.
func (res *Result) PlotTime(base string) error {
	interval := intervalOf(len(res.PerMillisecond)) // ms
	p := NewPlot(res.Conditions.title(), "seconds", fmt.Sprintf("transactions per second, in intervals of %d ms", interval))
	var points plotter.XYs
	for at := 0; at+interval <= len(res.PerMillisecond); at += interval {
		sum := 0.0
		for _, n := range res.PerMillisecond[at : at+interval] {
			sum += float64(n)
		}
		points = append(points, plotter.XY{X: float64(at) / 1000, Y: sum * 1000 / float64(interval)})
	}
	if len(points) == 0 {
		return errors.New("bench: plot: nothing was measured")
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("bench: plot: %w", err)
	}
	line.StepStyle = plotter.PostStep
	line.Color = plotutil.Color(2)
	p.Add(line)
	p.Y.Min = 0
	highest := slices.MaxFunc(points, func(a, b plotter.XY) int { return int(a.Y - b.Y) }).Y
	p.Y.Max = 1.1 * highest
	return SavePlots(base, p)
}

// PlotCurve plots latency over throughput, for runs at several rates or numbers of
// threads, to base.svg and base.png.
func PlotCurve(results []*Result, base string) error {
	if len(results) < 2 {
		return errors.New("bench: plot: a curve needs at least two runs")
	}
	c := results[0].Conditions
	p := NewPlot(c.title(), "transactions per second", "latency")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers{}
	p.Legend.Top, p.Legend.Left = true, true
	low, high := math.Inf(1), 0.0
	for i, quantile := range []struct {
		name string
		us   func(k *KindResult) float64
	}{
		{"p99.9", func(k *KindResult) float64 { return k.P999 }},
		{"p99", func(k *KindResult) float64 { return k.P99 }},
		{"p50", func(k *KindResult) float64 { return k.P50 }},
	} {
		var points plotter.XYs
		for _, r := range results {
			us := max(quantile.us(&r.Total), 0.001) // a logarithm needs a positive number
			points = append(points, plotter.XY{X: r.Total.PerSecond, Y: us})
			low, high = min(low, us), max(high, us)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("bench: plot: %w", err)
		}
		line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, dots)
		p.Legend.Add(quantile.name, line, dots)
	}
	p.X.Min = 0
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high*1.01)))
	return SavePlots(base, p)
}

// PlotBase returns the name of a plot's files without their ending, which may be
// .svg or .png.
func PlotBase(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".svg"), ".png")
}
