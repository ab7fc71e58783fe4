package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
)

// OnlyCompares reports whether an expression, apart from its children, only compares or computes with
// values of its row and constants: it is no variable, function or subquery.
func OnlyCompares(e gms.Expression) bool {
	switch e.(type) {
	case *expression.GetField, *expression.Literal, expression.Tuple, *expression.And, *expression.Or, *expression.Xor, *expression.Not,
		*expression.Equals, *expression.NullSafeEquals, *expression.GreaterThan, *expression.GreaterThanOrEqual, *expression.LessThan, *expression.LessThanOrEqual,
		*expression.InTuple, *expression.HashInTuple, *expression.Between, *expression.IsNull, *expression.IsTrue, *expression.Like, *expression.Arithmetic, *expression.UnaryMinus,
		*collatedIn, *nullSafeText, *checkedArithmetic, *likePattern, *roundedNumber, *weightsExpr:
		return true
	}
	return false
}
