package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// This file makes IN, DISTINCT and UNION compare strings as = does: by their
// collation. go-mysql-server hashes their bytes there.

var (
	_ gms.Expression = (*collatedIn)(nil)
	_ gms.RowIter    = (*distinctIter)(nil)
)

// useCollatedIn replaces each IN with a list of strings in the expressions of a
// node. That the analyzer could do, but its rules know an IN by its type.
func useCollatedIn(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.Filter, *plan.Having, *plan.Project, *plan.GroupBy, *plan.JoinNode, *plan.UpdateSource:
		return transform.OneNodeExprsWithNode(ctx, n, collatedInOf)
	}
	return n, transform.SameTree, nil
}

func collatedInOf(ctx *gms.Context, _ gms.Node, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	in, ok := e.(*expression.HashInTuple)
	if !ok {
		return e, transform.SameTree, nil
	}
	c, err := newCollatedIn(ctx, in)
	if err != nil || c == nil {
		return e, transform.SameTree, err
	}
	return c, transform.NewTree, nil
}

// A collatedIn is an IN whose operands are all strings.
type collatedIn struct {
	*expression.HashInTuple
	collation gms.CollationID
	values    map[uint64]bool
	null      bool
}

// newCollatedIn returns nil if the operands are not all strings, or their bytes
// are what is compared.
func newCollatedIn(ctx *gms.Context, in *expression.HashInTuple) (*collatedIn, error) {
	list, ok := in.Right().(expression.Tuple)
	if !ok || !types.IsTextOnly(in.Left().Type(ctx)) {
		return nil, nil
	}
	c := &collatedIn{HashInTuple: in, values: make(map[uint64]bool, len(list))}
	var coercibility byte
	c.collation, coercibility = gms.GetCoercibility(ctx, in.Left())
	for _, e := range list {
		if e.Type(ctx) == types.Null {
			continue
		}
		if !types.IsTextOnly(e.Type(ctx)) {
			return nil, nil
		}
		other, weight := gms.GetCoercibility(ctx, e)
		c.collation, coercibility = gms.ResolveCoercibility(c.collation, coercibility, other, weight)
	}
	if c.collation == gms.Collation_binary || c.collation == gms.Collation_Unspecified {
		return nil, nil
	}
	for _, e := range list {
		v, err := e.Eval(ctx, nil)
		if err != nil {
			return nil, err
		}
		if v == nil {
			c.null = true
			continue
		}
		key, err := c.hash(ctx, v)
		if err != nil {
			return nil, err
		}
		c.values[key] = true
	}
	return c, nil
}

func (c *collatedIn) hash(ctx *gms.Context, v any) (uint64, error) {
	s, err := types.ConvertToString(ctx, v, types.LongText, nil)
	if err != nil {
		return 0, err
	}
	return c.collation.HashToUint(s)
}

// Eval implements gms.Expression.
func (c *collatedIn) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := c.Left().Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	key, err := c.hash(ctx, v)
	if err != nil {
		return nil, err
	}
	if !c.values[key] && c.null {
		return nil, nil
	}
	return c.values[key], nil
}

// WithChildren implements gms.Expression.
func (c *collatedIn) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := c.HashInTuple.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	changed := *c
	changed.HashInTuple = e.(*expression.HashInTuple)
	return &changed, nil
}

// distinct executes SELECT DISTINCT, and UNION where no LIMIT belongs to it;
// nil leaves the node to go-mysql-server.
func (b *builder) distinct(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	var rows gms.RowIter
	var err error
	switch n := n.(type) {
	case *plan.Distinct:
		rows, err = b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Child, row)
	case *plan.SetOp:
		if !n.Distinct || n.SetOpType != plan.UnionType || n.Limit != nil || n.Offset != nil {
			return nil, nil
		}
		all := *n
		all.Distinct = false
		rows, err = b.ordinary(ctx, s, &all, row)
	}
	if err != nil {
		return nil, err
	}
	return &distinctIter{rows: rows, schema: n.Schema(ctx), seen: make(map[uint64]bool)}, nil
}

// A distinctIter leaves out the rows that are equal to an earlier one.
type distinctIter struct {
	rows   gms.RowIter
	schema gms.Schema
	seen   map[uint64]bool
}

// Next implements gms.RowIter.
func (i *distinctIter) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := i.rows.Next(ctx)
		if err != nil {
			return nil, err
		}
		key, err := hash.HashOf(ctx, i.schema, row)
		if err != nil {
			return nil, err
		}
		if !i.seen[key] {
			i.seen[key] = true
			return row, nil
		}
	}
}

// Close implements gms.RowIter.
func (i *distinctIter) Close(ctx *gms.Context) error { return i.rows.Close(ctx) }
