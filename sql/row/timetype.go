package row

import (
	"context"
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// A TimeType is TIME(n). go-mysql-server has only types.Time, which keeps six digits of a second's fraction. It is the
// type of functions, and of columns that were created before there was TIME(n).
type TimeType struct {
	types.TimeType
	digits int
}

// timeDigitsMax is the greatest number of digits of a TIME.
const timeDigitsMax = 6

var (
	_ gms.Type               = TimeType{}
	_ gms.DatetimeType       = TimeType{} // information_schema asks this interface for the digits
	_ gms.CollationCoercible = TimeType{}
)

// TimeOf returns TIME(digits); false if there is no such type.
func TimeOf(digits int) (TimeType, bool) {
	return TimeType{types.Time, digits}, digits >= 0 && digits <= timeDigitsMax
}

// IsTimespan reports whether a type is TIME, of columns or of functions.
func IsTimespan(t gms.Type) bool {
	_, ok := t.(TimeType)
	return ok || types.IsTimespan(t)
}

// ConvertToTimespan implements types.TimeType. go-mysql-server would drop a decimal's fraction.
func (t TimeType) ConvertToTimespan(v any) (types.Timespan, error) {
	if d, ok := v.(decimal.Decimal); ok {
		v = d.String()
	}
	return t.TimeType.ConvertToTimespan(v)
}

// Convert implements gms.Type: it rounds to the type's digits, halves away from zero.
func (t TimeType) Convert(_ context.Context, v any) (any, gms.ConvertInRange, error) {
	if v == nil {
		return nil, gms.InRange, nil
	}
	span, err := t.ConvertToTimespan(v)
	if err != nil {
		return nil, gms.InRange, err
	}
	return t.MicrosecondsToTimespan(time.Duration(span).Round(t.unit()).Nanoseconds()), gms.InRange, nil
}

// unit returns the duration of which all values are multiples. It counts microseconds: time.Duration(1) stands for one.
func (t TimeType) unit() time.Duration {
	unit := time.Duration(1)
	for range timeDigitsMax - t.digits {
		unit *= 10
	}
	return unit
}

// SQL implements gms.Type.
func (t TimeType) SQL(ctx *gms.Context, dst []byte, v any) (sqltypes.Value, error) {
	v, _, err := t.Convert(ctx, v)
	if v == nil || err != nil {
		return sqltypes.NULL, err
	}
	start := len(dst)
	dst = v.(types.Timespan).AppendBytes(dst) // with six digits
	end := len(dst) - timeDigitsMax + t.digits
	if t.digits == 0 {
		end-- // the point
	}
	return sqltypes.MakeTrusted(sqltypes.Time, dst[start:end:end]), nil
}

// String implements gms.Type.
func (t TimeType) String() string {
	if t.digits == 0 {
		return "time"
	}
	return "time(" + strconv.Itoa(t.digits) + ")"
}

// Equals implements gms.Type.
func (t TimeType) Equals(other gms.Type) bool {
	o, ok := other.(TimeType)
	return ok && o.digits == t.digits
}

// Promote implements gms.Type.
func (t TimeType) Promote() gms.Type { return t }

// MaxTextResponseByteLength implements gms.Type.
func (t TimeType) MaxTextResponseByteLength(*gms.Context) uint32 { return t.length() }

// length returns the number of characters of the longest value.
func (t TimeType) length() uint32 {
	const whole = uint32(len("-838:59:59"))
	if t.digits == 0 {
		return whole
	}
	return whole + uint32(len(".")+t.digits)
}

// CollationCoercibility implements gms.CollationCoercible.
func (t TimeType) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Precision implements gms.DatetimeType.
func (t TimeType) Precision() int { return t.digits }

// ConvertWithoutRangeCheck implements gms.DatetimeType: the result is a time of day.
func (t TimeType) ConvertWithoutRangeCheck(_ context.Context, v any) (time.Time, error) {
	d, err := t.ConvertToTimeDuration(v)
	return time.Time{}.Add(d), err
}

// MaximumTime implements gms.DatetimeType.
func (t TimeType) MaximumTime() time.Time { return time.Time{}.Add(greatestTime) }

// MinimumTime implements gms.DatetimeType.
func (t TimeType) MinimumTime() time.Time { return time.Time{}.Add(-greatestTime) }

// greatestTime is the greatest value of a TIME; the least is as far from zero.
const greatestTime = 838*time.Hour + 59*time.Minute + 59*time.Second

// BoundType returns the type in which values are compared with columns of a type: it does not round
// them to the column's digits.
func BoundType(t gms.Type) gms.Type {
	if _, ok := t.(TimeType); ok {
		return types.Time
	}
	return t
}

// describeTime returns the stored form of TIME(n). It has a length: TIME as stored before there was
// TIME(n) has none.
func describeTime(t TimeType) catalog.Type {
	return catalog.Type{Kind: catalog.KindTime, Length: t.length(), Precision: uint8(t.digits)}
}

// timeType returns the type of a stored form of TIME.
func timeType(d catalog.Type) gms.Type {
	if t, ok := TimeOf(int(d.Precision)); ok && d.Length > 0 {
		return t
	}
	return types.Time
}
