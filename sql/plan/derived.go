package plan

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
)

// Derived returns the rows of the SELECT of a derived table or a WITH.
type Derived struct {
	Child Node
	Name  string
}

func (d *Derived) describe(b *strings.Builder, depth int) {
	line(b, depth, "derived table %s", d.Name)
	d.Child.describe(b, depth+1)
}

// derived returns the plan of a derived table.
func (b *builder) derived(n *gmsplan.SubqueryAlias) (Node, scope, error) {
	if n.IsLateral || !n.Correlated.Empty() {
		return nil, scope{}, refused("a derived table that depends on others")
	}
	root, _, err := compat.ComparedRows(b.ctx, nil, n.Child, nil, nil, nil)
	if err != nil {
		return nil, scope{}, err
	}
	child, inner, err := b.node(root)
	if err != nil {
		return nil, scope{}, err
	}
	s, err := derivedScope(n, inner)
	return &Derived{child, n.Name()}, s, err
}

// derivedScope returns the scope of a derived table. inner is the scope of its SELECT. The derived
// table's columns have ids of their own, in the order of the SELECT's columns.
func derivedScope(n *gmsplan.SubqueryAlias, inner scope) (scope, error) {
	var s scope
	n.Columns().ForEach(func(id gms.ColumnId) { s.ids = append(s.ids, id) })
	if len(s.ids) != len(inner.ids) {
		return scope{}, refused("%d columns of a derived table of %d", len(s.ids), len(inner.ids))
	}
	for i, id := range s.ids {
		if column, ok := n.ScopeMapping[id].(gms.IdExpression); !ok || column.Id() != inner.ids[i] {
			return scope{}, refused("column %d of a derived table", i+1)
		}
	}
	s.codecs = inner.codecs
	return s, nil
}

// withCondition moves a condition on a derived table into the table's own SELECT, so that an index of the
// SELECT's tables can be used. It returns false if that would change the rows.
func withCondition(ctx *gms.Context, n *gmsplan.SubqueryAlias, condition gms.Expression) (*gmsplan.SubqueryAlias, bool) {
	project, ok := n.Child.(*gmsplan.Project)
	if !ok {
		return nil, false
	}
	from, inner := project.Child, []gms.Expression(nil)
	if f, ok := from.(*gmsplan.Filter); ok {
		from, inner = f.Child, append(inner, f.Expression)
	}
	switch from.(type) {
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias, *gmsplan.JoinNode:
	default: // in a group or below a LIMIT, the condition would change the rows
		return nil, false
	}
	moved, _, err := transform.Expr(ctx, condition, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		f, ok := e.(*expression.GetField)
		if !ok {
			return e, transform.SameTree, nil
		}
		column, ok := projected(project, n.ScopeMapping[f.Id()])
		if !ok {
			return nil, transform.SameTree, refused("column %s", f)
		}
		return column, transform.NewTree, nil
	})
	if err != nil {
		return nil, false
	}
	filter := gmsplan.NewFilter(expression.JoinAnd(append(inner, moved)...), from)
	made, err := n.WithChildren(ctx, gmsplan.NewProject(project.Projections, filter))
	if err != nil {
		return nil, false
	}
	out, ok := made.(*gmsplan.SubqueryAlias)
	return out, ok
}

// projected returns the expression of a SELECT's column.
func projected(p *gmsplan.Project, column gms.Expression) (gms.Expression, bool) {
	wanted, ok := column.(gms.IdExpression)
	if !ok {
		return nil, false
	}
	for _, e := range p.Projections {
		if e, ok := e.(gms.IdExpression); ok && e.Id() == wanted.Id() {
			if a, ok := e.(*expression.Alias); ok {
				return a.Child, true
			}
			return e, true
		}
	}
	return nil, false
}
