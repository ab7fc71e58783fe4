package plan

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
)

// A Form says what kind of value the text of a Value spells.
type Form byte

// The forms of values. Numbers, strings and NULL are Plain.
const (
	Plain   Form = iota
	Decimal      // digits with a point among them, perhaps with a sign
	Float        // a number with an exponent
	Bytes        // the bytes of X'4142'
	Binary       // the bytes of _binary'AB'
	Moment       // a date, or a date and time, that was computed
)

// A Value is a literal of a statement, or the value bound to a parameter: an integer, a string,
// NULL or, with another form, the value that its text spells.
type Value struct {
	Text     string // the value of a string
	Number   int64  // the value of a number; the microseconds since 1970 of a Moment
	IsNumber bool
	IsNull   bool
	Form     Form
	// IsRespelled is set if the statement spells the literal differently from Fixed, such as 05 or
	// 'it''s'. The spelling matters for a column without an alias, whose name is the text of its
	// expression.
	IsRespelled bool
	// IsBound is set for the value of a parameter, which has no text in the statement.
	IsBound bool
	// List has the values that a subquery returns. If it is set, no other field is.
	List *[]Value
}

// Expr returns the literal.
func (v Value) Expr() sqlparser.Expr {
	switch {
	case v.IsNull:
		return &sqlparser.NullVal{}
	case v.IsNumber:
		return sqlparser.NewIntVal(strconv.AppendInt(nil, v.Number, 10))
	case v.Form == Bytes:
		return sqlparser.NewHexVal(hex.AppendEncode(nil, []byte(v.Text)))
	case v.Form == Binary:
		return &sqlparser.UnaryExpr{Operator: sqlparser.UBinaryStr, Expr: sqlparser.NewStrVal([]byte(v.Text))}
	case v.Form != Plain:
		return sqlparser.NewFloatVal([]byte(v.Text))
	}
	return sqlparser.NewStrVal([]byte(v.Text))
}

// An Operand is a value of the statement, the negative of one, or a list of values.
type Operand struct {
	At       int // the value's number
	Negative bool
	IsList   bool // the operand is the value's List
}

// String returns the operand as plans show it.
func (o Operand) String() string {
	if o.Negative {
		return "-?" + strconv.Itoa(o.At+1)
	}
	return "?" + strconv.Itoa(o.At+1)
}

// In returns the operand's value, given the values of a statement; false if the value cannot be
// negated.
func (o Operand) In(values []Value) (Value, bool) {
	v := values[o.At]
	if o.Negative {
		if v.Form == Decimal || v.Form == Float {
			v.Text = negative(v.Text)
			return v, true
		}
		isNegatable := v.IsNumber && v.Number != math.MinInt64 // the negative of the least BIGINT is not a BIGINT
		v.Number = -v.Number
		return v, isNegatable
	}
	return v, true
}

// negative returns the text of a number's negative.
func negative(text string) string {
	if positive, ok := strings.CutPrefix(text, "-"); ok {
		return positive
	}
	return "-" + text
}

// isComparable reports whether values of Constant can be compared with a column by an operator.
func isComparable(k *row.KeyCodec, op Op) bool {
	switch k.Kind {
	case catalog.KindEnum: // by < and > MySQL compares texts, but go-mysql-server compares places
		return op == Equal || op == NotEqual
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		return k.Weights != nil && k.Collation.CharacterSet() == gms.CharacterSet_utf8mb4
	case catalog.KindDecimal, catalog.KindDate, catalog.KindDatetime, catalog.KindVarbinary:
		return true
	}
	return k.IsInteger()
}

// areAlike reports whether two columns are compared like keys of either column: both are integers,
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

// Constant returns a value in the Go type of a column; nil for NULL. It returns false if the value
// is not a plain value of the column's type, so that a comparison would have to convert it.
func Constant(k *row.KeyCodec, v Value) (any, bool) {
	switch {
	case v.IsNull:
		return nil, true
	case v.IsNumber && k.Kind == catalog.KindDecimal:
		return inDecimal(k, decimal.NewFromInt(v.Number))
	case v.IsNumber:
		if !k.IsInteger() {
			return nil, false
		}
		return k.Whole(v.Number)
	case v.Form == Moment:
		return time.UnixMicro(v.Number).UTC(), k.Kind == catalog.KindDate || k.Kind == catalog.KindDatetime
	case k.Kind == catalog.KindDecimal:
		return decimalOf(k, v)
	case k.Kind == catalog.KindVarbinary:
		return []byte(v.Text), v.Form == Bytes || v.Form == Binary || v.Form == Plain
	case v.Form != Plain:
		return nil, false
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
		return momentOf(v.Text)
	}
	return nil, false
}

// momentOf returns the moment that a text spells: a date, or a date and a time of day with up to six digits of a second's
// fraction.
func momentOf(text string) (time.Time, bool) {
	if !isYear(text) {
		return time.Time{}, false
	}
	if len(text) == len(time.DateOnly) {
		t, err := time.Parse(time.DateOnly, text)
		return t, err == nil
	}
	t, _, ok := row.Moment(text)
	return t, ok
}

// doubleDigits is the number of digits up to which decimals are equal, or in order, as doubles if they
// are so themselves.
const doubleDigits = 15

// decimalOf returns a decimal, or a text that spells one, as a value of a decimal column. The text
// must have few digits, because MySQL compares texts with decimals as doubles.
func decimalOf(k *row.KeyCodec, v Value) (any, bool) {
	isText := v.Form == Plain
	if (v.Form != Decimal && !isText) || !row.IsDecimalText(v.Text) || (isText && (len(v.Text) > doubleDigits || k.Precision > doubleDigits)) {
		return nil, false
	}
	d, err := decimal.NewFromString(v.Text)
	if err != nil {
		return nil, false
	}
	return inDecimal(k, d)
}

// inDecimal returns a decimal; false if a decimal column cannot hold it exactly.
func inDecimal(k *row.KeyCodec, d decimal.Decimal) (any, bool) {
	fits := d.Equal(d.Round(k.Scale)) && d.Abs().LessThan(decimal.New(1, int32(k.Precision)-k.Scale))
	return d, fits
}

// member returns the place of a text in the list of an ENUM; false if the list does not have it.
func member(k *row.KeyCodec, text string) (any, bool) {
	t, ok := k.Type.(gms.EnumType)
	if _, err := strconv.Atoi(text); !ok || err == nil { // IndexOf reads a number as a place
		return nil, false
	}
	at := t.IndexOf(text)
	return uint16(at), at > 0
}

// isYear reports whether a text begins with a year that go-mysql-server and MySQL read alike.
func isYear(text string) bool { return text != "" && text[0] != '0' }
