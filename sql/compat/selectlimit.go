package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server puts the LIMIT of sql_select_limit directly above a derived table. It then drops
// the derived table's columns, because nothing names them. It adds no LIMIT to SELECT DISTINCT.

// selectLimitRule is the name of the rule that adds the LIMIT of sql_select_limit.
const selectLimitRule = "applyDefaultSelectLimit"

// withSelectLimit applies the rule to SELECT DISTINCT, too, and keeps the columns of derived tables.
func withSelectLimit(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		unlimited, _ := gms.HasDefaultValue(ctx, ctx.Session, "sql_select_limit")
		if unlimited || !scope.IsEmpty() || scope.RecursionDepth() > 0 {
			return n, transform.SameTree, nil
		}
		switch root := n.(type) {
		case *plan.SubqueryAlias:
			n = withColumns(ctx, root)
		case *plan.Distinct:
			limit, err := ctx.GetSessionVariable(ctx, "sql_select_limit")
			if err != nil {
				return n, transform.SameTree, err
			}
			rows, _, err := types.Int64.Convert(ctx, limit)
			if err != nil {
				return n, transform.SameTree, err
			}
			return plan.NewLimit(expression.NewLiteral(rows, types.Int64), root), transform.NewTree, nil
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// withColumns returns a SELECT of all columns of a derived table; the table itself if it has fewer ids than
// columns.
func withColumns(ctx *gms.Context, t *plan.SubqueryAlias) gms.Node {
	columns, ids := t.Schema(ctx), t.Columns()
	var all []gms.Expression
	id, ok := ids.Next(1)
	for _, c := range columns {
		if !ok {
			return t
		}
		all = append(all, expression.NewGetFieldWithTable(int(id), int(t.Id()), c.Type, c.DatabaseSource, c.Source, c.Name, c.Nullable))
		id, ok = ids.Next(id + 1)
	}
	return plan.NewProject(all, t)
}
