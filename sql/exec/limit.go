package exec

import (
	"io"
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// A limit returns some of the rows.
type limit struct {
	gms.RowIter
	skip, count int64
}

// bounds returns the values of a LIMIT; ErrPlan if they are not whole numbers from 0 on.
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

// wanted returns how many rows a LIMIT reads at most; all if there is none.
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
	if r.returnsScan(ctx, n.Child) {
		r.skip = skip
	}
	rows, err := r.open(ctx, n.Child)
	if err != nil {
		return nil, err
	}
	if r.returnsScan(ctx, n.Child) {
		skip, r.skip = r.skip, 0
	}
	return &limit{rows, skip, count}, nil
}

// returnsScan reports whether a node has a row for each row of a scan, in the same order.
func (r *run) returnsScan(ctx *gms.Context, n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan:
		return true
	case *plan.Project:
		return r.returnsScan(ctx, n.Child)
	case *plan.Derived:
		return r.returnsScan(ctx, n.Child)
	case *plan.Sort:
		return r.isOrdered(ctx, n.Child) && r.returnsScan(ctx, n.Child)
	}
	return false
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
