package sql

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

// Keys are bytes whose order is the order of the values that they encode, as
// go-mysql-server compares them. Each part begins with a marker, so that NULL
// comes first; what follows is of fixed length, or ends where no longer value
// can go on.
const (
	keyNull  = 0x00
	keyValue = 0x01
	// keyBytesMax is MySQL's limit for a key, and the B-tree's.
	keyBytesMax = 3072
)

// A keyCodec encodes the values of one part of an index.
type keyCodec struct {
	valueCodec
	collation gms.CollationID
	weights   *weightTable
	prefix    int
	precision uint8
	// length is that of the type: in bytes for BINARY and VARBINARY.
	length int
	// nullable says that the column may hold NULL.
	nullable bool
}

func newKeyCodec(d catalog.Type, prefix uint32) (keyCodec, error) {
	v, err := newValueCodec(d)
	if err != nil {
		return keyCodec{}, err
	}
	if d.Kind == catalog.KindJSON {
		return keyCodec{}, fmt.Errorf("sql: a JSON column cannot be part of a key")
	}
	k := makeKeyCodec(v, d)
	k.prefix = int(prefix)
	if isCharacter(d.Kind) && k.weights == nil {
		return keyCodec{}, fmt.Errorf("sql: collation %s cannot be used in a key", k.collation.Name())
	}
	return k, nil
}

func makeKeyCodec(v valueCodec, d catalog.Type) keyCodec {
	k := keyCodec{valueCodec: v, precision: d.Precision, length: int(d.Length), collation: gms.CollationID(d.Collation)}
	if isCharacter(d.Kind) {
		k.weights = weightsOf(k.collation)
	}
	return k
}

func isCharacter(k catalog.Kind) bool {
	return k == catalog.KindChar || k == catalog.KindVarchar || k == catalog.KindText
}

// append encodes one value, converting it to the column's type if need be.
func (k *keyCodec) append(ctx context.Context, dst []byte, v any) ([]byte, error) {
	if v == nil {
		return append(dst, keyNull), nil
	}
	v, err := gms.UnwrapAny(ctx, v)
	if err != nil {
		return dst, err
	}
	dst = append(dst, keyValue)
	out, ok := k.appendNative(dst, v)
	if ok {
		return out, nil
	}
	c, _, err := k.typ.Convert(ctx, v)
	if err != nil {
		return dst, err
	}
	if out, ok = k.appendNative(dst, c); !ok {
		return dst, fmt.Errorf("sql: a %T cannot be a key of type %s", v, k.typ)
	}
	return out, nil
}

func (k *keyCodec) appendNative(dst []byte, v any) ([]byte, bool) {
	switch k.kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindYear:
		n, ok := signed(v)
		return appendOrdered(dst, uint64(n)^1<<63, intBytes(k.kind)), ok && k.fits(v)
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64,
		catalog.KindBit, catalog.KindEnum, catalog.KindSet:
		n, ok := unsigned(v)
		return binary.BigEndian.AppendUint64(dst, n), ok && k.fits(v)
	case catalog.KindFloat32:
		f, ok := v.(float32)
		return binary.BigEndian.AppendUint64(dst, orderedFloat(float64(f))), ok
	case catalog.KindFloat64:
		f, ok := v.(float64)
		return binary.BigEndian.AppendUint64(dst, orderedFloat(f)), ok
	case catalog.KindDecimal:
		d, ok := v.(decimal.Decimal)
		return appendOrderedDecimal(dst, d, k.scale, k.precision), ok
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		t, ok := v.(time.Time)
		return binary.BigEndian.AppendUint64(dst, uint64(k.micros(t))^1<<63), ok
	case catalog.KindTime:
		t, ok := v.(types.Timespan)
		return binary.BigEndian.AppendUint64(dst, uint64(t)^1<<63), ok
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		s, ok := v.(string)
		return k.appendWeights(dst, s), ok
	}
	b, ok, _ := appendBytes(nil, v)
	if k.prefix > 0 && len(b) > k.prefix {
		b = b[:k.prefix]
	}
	return appendEscaped(dst, b), ok
}

// micros is a point in time as go-mysql-server compares it: dates by the day.
func (k *keyCodec) micros(t time.Time) int64 {
	if k.kind == catalog.KindDate {
		t = t.Truncate(24 * time.Hour)
	}
	return t.UnixMicro()
}

// intBytes is how many bytes hold a signed integer of a kind.
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

// appendOrdered appends the low bytes of a number whose sign bit was flipped
// at 64 bits, as if it had been flipped at their width.
func appendOrdered(dst []byte, n uint64, width int) []byte {
	if width < 8 {
		n = (n ^ 1<<63) ^ 1<<(8*width-1)
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

// appendOrderedDecimal appends the number of units in as many bytes as the
// precision can need, offset so that it is positive.
func appendOrderedDecimal(dst []byte, d decimal.Decimal, scale int32, precision uint8) []byte {
	width := (int(precision)*4+7)/8 + 1
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
func (k *keyCodec) appendWeights(dst []byte, s string) []byte {
	for n := 0; len(s) > 0 && (k.prefix == 0 || n < k.prefix); n++ {
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		w := uint32(k.weights.of(r)) ^ 1<<31 // weights are signed
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
		return append(dst, byte(weight2+w>>8), byte(w))
	}
	if w -= weights2; w < weights3 {
		return append(dst, byte(weight3+w>>16), byte(w>>8), byte(w))
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

// prefixEnd turns a key into the least one above every key that begins with
// it, in place; nil if there is none.
func prefixEnd(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] != 0xff {
			key[i]++
			return key[:i+1]
		}
	}
	return nil
}
