package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// ComparedRows is a rule that replaces comparisons of rows, such as (a, b) > (x, y), by what they
// stand for: a > x OR a = x AND b > y. In comparisons of rows go-mysql-server treats NULL as the
// greatest value, and uses no index, though programs page through tables with them.
func ComparedRows(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if text := ctx.Query(); text != "" && !strings.ContainsAny(text, "<>") && !ContainsFold(text, "execute") {
		return n, transform.SameTree, nil // here the text of an EXECUTE, or of a procedure's statement, is not known
	}
	return transform.NodeExprsWithOpaque(ctx, n, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if comparison := rowComparison(e); comparison != nil {
			return comparison, transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
}

// An ordering makes a comparison of two values.
type ordering func(l, r gms.Expression) gms.Expression

func lessThan(l, r gms.Expression) gms.Expression { return expression.NewLessThan(l, r) }
func greaterThan(l, r gms.Expression) gms.Expression {
	return expression.NewGreaterThan(l, r)
}
func lessOrEqual(l, r gms.Expression) gms.Expression { return expression.NewLessThanOrEqual(l, r) }
func greaterOrEqual(l, r gms.Expression) gms.Expression {
	return expression.NewGreaterThanOrEqual(l, r)
}

// rowComparison returns the comparisons of columns that a comparison of two rows stands for. It
// returns nil for other expressions, and if an operand that would be evaluated twice is neither a
// column nor a literal.
func rowComparison(e gms.Expression) gms.Expression {
	var strict, last ordering
	switch e.(type) {
	case *expression.LessThan:
		strict, last = lessThan, lessThan
	case *expression.LessThanOrEqual:
		strict, last = lessThan, lessOrEqual
	case *expression.GreaterThan:
		strict, last = greaterThan, greaterThan
	case *expression.GreaterThanOrEqual:
		strict, last = greaterThan, greaterOrEqual
	default:
		return nil
	}
	left, leftIsRow := e.Children()[0].(expression.Tuple)
	right, rightIsRow := e.Children()[1].(expression.Tuple)
	if !leftIsRow || !rightIsRow || len(left) != len(right) || len(left) < 2 {
		return nil
	}
	end := len(left) - 1
	comparison := last(left[end], right[end])
	for i := end - 1; i >= 0; i-- {
		l, r := left[i], right[i]
		if !isSimple(l) || !isSimple(r) {
			return nil
		}
		comparison = expression.NewOr(strict(l, r), expression.NewAnd(expression.NewEquals(l, r), comparison))
	}
	return comparison
}

// isSimple reports whether evaluating an expression twice has no side effect and costs little.
func isSimple(e gms.Expression) bool {
	switch e.(type) {
	case *expression.GetField, *expression.Literal, *expression.BindVar:
		return true
	}
	return false
}
