package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's check of ONLY_FULL_GROUP_BY refuses subqueries and expressions without columns beside aggregates.

// validateGroups is the name of the rule that enforces ONLY_FULL_GROUP_BY.
const validateGroups = "validateGroupBy"

// withConstants makes validateGroups allow more expressions beside aggregates:
//
//   - expressions that have no operands and are not columns, such as NOW(), JSON_ARRAY() and variables;
//   - columns of the outer query;
//   - subqueries that use only grouped columns of the outer query.
//
// The rule itself treats all of these as columns. It accepts literals, so withConstants shows it these
// expressions as literals.
func withConstants(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err == nil {
			return out, same, nil
		}
		literal, same, failed := transform.NodeWithOpaque(ctx, n, constants{scope.Correlated()}.withLiterals)
		if failed != nil || same {
			return out, transform.SameTree, err
		}
		_, _, err = apply(ctx, a, literal, scope, sel, flags) // run it only for its error
		return n, transform.SameTree, err
	}
}

// asWritten is the value of a literal that replaces an expression. It keeps the expression's text,
// because the rule identifies expressions by their text.
type asWritten string

// constants replaces expressions by literals if they have one value for all rows that a query groups.
type constants struct {
	outer gms.ColSet // the columns of the outer queries
}

// withLiterals replaces the expressions of a node by asLiteral.
func (c constants) withLiterals(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	e, ok := n.(gms.Expressioner)
	if !ok {
		return n, transform.SameTree, nil
	}
	all, same, err := c.allAsLiterals(ctx, e.Expressions())
	if err != nil || bool(same) {
		return n, transform.SameTree, err
	}
	n, err = e.WithExpressions(ctx, all...)
	return n, transform.NewTree, err
}

func (c constants) allAsLiterals(ctx *gms.Context, all []gms.Expression) ([]gms.Expression, transform.TreeIdentity, error) {
	out, same := make([]gms.Expression, len(all)), transform.SameTree
	for i, e := range all {
		literal, unchanged, err := c.asLiteral(ctx, e)
		if err != nil {
			return nil, same, err
		}
		out[i], same = literal, same && unchanged
	}
	return out, same, nil
}

// asLiteral replaces an expression by a literal, unless the expression has operands or is a column
// of the query. It replaces a subquery by the columns of the outer query that it uses. It goes from
// the top down, because EXISTS accepts only a subquery.
func (c constants) asLiteral(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	switch e := e.(type) {
	case *plan.ExistsSubquery:
		return outerColumns(ctx, e.Query), transform.NewTree, nil
	case *plan.Subquery:
		return outerColumns(ctx, e), transform.NewTree, nil
	}
	if children := e.Children(); len(children) > 0 {
		all, same, err := c.allAsLiterals(ctx, children)
		if err != nil || bool(same) {
			return e, transform.SameTree, err
		}
		e, err = e.WithChildren(ctx, all...)
		return e, transform.NewTree, err
	}
	switch e := e.(type) {
	case gms.WindowAdaptableExpression:
		return e, transform.SameTree, nil
	case *expression.GetField:
		if !c.outer.Contains(e.Id()) {
			return e, transform.SameTree, nil
		}
		return expression.NewLiteral(asWritten(e.String()), types.LongText), transform.NewTree, nil
	case gms.FunctionExpression, *expression.UserVar, *expression.SystemVar, *expression.BindVar, *expression.ProcedureParam:
		return expression.NewLiteral(asWritten(e.String()), types.LongText), transform.NewTree, nil
	}
	return e, transform.SameTree, nil
}

// outerColumns returns the columns of the outer query that a subquery uses, as a tuple. If it uses
// none, outerColumns returns a literal.
func outerColumns(ctx *gms.Context, q *plan.Subquery) gms.Expression {
	outer := q.Correlated()
	if outer.Empty() {
		return expression.NewLiteral(asWritten(q.String()), types.LongText)
	}
	var columns expression.Tuple
	var look func(*gms.Context, gms.Expression) bool
	within := func(ctx *gms.Context, n gms.Node) bool {
		if n, ok := n.(gms.Expressioner); ok {
			for _, e := range n.Expressions() {
				gms.Inspect(ctx, e, look)
			}
		}
		return true
	}
	look = func(ctx *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *expression.GetField:
			if outer.Contains(e.Id()) {
				columns = append(columns, e)
			}
		case *plan.Subquery:
			transform.InspectWithOpaque(ctx, e.Query, within)
		case *plan.ExistsSubquery:
			transform.InspectWithOpaque(ctx, e.Query.Query, within)
		}
		return true
	}
	transform.InspectWithOpaque(ctx, q.Query, within)
	return columns
}
