package report

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/farmsql/farmsql/bench/shapes"
)

// The document shows this number of shapes: the slowest and the fastest in comparison with MariaDB.
// A file of its own has all shapes.
const (
	shapesWorst = 20
	shapesBest  = 10
)

// shapes writes the summary of each group of shapes, and the slowest and fastest shapes.
func (p *page) shapes() error {
	found, err := objectsOf[shapes.Result](p.results, shaped)
	if err != nil || len(found) == 0 {
		return err
	}
	res := found[0]
	c := &res.Conditions
	p.line("%s %s (%s) beside %s %s (`%s`), which are processes of one computer; 1 run, in which each shape has %d turns of %g s at each server, one after the other; medians of these; one connection; %s; memory of both: %s.\n",
		res.Servers[0], res.Versions[0], res.Settings[0], res.Servers[1], res.Versions[1], res.Settings[1], res.Rounds, res.TurnSeconds, dataOf(c), memoryOf(c))
	p.shapeGroups(res)
	for _, m := range res.Modes {
		p.shapeEnds(res, m)
	}
	return p.allShapes(res)
}

// shapeGroups writes a row for each group and mode, and for all groups.
func (p *page) shapeGroups(res *shapes.Result) {
	var rows [][]string
	for _, group := range append(res.Groups(), "") {
		label := cmp.Or(group, "all")
		for _, m := range res.Modes {
			s := shapes.Summarize(m, res.Of(m, group))
			rows = append(rows, []string{
				label, string(m), fmt.Sprint(s.Measured), shapes.Ratio(s.Mean), shapes.Ratio(s.Latency), fmt.Sprint(s.AtPar),
				fmt.Sprint(s.Under08), fmt.Sprint(s.Under05), fmt.Sprint(s.Under005), fmt.Sprint(s.Wrong), fmt.Sprint(s.Failed),
			})
			label = ""
		}
	}
	p.table([]string{"shapes", "sent as", "measured", "geometric mean of the ratios", "of latencies", "at least 1", "under 0.8", "under 0.5", "under 0.05", "wrong rows", "failed"}, rows)
}

// shapeEnds writes the shapes with the lowest and the highest ratios in a mode.
func (p *page) shapeEnds(res *shapes.Result, m shapes.Mode) {
	var sorted []shapes.Row
	for _, r := range res.Of(m, "") {
		if r.Ratio > 0 {
			sorted = append(sorted, r)
		}
	}
	if len(sorted) == 0 {
		return
	}
	slices.SortStableFunc(sorted, func(a, b shapes.Row) int { return cmp.Compare(a.Ratio, b.Ratio) })
	worst := sorted[:min(shapesWorst, len(sorted))]
	best := slices.Clone(sorted[max(len(worst), len(sorted)-shapesBest):])
	slices.Reverse(best)
	p.line("Sent as %s, the lowest ratios, and below them the highest; µs of the server's processor time:\n", m)
	var rows [][]string
	for _, r := range slices.Concat(worst, best) {
		rows = append(rows, []string{
			r.Group + ": " + r.Shape, number(r.Figures[1].Processor), number(r.Figures[0].Processor), shapes.Ratio(r.Ratio),
			shapes.Ratio(r.Lowest) + " to " + shapes.Ratio(r.Highest), shapes.Ratio(r.Latency),
		})
	}
	p.table([]string{"shape", res.Servers[1], res.Servers[0], "ratio", "lowest to highest round", "ratio of latencies"}, rows)
}

// allShapes writes all shapes to a file beside the plots.
func (p *page) allShapes(res *shapes.Result) error {
	const name = "shapes.md"
	f, err := os.Create(filepath.Join(p.plots, name))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "# All shapes\n\nWritten by `farmsql bench report`, with the conditions in [benchmarks](../%s.md#shapes-of-statements). The first ratio is of processor times, the last of latencies.\n", filepath.Base(p.plots))
	if err := errors.Join(err, res.WriteMarkdown(f)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p.line("[All shapes](%s/%s).\n", filepath.Base(p.plots), name)
	return f.Close()
}
