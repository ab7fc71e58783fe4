package row

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// Texts are kept as go-mysql-server converts them.
func TestKept(t *testing.T) {
	ctx := gms.NewEmptyContext()
	for _, c := range []struct {
		d     catalog.Type
		texts []string
		kept  bool
	}{
		{catalog.Type{Kind: catalog.KindDate}, []string{"2024-02-29", "1000-01-01", "9999-12-31"}, true},
		{catalog.Type{Kind: catalog.KindDate}, []string{"2023-02-29", "0999-01-01", "2024-13-01", "2024-00-01", "2024-01-00", "2024-1-1", "2024-01-01 ", "20240101xx", "2024/01/01", "2024-01-0x", ""}, false},
		{catalog.Type{Kind: catalog.KindDatetime}, []string{"2024-02-29 00:00:00", "9999-12-31 23:59:59", "2024-01-01 10:00:00.4", "2024-01-01 10:00:00.5", "2024-01-01 23:59:59.999999"}, true},
		{catalog.Type{Kind: catalog.KindDatetime, Precision: 3}, []string{"2024-02-29 00:00:00.1", "2024-02-29 00:00:00.123", "2024-01-01 10:00:00.1235", "2024-01-01 10:00:00"}, true},
		{catalog.Type{Kind: catalog.KindDatetime, Precision: 6}, []string{"2024-02-29 00:00:00.000001", "2024-02-29 00:00:00.123456", "2024-02-29 00:00:00.000"}, true},
		{catalog.Type{Kind: catalog.KindDatetime}, []string{"2024-02-30 00:00:00", "2024-01-01 24:00:00", "2024-01-01 10:60:00", "2024-01-01 10:00:60", "2024-01-01T10:00:00", "2024-01-01 10.00:00", "2024-01-01 10:00.00",
			"2024-01-01 10:00:00.", "2024-01-01 10:00:00,5", "2024-01-01 10:00:00.1234567", "2024-01-01 10:00:00.x", "2024-01-01 -1:00:00", "2024-01-01", "0024-01-01 10:00:00"}, false},
		{catalog.Type{Kind: catalog.KindVarchar, Length: 3, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci)}, []string{"", "abc", "äöü", "a  "}, true},
		{catalog.Type{Kind: catalog.KindVarchar, Length: 3, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci)}, []string{"abcd", "äöüß", "a\xff"}, false},
		{catalog.Type{Kind: catalog.KindChar, Length: 3, Collation: uint16(gms.Collation_utf8mb4_0900_ai_ci)}, []string{"", "abc", "äöü    "}, true},
	} {
		v, err := newValueCodec(c.d)
		if err != nil {
			t.Fatal(err)
		}
		k := MakeKeyCodec(v, c.d)
		for _, text := range c.texts {
			got, ok := k.Kept(ctx, text)
			if ok != c.kept {
				t.Errorf("%v of %q: %v %v", c.d.Kind, text, got, ok)
			}
			if !ok {
				continue
			}
			if c.d.Kind == catalog.KindChar {
				text = strings.TrimRight(text, " ")
			}
			if want, _, err := k.Type.Convert(ctx, text); err != nil || want != got {
				t.Errorf("%v of %q: %v, go-mysql-server: %v %v", c.d.Kind, text, got, want, err)
			}
		}
	}
}

// Random texts with the characters of times are times as for time.Parse.
func TestMoment(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := []byte(time.Unix(r.Int64N(1<<34), r.Int64N(1e9)).UTC().Format([]string{time.DateTime, time.DateTime + ".000", time.DateTime + ".000000"}[r.IntN(3)]))
		for range r.IntN(3) {
			text[r.IntN(len(text))] = "0123456789-:."[r.IntN(13)]
		}
		got, _, ok := Moment(string(text))
		want, err := time.Parse(time.DateTime, string(text))
		if isMoment := err == nil && text[0] != '0'; ok != isMoment || ok && !got.Equal(want) {
			t.Fatalf("%s: %v %v, time.Parse: %v %v", text, got, ok, want, err)
		}
	}
}
