package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/compat"
)

// useComparisons replaces those expressions of a node that compare, or assign, differently from
// MySQL. It runs after the analyzer because the analyzer's rules recognize the original
// expressions by their types.
func useComparisons(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.Filter, *plan.Having, *plan.Project, *plan.GroupBy, *plan.JoinNode, *plan.UpdateSource, *plan.Values, *plan.InsertInto, *plan.Update, *plan.Sort, *plan.TopN, *plan.Set:
		return transform.OneNodeExprsWithNode(ctx, n, replacement)
	}
	return n, transform.SameTree, nil
}

// replacement returns the expression that replaces e in node n, or e itself.
func replacement(ctx *gms.Context, n gms.Node, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	set, ok := e.(*expression.SetField)
	if !ok {
		return compat.Compared(ctx, n, e)
	}
	if _, isSet := n.(*plan.Set); isSet {
		// A variable, or a column of a trigger's row, which is checked when the row is stored.
		return compat.WithTextOfTime(ctx, set)
	}
	if ours := change.Assigned(ctx, n, set); ours != nil {
		return ours, transform.NewTree, nil
	}
	return e, transform.SameTree, nil
}
