package plan

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// This file makes a Join of go-mysql-server's joins, which are of two tables each.

// joinedMax bounds the tables of a join: each of them may be the outermost.
const joinedMax = 12

// join returns the plan of a join; where is the condition above it, nil for none.
func (b *builder) join(n *gmsplan.JoinNode, where gms.Expression) (Node, scope, error) {
	j := &Join{}
	s, on, err := b.flatten(n, j)
	if err != nil {
		return nil, scope{}, err
	}
	if len(j.Tables) > joinedMax {
		return nil, scope{}, refused("a join of %d tables", len(j.Tables))
	}
	for _, e := range append(on, expression.SplitConjunction(b.ctx, where)...) {
		c, err := b.condition(e, s)
		if err != nil {
			return nil, scope{}, err
		}
		for _, c := range conjuncts(Simplify(c)) {
			if err := j.place(b.ctx, c); err != nil {
				return nil, scope{}, err
			}
		}
	}
	return j, s, nil
}

// flatten adds the tables of a join to j. It returns their scope, and the conditions of the join.
func (b *builder) flatten(n gms.Node, j *Join) (scope, []gms.Expression, error) {
	switch n := n.(type) {
	case *gmsplan.JoinNode:
		if !n.Op.IsInner() {
			return scope{}, nil, refused("%s", n.Op)
		}
		left, on, err := b.flatten(n.Left(), j)
		if err != nil {
			return scope{}, nil, err
		}
		right, more, err := b.flatten(n.Right(), j)
		s := scope{slices.Concat(left.ids, right.ids), slices.Concat(left.codecs, right.codecs)}
		return s, slices.Concat(on, more, expression.SplitConjunction(b.ctx, n.Filter)), err
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias:
		return b.joined(n, j)
	}
	return scope{}, nil, refused("a join of %T", n)
}

// joined adds a table to a join, and returns its scope.
func (b *builder) joined(n gms.Node, j *Join) (scope, []gms.Expression, error) {
	node, s, err := b.node(n)
	if err != nil {
		return scope{}, nil, err
	}
	scan, ok := node.(*Scan)
	if !ok {
		return scope{}, nil, refused("a join of no table")
	}
	t := JoinTable{Scan: scan}
	if len(j.Tables) > 0 {
		last := &j.Tables[len(j.Tables)-1]
		t.First = last.First + len(last.Table.Columns)
	}
	j.Tables = append(j.Tables, t)
	return s, nil, nil
}

// place gives a condition to the scan of the table that has all of its columns, or to the join.
func (j *Join) place(ctx *gms.Context, c Condition) error {
	tables, err := j.tablesOf(ctx, c)
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		j.Where = append(j.Where, c)
		return nil
	}
	t := &j.Tables[tables[0]]
	if c, err = moved(ctx, c, -t.First); err != nil {
		return err
	}
	if t.Where != nil {
		c = And(append(slices.Clone(conjuncts(t.Where)), c))
	}
	t.Where = c
	return nil
}

// tablesOf returns the numbers of the tables that have the columns of a condition.
func (j *Join) tablesOf(ctx *gms.Context, c Condition) ([]int, error) {
	columns, err := columnsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	tables := make(map[int]bool)
	for column := range columns {
		tables[j.tableOf(column)] = true
	}
	return slices.Sorted(maps.Keys(tables)), nil
}

// moved returns a condition on rows in which each column is so many positions further on.
func moved(ctx *gms.Context, c Condition, by int) (Condition, error) {
	c, err := eachOther(c, func(e gms.Expression) (gms.Expression, error) {
		return withColumns(ctx, e, func(column int) int { return column + by })
	})
	return movedColumns(c, by), err
}

// movedColumns is moved for the columns that are compared without go-mysql-server.
func movedColumns(c Condition, by int) Condition {
	switch c := c.(type) {
	case And:
		out := make(And, len(c))
		for i, x := range c {
			out[i] = movedColumns(x, by)
		}
		return out
	case Or:
		out := make(Or, len(c))
		for i, x := range c {
			out[i] = movedColumns(x, by)
		}
		return out
	case Not:
		return Not{movedColumns(c.Condition, by)}
	case Compare:
		c.Column += by
		return c
	case In:
		c.Column += by
		return c
	case IsNull:
		c.Column += by
		return c
	case Same:
		return Same{c.Left + by, c.Right + by}
	}
	return c
}

// withColumns returns an expression with its columns at other positions.
func withColumns(ctx *gms.Context, e gms.Expression, place func(int) int) (gms.Expression, error) {
	e, _, err := transform.Expr(ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if f, ok := e.(*expression.GetField); ok {
			return f.WithIndex(place(f.Index())), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	return e, err
}
