package plan

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
)

// A Value is a literal of a statement, or the value bound to a parameter: a whole
// number, a string or NULL.
type Value struct {
	Text     string // the value of a string
	Number   int64  // the value of a number
	IsNumber bool
	IsNull   bool
	// IsRespelled is set if the statement does not write the literal as Fixed does: 05, 'it''s'. A column
	// without an alias has the text of its expression as its name.
	IsRespelled bool
}

// Expr returns the literal.
func (v Value) Expr() sqlparser.Expr {
	switch {
	case v.IsNull:
		return &sqlparser.NullVal{}
	case v.IsNumber:
		return sqlparser.NewIntVal(strconv.AppendInt(nil, v.Number, 10))
	}
	return sqlparser.NewStrVal([]byte(v.Text))
}

// An Operand is one of a statement's values, or its negative.
type Operand struct {
	At       int
	Negative bool
}

// String returns the operand as plans show it.
func (o Operand) String() string {
	if o.Negative {
		return "-?" + strconv.Itoa(o.At+1)
	}
	return "?" + strconv.Itoa(o.At+1)
}

// In returns the operand's value among the values of a statement; false if the value cannot be
// negated.
func (o Operand) In(values []Value) (Value, bool) {
	v := values[o.At]
	if o.Negative {
		isNegatable := v.IsNumber && v.Number != math.MinInt64 // whose negative is no BIGINT
		v.Number = -v.Number
		return v, isNegatable
	}
	return v, true
}

// isComparable reports whether Constant knows how values are compared with a column by an operator.
func isComparable(k *row.KeyCodec, op Op) bool {
	switch k.Kind {
	case catalog.KindEnum: // by < and > MySQL compares texts, and go-mysql-server their places
		return op == Equal || op == NotEqual
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		return k.Weights != nil && k.Collation.CharacterSet() == gms.CharacterSet_utf8mb4
	case catalog.KindDecimal, catalog.KindDate, catalog.KindDatetime:
		return true
	}
	return k.IsInteger()
}

// areAlike reports whether two columns are compared as keys of either are: whole numbers of any type,
// texts of one collation, or values of one type.
func areAlike(a, b *row.KeyCodec) bool {
	if !isComparable(a, Less) || !isComparable(b, Less) {
		return false
	}
	switch {
	case a.IsInteger():
		return b.IsInteger()
	case row.IsCharacter(a.Kind):
		return row.IsCharacter(b.Kind) && a.Collation == b.Collation
	}
	return a.Kind == b.Kind
}

// Constant returns a value in the Go type of a column, nil for NULL. It returns false if the value
// is not a plain value of the column's type, so that comparing it would need a conversion.
func Constant(k *row.KeyCodec, v Value) (any, bool) {
	switch {
	case v.IsNull:
		return nil, true
	case v.IsNumber && k.Kind == catalog.KindDecimal:
		return decimal.NewFromInt(v.Number), true
	case v.IsNumber:
		if !k.IsInteger() {
			return nil, false
		}
		return k.Whole(v.Number)
	}
	switch k.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		return v.Text, utf8.ValidString(v.Text)
	case catalog.KindEnum:
		return member(k, v.Text)
	case catalog.KindDate:
		t, err := time.Parse(time.DateOnly, v.Text)
		return t, err == nil && isYear(v.Text)
	case catalog.KindDatetime:
		t, err := time.Parse(time.DateTime, v.Text)
		return t, err == nil && len(v.Text) == len(time.DateTime) && isYear(v.Text)
	}
	return nil, false
}

// member returns the place of a text among those of an ENUM; false if it is none of them.
func member(k *row.KeyCodec, text string) (any, bool) {
	t, ok := k.Type.(gms.EnumType)
	if _, err := strconv.Atoi(text); !ok || err == nil { // IndexOf takes a number for a place
		return nil, false
	}
	at := t.IndexOf(text)
	return uint16(at), at > 0
}

// isYear reports whether a text begins with a year that go-mysql-server and MySQL understand alike.
func isYear(text string) bool { return text != "" && text[0] != '0' }
