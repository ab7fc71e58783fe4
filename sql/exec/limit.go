package exec

import (
	"io"
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/plan"
)

// A limit returns some of the rows.
type limit struct {
	gms.RowIter
	skip, count int64
}

// bounds returns the values of a LIMIT; ErrPlan if they are not integers of at least 0.
func (r *run) bounds(l *plan.Limit) (skip, count int64, err error) {
	count = math.MaxInt64
	for _, o := range []struct {
		operand *plan.Operand
		to      *int64
	}{{l.Count, &count}, {l.Offset, &skip}} {
		if o.operand == nil {
			continue
		}
		v, ok := o.operand.In(r.values)
		if !ok || !v.IsNumber || v.IsNull || v.Number < 0 {
			return 0, 0, ErrPlan
		}
		*o.to = v.Number
	}
	return skip, count, nil
}

// wanted returns the greatest number of rows that a LIMIT reads, with those that it skips; the greatest int64 without a
// LIMIT, or if bounds refuses it.
func (r *run) wanted(l *plan.Limit) int64 {
	if l == nil {
		return math.MaxInt64
	}
	skip, count, err := r.bounds(l)
	if err != nil || skip > math.MaxInt64-count {
		return math.MaxInt64
	}
	return skip + count
}

func (r *run) limit(ctx *gms.Context, n *plan.Limit) (gms.RowIter, error) {
	skip, count, err := r.bounds(n)
	if err != nil {
		return nil, err
	}
	rows, skip, err := r.skipping(ctx, n.Child, skip)
	if err != nil {
		return nil, err
	}
	return &limit{rows, skip, count}, nil
}

// A skip is the number of rows that a scan may leave out at its beginning. It is set before the
// scan is opened. A scan that leaves them out sets rows to 0. Subqueries may open other scans in
// between, which ignore the skip.
type skip struct {
	scan *plan.Scan
	rows int64
}

// skipping opens a node whose first rows are not wanted. It returns the number of unwanted rows
// that the node returns nevertheless.
func (r *run) skipping(ctx *gms.Context, n plan.Node, unwanted int64) (gms.RowIter, int64, error) {
	scan := r.scanOf(ctx, n)
	if scan == nil {
		opened, err := r.open(ctx, n)
		return opened, unwanted, err
	}
	outer := r.skip
	r.skip = skip{scan, unwanted}
	opened, err := r.open(ctx, n)
	unwanted, r.skip = r.skip.rows, outer
	return opened, unwanted, err
}

// scanOf returns the scan for each of whose rows a node returns one row, in the same order; nil if there is none.
func (r *run) scanOf(ctx *gms.Context, n plan.Node) *plan.Scan {
	switch n := n.(type) {
	case *plan.Scan:
		return n
	case *plan.Project:
		return r.scanOf(ctx, n.Child)
	case *plan.Derived:
		return r.scanOf(ctx, n.Child)
	case *plan.Sort:
		if r.isOrdered(ctx, n.Child) {
			return r.scanOf(ctx, n.Child)
		}
	}
	return nil
}

// Next implements gms.RowIter.
func (l *limit) Next(ctx *gms.Context) (gms.Row, error) {
	if l.count == 0 {
		return nil, io.EOF
	}
	for ; l.skip > 0; l.skip-- {
		if _, err := l.RowIter.Next(ctx); err != nil {
			return nil, err
		}
	}
	l.count--
	return l.RowIter.Next(ctx)
}

// HasAddresses implements addressed.
func (l *limit) HasAddresses() bool {
	rows, ok := l.RowIter.(addressed)
	return ok && rows.HasAddresses()
}

// Address implements addressed.
func (l *limit) Address() region.Ptr { return l.RowIter.(addressed).Address() }
