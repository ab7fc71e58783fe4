package row

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// This file writes stored values into the packets that carry a result's rows.

// A Form is the form of the values in the packets of rows.
type Form uint8

const (
	NoPackets  Form = iota // the rows are not sent in packets
	TextForm               // the answer to a query
	BinaryForm             // the answer to the execution of a prepared statement
)

// A Packer writes the stored values of a column into packets.
type Packer struct {
	codec  *ValueCodec
	form   Form
	how    packing
	bytes  int // the size of a number in BinaryForm, or of all values of a BINARY
	digits int // of the fraction of a second
}

// A packing is a way of writing values.
type packing uint8

const (
	packSigned packing = iota
	packUnsigned
	packBytes // as they are stored
	packFixed // as they are stored, if they have the column's length
	packDecimal
	packTime // DATE, DATETIME and TIMESTAMP
	packFloat
	packEnum
	packJSON
)

// numberBytes are the sizes of numbers in BinaryForm.
var numberBytes = map[catalog.Kind]int{
	catalog.KindInt8: 1, catalog.KindInt16: 2, catalog.KindInt24: 4, catalog.KindInt32: 4, catalog.KindInt64: 8,
	catalog.KindUint8: 1, catalog.KindUint16: 2, catalog.KindUint24: 4, catalog.KindUint32: 4, catalog.KindUint64: 8,
	catalog.KindFloat32: 4, catalog.KindFloat64: 8,
}

// Packer returns the Packer of a column's values; false if there is none.
func (c *ValueCodec) Packer(f Form) (p Packer, ok bool) {
	p = Packer{codec: c, form: f, bytes: numberBytes[c.Kind]}
	switch {
	case c.IsSigned():
		p.how = packSigned
	case c.IsUnsigned():
		p.how = packUnsigned
	case c.IsDirect(): // characters
		p.how = packBytes
	default:
		return p, p.chooseOther()
	}
	return p, true
}

// chooseOther chooses how to write values that are neither integers nor characters.
func (p *Packer) chooseOther() bool {
	switch p.codec.Kind {
	case catalog.KindVarbinary, catalog.KindBlob:
		p.how = packBytes
	case catalog.KindBinary:
		s, ok := p.codec.Type.(gms.StringType)
		p.how = packFixed
		if ok {
			p.bytes = int(s.Length())
		}
		return ok
	case catalog.KindDecimal:
		p.how = packDecimal
	case catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp:
		t, ok := p.codec.Type.(gms.DatetimeType)
		p.how = packTime
		if ok {
			p.digits = t.Precision()
		}
		return ok
	case catalog.KindFloat32, catalog.KindFloat64:
		p.how = packFloat
	case catalog.KindEnum:
		e, ok := p.codec.Type.(gms.EnumType)
		p.how = packEnum
		return ok && e.Collation().CharacterSet() == gms.CharacterSet_utf8mb4
	case catalog.KindJSON:
		p.how = packJSON
	default:
		return false
	}
	return true
}

// Append appends a stored value that is not NULL. It returns false if it does not know the value's form.
func (p *Packer) Append(dst, b []byte) ([]byte, bool) {
	switch p.how {
	case packSigned:
		n, ok := ReadInt(b)
		if p.form == BinaryForm {
			return appendNumber(dst, uint64(n), p.bytes), ok
		}
		at := len(dst)
		return measured(strconv.AppendInt(append(dst, 0), n, 10), at), ok
	case packUnsigned:
		n, ok := ReadUint(b)
		if p.form == BinaryForm {
			return appendNumber(dst, n, p.bytes), ok
		}
		at := len(dst)
		return measured(strconv.AppendUint(append(dst, 0), n, 10), at), ok
	case packBytes:
		return appendMeasured(dst, b), true
	case packFixed:
		return appendMeasured(dst, b), len(b) == p.bytes
	case packDecimal:
		n, ok := ReadInt(b)
		at := len(dst)
		return measured(appendUnits(append(dst, 0), n, int(p.codec.Scale)), at), ok && n != math.MinInt64
	case packTime:
		return p.appendTime(dst, b)
	case packFloat:
		return p.appendFloat(dst, b)
	case packEnum:
		n, ok := ReadUint(b)
		if !ok || n > math.MaxUint16 {
			return dst, false
		}
		s, ok := p.codec.Type.(gms.EnumType).At(int(n))
		return append(AppendLength(dst, len(s)), s...), ok
	case packJSON:
		return appendMeasured(dst, EscapeControls(b)), true
	}
	return dst, false
}

// appendNumber appends the lowest bytes of a number.
func appendNumber(dst []byte, n uint64, bytes int) []byte {
	switch bytes {
	case 1:
		return append(dst, byte(n))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(n))
	case 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(dst, n)
}

// appendMeasured appends a length and as many bytes.
func appendMeasured(dst, b []byte) []byte { return append(AppendLength(dst, len(b)), b...) }

// AppendLength appends a length as the protocol writes it before a text.
func AppendLength(dst []byte, n int) []byte {
	switch {
	case n <= shortMax:
		return append(dst, byte(n))
	case n < 1<<16:
		return append(dst, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(dst, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(dst, 0xfe), uint64(n))
}

// shortMax is the greatest length that takes a single byte.
const shortMax = 250

// measured sets the byte at the given place to the length of what follows, which is at most shortMax.
func measured(dst []byte, at int) []byte {
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// appendTime appends a date, or a date and time; false for years that have not four digits.
func (p *Packer) appendTime(dst, b []byte) ([]byte, bool) {
	n, ok := ReadInt(b)
	if !ok {
		return dst, false
	}
	t := time.UnixMicro(n).UTC()
	if p.codec.Kind == catalog.KindTimestamp {
		t = p.codec.zone.wall(n)
	}
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return dst, false
	}
	if p.form == BinaryForm {
		return p.appendTimeNumbers(dst, t, year, month, day), true
	}
	at := len(dst)
	dst = appendDay(append(dst, 0), year, month, day)
	if p.codec.Kind != catalog.KindDate {
		dst = appendClock(append(dst, ' '), t)
		if p.digits > 0 {
			dst = append(dst, '.')
			unit := 100_000
			for range p.digits {
				dst = append(dst, byte('0'+t.Nanosecond()/1000/unit%10))
				unit /= 10
			}
		}
	}
	return measured(dst, at), true
}

// appendTimeNumbers appends a date, or a date and time, in BinaryForm.
func (p *Packer) appendTimeNumbers(dst []byte, t time.Time, year int, month time.Month, day int) []byte {
	at := len(dst)
	dst = append(dst, 0, byte(year), byte(year>>8), byte(month), byte(day))
	if p.codec.Kind != catalog.KindDate {
		hour, minute, second := t.Clock()
		dst = append(dst, byte(hour), byte(minute), byte(second))
		if p.digits > 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(t.Nanosecond()/1000))
		}
	}
	return measured(dst, at)
}

// appendFloat appends a number with a floating point.
func (p *Packer) appendFloat(dst, b []byte) ([]byte, bool) {
	v, err := p.codec.decode(b)
	if err != nil {
		return dst, false
	}
	f, bits := 0.0, 64
	switch v := v.(type) {
	case float64:
		f = v
	case float32:
		f, bits = float64(v), 32
	}
	if f == 0 {
		f = 0 // MySQL shows no sign
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return dst, false
	case p.form == TextForm:
		var room [32]byte
		return appendMeasured(dst, FloatText(strconv.AppendFloat(room[:0], f, 'g', -1, bits))), true
	case bits == 32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), true
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), true
}

// FloatText rewrites exponents. MySQL prints none for numbers of at most 15 digits, and no
// sign or leading zeros for a positive one.
func FloatText(number []byte) []byte {
	e := bytes.IndexByte(number, 'e')
	if e < 0 {
		return number
	}
	exponent, err := strconv.Atoi(string(number[e+1:]))
	if err != nil {
		return number
	}
	if exponent < -14 || exponent > 14 {
		return strconv.AppendInt(bytes.Clone(number[:e+1]), int64(exponent), 10)
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return number
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64)
}
