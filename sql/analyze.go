package sql

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// EXPLAIN ANALYZE runs a SELECT as it is planned and notes of each node of the plan how
// often it was begun, how many rows it gave and when. It does not run compiled, which would
// be faster, and have no nodes.

// A measured is what is known of a node that has run.
type measured struct {
	loops, rows int
	// first is how long the first rows took, last how long all did, over all loops.
	first, last time.Duration
}

// A measuring is an EXPLAIN ANALYZE at work.
type measuring struct {
	nodes map[gms.Node]*measured
	// begun are the nodes that are being made to run.
	begun map[gms.Node]bool
}

// measures says whether a node is to be measured that is about to run.
func (m *measuring) measures(n gms.Node) bool {
	return m != nil && reflect.ValueOf(n).Kind() == reflect.Pointer && !m.begun[n]
}

// measure runs a node and notes what it does.
func (b *builder) measure(ctx *gms.Context, m *measuring, n gms.Node, row gms.Row) (gms.RowIter, error) {
	m.begun[n] = true
	defer delete(m.begun, n)
	begun := b.e.Store.Machine.Clock().Now()
	rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n, row)
	if err != nil {
		return nil, err
	}
	of := m.nodes[n]
	if of == nil {
		of = &measured{}
		m.nodes[n] = of
	}
	of.loops++
	return &measuredIter{RowIter: rows, e: b.e, of: of, took: b.e.Store.Machine.Clock().Now().Sub(begun)}, nil
}

type measuredIter struct {
	gms.RowIter
	e     *Engine
	of    *measured
	took  time.Duration
	some  bool
	ended bool
}

// Next implements gms.RowIter.
func (i *measuredIter) Next(ctx *gms.Context) (gms.Row, error) {
	begun := i.e.Store.Machine.Clock().Now()
	row, err := i.RowIter.Next(ctx)
	i.took += i.e.Store.Machine.Clock().Now().Sub(begun)
	if err == nil {
		i.of.rows++
	}
	if !i.some {
		i.some = true
		i.of.first += i.took
	}
	if err == io.EOF {
		i.end()
	}
	return row, err
}

// Close implements gms.RowIter.
func (i *measuredIter) Close(ctx *gms.Context) error {
	i.end()
	return i.RowIter.Close(ctx)
}

func (i *measuredIter) end() {
	if !i.ended {
		i.ended = true
		i.of.last += i.took
	}
}

// analyze executes EXPLAIN ANALYZE.
func (b *builder) analyze(ctx *gms.Context, s *Session, n *plan.DescribeQuery) (gms.RowIter, error) {
	m := &measuring{nodes: make(map[gms.Node]*measured), begun: make(map[gms.Node]bool)}
	root, _, err := useComparisons(ctx, n.Child)
	if err != nil {
		return nil, err
	}
	s.measuring = m
	defer func() { s.measuring = nil }()
	rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, root, nil)
	if err != nil {
		return nil, err
	}
	for err == nil {
		_, err = rows.Next(ctx)
	}
	if err != io.EOF {
		_ = rows.Close(ctx) // the error that ended it counts
		return nil, err
	}
	if err := rows.Close(ctx); err != nil {
		return nil, err
	}
	text := m.annotate(root, gms.Describe(ctx, root, gms.DescribeOptions{Plan: true}))
	lines := make([]gms.Row, len(text))
	for i, line := range text {
		lines[i] = gms.NewRow(line)
	}
	return gms.RowsToRowIter(lines...), nil
}

// annotate adds what was measured to the lines of a plan: the nodes stand in it in the
// order in which a walk meets them, each with a line that its own text begins with.
func (m *measuring) annotate(root gms.Node, text string) (lines []string) {
	var nodes []gms.Node
	var collect func(gms.Node)
	collect = func(n gms.Node) {
		nodes = append(nodes, n)
		for _, c := range n.Children() {
			collect(c)
		}
	}
	collect(root)
	for _, line := range strings.Split(strings.ReplaceAll(text, "\r", ""), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		head := strings.TrimLeft(line, " │├└─")
		for i, n := range nodes {
			if first, _, _ := strings.Cut(n.String(), "\n"); first == head {
				line += m.actual(n)
				nodes = nodes[i+1:]
				break
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// actual is what was measured of a node, in MySQL's words: times are in milliseconds, and
// times and rows those of one loop.
func (m *measuring) actual(n gms.Node) string {
	if !m.measures(n) {
		return ""
	}
	of := m.nodes[n]
	if of == nil {
		return " (never executed)"
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(of.loops) }
	return fmt.Sprintf(" (actual time=%.3f..%.3f rows=%g loops=%d)", each(of.first), each(of.last), float64(of.rows)/float64(of.loops), of.loops)
}
