package compat

import (
	"slices"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/row"
)

// In MySQL a function that returns a DATETIME has as many fractional digits as its arguments.
// go-mysql-server's functions have six, or as many as the first argument.

// fractionMost is the greatest number of fractional digits.
const fractionMost = 6

// fractionDigits returns the number of fractional digits that an expression's values have when they
// are read as dates with times.
func fractionDigits(ctx *gms.Context, e gms.Expression) int {
	switch t := e.Type(ctx).(type) {
	case gms.DatetimeType:
		return t.Precision()
	case gms.DecimalType:
		return min(int(t.Scale()), fractionMost)
	default:
		if types.IsInteger(t) || t == types.Null {
			return 0
		}
	}
	l, ok := e.(*expression.Literal)
	if !ok {
		return fractionMost
	}
	text, _ := row.Text(l.Value())
	_, digits, _ := strings.Cut(text, ".")
	return min(len(strings.TrimRight(digits, " ")), fractionMost)
}

// mostDigits returns the greatest fractionDigits of several expressions.
func mostDigits(ctx *gms.Context, all ...gms.Expression) (most int) {
	for _, e := range all {
		most = max(most, fractionDigits(ctx, e))
	}
	return most
}

// datetimeOf returns the type DATETIME with a number of fractional digits.
func datetimeOf(digits int) gms.Type { return types.MustCreateDatetimeType(sqltypes.Datetime, digits) }

// An exactDatetime is a DATETIME with as many fractional digits as MySQL gives it.
type exactDatetime struct {
	gms.Expression
	digits int
}

var _ gms.Expression = (*exactDatetime)(nil)

// ofDatetimes: a statement in which an exactDatetime may be needed contains at least one of these words.
var ofDatetimes = []string{"now(", "timestamp(", "localtime", "sysdate", "convert_tz", "if(", "ifnull", "coalesce", "case", "execute"}

// Fractions is a rule that gives results as many fractional digits as MySQL does.
func Fractions(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if text := ctx.Query(); text != "" && !containsOne(text, ofDatetimes) {
		return n, transform.SameTree, nil
	}
	return withSubqueries(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.NodeWithOpaque(ctx, n, exactResults)
	})
}

// exactResults changes the expressions of a node that computes results. It leaves other nodes
// alone: they may define defaults, which go-mysql-server recognizes by their types.
func exactResults(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.Project, *plan.GroupBy, *plan.Window:
		return transform.OneNodeExpressions(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			if exact := withExactDigits(ctx, e); exact != nil {
				return exact, transform.NewTree, nil
			}
			return e, transform.SameTree, nil
		})
	}
	return n, transform.SameTree, nil
}

// containsOne reports whether a text contains one of some lower-case ASCII words.
func containsOne(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return ContainsFold(text, w) })
}

// withExactDigits returns an exactDatetime for a function that has too many digits or too few; nil for
// all other expressions.
func withExactDigits(ctx *gms.Context, e gms.Expression) gms.Expression {
	var of []gms.Expression // the expressions that determine the result's digits
	switch e := e.(type) {
	case *function.Now:
		of = e.Children()
	case *function.ConvertTz:
		of = e.Children()[:1]
	case *function.If:
		of = e.Children()[1:]
	case *function.IfNull:
		of = e.Children()
	case *function.Coalesce:
		return coalescedDatetime(ctx, e)
	case *expression.Case:
		of = resultsOf(e)
	default:
		return nil
	}
	t, ok := e.Type(ctx).(gms.DatetimeType)
	if !ok || types.IsDateType(t) || row.IsTimespan(t) || len(of) == 0 {
		return nil
	}
	digits := mostDigits(ctx, of...)
	if _, isNow := e.(*function.Now); isNow { // its argument is the number of digits
		digits = fractionMost
		if l, ok := of[0].(*expression.Literal); ok {
			n, _ := integerOf(l.Value())
			digits = min(int(n.size), fractionMost)
		}
	}
	if digits == t.Precision() {
		return nil
	}
	return &exactDatetime{e, digits}
}

// coalescedDatetime is withExactDigits for a COALESCE, whose type is text if its arguments have different types.
func coalescedDatetime(ctx *gms.Context, e *function.Coalesce) gms.Expression {
	isDatetime := false
	for _, arg := range e.Children() {
		t := arg.Type(ctx)
		if t != types.Null && !types.IsTime(t) {
			return nil
		}
		isDatetime = isDatetime || (t != types.Null && !types.IsDateType(t))
	}
	if !isDatetime {
		return nil
	}
	return &exactDatetime{e, mostDigits(ctx, e.Children()...)}
}

// Type implements gms.Expression.
func (c *exactDatetime) Type(*gms.Context) gms.Type { return datetimeOf(c.digits) }

// Eval implements gms.Expression.
func (c *exactDatetime) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := c.Expression.Eval(ctx, over)
	if err != nil || v == nil {
		return nil, err
	}
	if _, isText := v.(string); isText {
		if v, _, err = types.DatetimeMaxPrecision.Convert(ctx, v); err != nil {
			return nil, err
		}
	}
	t, ok := v.(time.Time)
	if _, isMoved := c.Expression.(*function.ConvertTz); isMoved && t.Year() <= 0 {
		return nil, nil // there is no zone for 0000-00-00
	}
	if ok {
		return cutFraction(t, c.digits), nil
	}
	return v, nil
}

// WithChildren implements gms.Expression.
func (c *exactDatetime) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := c.Expression.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	if cut := withExactDigits(ctx, e); cut != nil {
		return cut, nil
	}
	return e, nil
}

// cutFraction keeps the given number of fractional digits.
func cutFraction(t time.Time, digits int) time.Time {
	return t.Add(-time.Duration(t.Nanosecond()) % unitOfDigits(digits))
}

// unitOfDigits returns the smallest difference between times with this number of fractional digits.
func unitOfDigits(digits int) time.Duration {
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}

// resultsOf returns the possible results of a CASE.
func resultsOf(c *expression.Case) (results []gms.Expression) {
	for _, b := range c.Branches {
		results = append(results, b.Value)
	}
	if c.Else != nil {
		results = append(results, c.Else)
	}
	return results
}
