package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var _ gms.Expression = (*movedTime)(nil)

// A movedTime is a time plus or minus an interval. As in MySQL, its fraction of a second
// has as many digits as the operands have: go-mysql-server's operators always return none,
// and DATE_ADD and DATE_SUB six.
type movedTime struct {
	gms.Expression                // a DateAdd or DateSub
	from           gms.Expression // the time that is moved
	by             *expression.Interval
}

// newMoved returns the movedTime for an expression that adds an interval to a time, or subtracts
// it; nil for other expressions.
func newMoved(e gms.Expression) *movedTime {
	switch e := e.(type) {
	case *function.DateAdd:
		by := inMicroseconds(e.Interval)
		return &movedTime{&function.DateAdd{Date: e.Date, Interval: by}, e.Date, by}
	case *function.DateSub:
		by := inMicroseconds(e.Interval)
		return &movedTime{&function.DateSub{Date: e.Date, Interval: by}, e.Date, by}
	case *expression.Arithmetic:
		if by, ok := e.LeftChild.(*expression.Interval); ok && e.Op == "+" {
			return newMoved(&function.DateAdd{Date: e.RightChild, Interval: by})
		}
		by, ok := e.RightChild.(*expression.Interval)
		switch {
		case ok && e.Op == "+":
			return newMoved(&function.DateAdd{Date: e.LeftChild, Interval: by})
		case ok && e.Op == "-":
			return newMoved(&function.DateSub{Date: e.LeftChild, Interval: by})
		}
	}
	return nil
}

// Type implements gms.Expression.
func (m *movedTime) Type(ctx *gms.Context) gms.Type {
	if m.movesTime(ctx) {
		return types.Time
	}
	t := m.Expression.Type(ctx)
	if t != types.DatetimeMaxPrecision {
		return t // only go-mysql-server's DATETIME(6) may have too many digits
	}
	digits := 0
	switch of := m.from.Type(ctx).(type) {
	case gms.DatetimeType:
		digits = of.Precision()
	default:
		if types.IsTime(of) || types.IsDeferredType(of) {
			return t
		}
	}
	if seconds, ok := m.by.Child.(*microseconds); ok {
		digits = max(digits, fractionDigits(ctx, seconds.Child))
	} else if strings.HasSuffix(m.by.Unit, "MICROSECOND") {
		return t
	}
	return datetimeOf(digits)
}

// microseconds are those of a number of seconds with a fraction, which go-mysql-server's intervals
// round.
type microseconds struct{ expression.UnaryExpressionStub }

var _ gms.Expression = (*microseconds)(nil)

// inMicroseconds returns an interval of seconds in microseconds, and others unchanged.
func inMicroseconds(by *expression.Interval) *expression.Interval {
	if by.Unit != "SECOND" {
		return by
	}
	return expression.NewInterval(&microseconds{expression.UnaryExpressionStub{Child: by.Child}}, "MICROSECOND")
}

// Type implements gms.Expression.
func (*microseconds) Type(*gms.Context) gms.Type { return types.Int64 }

// String implements gms.Expression.
func (s *microseconds) String() string { return s.Child.String() + " * 1000000" }

// Eval implements gms.Expression.
func (s *microseconds) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := s.Child.Eval(ctx, over)
	if err != nil || v == nil {
		return nil, err
	}
	seconds, err := decimalOf(ctx, v)
	if limit := decimal.New(1, 12); seconds.Abs().GreaterThan(limit) { // more than there are in 10,000 years
		seconds = limit.Mul(decimal.NewFromInt(int64(seconds.Sign())))
	}
	return seconds.Shift(6).Round(0).IntPart(), err
}

// WithChildren implements gms.Expression.
func (s *microseconds) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(s, len(children), 1)
	}
	return &microseconds{expression.UnaryExpressionStub{Child: children[0]}}, nil
}

// movesTime reports whether the result is a TIME.
func (m *movedTime) movesTime(ctx *gms.Context) bool {
	return row.IsTimespan(m.from.Type(ctx)) && ofDay[m.by.Unit]
}

// Eval implements gms.Expression. A TIME plus hours, minutes or seconds is a TIME, which may be
// negative or longer than a day; go-mysql-server wraps it at midnight. If a TIME cannot hold the
// result, the result is NULL.
func (m *movedTime) Eval(ctx *gms.Context, values gms.Row) (any, error) {
	if !m.movesTime(ctx) {
		return m.Expression.Eval(ctx, values)
	}
	v, err := m.from.Eval(ctx, values)
	if err != nil || v == nil {
		return nil, err
	}
	from, err := types.Time.ConvertToTimespan(v)
	if err != nil {
		return nil, err
	}
	by, err := m.by.EvalDelta(ctx, values)
	if err != nil || by == nil {
		return nil, err
	}
	delta := ((by.Hours*60+by.Minutes)*60+by.Seconds)*1e6 + by.Microseconds
	if _, isSub := m.Expression.(*function.DateSub); isSub {
		delta = -delta
	}
	us := from.AsMicroseconds() + delta
	if us > greatestTime || us < -greatestTime {
		myerr.TimeOverflow.Warn(ctx)
		return nil, nil
	}
	return types.Timespan(us), nil
}

// ofDay are the units of intervals shorter than a day.
var ofDay = setOf("HOUR", "MINUTE", "SECOND", "MICROSECOND")

// Children implements gms.Expression. go-mysql-server accepts an interval only below
// certain expressions, so the interval stays below the original one.
func (m *movedTime) Children() []gms.Expression { return []gms.Expression{m.Expression} }

// WithChildren implements gms.Expression.
func (m *movedTime) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(m, len(children), 1)
	}
	if again := newMoved(children[0]); again != nil {
		return again, nil
	}
	return children[0], nil // the child is a DateAdd or DateSub
}

// movers: a statement with an interval that Moved must know contains at least one of these words.
var movers = []string{"interval", "adddate", "subdate", "timestampadd", "execute"}

// Moved is a rule that corrects additions of intervals to times in statements with an interval.
func Moved(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if text := ctx.Query(); text != "" && !containsOne(text, movers) {
		return n, transform.SameTree, nil // here the text of an EXECUTE, or of a procedure's statement, is not known
	}
	return transform.NodeExprsWithOpaque(ctx, n, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if m := newMoved(e); m != nil {
			return m, transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
}
