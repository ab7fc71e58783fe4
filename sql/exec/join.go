package exec

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// join returns the rows of a join by nested loops: for each row of a table, it looks up the rows of the next table.
func (r *run) join(ctx *gms.Context, n *plan.Join) (gms.RowIter, error) {
	if r.s.ForUpdate {
		return nil, ErrPlan // a join would have to lock the rows that it returns, and no others
	}
	o := r.chooseOrder(ctx, n)
	if r.isTurnedBetter(ctx, n, o) {
		return nil, ErrPlan
	}
	rows, err := r.outermost(ctx, &n.Tables[o.Outer], o.Access)
	if err != nil {
		return nil, err
	}
	where, ok := r.joinTest(n, o.Where)
	if !ok {
		return nil, ErrPlan
	}
	rows = &widened{rows, where, n.Tables[o.Outer].Offset, n.Width()}
	for i := range o.Steps {
		if rows, ok = r.step(ctx, n, &o.Steps[i], rows); !ok {
			return nil, ErrPlan
		}
	}
	return rows, nil
}

// fewTests is how many times fewer rows than the outermost table the table of an EXISTS must have for an order to be better that
// begins with the rows of the EXISTS.
const fewTests = 8

// isTurnedBetter reports whether an order that reads all rows of its outermost table tests them against a table with few rows. It is
// better to begin with these, as go-mysql-server can.
func (r *run) isTurnedBetter(ctx *gms.Context, n *plan.Join, o *plan.JoinOrder) bool {
	outer := &n.Tables[o.Outer]
	if len(outer.Access) > 0 || outer.Source != nil {
		return false
	}
	return slices.ContainsFunc(n.Tables, func(t plan.JoinTable) bool {
		return t.Kind == plan.Semi && t.Source == nil && fewTests*r.rowsOf(ctx, t.Scan) < r.rowsOf(ctx, outer.Scan)
	})
}

// joinTest returns the test of some of a join's conditions; false if a value is not plain.
func (r *run) joinTest(n *plan.Join, numbers []int) (test, bool) {
	var all plan.And
	for _, i := range numbers {
		all = append(all, n.Where[i])
	}
	return joinCompiler(n, r.values).compile(all)
}

// joinCompiler compiles conditions on the rows of a join.
func joinCompiler(n *plan.Join, values []plan.Value) *compiler {
	return &compiler{n.Place, n.Codec, values}
}

// outermost returns the rows of a join's outermost table. access is the number of its access.
func (r *run) outermost(ctx *gms.Context, t *plan.JoinTable, access int) (gms.RowIter, error) {
	switch {
	case t.Source == nil:
		return r.scanBy(ctx, t.Scan, accessOf(t.Scan, access))
	case t.IsSet:
		return &keptRows{kept: r.newKept(t, nil)}, nil
	}
	return r.source(ctx, t)
}

// A widened returns the rows of a join's outermost table, with room for the rows of the other tables.
type widened struct {
	gms.RowIter
	where     test
	at, width int
}

// Next implements gms.RowIter.
func (w *widened) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := w.RowIter.Next(ctx)
		if err != nil {
			return nil, err
		}
		wide := make(gms.Row, w.width)
		copy(wide[w.at:], row)
		v, err := w.where(ctx, wide)
		if err != nil || v == isTrue {
			return wide, err
		}
	}
}
