package row

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// A sample is a column type with a source of values.
type sample struct {
	name string
	typ  catalog.Type
	make func(r *rand.Rand) any
}

// pick is a number that is often near a place where encodings change.
func pick(r *rand.Rand, bits int) uint64 {
	n := uint64(1) << r.IntN(bits)
	switch r.IntN(4) {
	case 0:
		return n - 1
	case 1:
		return n
	case 2:
		return -n
	}
	return r.Uint64()
}

func someTime(r *rand.Rand, unit time.Duration) any {
	return time.Unix(r.Int64N(315e9)-62e9, r.Int64N(1e9)).UTC().Truncate(unit)
}

func someString(r *rand.Rand, max int) string {
	letters := []rune("aAäÄbBßzZ09 _\x00中🙂ｆ\u0301")
	s := make([]rune, r.IntN(max+1))
	for i := range s {
		s[i] = letters[r.IntN(len(letters))]
	}
	return string(s)
}

func someBytes(r *rand.Rand, max int) []byte {
	b := make([]byte, r.IntN(max+1))
	for i := range b {
		b[i] = []byte{0, 1, 0xff, 'a'}[r.IntN(4)]
	}
	return b
}

func someDecimal(r *rand.Rand, digits int, scale int32) any {
	n := new(big.Int)
	for range r.IntN(digits + 1) {
		n.Mul(n, big.NewInt(10)).Add(n, big.NewInt(r.Int64N(10)))
	}
	if r.IntN(2) == 0 {
		n.Neg(n)
	}
	return decimal.NewFromBigInt(n, -scale)
}

var samples = []sample{
	{"tinyint", catalog.Type{Kind: catalog.KindInt8}, func(r *rand.Rand) any { return int8(pick(r, 8)) }},
	{"smallint", catalog.Type{Kind: catalog.KindInt16}, func(r *rand.Rand) any { return int16(pick(r, 16)) }},
	{"mediumint", catalog.Type{Kind: catalog.KindInt24}, func(r *rand.Rand) any { return int32(pick(r, 23)) << 8 >> 8 }},
	{"int", catalog.Type{Kind: catalog.KindInt32}, func(r *rand.Rand) any { return int32(pick(r, 32)) }},
	{"bigint", catalog.Type{Kind: catalog.KindInt64}, func(r *rand.Rand) any { return int64(pick(r, 64)) }},
	{"tinyint unsigned", catalog.Type{Kind: catalog.KindUint8}, func(r *rand.Rand) any { return uint8(pick(r, 8)) }},
	{"smallint unsigned", catalog.Type{Kind: catalog.KindUint16}, func(r *rand.Rand) any { return uint16(pick(r, 16)) }},
	{"mediumint unsigned", catalog.Type{Kind: catalog.KindUint24}, func(r *rand.Rand) any { return uint32(pick(r, 24)) & 0xffffff }},
	{"int unsigned", catalog.Type{Kind: catalog.KindUint32}, func(r *rand.Rand) any { return uint32(pick(r, 32)) }},
	{"bigint unsigned", catalog.Type{Kind: catalog.KindUint64}, func(r *rand.Rand) any { return pick(r, 64) }},
	{"bit", catalog.Type{Kind: catalog.KindBit, Length: 64}, func(r *rand.Rand) any { return pick(r, 64) }},
	{"year", catalog.Type{Kind: catalog.KindYear}, func(r *rand.Rand) any { return int16(1901 + r.IntN(255)) }},
	{"float", catalog.Type{Kind: catalog.KindFloat32}, func(r *rand.Rand) any { return float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(60)-30))) }},
	{"double", catalog.Type{Kind: catalog.KindFloat64}, func(r *rand.Rand) any { return r.NormFloat64() * math.Pow(10, float64(r.IntN(600)-300)) }},
	{"decimal(10,2)", catalog.Type{Kind: catalog.KindDecimal, Precision: 10, Scale: 2}, func(r *rand.Rand) any { return someDecimal(r, 10, 2) }},
	{"decimal(65,30)", catalog.Type{Kind: catalog.KindDecimal, Precision: 65, Scale: 30}, func(r *rand.Rand) any { return someDecimal(r, 65, 30) }},
	{"date", catalog.Type{Kind: catalog.KindDate}, func(r *rand.Rand) any { return someTime(r, 24*time.Hour) }},
	{"datetime(6)", catalog.Type{Kind: catalog.KindDatetime, Precision: 6}, func(r *rand.Rand) any { return someTime(r, time.Microsecond) }},
	{"timestamp", catalog.Type{Kind: catalog.KindTimestamp}, func(r *rand.Rand) any { return time.Unix(r.Int64N(1<<31), 0).UTC() }},
	{"time", catalog.Type{Kind: catalog.KindTime, Precision: 6}, func(r *rand.Rand) any { return types.Timespan(r.Int64N(6e12) - 3e12) }},
	{"varchar ci", catalog.Type{Kind: catalog.KindVarchar, Length: 20, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci)}, func(r *rand.Rand) any { return someString(r, 6) }},
	{"varchar bin", catalog.Type{Kind: catalog.KindVarchar, Length: 20, Collation: uint16(gms.Collation_utf8mb4_0900_bin)}, func(r *rand.Rand) any { return someString(r, 6) }},
	{"varchar general", catalog.Type{Kind: catalog.KindVarchar, Length: 20, Collation: uint16(gms.Collation_utf8mb4_general_ci)}, func(r *rand.Rand) any { return someString(r, 6) }},
	{"char latin1", catalog.Type{Kind: catalog.KindChar, Length: 20, Collation: uint16(gms.Collation_latin1_swedish_ci)}, func(r *rand.Rand) any { return string([]rune("aAbBäß ")[r.IntN(7)]) }},
	{"text", catalog.Type{Kind: catalog.KindText, Length: 65535, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci)}, func(r *rand.Rand) any { return someString(r, 40) }},
	{"varbinary", catalog.Type{Kind: catalog.KindVarbinary, Length: 20, Collation: uint16(gms.Collation_binary)}, func(r *rand.Rand) any { return someBytes(r, 6) }},
	{"blob", catalog.Type{Kind: catalog.KindBlob, Length: 65535, Collation: uint16(gms.Collation_binary)}, func(r *rand.Rand) any { return someBytes(r, 40) }},
	{"enum", catalog.Type{Kind: catalog.KindEnum, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci), Values: []string{"c", "b", "a"}}, func(r *rand.Rand) any { return uint16(1 + r.IntN(3)) }},
	{"set", catalog.Type{Kind: catalog.KindSet, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci), Values: []string{"c", "b", "a"}}, func(r *rand.Rand) any { return uint64(r.IntN(8)) }},
	{"point", catalog.Type{Kind: catalog.KindPoint, SRID: 4326, HasSRID: true}, func(r *rand.Rand) any { return types.Point{SRID: 4326, X: r.Float64(), Y: r.Float64()} }},
	{"vector", catalog.Type{Kind: catalog.KindVector, Length: 2}, func(r *rand.Rand) any { return someBytes(r, 0) }},
}

// sampleTable has one nullable column of each sample.
func sampleTable() *catalog.Table {
	t := &catalog.Table{ID: 1, Name: "t", DB: "d", Primary: catalog.Index{Name: "PRIMARY"}}
	for _, s := range samples {
		t.Columns = append(t.Columns, catalog.Column{Name: s.name, Type: s.typ, Slot: t.NextSlot, Nullable: true})
		t.NextSlot++
	}
	return t
}

func sameValue(typ gms.Type, a, b any) bool {
	if a == nil || b == nil {
		return a == b
	}
	if reflect.DeepEqual(a, b) {
		return true
	}
	if d, ok := a.(decimal.Decimal); ok {
		e, ok := b.(decimal.Decimal)
		return ok && d.Equal(e) && d.Exponent() == e.Exponent()
	}
	return false
}

func TestRowRoundTrip(t *testing.T) {
	ctx := context.Background()
	codec, err := NewCodec(sampleTable())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		row := make(gms.Row, len(samples))
		for i, s := range samples {
			if r.IntN(5) > 0 {
				row[i] = s.make(r)
			}
		}
		img, err := codec.Image(ctx, row)
		if err != nil {
			t.Fatal(err)
		}
		b := img.Append(nil)
		if len(b) != img.bytes() {
			t.Fatalf("%d bytes, not %d", len(b), img.bytes())
		}
		// An object is larger than the row in it.
		got, err := codec.decode(append(b, 0, 0, 0), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range row {
			if !sameValue(codec.Columns[i].Type, row[i], got[i]) {
				t.Fatalf("%s: %#v became %#v", samples[i].name, row[i], got[i])
			}
		}
		at := r.IntN(len(samples))
		one, err := codec.decode(b, []int{at}, nil)
		if err != nil || !sameValue(codec.Columns[at].Type, row[at], one[0]) {
			t.Fatalf("%s alone: %#v, %v", samples[at].name, one, err)
		}
	}
}

// Rows of all lengths of offsets, and rows from before a column was added.
func TestRowWidths(t *testing.T) {
	ctx := context.Background()
	text := catalog.Type{Kind: catalog.KindText, Length: 1 << 30, Collation: uint16(gms.Collation_utf8mb4_0900_bin)}
	tbl := &catalog.Table{NextSlot: 2, Columns: []catalog.Column{{Name: "a", Type: text, Slot: 1, Nullable: true}, {Name: "b", Type: text, Slot: 0}}}
	codec, err := NewCodec(tbl)
	if err != nil {
		t.Fatal(err)
	}
	later := tbl.Clone()
	later.Columns, later.NextSlot = append(later.Columns, catalog.Column{Name: "c", Type: text, Slot: 2, Nullable: true}), 3
	laterCodec, err := NewCodec(later)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 127, 128, 254, 255, 256, 65534, 65535, 65536, 200000} {
		want := gms.Row{nil, string(bytes.Repeat([]byte{'x'}, n))}
		img, err := codec.Image(ctx, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := laterCodec.decode(img.Append(nil), nil, nil)
		if err != nil || !reflect.DeepEqual(got, gms.Row{nil, want[1], nil}) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// The order of keys is the order that go-mysql-server compares values in.
func TestKeyOrder(t *testing.T) {
	ctx := context.Background()
	for _, s := range samples {
		k, err := NewKeyCodec(s.typ, 0)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		for range 3000 {
			a, b := s.make(r), s.make(r)
			if r.IntN(20) == 0 {
				a = nil
			}
			if s.typ.Kind == catalog.KindVector {
				a, b = append(someBytes(r, 0), 1, 2, 3, 4, 5, 6, 7, byte(r.IntN(3))), []byte{1, 2, 3, 4, 5, 6, 7, 1}
			}
			ka, err := k.Append(ctx, nil, a)
			if err != nil {
				t.Fatal(err)
			}
			kb, err := k.Append(ctx, nil, b)
			if err != nil {
				t.Fatal(err)
			}
			want := -1 // NULL comes first; go-mysql-server's Compare puts it last
			if a != nil {
				if want, err = k.Type.Compare(ctx, a, b); err != nil {
					t.Fatal(err)
				}
			}
			if got := bytes.Compare(ka, kb); got != want {
				t.Fatalf("%s: %v and %v: keys compare %d, values %d (%x, %x)", s.name, a, b, got, want, ka, kb)
			}
			if !bytes.Equal(ka, kb) && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
				t.Fatalf("%s: key %x of %v is a prefix of %x of %v", s.name, ka, a, kb, b)
			}
		}
	}
}

// A range of keys holds every value between its bounds, and no other value if the column can hold
// the bounds.
func TestKeyRange(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range samples {
		if s.typ.Kind == catalog.KindVector {
			continue
		}
		k, err := NewKeyCodec(s.typ, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			v, bound := s.make(r), s.make(r)
			key, err := k.Append(ctx, nil, v)
			if err != nil {
				t.Fatal(err)
			}
			c, err := k.Type.Compare(ctx, v, bound)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct {
				expr gms.MySQLRangeColumnExpr
				in   bool
			}{
				{gms.GreaterThanRangeColumnExpr(bound, k.Type), c > 0},
				{gms.GreaterOrEqualRangeColumnExpr(bound, k.Type), c >= 0},
				{gms.LessThanRangeColumnExpr(bound, k.Type), c < 0},
				{gms.LessOrEqualRangeColumnExpr(bound, k.Type), c <= 0},
				{gms.ClosedRangeColumnExpr(bound, bound, k.Type), c == 0},
				{gms.NotNullRangeColumnExpr(k.Type), true},
				{gms.NullRangeColumnExpr(k.Type), false},
			} {
				pr, _, none := k.Bounds(ctx, x.expr)
				if got := !none && pr.Hold(key); got != x.in {
					t.Fatalf("%s: %v in %s: %v, want %v (%x in %x..%x)", s.name, v, x.expr.DebugString(nil), got, x.in, key, pr.Lo, pr.Hi)
				}
			}
		}
	}
}

func TestTypeRoundTrip(t *testing.T) {
	for _, s := range samples {
		typ, err := columnType(s.typ)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		back, err := Describe(typ)
		if err != nil || !reflect.DeepEqual(back, s.typ) {
			t.Errorf("%s: %+v became %+v, %v", s.name, s.typ, back, err)
		}
	}
	if _, err := columnType(catalog.Type{}); err == nil {
		t.Error("a type that is none was accepted")
	}
	if _, err := Describe(types.Null); err == nil {
		t.Error("a column of type NULL was accepted")
	}
}

func TestPrefixEnd(t *testing.T) {
	for _, c := range []struct{ in, want []byte }{
		{[]byte{1}, []byte{2}}, {[]byte{1, 0xff}, []byte{2}}, {[]byte{0xff, 0xff}, nil}, {nil, nil},
	} {
		if got := PrefixEnd(bytes.Clone(c.in)); !bytes.Equal(got, c.want) {
			t.Errorf("after %x: %x", c.in, got)
		}
	}
}

// Whatever the bytes, decoding a row returns values or an error.
func FuzzDecodeRow(f *testing.F) {
	ctx := context.Background()
	codec, err := NewCodec(sampleTable())
	if err != nil {
		f.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		row := make(gms.Row, len(samples))
		for i, s := range samples {
			if r.IntN(2) > 0 {
				row[i] = s.make(r)
			}
		}
		img, err := codec.Image(ctx, row)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(img.Append(nil))
	}
	f.Add([]byte{})
	f.Add([]byte{format | isSpilled, 1, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		spill := func(ref []byte) ([]byte, error) {
			if len(ref) != catalog.ChainRefBytes {
				return nil, catalog.ErrBrokenChain
			}
			return ref, nil
		}
		row, err := codec.decode(b, nil, spill)
		if err != nil {
			return
		}
		// A row that decodes can be encoded again, and then decodes to the same values.
		img, err := codec.Image(ctx, row)
		if err != nil {
			return // a value that its column's type would not have let in
		}
		again, err := codec.decode(img.Append(nil), nil, spill)
		if err != nil {
			t.Fatalf("%v: %v", row, err)
		}
		for i := range row {
			if fmt.Sprint(row[i]) != fmt.Sprint(again[i]) {
				t.Errorf("%s: %v became %v", samples[i].name, row[i], again[i])
			}
		}
	})
}

// Whatever the string, its key has the place that the collation gives it.
func FuzzStringKeys(f *testing.F) {
	ctx := context.Background()
	var codecs []KeyCodec
	for _, s := range samples {
		if IsCharacter(s.typ.Kind) {
			k, err := NewKeyCodec(s.typ, 0)
			if err != nil {
				f.Fatal(err)
			}
			codecs = append(codecs, k)
		}
	}
	f.Add("a", "A")
	f.Add("\xff", "\ufffd")
	f.Add("", "\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		for i := range codecs {
			ka, err := codecs[i].Append(ctx, nil, a)
			if err != nil {
				t.Fatal(err)
			}
			kb, err := codecs[i].Append(ctx, nil, b)
			if err != nil {
				t.Fatal(err)
			}
			want, err := codecs[i].Type.Compare(ctx, a, b)
			if err != nil {
				return // malformed
			}
			if got := bytes.Compare(ka, kb); got != want {
				t.Errorf("%s: %q and %q: %d, want %d", codecs[i].Collation.Name(), a, b, got, want)
			}
		}
	})
}
