package executor

import (
	"math/rand/v2"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
)

// Strings are compared, and told apart, as go-mysql-server does by each collation.
func TestWeights(t *testing.T) {
	ctx := gms.NewEmptyContext()
	r := rand.New(rand.NewPCG(7, 8))
	some := func() string {
		var runes []rune
		for range r.IntN(4) {
			runes = append(runes, []rune("aAbBáßsS 1１ａ日ä\x00\x7f😀")[r.IntN(17)])
		}
		return string(runes)
	}
	tried := 0
	for all := gms.NewCollationsIterator(); ; {
		collation, more := all.Next()
		if !more {
			break
		}
		if collation.Sorter == nil || collation.CharacterSet != gms.CharacterSet_utf8mb4 {
			continue
		}
		typ, err := types.CreateString(sqltypes.VarChar, 10, collation.ID)
		if err != nil {
			t.Fatal(err)
		}
		w := row.WeightsOfType(typ)
		if w == nil || row.WeightsOf(collation.ID) != w {
			t.Fatalf("%s has no weights, or two tables of them", collation.Name)
		}
		tried++
		set := compat.NewRowSet(nil, gms.Schema{{Type: typ}, {Type: types.Int32}})
		for range 300 {
			a, b := some(), some()
			want, err := typ.Compare(ctx, a, b)
			got, err2 := weighedType{typ.(types.StringType), w}.Compare(ctx, a, b)
			if err != nil || err2 != nil || got != want {
				t.Fatalf("%s: %q and %q: %d, %v, want %d, %v", collation.Name, a, b, got, err2, want, err)
			}
			x, err := set.Key(ctx, gms.Row{a, int32(1)})
			y, err2 := set.Key(ctx, gms.Row{[]byte(b), int32(1)})
			if err != nil || err2 != nil || (x == y) != (want == 0) {
				t.Fatalf("%s: %q and %q have keys %d and %d, %v, %v", collation.Name, a, b, x, y, err, err2)
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d collations", tried)
	}
	for _, binary := range []gms.Type{types.LongBlob, types.Int64, types.MustCreateString(sqltypes.VarChar, 10, gms.Collation_latin1_swedish_ci)} {
		if row.WeightsOfType(binary) != nil {
			t.Errorf("%s has weights", binary)
		}
	}
}

// Strings with invalid characters are left to go-mysql-server, which refuses them.
func TestWeightsOfNoCharacters(t *testing.T) {
	ctx := gms.NewEmptyContext()
	text := types.MustCreateStringWithDefaults(sqltypes.VarChar, 10).(types.StringType)
	w := row.WeightsOfType(text)
	if _, err := compat.NewRowSet(nil, gms.Schema{{Type: text}}).Key(ctx, gms.Row{"a\xff"}); err == nil {
		t.Error("a key of what is no string")
	}
	if _, err := compat.NewRowSet(nil, gms.Schema{{Type: text}}).Key(ctx, gms.Row{struct{}{}}); err == nil {
		t.Error("a key of what is no value")
	}
	for _, b := range []any{"a\xff", "\xff", []byte("ab"), 5} {
		got, err := weighedType{text, w}.Compare(ctx, "a", b)
		want, wrong := text.Compare(ctx, "a", b)
		if got != want || (err == nil) != (wrong == nil) {
			t.Errorf("%q: %d, %v, want %d, %v", b, got, err, want, wrong)
		}
	}
}
