package plan

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// Union returns the rows of one node, and then those of another, as UNION ALL does.
type Union struct{ First, Second Node }

func (u *Union) describe(b *strings.Builder, depth int) {
	line(b, depth, "union")
	u.First.describe(b, depth+1)
	u.Second.describe(b, depth+1)
}

// union returns the plan of a UNION whose sides have columns of the same types. go-mysql-server
// converts other columns, so union refuses them.
func (b *builder) union(n *gmsplan.SetOp) (Node, scope, error) {
	if n.SetOpType != gmsplan.UnionType {
		return nil, scope{}, refused("%s", n)
	}
	for _, side := range n.Children() {
		if p, ok := side.(*gmsplan.Project); ok && slices.ContainsFunc(p.Projections, isConverted) {
			return nil, scope{}, refused("a UNION of columns of several types")
		}
	}
	first, second := n.Left().Schema(b.ctx), n.Right().Schema(b.ctx)
	if len(first) != len(second) {
		return nil, scope{}, refused("a UNION of %d and %d columns", len(first), len(second))
	}
	for i := range first {
		if !haveSameValues(first[i].Type, second[i].Type) {
			return nil, scope{}, refused("a UNION of %s and %s", first[i].Type, second[i].Type)
		}
	}
	left, s, err := b.node(n.Left())
	if err != nil {
		return nil, scope{}, err
	}
	right, _, err := b.node(n.Right())
	if err != nil {
		return nil, scope{}, err
	}
	s.codecs = nil
	rows, err := b.ofUnion(n, &Union{left, right}, s)
	return rows, s, err
}

// ofUnion adds DISTINCT, ORDER BY and LIMIT to a union.
func (b *builder) ofUnion(n *gmsplan.SetOp, rows Node, s scope) (Node, error) {
	if n.Distinct {
		rows = &Distinct{Child: rows, Schema: n.Left().Schema(b.ctx)}
	}
	if len(n.SortFields) > 0 {
		by, err := b.orders(n.SortFields, rows, s)
		if err != nil {
			return nil, err
		}
		rows = &Sort{Child: rows, By: by}
	}
	if n.Limit == nil && n.Offset == nil {
		return rows, nil
	}
	l := &Limit{Child: rows}
	for _, bound := range []struct {
		expr    gms.Expression
		operand **Operand
	}{{n.Limit, &l.Count}, {n.Offset, &l.Offset}} {
		if bound.expr == nil {
			continue
		}
		o, ok := b.operand(bound.expr)
		if !ok || o.Negative {
			return nil, refused("LIMIT %s", bound.expr)
		}
		*bound.operand = &o
	}
	return l, nil
}

// isConverted reports whether a column of a UNION is converted. go-mysql-server converts a column
// if its types on the two sides differ, in some cases to a type that lacks some of the values.
func isConverted(column gms.Expression) bool {
	if a, ok := column.(*expression.Alias); ok {
		column = a.Child
	}
	_, ok := column.(*expression.Convert)
	return ok
}

// haveSameValues reports whether values of two types have the same Go values, and are compared in the same way.
func haveSameValues(a, b gms.Type) bool {
	s, isText := a.(gms.StringType)
	t, ok := b.(gms.StringType)
	if isText && ok && types.IsTextOnly(a) && types.IsTextOnly(b) {
		return s.Collation() == t.Collation()
	}
	return a.Equals(b)
}
