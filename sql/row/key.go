package row

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"time"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// The order of keys as bytes is the order of the encoded values in go-mysql-server. Each part
// begins with a marker, which puts NULL first. The rest of the part has a fixed length, or ends
// with a terminator below every continuation.
const (
	KeyNull  = 0x00 // the marker of NULL
	KeyValue = 0x01 // the marker before any other value
	// KeyBytesMax is the greatest length of a key in MySQL, and in the B-tree.
	KeyBytesMax = 3072
)

// A KeyCodec encodes the values of one part of an index.
type KeyCodec struct {
	ValueCodec
	Collation gms.CollationID
	Weights   *Weights // the collation's; nil if it has none
	Prefix    int      // number of indexed characters or bytes, 0 for all
	Precision uint8    // number of a decimal's digits
	// Length is the length of the column's type: in characters, or in bytes for BINARY and
	// VARBINARY.
	Length int
	// Nullable says that the column may hold NULL.
	Nullable bool
}

// NewKeyCodec returns the codec of a part of an index over a column of type d. If prefix is not 0,
// only that many characters or bytes count. It fails for a type that cannot be in a key.
func NewKeyCodec(d catalog.Type, prefix uint32) (KeyCodec, error) {
	v, err := newValueCodec(d)
	if err != nil {
		return KeyCodec{}, err
	}
	if d.Kind == catalog.KindJSON {
		return KeyCodec{}, fmt.Errorf("row: a JSON column cannot be part of a key")
	}
	k := MakeKeyCodec(v, d)
	k.Prefix = int(prefix)
	if IsCharacter(d.Kind) && k.Weights == nil {
		return KeyCodec{}, fmt.Errorf("row: collation %s cannot be used in a key", k.Collation.Name())
	}
	return k, nil
}

// MakeKeyCodec returns the codec of a part that need not be in an index: it encodes values of any
// type in their order, texts only if their collation has weights.
func MakeKeyCodec(v ValueCodec, d catalog.Type) KeyCodec {
	k := KeyCodec{ValueCodec: v, Precision: d.Precision, Length: int(d.Length), Collation: gms.CollationID(d.Collation)}
	if IsCharacter(d.Kind) {
		k.Weights = WeightsOf(k.Collation)
	}
	return k
}

// In returns a codec whose wall times are those of a zone, if the column is a TIMESTAMP.
func (k KeyCodec) In(z *Zone) KeyCodec {
	k.ValueCodec = k.ValueCodec.In(z)
	return k
}

// IsCharacter reports whether a column holds characters, which have a collation.
func IsCharacter(k catalog.Kind) bool {
	return k == catalog.KindChar || k == catalog.KindVarchar || k == catalog.KindText
}

// Append encodes one value, after converting it to the column's type if necessary.
func (k *KeyCodec) Append(ctx context.Context, dst []byte, v any) ([]byte, error) {
	if v == nil {
		return append(dst, KeyNull), nil
	}
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil {
		return dst, err
	}
	dst = append(dst, KeyValue)
	out, ok := k.AppendNative(dst, v)
	if ok {
		return out, nil
	}
	c, _, err := convert(ctx, k.Type, v)
	if err != nil {
		return dst, err
	}
	if out, ok = k.AppendNative(dst, c); !ok {
		if t, isTime := c.(time.Time); isTime && k.Kind == catalog.KindTimestamp {
			_, err := k.zone.micros(t)
			return dst, err
		}
		return dst, fmt.Errorf("row: a %T cannot be a key of type %s", v, k.Type)
	}
	return out, nil
}

// AppendNative encodes a value of the column's Go type, without the marker; false for other types.
func (k *KeyCodec) AppendNative(dst []byte, v any) ([]byte, bool) {
	switch k.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		n, ok := Signed(v)
		return appendOrdered(dst, uint64(n)^(1<<63), intBytes(k.Kind)), ok && k.isNative(v)
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		n, ok := Unsigned(v)
		return binary.BigEndian.AppendUint64(dst, n), ok && k.isNative(v)
	case catalog.KindFloat32:
		f, ok := v.(float32)
		return binary.BigEndian.AppendUint64(dst, orderedFloat(float64(f))), ok
	case catalog.KindFloat64:
		f, ok := v.(float64)
		return binary.BigEndian.AppendUint64(dst, orderedFloat(f)), ok
	case catalog.KindDecimal:
		d, ok := v.(decimal.Decimal)
		return appendOrderedDecimal(dst, d, k.Scale, k.Precision), ok
	case catalog.KindTimestamp:
		t, ok := v.(time.Time)
		if !ok {
			return dst, false
		}
		us, err := k.zone.micros(t)
		return appendOrdered(dst, uint64(us)^(1<<63), 8), err == nil
	case catalog.KindDate, catalog.KindDatetime:
		t, ok := v.(time.Time)
		return binary.BigEndian.AppendUint64(dst, uint64(k.micros(t))^(1<<63)), ok
	case catalog.KindTime:
		t, ok := v.(types.Timespan)
		return binary.BigEndian.AppendUint64(dst, uint64(t)^(1<<63)), ok
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		s, ok := v.(string)
		return k.appendWeights(dst, s), ok
	}
	b, ok, _ := appendBytes(nil, v)
	if k.Prefix > 0 && len(b) > k.Prefix {
		b = b[:k.Prefix]
	}
	return appendEscaped(dst, b), ok
}

// micros returns a time in microseconds; a date stands for the beginning of its day.
// go-mysql-server compares times in the same way.
func (k *KeyCodec) micros(t time.Time) int64 {
	if k.Kind == catalog.KindDate {
		t = t.Truncate(24 * time.Hour)
	}
	return t.UnixMicro()
}

// intBytes returns the number of bytes of a signed integer of a kind.
func intBytes(k catalog.Kind) int {
	switch k {
	case catalog.KindInt8:
		return 1
	case catalog.KindInt16, catalog.KindYear:
		return 2
	case catalog.KindInt24, catalog.KindInt32:
		return 4
	}
	return 8
}

// appendOrdered appends the lowest bytes of a signed number; width is how many. The caller has flipped
// the number's bit 63, so that negative numbers sort first. If width is less than 8, appendOrdered
// undoes that and flips the sign bit of the shorter number.
func appendOrdered(dst []byte, n uint64, width int) []byte {
	if width < 8 {
		n = (n ^ (1 << 63)) ^ (1 << (8*width - 1))
	}
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst
}

// orderedFloat maps floats to integers of the same order; -0 is 0.
func orderedFloat(f float64) uint64 {
	bits := math.Float64bits(f)
	if f == 0 {
		bits = 0
	}
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

// appendOrderedDecimal appends a decimal as its number of units, in as many bytes as the precision
// may need, with an offset that makes it positive.
func appendOrderedDecimal(dst []byte, d decimal.Decimal, scale int32, precision uint8) []byte {
	width := (int(precision)*4+7)/8 + 1 // four bits for a digit are enough, and a byte more for the offset
	units := new(big.Int).Lsh(big.NewInt(1), uint(8*width-1))
	units.Add(units, decimalUnits(d, scale))
	switch {
	case units.Sign() < 0:
		units.SetInt64(0)
	case units.BitLen() > 8*width:
		units.Lsh(big.NewInt(1), uint(8*width)).Sub(units, big.NewInt(1))
	}
	start := len(dst)
	dst = append(dst, make([]byte, width)...)
	units.FillBytes(dst[start:])
	return dst
}

// appendWeights appends the collation's weight of every character, and a
// terminator below all of them. Small weights, which are the frequent ones,
// take one or two bytes.
func (k *KeyCodec) appendWeights(dst []byte, s string) []byte {
	for n := 0; len(s) > 0 && (k.Prefix == 0 || n < k.Prefix); n++ {
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		w := uint32(k.Weights.weightOf(r)) ^ (1 << 31) // weights are signed: the negative ones are now the lower half
		switch {
		case w < 1<<31:
			dst = append(dst, 1, byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
		default:
			dst = appendWeight(dst, w&^(1<<31))
		}
	}
	return append(dst, 0)
}

// Leading bytes of a weight: 0 ends the string and 1 introduces a negative
// weight; then come the ranges of one, two, three and five bytes.
const (
	weight1 = 0x02
	weight2 = 0x80
	weight3 = 0xe0
	weight5 = 0xf0

	weights1 = weight2 - weight1
	weights2 = (weight3 - weight2) << 8
	weights3 = (weight5 - weight3) << 16
)

func appendWeight(dst []byte, w uint32) []byte {
	if w < weights1 {
		return append(dst, byte(weight1+w))
	}
	if w -= weights1; w < weights2 {
		return append(dst, byte(weight2+(w>>8)), byte(w))
	}
	if w -= weights2; w < weights3 {
		return append(dst, byte(weight3+(w>>16)), byte(w>>8), byte(w))
	}
	w -= weights3
	return append(dst, weight5, byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
}

// appendEscaped appends bytes so that no encoding is a prefix of another: 0 is
// followed by 0xff, and the end is 0 followed by 1.
func appendEscaped(dst, b []byte) []byte {
	for _, v := range b {
		dst = append(dst, v)
		if v == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// PrefixEnd turns a key, in place, into the least key above all keys that begin with it; nil if
// there is none.
func PrefixEnd(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] != 0xff {
			key[i]++
			return key[:i+1]
		}
	}
	return nil
}
