package compat

import (
	"cmp"
	"io"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// The frame of a window counts in ROWS or in RANGE. RANGE counts peers, rows that are equal in
// ORDER BY. A window with an order and no frame has the frame RANGE up to the current row and
// its peers. In go-mysql-server each function has its own default frame, and RANGE works only
// for one ascending key without NULLs; so this file computes frames by RANGE.

// Framed is a rule that gives windows the frames of the SQL standard.
func Framed(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	return withSubqueries(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.NodeWithOpaque(ctx, n, frameWindows)
	})
}

// frameWindows sets the frames of a node's window functions.
func frameWindows(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	if _, ok := n.(*plan.Window); !ok {
		return n, transform.SameTree, nil
	}
	return transform.OneNodeExpressions(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		f, ok := e.(gms.WindowAdaptableExpression)
		if !ok || f.Window() == nil {
			return e, transform.SameTree, nil
		}
		frame, ok := framedByRange(f.Window())
		if !ok {
			return e, transform.SameTree, nil
		}
		w := *f.Window()
		w.Frame = frame
		return f.WithWindow(ctx, &w), transform.NewTree, nil
	})
}

// framedByRange returns our frame for a window whose frame counts in RANGE; false for other windows, and
// if the window has our frame already.
func framedByRange(w *gms.WindowDefinition) (*rangeFrame, bool) {
	switch f := w.Frame.(type) {
	case nil:
		return &rangeFrame{plan.NewRangeUnboundedPrecedingToCurrentRowFrame()}, len(w.OrderBy) > 0
	case *rangeFrame:
		return nil, false
	default: // only the frame's text shows whether it is of ROWS or RANGE
		return &rangeFrame{f}, strings.HasPrefix(f.String(), "RANGE")
	}
}

// A rangeFrame is a frame by RANGE, with any keys.
type rangeFrame struct{ gms.WindowFrame }

// NewFramer implements gms.WindowFrame.
func (f *rangeFrame) NewFramer(w *gms.WindowDefinition) (gms.WindowFramer, error) {
	r := &rangeFramer{frame: f, keys: w.OrderBy}
	if len(w.OrderBy) == 1 {
		r.start = boundOf(w.OrderBy[0], f.StartNPreceding(), f.StartNFollowing())
		r.end = boundOf(w.OrderBy[0], f.EndNPreceding(), f.EndNFollowing())
	} else if f.isAtDistance() { // the distance must be of a single key
		return nil, myerr.WindowRangeUnusable.New(cmp.Or(w.Name, unnamedWindow))
	}
	return r, nil
}

// isAtDistance reports whether the frame starts or ends at a distance from the current row.
func (f *rangeFrame) isAtDistance() bool {
	return f.StartNPreceding() != nil || f.StartNFollowing() != nil || f.EndNPreceding() != nil || f.EndNFollowing() != nil
}

// boundOf returns the current row's key plus or minus a distance; nil without a distance.
func boundOf(key gms.SortField, preceding, following gms.Expression) gms.Expression {
	op, distance := sqlparser.PlusStr, following
	if preceding != nil {
		op, distance = sqlparser.MinusStr, preceding
	}
	if distance == nil {
		return nil
	}
	if key.Order == gms.Descending { // preceding rows have larger keys
		op = map[string]string{sqlparser.PlusStr: sqlparser.MinusStr, sqlparser.MinusStr: sqlparser.PlusStr}[op]
	}
	return expression.NewArithmetic(key.Column, distance, op)
}

// A rangeFramer finds the frame of each row of a partition, in the order of the rows.
type rangeFramer struct {
	frame      *rangeFrame
	keys       gms.SortFields
	start, end gms.Expression // bounds at a distance, nil if there are none

	partition, peers, at gms.WindowInterval // the partition, the peers and the frame of the current row
	row                  int                // index of the next row
}

// NewFramer implements gms.WindowFramer.
func (f *rangeFramer) NewFramer(partition gms.WindowInterval) (gms.WindowFramer, error) {
	first := gms.WindowInterval{Start: partition.Start, End: partition.Start}
	return &rangeFramer{frame: f.frame, keys: f.keys, start: f.start, end: f.end, partition: partition, peers: first, at: first, row: partition.Start}, nil
}

// Next implements gms.WindowFramer.
func (f *rangeFramer) Next(ctx *gms.Context, rows gms.WindowBuffer) (gms.WindowInterval, error) {
	if f.row >= f.partition.End {
		return gms.WindowInterval{}, io.EOF
	}
	if err := f.findPeers(ctx, rows); err != nil {
		return gms.WindowInterval{}, err
	}
	start, err := f.startOf(ctx, rows)
	if err != nil {
		return gms.WindowInterval{}, err
	}
	end, err := f.endOf(ctx, rows)
	if err != nil {
		return gms.WindowInterval{}, err
	}
	f.at = gms.WindowInterval{Start: start, End: max(start, end)}
	f.row++
	return f.at, nil
}

// findPeers moves to the next row's peers once the row is beyond the present peers.
func (f *rangeFramer) findPeers(ctx *gms.Context, rows gms.WindowBuffer) error {
	if f.row < f.peers.End {
		return nil
	}
	f.peers = gms.WindowInterval{Start: f.row, End: f.row + 1}
	for ; f.peers.End < f.partition.End; f.peers.End++ {
		for _, key := range f.keys {
			v, err := key.Column.Eval(ctx, rows[f.row])
			if err != nil {
				return err
			}
			order, err := f.compare(ctx, key.Column, key, rows[f.peers.End], v)
			if err != nil || order != 0 {
				return err
			}
		}
	}
	return nil
}

// compare compares a row's key with a value, in the order of the window; typed is an expression
// of the value's type. NULLs come first.
func (f *rangeFramer) compare(ctx *gms.Context, typed gms.Expression, key gms.SortField, row gms.Row, value any) (order int, err error) {
	v, err := key.Column.Eval(ctx, row)
	switch {
	case err != nil:
		return 0, err
	case v == nil || value == nil:
		order = cmp.Compare(nullRank(v), nullRank(value))
	default:
		order, err = typed.Type(ctx).Compare(ctx, v, value)
	}
	if key.Order == gms.Descending {
		order = -order
	}
	return order, err
}

// nullRank returns 0 for NULL, otherwise 1: NULLs come first.
func nullRank(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

// startOf returns the start of the current row's frame.
func (f *rangeFramer) startOf(ctx *gms.Context, rows gms.WindowBuffer) (int, error) {
	switch {
	case f.frame.UnboundedPreceding():
		return f.partition.Start, nil
	case f.start == nil:
		return f.peers.Start, nil
	}
	return f.advance(ctx, rows, f.at.Start, f.start, f.peers.Start, func(order int) bool { return order < 0 })
}

// endOf returns the end of the current row's frame: the row after its last one.
func (f *rangeFramer) endOf(ctx *gms.Context, rows gms.WindowBuffer) (int, error) {
	switch {
	case f.frame.UnboundedFollowing():
		return f.partition.End, nil
	case f.end == nil:
		return f.peers.End, nil
	}
	return f.advance(ctx, rows, f.at.End, f.end, f.peers.End, func(order int) bool { return order <= 0 })
}

// advance returns the first row, beginning at row, that is not before the given bound of the current
// row's frame; isBefore decides that from the row's order relative to the bound. A NULL key has no
// distance to other keys: if the current row's key is NULL, advance returns peersBound, where its peers
// begin or end.
func (f *rangeFramer) advance(ctx *gms.Context, rows gms.WindowBuffer, row int, bound gms.Expression, peersBound int, isBefore func(order int) bool) (int, error) {
	key := f.keys[0]
	if own, err := key.Column.Eval(ctx, rows[f.row]); err != nil || own == nil {
		return peersBound, err
	}
	value, err := bound.Eval(ctx, rows[f.row])
	if err != nil {
		return 0, err
	}
	for ; row < f.partition.End; row++ {
		order, err := f.compare(ctx, bound, key, rows[row], value)
		if err != nil || !isBefore(order) {
			return row, err
		}
	}
	return row, nil
}

// FirstIdx implements gms.WindowFramer.
func (f *rangeFramer) FirstIdx() int { return f.at.Start }

// LastIdx implements gms.WindowFramer.
func (f *rangeFramer) LastIdx() int { return f.at.End }

// Interval implements gms.WindowFramer.
func (f *rangeFramer) Interval() (gms.WindowInterval, error) { return f.at, nil }
