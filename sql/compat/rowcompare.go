package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// ComparedRows is a rule that turns comparisons of rows, (a, b) > (x, y), into what they mean: a > x OR a = x AND b > y.
// go-mysql-server takes NULL for the greatest value in them, and knows no index for them, though programs page
// through tables by them.
func ComparedRows(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if text := ctx.Query(); text != "" && !strings.ContainsAny(text, "<>") && !ContainsFold(text, "execute") {
		return n, transform.SameTree, nil // of an EXECUTE, and a procedure's statement, the text is not here
	}
	return transform.NodeExprsWithOpaque(ctx, n, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if by := rowComparison(e); by != nil {
			return by, transform.NewTree, nil
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

// rowComparison returns the comparisons of columns that a comparison of two rows means; nil for other expressions, and if
// an operand that would be evaluated twice is neither a column nor a literal.
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
	left, isRow := e.Children()[0].(expression.Tuple)
	right, areRows := e.Children()[1].(expression.Tuple)
	if !isRow || !areRows || len(left) != len(right) || len(left) < 2 {
		return nil
	}
	end := len(left) - 1
	by := last(left[end], right[end])
	for i := end - 1; i >= 0; i-- {
		l, r := left[i], right[i]
		if !isSimple(l) || !isSimple(r) {
			return nil
		}
		by = expression.NewOr(strict(l, r), expression.NewAnd(expression.NewEquals(l, r), by))
	}
	return by
}

// isSimple reports whether an expression may be evaluated twice without an effect, at no cost.
func isSimple(e gms.Expression) bool {
	switch e.(type) {
	case *expression.GetField, *expression.Literal, *expression.BindVar:
		return true
	}
	return false
}
