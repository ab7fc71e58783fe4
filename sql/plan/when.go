package plan

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
)

// When returns the rows of a node if a query has a row or, if Not is set, if it has none.
type When struct {
	Child, Query Node
	Not          bool
}

func (w *When) describe(b *strings.Builder, depth int) {
	line(b, depth, "when%s exists", map[bool]string{true: " not"}[w.Not])
	w.Query.describe(b, depth+1)
	w.Child.describe(b, depth+1)
}

// isWhen reports whether a Filter selects a row of constants, or the rows of a derived table, by EXISTS or NOT EXISTS of
// subqueries that do not depend on these: SELECT 'x' WHERE NOT EXISTS (SELECT ...).
func (b *builder) isWhen(n *gmsplan.Filter) bool {
	switch from := n.Child.(type) {
	case *gmsplan.SubqueryAlias:
	case *gmsplan.ResolvedTable:
		if !gmsplan.IsDualTable(from) {
			return false
		}
	default:
		return false
	}
	found := false
	for _, e := range expression.SplitConjunction(b.ctx, n.Expression) {
		semi, ok := semiJoinOf(e)
		if !ok {
			continue
		}
		if semi.left != nil || !semi.query.Correlated().Empty() {
			return false
		}
		found = true
	}
	return found
}

// when returns the plan of a Filter for which isWhen is true.
func (b *builder) when(n *gmsplan.Filter) (Node, scope, error) {
	var rest []gms.Expression
	var conditions []*When
	for _, e := range expression.SplitConjunction(b.ctx, n.Expression) {
		semi, ok := semiJoinOf(e)
		if !ok {
			rest = append(rest, e)
			continue
		}
		root, _, err := compat.ComparedRows(b.ctx, nil, semi.query.Query, nil, nil, nil)
		if err != nil {
			return nil, scope{}, err
		}
		query, _, err := b.node(root)
		if err != nil {
			return nil, scope{}, err
		}
		conditions = append(conditions, &When{Query: query, Not: semi.kind == Anti})
	}
	from := n.Child
	if len(rest) > 0 {
		from = gmsplan.NewFilter(expression.JoinAnd(rest...), from)
	}
	child, s, err := b.node(from)
	if err != nil {
		return nil, scope{}, err
	}
	for _, w := range conditions {
		w.Child, child = child, w
	}
	return child, s, nil
}
