package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's check of ONLY_FULL_GROUP_BY refuses expressions without columns beside
// aggregates.

// validateGroups is the name of the rule that enforces ONLY_FULL_GROUP_BY.
const validateGroups = "validateGroupBy"

// withConstants makes validateGroups allow, beside aggregates, expressions that have no operands
// and are not columns, such as NOW(), JSON_ARRAY() and variables. The rule itself treats all of
// these except literals as columns.
func withConstants(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err == nil {
			return out, same, nil
		}
		literal, same, failed := transform.NodeExprsWithOpaque(ctx, n, asLiteral)
		if failed != nil || same {
			return out, transform.SameTree, err
		}
		_, _, err = apply(ctx, a, literal, scope, sel, flags) // run it only for its error
		return n, transform.SameTree, err
	}
}

// asWritten is the value of a literal that replaces an expression and keeps its text: the rule
// identifies expressions by their text.
type asWritten string

// asLiteral replaces an expression by a literal, unless it has operands or is a column.
func asLiteral(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	if len(e.Children()) > 0 {
		return e, transform.SameTree, nil
	}
	switch e.(type) {
	case gms.WindowAdaptableExpression:
		return e, transform.SameTree, nil
	case gms.FunctionExpression, *expression.UserVar, *expression.SystemVar, *expression.BindVar, *expression.ProcedureParam:
		return expression.NewLiteral(asWritten(e.String()), types.LongText), transform.NewTree, nil
	}
	return e, transform.SameTree, nil
}
