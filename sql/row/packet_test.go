package row

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/catalog"
)

// A Packer writes values as their types print them: as text, and as the numbers that the text shows.
func TestPacker(t *testing.T) {
	ctx := gms.NewContext(context.Background())
	r := rand.New(rand.NewPCG(1, 4))
	taken := map[catalog.Kind]int{}
	check := func(typ catalog.Type, v any) {
		t.Helper()
		c, err := newValueCodec(typ)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.append(ctx, nil, v)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := c.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := c.Type.SQL(ctx, nil, decoded)
		if err != nil {
			t.Fatal(err)
		}
		text := sent.Raw()
		switch {
		case sqltypes.IsFloat(sent.Type()) && string(text) == "-0":
			text = []byte("0")
		case sqltypes.IsFloat(sent.Type()):
			text = FloatText(text)
		case sent.Type() == sqltypes.TypeJSON:
			text = EscapeControls(text)
		}
		for _, f := range []Form{TextForm, BinaryForm} {
			p, ok := c.Packer(f)
			if !ok {
				continue
			}
			got, ok := p.Append([]byte("before"), b)
			if !ok {
				continue
			}
			taken[typ.Kind]++
			want := appendMeasured(nil, text)
			if f == BinaryForm {
				want = binaryOf(t, &c, text)
			}
			if got, ok := bytes.CutPrefix(got, []byte("before")); !ok || !bytes.Equal(got, want) {
				t.Errorf("%v of %s in form %d is %q, want %q", v, c.Type, f, got, want)
			}
		}
	}
	for _, s := range samples {
		for range 200 {
			check(s.typ, s.make(r))
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 1e5, 1234567, 1e14, 1e15, 123456789012345678, 1e20, -1e21, 1e300, 0.1, 1e-4, 1e-5, 2.5e-300, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		check(catalog.Type{Kind: catalog.KindFloat64}, f)
		if float32(f) != 0 && !math.IsInf(float64(float32(f)), 0) {
			check(catalog.Type{Kind: catalog.KindFloat32}, float32(f))
		}
	}
	at := time.Date(2024, 2, 9, 3, 4, 5, 678_901_000, time.UTC)
	for digits := range uint8(7) {
		unit := time.Duration(math.Pow10(9 - int(digits)))
		check(catalog.Type{Kind: catalog.KindDatetime, Precision: digits}, at.Truncate(unit))
		check(catalog.Type{Kind: catalog.KindTimestamp, Precision: digits}, at.Truncate(unit))
		check(catalog.Type{Kind: catalog.KindDatetime, Precision: digits}, at.Truncate(24*time.Hour))
	}
	check(catalog.Type{Kind: catalog.KindBinary, Length: 3, Collation: uint16(gms.Collation_binary)}, []byte{0, 'a', 255})
	enum := catalog.Type{Kind: catalog.KindEnum, Values: []string{"a", "ä"}, Collation: uint16(gms.Collation_Default)}
	for n := range uint16(3) {
		check(enum, n)
	}
	check(catalog.Type{Kind: catalog.KindJSON}, types.MustJSON("{\"a\": [1, \"b\\u0001\"]}"))
	for _, k := range []catalog.Kind{
		catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64, catalog.KindUint8, catalog.KindUint64, catalog.KindFloat32,
		catalog.KindFloat64, catalog.KindDecimal, catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp, catalog.KindVarchar, catalog.KindText,
		catalog.KindVarbinary, catalog.KindBinary, catalog.KindBlob, catalog.KindEnum, catalog.KindJSON,
	} {
		if taken[k] == 0 {
			t.Errorf("no value of kind %d is taken", k)
		}
	}
}

// binaryOf returns a value in the binary protocol, made from its text.
func binaryOf(t *testing.T, c *ValueCodec, text []byte) []byte {
	t.Helper()
	bits := 8 * numberBytes[c.Kind]
	switch {
	case c.IsSigned():
		n, err := strconv.ParseInt(string(text), 10, bits)
		if err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(n))[:bits/8]
	case c.IsUnsigned():
		n, err := strconv.ParseUint(string(text), 10, bits)
		if err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.AppendUint64(nil, n)[:bits/8]
	case bits > 0:
		f, err := strconv.ParseFloat(string(text), bits)
		if err != nil {
			t.Fatal(err)
		}
		if bits == 32 {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	case slices.Contains([]catalog.Kind{catalog.KindDate, catalog.KindDatetime, catalog.KindTimestamp}, c.Kind):
		return binaryTime(t, string(text))
	}
	return appendMeasured(nil, text)
}

// binaryTime returns a date, or a date and time, in the binary protocol.
func binaryTime(t *testing.T, text string) []byte {
	t.Helper()
	at, err := time.Parse(time.DateTime, text)
	if len(text) == len(time.DateOnly) {
		at, err = time.Parse(time.DateOnly, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{4, byte(at.Year()), byte(at.Year() >> 8), byte(at.Month()), byte(at.Day())}
	if len(text) > len(time.DateOnly) {
		b = append(b, byte(at.Hour()), byte(at.Minute()), byte(at.Second()))
	}
	if len(text) > len(time.DateTime) {
		b = binary.LittleEndian.AppendUint32(b, uint32(at.Nanosecond()/1000))
	}
	b[0] = byte(len(b) - 1)
	return b
}

// A Packer refuses what it does not know, rather than send something else.
func TestPackerRefuses(t *testing.T) {
	for _, c := range []struct {
		typ catalog.Type
		b   []byte
	}{
		{catalog.Type{Kind: catalog.KindInt64}, make([]byte, 9)},
		{catalog.Type{Kind: catalog.KindUint64}, make([]byte, 9)},
		{catalog.Type{Kind: catalog.KindDecimal, Precision: 30, Scale: 2}, make([]byte, 10)},
		{catalog.Type{Kind: catalog.KindDecimal, Precision: 30, Scale: 2}, appendInt(nil, math.MinInt64)},
		{catalog.Type{Kind: catalog.KindDate}, make([]byte, 9)},
		{catalog.Type{Kind: catalog.KindDate}, appendInt(nil, time.Date(999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())},
		{catalog.Type{Kind: catalog.KindFloat64}, make([]byte, 7)},
		{catalog.Type{Kind: catalog.KindFloat64}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(1)))},
		{catalog.Type{Kind: catalog.KindEnum, Values: []string{"a"}, Collation: uint16(gms.Collation_Default)}, []byte{2}},
		{catalog.Type{Kind: catalog.KindEnum, Values: []string{"a"}, Collation: uint16(gms.Collation_Default)}, []byte{1, 0, 1}},
		{catalog.Type{Kind: catalog.KindBinary, Length: 3, Collation: uint16(gms.Collation_binary)}, []byte{1}},
	} {
		codec, err := newValueCodec(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Form{TextForm, BinaryForm} {
			p, ok := codec.Packer(f)
			if !ok {
				t.Fatalf("no packer for %s", codec.Type)
			}
			if got, ok := p.Append(nil, c.b); ok {
				t.Errorf("%x of %s in form %d is %q", c.b, codec.Type, f, got)
			}
		}
	}
	for _, k := range []catalog.Kind{catalog.KindTime, catalog.KindYear, catalog.KindPoint} {
		codec := ValueCodec{Kind: k}
		if _, ok := codec.Packer(TextForm); ok {
			t.Errorf("there is a packer for kind %d", k)
		}
	}
}

// Lengths are written in as few bytes as the protocol allows.
func TestAppendLength(t *testing.T) {
	for n, want := range map[int]string{
		0: "\x00", 250: "\xfa", 251: "\xfc\xfb\x00", 1<<16 - 1: "\xfc\xff\xff", 1 << 16: "\xfd\x00\x00\x01", 1<<24 - 1: "\xfd\xff\xff\xff",
		1 << 24: "\xfe\x00\x00\x00\x01\x00\x00\x00\x00",
	} {
		if got := string(AppendLength(nil, n)); got != want {
			t.Errorf("%d is %x, want %x", n, got, want)
		}
	}
}

func TestFloatText(t *testing.T) {
	for in, want := range map[string]string{
		"1.5": "1.5", "1e+10": "10000000000", "-1.25e+14": "-125000000000000", "1e+15": "1e15", "1.5e+100": "1.5e100",
		"1e-05": "0.00001", "1e-100": "1e-100", "-2.5e-07": "-0.00000025", "nan": "nan", "1ex": "1ex",
	} {
		if got := string(FloatText([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
