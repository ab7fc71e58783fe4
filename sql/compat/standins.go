package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// This file has the functions that replace go-mysql-server's:
//
//  - SUM and AVG, which it computes in doubles (aggregates.go);
//  - functions of texts, times and numbers (astext.go, timeparts.go, wholes.go, scalars.go);
//  - decimal literals, which it rounds to the scale of the column that they are compared with.

var _ gms.Expression = (*exactLiteral)(nil)

// IsExact reports whether a name is that of our SUM or AVG in a syntax tree.
func IsExact(name string) bool { return name == ExactSumName || name == ExactAvgName }

// StandIn returns our replacement of go-mysql-server's function of a name; false if there is none.
func StandIn(name string) (gms.Function, bool) {
	switch {
	case name == ExactSumName || strings.EqualFold(name, "sum"):
		return exactSum, true
	case name == ExactAvgName || strings.EqualFold(name, "avg"):
		return exactAvg, true
	case name == nestedName:
		return nestedArgument, true
	case name == toTextName:
		return toText, true
	case name == decidedName:
		return decided, true
	case name == quantifiedName:
		return quantifiedFunction, true
	case strings.HasPrefix(name, "farmsql.") && (strings.HasSuffix(name, ".any") || strings.HasSuffix(name, ".some") || strings.HasSuffix(name, ".all")):
		return noQuantified, true
	case name == refusedName:
		return refused, true
	}
	if f, ok := timeFunction(strings.ToLower(name)); ok {
		return f, true
	}
	if f, ok := wholeFunction(strings.ToLower(name)); ok {
		return f, true
	}
	name = strings.ToLower(name)
	for _, function := range []func(string) (gms.Function, bool){numberFunction, unixFunction, guardedFunction} {
		if f, ok := function(name); ok {
			return f, true
		}
	}
	f, ok := textFunction(name)
	if !losesCollation[name] && ofDates[name] == 0 {
		return f, ok
	}
	if !ok {
		f = BuiltIns[name]
	}
	switch {
	case ofDates[name] > 0:
		return dateFunction(name, f), true
	case name == "greatest" || name == "least":
		return timesFunction(name, withCollation(name, f)), true
	}
	return withCollation(name, ofDecimals(name, f)), true
}

// Replacements of go-mysql-server's functions.
var (
	exactSum = gms.Function1{Name: "sum", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &ExactAggregate{Child: e}
	}}
	exactAvg = gms.Function1{Name: "avg", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &ExactAggregate{Child: e, Avg: true}
	}}
	// Literal is the function ExactLiteralName.
	Literal = gms.Function1{Name: "literal", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		if l, ok := e.(*expression.Literal); ok {
			return &exactLiteral{l}
		}
		return e
	}}
)

// An exactLiteral hides a literal from go-mysql-server while a plan is built. Otherwise
// go-mysql-server would convert the literal to the type of the column that it is compared with, and
// round it.
type exactLiteral struct{ *expression.Literal }

// WithChildren implements gms.Expression.
func (l *exactLiteral) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(l, len(children), 0)
	}
	return l, nil
}

// UnwrapLiterals replaces each exactLiteral of a plan by its literal.
func UnwrapLiterals(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	n, same, err := transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		switch e := e.(type) {
		case *exactLiteral:
			return e.Literal, transform.NewTree, nil
		case *plan.Subquery:
			q, same, err := UnwrapLiterals(ctx, e.Query)
			if err != nil || bool(same) {
				return e, transform.SameTree, err
			}
			return e.WithQuery(q), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	insert, ok := n.(*plan.InsertInto)
	if err != nil || !ok {
		return n, same, err
	}
	// An INSERT's source is not among its children.
	source, unchanged, err := UnwrapLiterals(ctx, insert.Source)
	if err != nil || bool(unchanged) {
		return n, same, err
	}
	return insert.WithSource(source), transform.NewTree, nil
}
