package sql

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
)

// A valueCodec turns the values of one column into bytes and back. Integers of
// every kind take as few bytes as they need, none for zero; a value's length is
// known from outside, so it needs no terminator.
type valueCodec struct {
	kind  catalog.Kind
	scale int32
	typ   gms.Type
}

func newValueCodec(d catalog.Type) (valueCodec, error) {
	t, err := columnType(d)
	return valueCodec{kind: d.Kind, scale: int32(d.Scale), typ: t}, err
}

// append encodes a value that is not NULL. A value of another Go type than the
// column's own is converted first.
func (c *valueCodec) append(ctx context.Context, dst []byte, v any) ([]byte, error) {
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil {
		return dst, err
	}
	out, ok, err := c.appendNative(ctx, dst, v)
	if ok || err != nil {
		return out, err
	}
	if v, _, err = c.typ.Convert(ctx, v); err != nil {
		return dst, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return dst, err
	}
	if out, ok, err = c.appendNative(ctx, dst, v); !ok && err == nil {
		err = fmt.Errorf("sql: a %T cannot be stored in a column of type %s", v, c.typ)
	}
	return out, err
}

// appendNative encodes v if it has the Go type that go-mysql-server uses for
// values of this column.
func (c *valueCodec) appendNative(ctx context.Context, dst []byte, v any) ([]byte, bool, error) {
	switch c.kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		n, ok := signed(v)
		return appendInt(dst, n), ok && c.fits(v), nil
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		n, ok := unsigned(v)
		return appendUint(dst, n), ok && c.fits(v), nil
	case catalog.KindFloat32:
		f, ok := v.(float32)
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f)), ok, nil
	case catalog.KindFloat64:
		f, ok := v.(float64)
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), ok, nil
	case catalog.KindDecimal:
		d, ok := v.(decimal.Decimal)
		return appendDecimal(dst, d, c.scale), ok, nil
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		t, ok := v.(time.Time)
		return appendInt(dst, t.UnixMicro()), ok, nil
	case catalog.KindTime:
		t, ok := v.(types.Timespan)
		return appendInt(dst, int64(t)), ok, nil
	case catalog.KindJSON:
		j, ok := v.(gms.JSONWrapper)
		if !ok {
			return dst, false, nil
		}
		// As MySQL writes it, so that reading needs no formatting.
		b, err := types.JsonToMySqlBytes(ctx, j)
		return append(dst, escapeControls(b)...), true, err
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

// fits reports whether an integer has exactly the column's Go type; another
// one may be out of the column's range.
func (c *valueCodec) fits(v any) bool {
	switch v.(type) {
	case int8:
		return c.kind == catalog.KindInt8
	case int16:
		return c.kind == catalog.KindInt16 || c.kind == catalog.KindYear
	case int32:
		return c.kind == catalog.KindInt24 || c.kind == catalog.KindInt32
	case int64:
		return c.kind == catalog.KindInt64
	case uint8:
		return c.kind == catalog.KindUint8
	case uint16:
		return c.kind == catalog.KindUint16 || c.kind == catalog.KindEnum
	case uint32:
		return c.kind == catalog.KindUint24 || c.kind == catalog.KindUint32
	case uint64:
		return c.kind == catalog.KindUint64 || c.kind == catalog.KindBit || c.kind == catalog.KindSet
	}
	return false
}

func signed(v any) (int64, bool) {
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

func unsigned(v any) (uint64, bool) {
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

// decode returns the value that b holds. The result does not alias b.
func (c *valueCodec) decode(b []byte) (any, error) {
	switch c.kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		return c.decodeInt(b)
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		return c.decodeUint(b)
	case catalog.KindFloat32:
		if len(b) != 4 {
			return nil, myerr.ErrCorruptRow
		}
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case catalog.KindFloat64:
		if len(b) != 8 {
			return nil, myerr.ErrCorruptRow
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case catalog.KindDecimal:
		return decodeDecimal(b, c.scale)
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		n, ok := readInt(b)
		if !ok {
			return nil, myerr.ErrCorruptRow
		}
		return time.UnixMicro(n).UTC(), nil
	case catalog.KindTime:
		n, ok := readInt(b)
		if !ok {
			return nil, myerr.ErrCorruptRow
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

func (c *valueCodec) decodeInt(b []byte) (any, error) {
	n, ok := readInt(b)
	if !ok {
		return nil, myerr.ErrCorruptRow
	}
	switch c.kind {
	case catalog.KindInt8:
		return int8(n), nil
	case catalog.KindInt16, catalog.KindYear:
		return int16(n), nil
	case catalog.KindInt24, catalog.KindInt32:
		return int32(n), nil
	}
	return n, nil
}

func (c *valueCodec) decodeUint(b []byte) (any, error) {
	n, ok := readUint(b)
	if !ok {
		return nil, myerr.ErrCorruptRow
	}
	switch c.kind {
	case catalog.KindUint8:
		return uint8(n), nil
	case catalog.KindUint16, catalog.KindEnum:
		return uint16(n), nil
	case catalog.KindUint24, catalog.KindUint32:
		return uint32(n), nil
	}
	return n, nil
}

// decodeGeometry parses EWKB. go-mysql-server's parser indexes out of range on
// some inputs that it did not write; that is garbage like any other.
func (c *valueCodec) decodeGeometry(b []byte) (v any, err error) {
	defer func() {
		if recover() != nil {
			v, err = nil, myerr.ErrCorruptRow
		}
	}()
	if len(b) > geometryBytesMax {
		return nil, myerr.ErrCorruptRow
	}
	v, _, err = types.GeometryType{}.Convert(context.Background(), append([]byte(nil), b...))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", myerr.ErrCorruptRow, err)
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

func readInt(b []byte) (int64, bool) {
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

func readUint(b []byte) (uint64, bool) {
	if len(b) > 8 {
		return 0, false
	}
	var n uint64
	for i, v := range b {
		n |= uint64(v) << (8 * i)
	}
	return n, true
}

// appendDecimal appends d as an integer count of units of its column's last
// digit. Up to eight bytes are a plain integer; longer ones are a sign byte and
// a magnitude, big-endian, of at least eight bytes.
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

func decodeDecimal(b []byte, scale int32) (any, error) {
	if n, ok := readInt(b); ok {
		return decimal.New(n, -scale), nil
	}
	if len(b) > decimalBytesMax || b[0] != 0 && b[0] != 2 {
		return nil, myerr.ErrCorruptRow
	}
	n := new(big.Int).SetBytes(b[1:])
	if b[0] == 0 {
		n.Neg(n)
	}
	return decimal.NewFromBigInt(n, -scale), nil
}
