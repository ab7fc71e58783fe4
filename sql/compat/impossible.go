package compat

import (
	"fmt"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
)

// As in MySQL, a number that is compared with a time, or converted to one, is read by its digits:
// 20240203 or 20240203040506. go-mysql-server reads it as seconds since 1970.
//
// go-mysql-server shortens a text that is not a time until it is one: it reads '2024-02-30' as
// 2024-02-3. So it never gets the text of a time that does not exist. If such a text is a constant
// compared with a time, the statement is refused, as for any text that is not a time; otherwise the
// text becomes NULL.

// PossibleTimes is the rule that corrects how numbers and texts become times, as described above.
func PossibleTimes(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	return withSubqueries(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.NodeExprsWithOpaque(ctx, n, ofTimes)
	})
}

// ofTimes returns an expression over times with the corrections of withPlainTimes and ofPossibleTimes.
func ofTimes(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	plain, same, err := withPlainTimes(ctx, e)
	if err != nil {
		return e, transform.SameTree, err
	}
	checked, unchanged, err := ofPossibleTimes(ctx, plain)
	return checked, same && unchanged, err
}

// ofPossibleTimes returns an expression whose operands are checked for times that do not exist.
func ofPossibleTimes(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	switch e := e.(type) {
	case *expression.Convert:
		if isTemporal(ctx, e) && isTextLike(ctx, e.Child) {
			return checkTexts(ctx, e, e.Children())
		}
	case *expression.InTuple:
		if list, ok := e.Right().(expression.Tuple); ok && isTemporal(ctx, e.Left()) {
			in, same, err := checkTexts(ctx, list, list)
			if err != nil || bool(same) {
				return e, same, err
			}
			changed, err := e.WithChildren(ctx, e.Left(), in)
			return changed, transform.NewTree, err
		}
	case expression.Comparer, *expression.Between:
		if whole := wholeTime(ctx, e); whole != nil {
			return whole, transform.NewTree, nil
		}
		for _, c := range e.Children() {
			if isTemporal(ctx, c) {
				return checkTexts(ctx, e, e.Children())
			}
		}
	}
	return e, transform.SameTree, nil
}

func isTemporal(ctx *gms.Context, e gms.Expression) bool {
	return e.Resolved() && types.IsTime(e.Type(ctx))
}

func isTextLike(ctx *gms.Context, e gms.Expression) bool {
	return e.Resolved() && types.IsTextOnly(e.Type(ctx))
}

// checkTexts returns an expression whose text operands are checked: constants now, others when
// they are evaluated. In a comparison, an integer constant becomes the text of the time that it
// spells (TextOfDigits).
func checkTexts(ctx *gms.Context, e gms.Expression, children []gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	_, isConversion := e.(*expression.Convert)
	var checked []gms.Expression
	for i, c := range children {
		literal, isLiteral := c.(*expression.Literal)
		if number, ok := constantNumber(ctx, c); ok && !isConversion {
			text := TextOfDigits(number)
			if text == "" {
				continue
			}
			if IsImpossibleTime(text) {
				return e, transform.SameTree, myerr.IncorrectDatetime.New(number)
			}
			if checked == nil {
				checked = append(checked, children...)
			}
			checked[i] = expression.NewLiteral(text, types.LongText)
			continue
		}
		switch _, isChecked := c.(*possibleTime); {
		case isChecked || !isTextLike(ctx, c):
			continue
		case isLiteral:
			text, _ := literal.Value().(string)
			if !IsImpossibleTime(text) {
				continue
			}
			if !isConversion {
				return e, transform.SameTree, myerr.IncorrectDatetime.New(text)
			}
		}
		if checked == nil {
			checked = append(checked, children...)
		}
		checked[i] = &possibleTime{expression.UnaryExpressionStub{Child: c}}
	}
	if checked == nil {
		return e, transform.SameTree, nil
	}
	changed, err := e.WithChildren(ctx, checked...)
	return changed, transform.NewTree, err
}

// constantNumber returns the value of an integer constant, or of an expression of such constants.
func constantNumber(ctx *gms.Context, e gms.Expression) (any, bool) {
	if !e.Resolved() || !types.IsInteger(e.Type(ctx)) {
		return nil, false
	}
	isConstant := true
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch e.(type) {
		case nil, *expression.Literal, *expression.Arithmetic, *expression.UnaryMinus:
		default:
			isConstant = false
		}
		return isConstant
	})
	if !isConstant {
		return nil, false
	}
	v, err := e.Eval(ctx, nil)
	return v, err == nil && v != nil
}

// TextOfDigits returns the text of the time that a number spells: a year, in two or four digits, to
// a day or a second; empty if it spells none. Years of two digits are 1970 to 2069.
func TextOfDigits(number any) string {
	digits := fmt.Sprint(number)
	switch n := len(digits); {
	case digits == "0":
		return "0000-00-00"
	case n < 3:
		return ""
	case n < 6:
		digits = strings.Repeat("0", 6-n) + digits
	case n > 8 && n < 12:
		digits = strings.Repeat("0", 12-n) + digits
	}
	if n := len(digits); n == 6 || n == 12 {
		century := "20"
		if digits >= "70" {
			century = "19"
		}
		digits = century + digits
	}
	if n := len(digits); n != 8 && n != 14 {
		return ""
	}
	day := digits[:4] + "-" + digits[4:6] + "-" + digits[6:8]
	if len(digits) == 8 {
		return day
	}
	return day + " " + digits[8:10] + ":" + digits[10:12] + ":" + digits[12:]
}

// A possibleTime is a text, or NULL with a warning if the text is a time that does not exist.
type possibleTime struct{ expression.UnaryExpressionStub }

var (
	_ gms.Expression         = (*possibleTime)(nil)
	_ gms.CollationCoercible = (*possibleTime)(nil)
)

// Type implements gms.Expression.
func (p *possibleTime) Type(ctx *gms.Context) gms.Type { return p.Child.Type(ctx) }

// IsNullable implements gms.Expression.
func (p *possibleTime) IsNullable(*gms.Context) bool { return true }

// String implements gms.Expression.
func (p *possibleTime) String() string { return p.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (p *possibleTime) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, p.Child)
}

// Eval implements gms.Expression.
func (p *possibleTime) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := p.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	text, ok, err := gms.Unwrap[string](ctx, v)
	if err != nil || !ok || !IsImpossibleTime(text) {
		return v, err
	}
	myerr.IncorrectDatetime.Warn(ctx, text)
	return nil, nil
}

// WithChildren implements gms.Expression.
func (p *possibleTime) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(p, len(children), 1)
	}
	return &possibleTime{expression.UnaryExpressionStub{Child: children[0]}}, nil
}

// mostOfTime are the greatest values of a time's parts after the year: month, day (the month bounds
// it further), hour, minute and second.
var mostOfTime = [...]int{12, 31, 23, 59, 59}

// IsImpossibleTime reports whether a text has the form of a time, with punctuation, but names
// one that does not exist, such as the 30th of February.
func IsImpossibleTime(text string) bool {
	year, rest, ok := leadingNumber(strings.TrimLeft(text, " "))
	if !ok || year > 9999 {
		return false
	}
	month, place := 0, 0
	for ; place < len(mostOfTime) && rest != "" && isBetweenNumbers(rest[0]); place++ {
		number, after, ok := leadingNumber(rest[1:])
		switch {
		case !ok:
			return false
		case number > mostOfTime[place] || (place == 1 && number > daysOf(year, month)):
			return true
		case place == 0:
			month = number
		}
		rest = after
	}
	return false
}

// isBetweenNumbers reports whether a character may stand between the numbers of a time.
func isBetweenNumbers(c byte) bool {
	return c == 'T' || c == ' ' || ('!' <= c && c <= '/' && c != '.') || (':' <= c && c <= '@')
}

// leadingNumber returns the number that a text begins with, 1<<20 at most, and the rest of the
// text.
func leadingNumber(text string) (number int, rest string, ok bool) {
	digits := 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		number = min(number*10+int(text[digits]-'0'), 1<<20)
		digits++
	}
	return number, text[digits:], digits > 0
}

// daysOf returns how many days a month has; 31 for the month 0.
func daysOf(year, month int) int {
	if month == 0 {
		return 31
	}
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
