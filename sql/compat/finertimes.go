package compat

import (
	"slices"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server rounds a constant to a column's precision before it looks it up in an index. So
// dt > '10:29:59.7' does not find a DATETIME of 10:30:00, and d < NOW() does not find today's DATE.
// This file handles constants between two values that the column can have: it compares with the
// lower value instead.

// withWholeTimes wraps the rule that finds indexes. Functions of constants have become constants by then.
func withWholeTimes(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return changedFirst(apply, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.Node(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
			switch n.(type) {
			case *plan.Filter, *plan.JoinNode:
				return transform.OneNodeExpressions(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
					if whole := wholeTime(ctx, e); whole != nil {
						return whole, transform.NewTree, nil
					}
					return e, transform.SameTree, nil
				})
			}
			return n, transform.SameTree, nil
		})
	})
}

// WholeTimes is a rule for simple UPDATEs and DELETEs. The rules that find their indexes cannot be
// wrapped, and run before functions of constants become constants. So WholeTimes evaluates
// functions that return times.
func WholeTimes(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.Update, *plan.DeleteFrom:
	default:
		return n, transform.SameTree, nil
	}
	return transform.Node(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		if _, ok := n.(*plan.Filter); !ok {
			return n, transform.SameTree, nil
		}
		return transform.OneNodeExpressions(ctx, n, wholeComputedTime)
	})
}

// wholeComputedTime is wholeTime for a comparison of a column with a time computed from constants.
func wholeComputedTime(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	switch e.(type) {
	case expression.Comparer, *expression.Between:
	default:
		return e, transform.SameTree, nil
	}
	sides := slices.Clone(e.Children())
	for i, side := range sides {
		if types.IsTime(side.Type(ctx)) && isComputedOnce(ctx, side) {
			v, err := side.Eval(ctx, nil)
			if err != nil {
				return e, transform.SameTree, nil // executing the statement reports the error
			}
			sides[i] = expression.NewLiteral(v, types.DatetimeMaxPrecision)
		}
	}
	computed, err := e.WithChildren(ctx, sides...)
	if err != nil {
		return e, transform.SameTree, err
	}
	if whole := wholeTime(ctx, computed); whole != nil {
		return whole, transform.NewTree, nil
	}
	return e, transform.SameTree, nil
}

// isComputedOnce reports whether an expression consists only of NOW() or similar functions, literals and intervals.
func isComputedOnce(ctx *gms.Context, e gms.Expression) bool {
	isOnce := true
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch e.(type) {
		case nil, *function.Now, *clockCall, *expression.Literal, *expression.Interval, *function.DateAdd, *function.DateSub, *movedTime, *microseconds:
		default:
			isOnce = false
		}
		return isOnce
	})
	return isOnce
}

// wholeTime returns the replacement of a comparison of a column with a more precise time; nil for other expressions.
func wholeTime(ctx *gms.Context, e gms.Expression) gms.Expression {
	if b, ok := e.(*expression.Between); ok {
		unit := unitOf(ctx, b.Val)
		lower, isLower := between(ctx, b.Lower, unit)
		upper, isUpper := between(ctx, b.Upper, unit)
		switch {
		case isLower && isUpper:
			return expression.NewBetween(b.Val, constantTime(lower.Add(unit)), constantTime(upper))
		case isLower:
			return expression.NewBetween(b.Val, constantTime(lower.Add(unit)), b.Upper)
		case isUpper:
			return expression.NewBetween(b.Val, b.Lower, constantTime(upper))
		}
		return nil
	}
	column, constant, isAbove, ok := ordered(e)
	if !ok {
		return nil
	}
	before, ok := between(ctx, constant, unitOf(ctx, column))
	switch {
	case !ok:
		return nil
	case isAbove:
		return expression.NewGreaterThan(column, constantTime(before))
	}
	return expression.NewLessThanOrEqual(column, constantTime(before))
}

// ordered returns the sides of a comparison by order, the constant last. isAbove is set if the
// column must be above the constant, or equal.
func ordered(e gms.Expression) (column, constant gms.Expression, isAbove, ok bool) {
	switch e.(type) {
	case *expression.GreaterThan, *expression.GreaterThanOrEqual:
		isAbove = true
	case *expression.LessThan, *expression.LessThanOrEqual:
	default:
		return nil, nil, false, false
	}
	c := e.(expression.Comparer)
	if _, isConstant := c.Left().(*expression.Literal); isConstant {
		return c.Right(), c.Left(), !isAbove, true
	}
	return c.Left(), c.Right(), isAbove, true
}

// unitOf returns the smallest difference between two values of a column of dates or times; 0 for other expressions.
func unitOf(ctx *gms.Context, e gms.Expression) time.Duration {
	if _, ok := e.(*expression.GetField); !ok || !types.IsTime(e.Type(ctx)) {
		return 0
	}
	t := e.Type(ctx).(gms.DatetimeType)
	if types.IsDateType(t) {
		return 24 * time.Hour
	}
	return unitOfDigits(t.Precision())
}

// between returns the last value of a column before a constant, if the constant is not itself a
// value of the column. unit is the column's unitOf. It returns false for other expressions, and for the
// year 0.
func between(ctx *gms.Context, e gms.Expression, unit time.Duration) (before time.Time, ok bool) {
	l, ok := e.(*expression.Literal)
	if !ok || unit == 0 {
		return before, false
	}
	t, ok := l.Value().(time.Time)
	if text, isText := l.Value().(string); isText && !IsImpossibleTime(text) {
		t, ok = readMoment(ctx, text)
	}
	before = t.Truncate(unit)
	return before, ok && t.Year() > 0 && !before.Equal(t)
}

func constantTime(t time.Time) gms.Expression {
	return expression.NewLiteral(t, types.DatetimeMaxPrecision)
}
