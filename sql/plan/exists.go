package plan

import (
	"strings"

	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
)

// Exists returns a single row, whose only column says whether a node has rows: SELECT EXISTS(...).
type Exists struct{ Child Node }

func (e *Exists) describe(b *strings.Builder, depth int) {
	line(b, depth, "exists")
	e.Child.describe(b, depth+1)
}

// existsOf returns the subquery in SELECT EXISTS(subquery), if a projection is that and nothing else: one column, and no
// table in a FROM beside the subquery's. Otherwise it returns nil.
func existsOf(n *gmsplan.Project) *gmsplan.Subquery {
	from := n.Child
	if p, ok := from.(*gmsplan.Project); ok { // the inner projection computes the column for ORDER BY and HAVING
		from = p.Child
	}
	t, ok := from.(*gmsplan.ResolvedTable)
	if !ok || !gmsplan.IsDualTable(t) || len(n.Projections) != 1 {
		return nil
	}
	e := n.Projections[0]
	if a, ok := e.(*expression.Alias); ok {
		e = a.Child
	}
	if x, ok := e.(*gmsplan.ExistsSubquery); ok {
		return x.Query
	}
	return nil
}

// exists returns the plan of a projection that is SELECT EXISTS(...).
func (b *builder) exists(n *gmsplan.Project, q *gmsplan.Subquery) (Node, scope, error) {
	root, _, err := compat.ComparedRows(b.ctx, nil, q.Query, nil, nil, nil)
	if err != nil {
		return nil, scope{}, err
	}
	child, _, err := b.node(root)
	return &Exists{child}, ids(n.Projections), err
}

// wantOne tells a scan, at the top or below projections, that only its first row is wanted. Other nodes may need more
// rows of their children to return one.
func wantOne(n Node) {
	switch n := n.(type) {
	case *Project:
		wantOne(n.Child)
	case *Scan:
		n.End = true
	}
}
