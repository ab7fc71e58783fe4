package row

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// ErrCorrupt means that stored bytes are not a row, or not a value of their column's type.
var ErrCorrupt = errors.New("row: corrupt row")

// A ValueCodec encodes and decodes the values of one column. Integers of every kind
// take as few bytes as they need, none for zero. A value's length is stored
// elsewhere, so it needs no terminator.
type ValueCodec struct {
	Kind  catalog.Kind
	Scale int32
	Type  gms.Type
	// zone is the time zone of a TIMESTAMP's values.
	zone *Zone
}

func newValueCodec(d catalog.Type) (ValueCodec, error) {
	t, err := columnType(d)
	return ValueCodec{Kind: d.Kind, Scale: int32(d.Scale), Type: t}, err
}

// In returns a codec whose wall times are those of a zone, if the column is a TIMESTAMP.
func (c ValueCodec) In(z *Zone) ValueCodec {
	if c.Kind == catalog.KindTimestamp {
		c.zone = z
	}
	return c
}

// append encodes a value that is not NULL, after converting it to the column's Go
// type if necessary.
func (c *ValueCodec) append(ctx context.Context, dst []byte, v any) ([]byte, error) {
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil {
		return dst, err
	}
	out, ok, err := c.appendNative(ctx, dst, v)
	if ok || err != nil {
		return out, err
	}
	if v, _, err = convert(ctx, c.Type, v); err != nil {
		return dst, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return dst, err
	}
	if out, ok, err = c.appendNative(ctx, dst, v); !ok && err == nil {
		err = fmt.Errorf("row: a %T cannot be stored in a column of type %s", v, c.Type)
	}
	return out, err
}

// appendNative encodes v if it has go-mysql-server's Go type for this column.
func (c *ValueCodec) appendNative(ctx context.Context, dst []byte, v any) ([]byte, bool, error) {
	switch c.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		n, ok := Signed(v)
		return appendInt(dst, n), ok && c.isNative(v), nil
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		n, ok := Unsigned(v)
		return appendUint(dst, n), ok && c.isNative(v), nil
	case catalog.KindFloat32:
		f, ok := v.(float32)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f)), ok, nil
	case catalog.KindFloat64:
		f, ok := v.(float64)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), ok, nil
	case catalog.KindDecimal:
		d, ok := v.(decimal.Decimal)
		return appendDecimal(dst, d, c.Scale), ok, nil
	case catalog.KindDate, catalog.KindDatetime:
		t, ok := v.(time.Time)
		return appendInt(dst, t.UnixMicro()), ok, nil
	case catalog.KindTimestamp:
		t, ok := v.(time.Time)
		if !ok {
			return dst, false, nil
		}
		us, err := c.zone.micros(t)
		return appendInt(dst, us), true, err
	case catalog.KindTime:
		t, ok := v.(types.Timespan)
		return appendInt(dst, int64(t)), ok, nil
	case catalog.KindJSON:
		j, ok := v.(gms.JSONWrapper)
		if !ok {
			return dst, false, nil
		}
		// In MySQL's text form, so that reading does not have to format it.
		b, err := types.JsonToMySqlBytes(ctx, j)
		return append(dst, EscapeControls(b)...), true, err
	}
	return appendBytes(dst, v)
}

// appendBytes encodes the types whose values are bytes already.
func appendBytes(dst []byte, v any) ([]byte, bool, error) {
	switch v := v.(type) {
	case string:
		return append(dst, v...), true, nil
	case []byte:
		return append(dst, v...), true, nil
	case types.GeometryValue:
		return append(dst, v.Serialize()...), true, nil
	}
	return dst, false, nil
}

// isNative reports whether an integer has go-mysql-server's Go type for this column. An
// integer of another type may be out of the column's range.
func (c *ValueCodec) isNative(v any) bool {
	switch v.(type) {
	case int8:
		return c.Kind == catalog.KindInt8
	case int16:
		return c.Kind == catalog.KindInt16 || c.Kind == catalog.KindYear
	case int32:
		return c.Kind == catalog.KindInt24 || c.Kind == catalog.KindInt32
	case int64:
		return c.Kind == catalog.KindInt64
	case uint8:
		return c.Kind == catalog.KindUint8
	case uint16:
		return c.Kind == catalog.KindUint16 || c.Kind == catalog.KindEnum
	case uint32:
		return c.Kind == catalog.KindUint24 || c.Kind == catalog.KindUint32
	case uint64:
		return c.Kind == catalog.KindUint64 || c.Kind == catalog.KindBit || c.Kind == catalog.KindSet
	}
	return false
}

// Signed returns v as an int64 if v has the Go type of a signed integer column.
func Signed(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// Unsigned returns v as a uint64 if v has the Go type of an unsigned integer column.
func Unsigned(v any) (uint64, bool) {
	switch v := v.(type) {
	case uint8:
		return uint64(v), true
	case uint16:
		return uint64(v), true
	case uint32:
		return uint64(v), true
	case uint64:
		return v, true
	}
	return 0, false
}

// Decode returns the value that b holds. The result does not alias b.
func (c *ValueCodec) Decode(b []byte) (any, error) { return c.decode(b) }

// decode returns the value that b holds. The result does not alias b.
func (c *ValueCodec) decode(b []byte) (any, error) {
	switch c.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		return c.decodeInt(b)
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		return c.decodeUint(b)
	case catalog.KindFloat32:
		if len(b) != 4 {
			return nil, ErrCorrupt
		}
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case catalog.KindFloat64:
		if len(b) != 8 {
			return nil, ErrCorrupt
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case catalog.KindDecimal:
		return decodeDecimal(b, c.Scale)
	case catalog.KindDate, catalog.KindDatetime:
		n, ok := ReadInt(b)
		if !ok {
			return nil, ErrCorrupt
		}
		return time.UnixMicro(n).UTC(), nil
	case catalog.KindTimestamp:
		n, ok := ReadInt(b)
		if !ok {
			return nil, ErrCorrupt
		}
		return c.zone.wall(n), nil
	case catalog.KindTime:
		n, ok := ReadInt(b)
		if !ok {
			return nil, ErrCorrupt
		}
		return types.Timespan(n), nil
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		return string(b), nil
	case catalog.KindBinary, catalog.KindVarbinary, catalog.KindBlob, catalog.KindVector:
		return append([]byte{}, b...), nil
	case catalog.KindJSON:
		return types.NewLazyJSONDocument(append([]byte(nil), b...)), nil
	}
	return c.decodeGeometry(b)
}

func (c *ValueCodec) decodeInt(b []byte) (any, error) {
	n, ok := ReadInt(b)
	if !ok {
		return nil, ErrCorrupt
	}
	switch c.Kind {
	case catalog.KindInt8:
		return int8(n), nil
	case catalog.KindInt16, catalog.KindYear:
		return int16(n), nil
	case catalog.KindInt24, catalog.KindInt32:
		return int32(n), nil
	}
	return n, nil
}

func (c *ValueCodec) decodeUint(b []byte) (any, error) {
	n, ok := ReadUint(b)
	if !ok {
		return nil, ErrCorrupt
	}
	switch c.Kind {
	case catalog.KindUint8:
		return uint8(n), nil
	case catalog.KindUint16, catalog.KindEnum:
		return uint16(n), nil
	case catalog.KindUint24, catalog.KindUint32:
		return uint32(n), nil
	}
	return n, nil
}

// decodeGeometry parses EWKB. go-mysql-server's parser panics on some corrupt
// inputs; decodeGeometry returns ErrCorrupt for them.
func (c *ValueCodec) decodeGeometry(b []byte) (v any, err error) {
	defer func() {
		if recover() != nil {
			v, err = nil, ErrCorrupt
		}
	}()
	if len(b) > geometryBytesMax {
		return nil, ErrCorrupt
	}
	v, _, err = types.GeometryType{}.Convert(context.Background(), append([]byte(nil), b...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return v, nil
}

// geometryBytesMax is MySQL's limit on a geometry.
const geometryBytesMax = 1 << 30

// appendInt appends n in as few little-endian bytes of two's complement as
// hold it: none for 0, one up to 127.
func appendInt(dst []byte, n int64) []byte {
	if n == 0 {
		return dst
	}
	for ; n < -128 || n > 127; n >>= 8 {
		dst = append(dst, byte(n))
	}
	return append(dst, byte(n))
}

// ReadInt returns a stored signed integer, and false if b is not one.
func ReadInt(b []byte) (int64, bool) {
	if len(b) > 8 {
		return 0, false
	}
	var n uint64
	for i, v := range b {
		n |= uint64(v) << (8 * i)
	}
	if len(b) > 0 {
		shift := 64 - 8*len(b)
		return int64(n<<shift) >> shift, true
	}
	return 0, true
}

func appendUint(dst []byte, n uint64) []byte {
	for ; n != 0; n >>= 8 {
		dst = append(dst, byte(n))
	}
	return dst
}

// ReadUint returns a stored unsigned integer, and false if b is not one.
func ReadUint(b []byte) (uint64, bool) {
	if len(b) > 8 {
		return 0, false
	}
	var n uint64
	for i, v := range b {
		n |= uint64(v) << (8 * i)
	}
	return n, true
}

// appendDecimal appends d as an integer, in units of the last digit of its column.
// If it fits eight bytes, it is a plain integer; otherwise a sign byte and a
// big-endian magnitude of at least eight bytes.
func appendDecimal(dst []byte, d decimal.Decimal, scale int32) []byte {
	coefficient := decimalUnits(d, scale)
	if coefficient.IsInt64() {
		return appendInt(dst, coefficient.Int64())
	}
	dst = append(dst, byte(coefficient.Sign()+1))
	return append(dst, coefficient.Bytes()...)
}

// decimalUnits returns d in units of 10^-scale, rounded half away from zero.
func decimalUnits(d decimal.Decimal, scale int32) *big.Int {
	if d.Exponent() == -scale {
		return d.Coefficient()
	}
	return d.Shift(scale).Round(0).BigInt()
}

// decimalBytesMax is the longest encoding of 65 digits.
const decimalBytesMax = 1 + 28

// decodeDecimal returns the value that appendDecimal has encoded: up to 8 bytes are an integer, more are a sign byte, 0 for a
// negative number and 2 for a positive one, and the digits as an unsigned integer.
func decodeDecimal(b []byte, scale int32) (any, error) {
	if n, ok := ReadInt(b); ok {
		return decimal.New(n, -scale), nil
	}
	if len(b) > decimalBytesMax || (b[0] != 0 && b[0] != 2) {
		return nil, ErrCorrupt
	}
	n := new(big.Int).SetBytes(b[1:])
	if b[0] == 0 {
		n.Neg(n)
	}
	return decimal.NewFromBigInt(n, -scale), nil
}

// EscapeControls escapes control characters of a JSON text, as MySQL does.
func EscapeControls(b []byte) []byte {
	isControl := func(c byte) bool { return c < ' ' }
	if !slices.ContainsFunc(b, isControl) {
		return b
	}
	out := make([]byte, 0, len(b)+len(b)/2)
	for _, c := range b {
		if isControl(c) {
			out = fmt.Appendf(out, `\u%04x`, c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// WholeNumber returns an integer column's value, and false if there is none or
// it is beyond int64.
func WholeNumber(v any) (int64, bool) {
	if n, ok := Signed(v); ok {
		return n, true
	}
	n, ok := Unsigned(v)
	return int64(n), ok && n <= math.MaxInt64
}
