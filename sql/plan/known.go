package plan

import (
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// This file lists the expressions of go-mysql-server that plans evaluate. It refuses expressions
// that go-mysql-server evaluates differently, or wrongly, unless it has planned them.

// knownExpressions has the types of expressions that may be evaluated again in each execution: they
// depend only on their operands and the context.
var knownExpressions = func() map[string]bool {
	known := make(map[string]bool)
	for _, name := range strings.Fields(`
		*plan.Parameter *plan.Scalar *plan.Outer *plan.Membership *expression.GetField *expression.Literal *expression.Alias *expression.Arithmetic *expression.UnaryMinus
		*expression.Equals *expression.GreaterThan *expression.GreaterThanOrEqual *expression.LessThan
		*expression.LessThanOrEqual *expression.NullSafeEquals *expression.And *expression.Or *expression.Not
		*expression.IsNull *expression.Between *expression.InTuple expression.Tuple *expression.Case *expression.CaseBranch *expression.Like
		*expression.SystemVar *function.LastInsertId *function.FoundRows *function.RowCount function.ConnectionID *function.Database function.Version function.User
		*function.Upper *function.Lower *function.Concat *function.Coalesce *function.IfNull *function.If *function.NullIf
		*function.Length *function.CharLength *function.Substring *function.Trim function.Left function.Right *function.Unhex
		*function.Now function.CurrDate *function.Date *function.Year *function.Month *function.Day *function.DateDiff *function.Extract
		*function.DateAdd *function.DateSub *expression.Interval
		*function.Round *function.Greatest *function.Least *function.AbsVal *expression.Div *expression.IntDiv *expression.Mod *expression.Convert
		*json.JSONExtract *json.JSONUnquote
		*aggregation.Count *aggregation.CountDistinct *aggregation.Sum *aggregation.Avg *aggregation.Min *aggregation.Max
		*window.RowNumber *window.Rank *window.DenseRank *window.PercentRank *window.Lag *window.Lead *window.FirstValue *window.LastValue
		*compat.ExactAggregate *compat.asDecimal *compat.collated *compat.exactDatetime *compat.measuredCall *compat.scalarCall *compat.asText *compat.possibleTime *compat.numberAsDate *compat.textNumber *compat.boundedText *compat.nullIf`) {
		known[name] = true
	}
	return known
}()

// known returns an error if an expression contains a type that is not known, or one of the forms below, which
// go-mysql-server evaluates rightly only if it has planned them.
func (b *builder) known(e gms.Expression) (err error) {
	gms.Inspect(b.ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch name := fmt.Sprintf("%T", e); {
		case e == nil || err != nil:
		case !knownExpressions[name]:
			err = refused("expression %s", name)
		case isRowList(e):
			err = refused("%s, a list of rows", e)
		case isEndOfElements(b.ctx, e):
			err = refused("%s of an ENUM or SET, which goes by its texts", name)
		case isMixedNullSafe(b.ctx, e):
			err = refused("<=> of values of several types")
		case hasDrawnPattern(b.ctx, e):
			err = refused("LIKE of a pattern that is not kept")
		case isOfWarnings(e):
			err = refused("%s, which is of the statement before", e)
		case isOfBytes(b.ctx, e):
			err = refused("a comparison of bytes")
		case isMixedTimes(b.ctx, e):
			err = refused("a comparison of times with numbers")
		case isListOfOthers(b.ctx, e):
			err = refused("a comparison of JSON, an ENUM or a SET with several values")
		case isMixedNumbers(b.ctx, e):
			err = refused("a comparison of doubles with decimals")
		}
		return err == nil
	})
	return err
}

// isMixedNullSafe reports whether an expression is <=> of values other than two integers or two
// texts, with a right side other than NULL. go-mysql-server converts one of such values when it plans.
func isMixedNullSafe(ctx *gms.Context, e gms.Expression) bool {
	n, ok := e.(*expression.NullSafeEquals)
	if !ok {
		return false
	}
	left, right := n.Left().Type(ctx), n.Right().Type(ctx)
	return !((types.IsInteger(left) && types.IsInteger(right)) || (types.IsTextOnly(left) && types.IsTextOnly(right)) || right == types.Null)
}

// isRowList reports whether an expression is IN of a list of rows. go-mysql-server evaluates it
// wrongly if a row has NULLs. Conditions of scans and joins compare the columns instead.
func isRowList(e gms.Expression) bool {
	in, ok := e.(*expression.InTuple)
	if !ok {
		return false
	}
	_, ok = in.Left().(expression.Tuple)
	return ok
}

// isMixedNumbers reports whether an expression compares doubles with decimals. go-mysql-server
// converts the doubles to decimals, which cannot hold the largest and the smallest ones, unless it
// uses an index.
func isMixedNumbers(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between:
	default:
		return false
	}
	doubles, decimals := false, false
	for _, c := range e.Children() {
		t := c.Type(ctx)
		doubles, decimals = doubles || types.IsFloat(t), decimals || types.IsDecimal(t)
	}
	return doubles && decimals
}

// isListOfOthers reports whether an expression is BETWEEN or IN of a JSON, an ENUM or a SET.
// go-mysql-server compares these as texts or as numbers, unless it has planned the expression.
func isListOfOthers(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case *expression.Between, *expression.InTuple:
		return slices.ContainsFunc(operands(e), func(c gms.Expression) bool {
			t := c.Type(ctx)
			return types.IsJSON(t) || types.IsEnum(t) || types.IsSet(t)
		})
	}
	return false
}

// hasDrawnPattern reports whether an expression is a LIKE whose pattern differs between executions:
// go-mysql-server keeps the first pattern.
func hasDrawnPattern(ctx *gms.Context, e gms.Expression) bool {
	l, ok := e.(*expression.Like)
	return ok && len(parametersOf(ctx, l.RightChild)) > 0
}

// isOfWarnings reports whether an expression is a variable that counts warnings, because a plan clears them.
func isOfWarnings(e gms.Expression) bool {
	v, ok := e.(*expression.SystemVar)
	return ok && (strings.EqualFold(v.Name, "warning_count") || strings.EqualFold(v.Name, "error_count"))
}

// isOfBytes reports whether an expression compares bytes, some of which are values of the
// statement. go-mysql-server decides by the values, when it plans, whether bytes are text.
func isOfBytes(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between, *expression.InTuple:
		return hasBytes(ctx, e) && len(parametersOf(ctx, e)) > 0
	}
	return false
}

// hasBytes reports whether an expression contains bytes of the statement, or turns a text into bytes.
func hasBytes(ctx *gms.Context, e gms.Expression) (has bool) {
	gms.Inspect(ctx, e, func(ctx *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *function.Unhex:
			has = true
		case *Parameter:
			has = has || types.IsBinaryType(e.Type(ctx))
		}
		return !has
	})
	return has
}

// isMixedTimes reports whether an expression compares TIMEs with dates, or either of these with
// numbers, with texts computed from values of the statement, or with a list. go-mysql-server reads such operands
// as times when it plans. isMixedTimes sets isTime of the parameters that are read so.
func isMixedTimes(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between, *expression.InTuple:
	default:
		return false
	}
	hasDates, hasTimes, hasOthers := false, false, false
	var texts []*Parameter
	for _, c := range operands(e) {
		t, parameters := c.Type(ctx), parametersOf(ctx, c)
		p, isParameter := c.(*Parameter)
		switch {
		case types.IsTimespan(t):
			hasTimes = true
		case types.IsTime(t): // a date, with or without a time of day
			hasDates = true
		case isParameter && types.IsTextOnly(t):
			texts = append(texts, p)
		case len(parameters) > 0 || types.IsNumber(t):
			hasOthers = true
		}
	}
	if hasDates && hasTimes {
		return true // a TIME stands for a time of today, or for no date
	}
	areTimed := hasDates || hasTimes
	for _, p := range texts {
		p.isTime = p.isTime || areTimed
	}
	_, isList := e.(*expression.InTuple) // a list that go-mysql-server has not planned
	return areTimed && (hasOthers || isList)
}

// operands returns the operands of a comparison, including the elements of lists.
func operands(e gms.Expression) (all []gms.Expression) {
	for _, c := range e.Children() {
		if t, ok := c.(expression.Tuple); ok {
			all = append(all, operands(t)...)
			continue
		}
		all = append(all, c)
	}
	return all
}

// isEndOfElements reports whether an expression is MIN or MAX of an ENUM or SET.
func isEndOfElements(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case *aggregation.Min, *aggregation.Max:
		t := e.Children()[0].Type(ctx)
		return types.IsEnum(t) || types.IsSet(t)
	}
	return false
}
