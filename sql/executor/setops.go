package executor

import (
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// This file executes DISTINCT, UNION, INTERSECT and EXCEPT. They compare values as = does,
// strings by their collation; go-mysql-server compares bytes.

var _ gms.RowIter = (*offsetIter)(nil)

// Distinct executes SELECT DISTINCT.
func (x Executor) Distinct(ctx *gms.Context, n *plan.Distinct, row gms.Row) (gms.RowIter, error) {
	rows, err := x.Builder.Build(ctx, n.Child, row)
	if err != nil {
		return nil, err
	}
	return compat.NewDistinctRows(x.Holding, rows, n.Schema(ctx)), nil
}

// SetOp executes the set operations that compare or sort rows. It returns nil for others.
func (x Executor) SetOp(ctx *gms.Context, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	if n.SetOpType == plan.UnionType && !n.Distinct {
		return x.unionAll(ctx, n, row)
	}
	rows, err := x.setOp(ctx, n, row)
	if err != nil {
		return nil, err
	}
	return x.applyLimit(ctx, n, rows)
}

// unionAll executes a UNION ALL with ORDER BY. go-mysql-server skips OFFSET's rows before it
// sorts, and allocates memory for LIMIT rows.
func (x Executor) unionAll(ctx *gms.Context, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	wide := wideColumns(ctx, n)
	if len(n.SortFields) == 0 && len(wide) == 0 {
		return nil, nil
	}
	all := *n
	all.Limit, all.Offset, all.SortFields = nil, nil, nil
	rows, err := x.Ordinary(ctx, &all, row)
	if err != nil {
		return nil, err
	}
	return x.applyLimit(ctx, n, widen(rows, wide))
}

// setOp executes a set operation without ORDER BY and LIMIT.
func (x Executor) setOp(ctx *gms.Context, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	schema, wide := comparedSchema(ctx, n), wideColumns(ctx, n)
	if n.SetOpType == plan.UnionType {
		all := *n
		all.Distinct, all.Limit, all.Offset, all.SortFields = false, nil, nil, nil
		rows, err := x.Ordinary(ctx, &all, row)
		if err != nil {
			return nil, err
		}
		return compat.NewDistinctRows(x.Holding, widen(rows, wide), schema), nil
	}
	left, err := x.Builder.Build(ctx, n.Left(), row)
	if err != nil {
		return nil, err
	}
	right, err := x.Builder.Build(ctx, n.Right(), row)
	if err != nil {
		_ = left.Close(ctx) // err is the error to return
		return nil, err
	}
	var rows gms.RowIter = &compat.CommonRows{Left: widen(left, wide), Right: widen(right, wide), Except: n.SetOpType == plan.ExceptType, Distinct: n.Distinct, Schema: schema, Memory: x.Holding}
	if n.Distinct {
		rows = compat.NewDistinctRows(x.Holding, rows, schema)
	}
	return rows, nil
}

// comparedSchema returns the schema of a set operation with the collations by which its
// strings are compared; its own schema has lost them where the two sides differ.
func comparedSchema(ctx *gms.Context, n *plan.SetOp) gms.Schema {
	schema := n.Schema(ctx).Copy()
	for i, c := range schema {
		if types.IsTextOnly(c.Type) {
			c.Type = types.CreateLongText(first(columnCollation(ctx, n, i)))
		}
	}
	return schema
}

func first[A, B any](a A, _ B) A { return a }

// columnCollation returns the collation of a plan's column and its coercibility.
func columnCollation(ctx *gms.Context, n gms.Node, at int) (gms.CollationID, byte) {
	switch n := n.(type) {
	case *plan.SetOp:
		left, l := columnCollation(ctx, n.Left(), at)
		right, r := columnCollation(ctx, n.Right(), at)
		return gms.ResolveCoercibility(left, l, right, r)
	case *plan.Project:
		e := n.Projections[at]
		if a, ok := e.(*expression.Alias); ok {
			e = a.Child
		}
		if c, ok := e.(*expression.Convert); ok {
			e = c.Child // the set operation has added a conversion, which loses the collation
		}
		if g, ok := e.(*expression.GetField); ok && len(n.Child.Schema(ctx)) > g.Index() && g.Index() >= 0 {
			return columnCollation(ctx, n.Child, g.Index())
		}
		return gms.GetCoercibility(ctx, e)
	}
	const implicit = 2
	if t, ok := n.Schema(ctx)[at].Type.(gms.TypeWithCollation); ok {
		return t.Collation(), implicit
	}
	return gms.Collation_binary, implicit
}

// applyLimit applies the ORDER BY and LIMIT of a set operation.
func (x Executor) applyLimit(ctx *gms.Context, n *plan.SetOp, rows gms.RowIter) (gms.RowIter, error) {
	if len(n.SortFields) > 0 {
		rows = iters.NewSortIter(sortedByTypes(ctx, n), x.Holding.Metered(rows, store.Metering{Most: math.MaxInt64}))
	}
	if n.Offset != nil {
		skip, err := iters.GetInt64Value(ctx, n.Offset)
		if err != nil {
			return nil, err
		}
		rows = &offsetIter{RowIter: rows, skip: skip}
	}
	if n.Limit != nil {
		limit, err := iters.GetInt64Value(ctx, n.Limit)
		if err != nil {
			return nil, err
		}
		rows = &iters.LimitIter{Limit: limit, ChildIter: rows}
	}
	return rows, nil
}

// An offsetIter leaves out the first rows.
type offsetIter struct {
	gms.RowIter
	skip int64
}

// Next implements gms.RowIter.
func (i *offsetIter) Next(ctx *gms.Context) (gms.Row, error) {
	for ; i.skip > 0; i.skip-- {
		if _, err := i.RowIter.Next(ctx); err != nil {
			return nil, err
		}
	}
	return i.RowIter.Next(ctx)
}
