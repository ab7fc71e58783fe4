package sql

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

var (
	_ gms.RowIter = (*offsetIter)(nil)
)

// distinct executes SELECT DISTINCT and the set operations that compare rows;
// nil leaves the node to go-mysql-server.
func (b *builder) distinct(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	switch n := n.(type) {
	case *plan.Distinct:
		rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Child, row)
		if err != nil {
			return nil, err
		}
		return compat.NewDistinctRows(&s.Holding, rows, n.Schema(ctx)), nil
	case *plan.SetOp:
		if n.SetOpType == plan.UnionType && !n.Distinct {
			return b.unionAll(ctx, s, n, row)
		}
		rows, err := b.setOp(ctx, s, n, row)
		if err != nil {
			return nil, err
		}
		return s.applyLimit(ctx, n, rows)
	}
	return nil, nil
}

// unionAll executes a UNION ALL with ORDER BY. go-mysql-server skips OFFSET's rows before it
// sorts, and allocates memory for LIMIT rows.
func (b *builder) unionAll(ctx *gms.Context, s *Session, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	if len(n.SortFields) == 0 {
		return nil, nil
	}
	all := *n
	all.Limit, all.Offset, all.SortFields = nil, nil, nil
	rows, err := b.ordinary(ctx, s, &all, row)
	if err != nil {
		return nil, err
	}
	return s.applyLimit(ctx, n, rows)
}

// setOp executes a set operation without ORDER BY and LIMIT.
func (b *builder) setOp(ctx *gms.Context, s *Session, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	schema := comparedSchema(ctx, n)
	if n.SetOpType == plan.UnionType {
		all := *n
		all.Distinct, all.Limit, all.Offset, all.SortFields = false, nil, nil, nil
		rows, err := b.ordinary(ctx, s, &all, row)
		if err != nil {
			return nil, err
		}
		return compat.NewDistinctRows(&s.Holding, rows, schema), nil
	}
	left, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Left(), row)
	if err != nil {
		return nil, err
	}
	right, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Right(), row)
	if err != nil {
		_ = left.Close(ctx) // err is the error to return
		return nil, err
	}
	var rows gms.RowIter = &compat.CommonRows{Left: left, Right: right, Except: n.SetOpType == plan.ExceptType, Distinct: n.Distinct, Schema: schema, Memory: &s.Holding}
	if n.Distinct {
		rows = compat.NewDistinctRows(&s.Holding, rows, schema)
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
func (s *Session) applyLimit(ctx *gms.Context, n *plan.SetOp, rows gms.RowIter) (gms.RowIter, error) {
	if len(n.SortFields) > 0 {
		rows = iters.NewSortIter(n.SortFields, s.Holding.Metered(rows, store.Metering{Most: math.MaxInt64}))
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
