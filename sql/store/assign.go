package store

import (
	"fmt"
	"math"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// Assign converts a value as MySQL does when it assigns it to a column of a number, time or CHAR
// type. It leaves some values unchanged: go-mysql-server converts those, and reports their errors. The
// errors of Assign name the column, and the row by its number at.
func Assign(ctx *gms.Context, v any, t gms.Type, column string, at int) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch {
	case row.IsTimespan(t):
		return v, inTime(v, t, column, at)
	case types.IsTime(t):
		v, err := assignTime(v, t, column, at)
		if err == nil && refusesZeroDate(ctx) && isZeroDate(ctx, v, t) {
			err = myerr.IncorrectTimeOf.New(timeName(t), zeroDateText(v, t), column, at)
		}
		return v, err
	case isChar(t): // a CHAR does not keep the spaces at its end
		if s, ok := v.(string); ok {
			return strings.TrimRight(s, " "), nil
		}
		return v, nil
	}
	if _, isNumber := t.(gms.NumberType); !isNumber && !types.IsDecimal(t) {
		return v, nil
	}
	if s, ok := v.(string); ok && strings.TrimSpace(s) == "" && !types.IsYear(t) && !types.IsBit(t) {
		return nil, myerr.IncorrectNumber.New(NumberName(t), s, column, at)
	}
	if types.IsDecimal(t) {
		v = row.BoundedNumber(v)
	}
	out, in, err := ConvertNumber(ctx, v, t)
	switch {
	case err != nil:
		return v, nil // go-mysql-server reports the error
	case in != gms.InRange:
		return nil, myerr.ColumnOutOfRange.New(column, at)
	}
	return out, nil
}

// ConvertNumber converts a value to a type of numbers, rounds it, and reports whether the type has it; if not, it returns
// the nearest number that the type has. A decimal becomes the integer that it is rounded to: go-mysql-server makes a double of it first for
// BIGINT UNSIGNED, and compares it with the bounds before it is rounded.
func ConvertNumber(ctx *gms.Context, v any, t gms.Type) (any, gms.ConvertInRange, error) {
	if d, ok := v.(decimal.Decimal); ok && types.IsInteger(t) && !(d.IsNegative() && types.IsUnsigned(t)) {
		n := d.Round(0).BigInt()
		switch {
		case n.IsInt64():
			v = n.Int64()
		case n.IsUint64():
			v = n.Uint64()
		case n.Sign() < 0:
			out, _, err := t.Convert(ctx, int64(math.MinInt64))
			return out, gms.Underflow, err
		default:
			out, _, err := t.Convert(ctx, uint64(math.MaxUint64))
			return out, gms.Overflow, err
		}
	}
	if r, ok := t.(gms.RoundingNumberType); ok {
		return r.ConvertRound(ctx, v)
	}
	return t.Convert(ctx, v)
}

func isChar(t gms.Type) bool {
	s, ok := t.(gms.StringType)
	return ok && s.Type() == sqltypes.Char
}

// IsAssigned reports whether values for a column of this type have to pass through
// Assign.
func IsAssigned(t gms.Type) bool {
	_, isNumber := t.(gms.NumberType)
	return isNumber || types.IsDecimal(t) || row.IsTimespan(t) || types.IsTime(t) || isChar(t)
}

// greatestTime is the greatest value of a TIME, in microseconds; the least is as
// far from 0.
const greatestTime = (838*3600 + 59*60 + 59) * 1_000_000

// inTime refuses a TIME beyond the type's range; go-mysql-server would silently
// take the end of the range.
func inTime(v any, t gms.Type, column string, row int) error {
	switch v.(type) {
	case string, int8, int16, int32, int64, int, uint8, uint16, uint32, uint64, uint, float32, float64, decimal.Decimal:
	default:
		return nil // this value cannot be a time
	}
	n, err := t.(types.TimeType).ConvertToTimespan(v)
	if err != nil || max(n, -n) != greatestTime {
		return nil // go-mysql-server reports the error
	}
	// ConvertToTimespan has moved the value to the end of the range, unless the text is that of the end itself.
	text := fmt.Sprint(v)
	if written := strings.TrimLeft(text, " +-0"); strings.HasPrefix(written, "838:59:59") || strings.HasPrefix(written, "8385959") || strings.HasPrefix(written, "34 22:59:59") {
		return nil
	}
	return myerr.IncorrectTimeOf.New("time", text, column, row)
}

// NumberName returns the word that MySQL's errors have for a type of numbers.
func NumberName(t gms.Type) string {
	switch {
	case types.IsDecimal(t):
		return "decimal"
	case types.IsFloat(t):
		return "double"
	}
	return "integer"
}

// assignTime converts a number to the time that its digits spell.
func assignTime(v any, t gms.Type, column string, row int) (any, error) {
	switch v.(type) {
	case int8, int16, int32, int64, int, uint8, uint16, uint32, uint64, uint:
	default:
		return v, nil
	}
	text := compat.TextOfDigits(v)
	if text == "" || compat.IsImpossibleTime(text) {
		return nil, myerr.IncorrectTimeOf.New(timeName(t), v, column, row)
	}
	return text, nil
}

// timeName is the name of a type of times in errors.
func timeName(t gms.Type) string {
	if types.IsDateType(t) {
		return "date"
	}
	return "datetime"
}

// refusesZeroDate reports whether 0000-00-00 is no value for a column (NO_ZERO_DATE in a strict sql_mode).
func refusesZeroDate(ctx *gms.Context) bool {
	s, ok := ctx.Session.(ours)
	return ok && s.base().Settings().noZeroDate
}

// isZeroDate reports whether a value for a column of type t is 0000-00-00.
func isZeroDate(ctx *gms.Context, v any, t gms.Type) bool {
	switch v := v.(type) {
	case time.Time:
		return v.Equal(types.ZeroTime)
	case string:
		if !strings.HasPrefix(strings.TrimLeft(v, " "), "0") {
			return false
		}
		of, _, err := t.Convert(ctx, v)
		at, ok := of.(time.Time)
		return ok && err == nil && at.Equal(types.ZeroTime)
	}
	return false
}

// zeroDateText is 0000-00-00 as v spells it, for errors.
func zeroDateText(v any, t gms.Type) string {
	switch text, ok := v.(string); {
	case ok:
		return text
	case types.IsDateType(t):
		return "0000-00-00"
	}
	return "0000-00-00 00:00:00"
}
