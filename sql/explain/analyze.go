package explain

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
)

// EXPLAIN ANALYZE runs a SELECT as it is planned and notes for each node of the plan how
// often it was started, how many rows it returned and when. It does not run the compiled
// form, which would be faster but has no nodes.

// A measured holds the measurements of one node.
type measured struct {
	loops, rows int
	// first is the time until the first row, last the time until the last, summed over all
	// loops.
	first, last time.Duration
}

// A Measuring is the state of a running EXPLAIN ANALYZE.
type Measuring struct {
	clock clock.Clock
	// build builds the iterator of a node, and calls Measures for each node.
	build gms.NodeExecBuilder
	nodes map[gms.Node]*measured
	// begun are the nodes whose iterators are being built. Measures returns false for them: otherwise
	// build would call Build for the same node again.
	begun map[gms.Node]bool
}

// NewMeasuring returns the state of an EXPLAIN ANALYZE of a plan that b builds. For each node for
// which Measures returns true, b must return the iterator that Build returns.
func NewMeasuring(c clock.Clock, b gms.NodeExecBuilder) *Measuring {
	return &Measuring{clock: c, build: b, nodes: make(map[gms.Node]*measured), begun: make(map[gms.Node]bool)}
}

// Measures reports whether a node that is about to run is to be measured. Only a node that is a pointer
// can be, since m finds nodes by their identity. If there is no EXPLAIN ANALYZE, m is nil.
func (m *Measuring) Measures(n gms.Node) bool {
	return m != nil && reflect.ValueOf(n).Kind() == reflect.Pointer && !m.begun[n]
}

// Build builds a node, and notes its loops, rows and times.
func (m *Measuring) Build(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error) {
	m.begun[n] = true
	defer delete(m.begun, n)
	begun := m.clock.Now()
	rows, err := m.build.Build(ctx, n, row)
	if err != nil {
		return nil, err
	}
	node := m.nodes[n]
	if node == nil {
		node = &measured{}
		m.nodes[n] = node
	}
	node.loops++
	return &measuredIter{RowIter: rows, clock: m.clock, node: node, took: m.clock.Now().Sub(begun)}, nil
}

type measuredIter struct {
	gms.RowIter
	clock clock.Clock
	node  *measured     // the node's measurements, which this loop adds to
	took  time.Duration // the time of this loop so far
	begun bool          // the first call of Next has returned
	ended bool          // took has been added to node.last
}

// Next implements gms.RowIter.
func (i *measuredIter) Next(ctx *gms.Context) (gms.Row, error) {
	begun := i.clock.Now()
	row, err := i.RowIter.Next(ctx)
	i.took += i.clock.Now().Sub(begun)
	if err == nil {
		i.node.rows++
	}
	if !i.begun {
		i.begun = true
		i.node.first += i.took
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

// end adds the time until the last row to the node's measurements, once.
func (i *measuredIter) end() {
	if !i.ended {
		i.ended = true
		i.node.last += i.took
	}
}

// Run runs a plan to its end, and returns its text with the measurements.
func (m *Measuring) Run(ctx *gms.Context, root gms.Node) (gms.RowIter, error) {
	rows, err := m.build.Build(ctx, root, nil)
	if err != nil {
		return nil, err
	}
	for err == nil {
		_, err = rows.Next(ctx)
	}
	if err != io.EOF {
		_ = rows.Close(ctx) // err is the error to return
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

// annotate adds the measurements to the lines of a plan. The text has the nodes in the
// order in which a walk visits them; each node's line begins with the node's own text.
func (m *Measuring) annotate(root gms.Node, text string) (lines []string) {
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

// actual returns the measurements of a node as MySQL prints them: times in milliseconds;
// times and rows are those of one loop.
func (m *Measuring) actual(n gms.Node) string {
	if !m.Measures(n) {
		return ""
	}
	node := m.nodes[n]
	if node == nil {
		return " (never executed)"
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(node.loops) }
	return fmt.Sprintf(" (actual time=%.3f..%.3f rows=%g loops=%d)", each(node.first), each(node.last), float64(node.rows)/float64(node.loops), node.loops)
}
