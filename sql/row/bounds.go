package row

import (
	"bytes"
	"context"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// This file translates go-mysql-server's bounds of a column into bounds of its keys.

// Bounds bound the encoding of one part of a key.
type Bounds struct {
	Lo, Hi  []byte // [Lo, Hi); nil means unbounded
	Inexact bool   // the encoded bounds admit more than the original ones
}

// Hold reports whether the encoding of a part is within the bounds.
func (r Bounds) Hold(part []byte) bool {
	return bytes.Compare(part, r.Lo) >= 0 && (r.Hi == nil || bytes.Compare(part, r.Hi) < 0)
}

// Bounds translates the bounds of one column. equal is set if they admit a single encoding, Lo;
// none is set if they admit nothing.
func (k *KeyCodec) Bounds(ctx context.Context, c gms.MySQLRangeColumnExpr) (r Bounds, equal, none bool) {
	lo, loKey, ok := k.lowerBound(ctx, c.LowerBound, &r.Inexact)
	if !ok {
		return r, false, true
	}
	hi, hiKey, ok := k.upperBound(ctx, c.UpperBound, &r.Inexact)
	if !ok {
		return r, false, true
	}
	r.Lo, r.Hi = lo, hi
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return r, false, true
	}
	return r, loKey && hiKey && bytes.Equal(PrefixEnd(bytes.Clone(lo)), hi), false
}

// IsSingle reports whether a range admits a single value.
func (k *KeyCodec) IsSingle(ctx context.Context, c gms.MySQLRangeColumnExpr) bool {
	if _, null := c.LowerBound.(gms.BelowNull); null {
		_, null = c.UpperBound.(gms.AboveNull)
		return null
	}
	lo, below := c.LowerBound.(gms.Below)
	hi, above := c.UpperBound.(gms.Above)
	if !below || !above {
		return false
	}
	n, err := k.Type.Compare(ctx, lo.Key, hi.Key)
	return err == nil && n == 0
}

// lowerBound returns the least encoding above a cut. key is set if the encoding is that of a
// whole value, not only of its marker or of a successor. ok is false if no value is above the
// cut: the cut is NULL, with which no value compares, or the end of all values. A cut that cannot be
// compared with the column's values bounds nothing, and sets inexact.
func (k *KeyCodec) lowerBound(ctx context.Context, c gms.MySQLRangeCut, inexact *bool) (b []byte, key, ok bool) {
	switch c := c.(type) {
	case gms.BelowNull:
		return []byte{KeyNull}, true, true
	case gms.AboveNull:
		return []byte{KeyValue}, false, true
	case gms.AboveAll:
		return nil, false, false
	case gms.Below:
		b, exact, ok := k.bound(ctx, c.Key, false)
		*inexact = *inexact || !exact
		if !ok {
			return []byte{KeyValue}, false, c.Key != nil
		}
		return b, true, true
	case gms.Above:
		b, exact, ok := k.bound(ctx, c.Key, false)
		*inexact = *inexact || !exact
		switch {
		case !ok:
			return []byte{KeyValue}, false, c.Key != nil
		case !exact:
			return b, true, true
		}
		b = PrefixEnd(b)
		return b, false, b != nil
	}
	return []byte{KeyNull}, false, true
}

// upperBound returns the least encoding above all values of the range, nil if there is none. key
// is set if it directly follows a whole value's encoding. ok is false if no value is below the
// cut. A cut that cannot be compared is treated as in lowerBound.
func (k *KeyCodec) upperBound(ctx context.Context, c gms.MySQLRangeCut, inexact *bool) (b []byte, key, ok bool) {
	switch c := c.(type) {
	case gms.BelowNull:
		return nil, false, false
	case gms.AboveNull:
		return []byte{KeyValue}, true, true
	case gms.Below:
		b, exact, ok := k.bound(ctx, c.Key, true)
		*inexact = *inexact || !exact
		switch {
		case !ok:
			return nil, false, c.Key != nil
		case exact:
			return b, false, true
		}
		return PrefixEnd(b), true, true
	case gms.Above:
		b, exact, ok := k.bound(ctx, c.Key, true)
		*inexact = *inexact || !exact
		if !ok {
			return nil, false, c.Key != nil
		}
		return PrefixEnd(b), true, true
	}
	return nil, false, true
}

// bound encodes the value of a bound. If exact is false, the encoding is that of the nearest value that the column can
// hold, and the bound must be inclusive. ok is false if the value cannot be compared in the column's order. isUpper
// says that the bound is an upper one.
func (k *KeyCodec) bound(ctx context.Context, v any, isUpper bool) (b []byte, exact, ok bool) {
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil || v == nil {
		return nil, false, false
	}
	if IsCharacter(k.Kind) {
		s, ok := Text(v)
		if !ok {
			return nil, false, false
		}
		b, err = k.Append(ctx, nil, s)
		return b, k.Prefix == 0, err == nil
	}
	c, inRange, err := convert(ctx, BoundType(k.Type), v)
	if err != nil || c == nil {
		return nil, false, false
	}
	if t, isTime := c.(time.Time); isTime && k.zone != nil {
		b, exact = k.instantBound(t, isUpper)
		return b, exact && k.same(ctx, v, c), true
	}
	if b, err = k.Append(ctx, nil, c); err != nil {
		return nil, false, false
	}
	return b, inRange == gms.InRange && k.Prefix == 0 && k.same(ctx, v, c), true
}

// instantBound encodes the bound of a TIMESTAMP. When clocks change, rows are not in the order of their wall times, and
// a range of encodings has more rows than the range of wall times.
func (k *KeyCodec) instantBound(t time.Time, isUpper bool) (b []byte, exact bool) {
	at, last, exists := k.zone.instants(t)
	exact = exists && at.Equal(last)
	if isUpper {
		at = last
	}
	return appendOrdered([]byte{KeyValue}, uint64(at.UnixMicro())^(1<<63), 8), exact
}

// Text returns the text of a value that is a string or bytes; false for others.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// same reports whether the conversion to the column's type has left a value unchanged.
func (k *KeyCodec) same(ctx context.Context, v, c any) bool {
	switch k.Kind {
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		a, err := types.DatetimeMaxPrecision.ConvertWithoutRangeCheck(ctx, v)
		b, isTime := c.(time.Time)
		return err == nil && isTime && a.Equal(b)
	case catalog.KindEnum, catalog.KindSet, catalog.KindTime:
		return true
	}
	if !k.isNumber() || k.Kind == catalog.KindYear || k.Kind == catalog.KindBit {
		return true
	}
	a, err := types.InternalDecimalType.ConvertToNullDecimal(BoundedNumber(v))
	if err != nil || !a.Valid {
		return false
	}
	b, err := types.InternalDecimalType.ConvertToNullDecimal(BoundedNumber(c))
	return err == nil && b.Valid && a.Decimal.Equal(b.Decimal)
}

// Holds reports whether a value of the column is in a range; it returns unknown if the value
// cannot be compared with a bound.
func (k *KeyCodec) Holds(ctx context.Context, c gms.MySQLRangeColumnExpr, v any, unknown bool) bool {
	meets := func(bound any, isWithin func(order int) bool) bool {
		order, ok := k.compare(ctx, v, bound)
		if !ok {
			return unknown
		}
		return isWithin(order)
	}
	isAbove := true
	switch cut := c.LowerBound.(type) {
	case gms.AboveNull:
		isAbove = v != nil
	case gms.Below:
		isAbove = meets(cut.Key, func(order int) bool { return order >= 0 })
	case gms.Above:
		isAbove = meets(cut.Key, func(order int) bool { return order > 0 })
	}
	if !isAbove {
		return false
	}
	switch cut := c.UpperBound.(type) {
	case gms.AboveNull:
		return v == nil
	case gms.Below:
		return meets(cut.Key, func(order int) bool { return order < 0 })
	case gms.Above:
		return meets(cut.Key, func(order int) bool { return order <= 0 })
	}
	return true
}

// compare compares a value v of the column with any other value; numbers are compared as decimals,
// so that no conversion rounds them. NULL is less than everything.
func (k *KeyCodec) compare(ctx context.Context, v, other any) (n int, ok bool) {
	if v == nil {
		return -1, true
	}
	other, err := gms.UnwrapAny(ctx, other)
	if err != nil || other == nil {
		return 0, false
	}
	if !IsCharacter(k.Kind) && k.isNumber() {
		a, err := types.InternalDecimalType.ConvertToNullDecimal(BoundedNumber(v))
		if err != nil || !a.Valid {
			return 0, false
		}
		b, err := types.InternalDecimalType.ConvertToNullDecimal(BoundedNumber(other))
		if err != nil || !b.Valid {
			return 0, false
		}
		return a.Decimal.Cmp(b.Decimal), true
	}
	n, err = k.Type.Compare(ctx, v, other)
	return n, err == nil
}

// isNumber reports whether values of the column are compared as numbers.
func (k *KeyCodec) isNumber() bool {
	_, number := k.Type.(gms.NumberType)
	return number || k.Kind == catalog.KindDecimal
}

// Unequal reports whether no value of the column can equal v. It examines only types of v whose
// conversion to the column's type may round or fail; for others it returns false.
func (k *KeyCodec) Unequal(ctx *gms.Context, v any) bool {
	switch s := v.(type) {
	case decimal.Decimal, float32, float64, time.Time:
	case string:
		if !k.isNumber() {
			return false
		}
		// MySQL compares a string with a number by the number that the string begins with.
		f, _, err := types.Float64.Convert(ctx, s)
		if err != nil && !gms.ErrTruncatedIncorrect.Is(err) {
			return false
		}
		v = f
	default:
		return false
	}
	c, _, err := convert(ctx, k.Type, v)
	return err != nil || (c != nil && !k.same(ctx, v, c))
}
