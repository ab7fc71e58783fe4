package row

import (
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

func TestTimeType(t *testing.T) {
	ctx := gms.NewEmptyContext()
	for _, c := range []struct {
		digits int
		in     any
		want   string
	}{
		{0, "10:11:12.5", "10:11:13"}, {0, "-10:11:12.5", "-10:11:13"}, {0, "10:11:12.499999", "10:11:12"}, {3, "10:11:12.5", "10:11:12.500"},
		{3, "23:59:59.9996", "24:00:00.000"}, {6, "10:11:12", "10:11:12.000000"}, {1, "-0:0:0.04", "00:00:00.0"}, {0, "838:59:59.9", "838:59:59"},
		{2, decimal.RequireFromString("-101112.345"), "-10:11:12.35"}, {4, types.Timespan(1), "00:00:00.0000"}, {5, time.Second, "00:00:01.00000"},
	} {
		typ, ok := TimeOf(c.digits)
		if !ok {
			t.Fatalf("TIME(%d)", c.digits)
		}
		v, err := typ.SQL(ctx, []byte("before"), c.in)
		if err != nil || v.ToString() != c.want {
			t.Errorf("TIME(%d) of %v: %s, %v, want %s", c.digits, c.in, v.ToString(), err, c.want)
		}
	}
	for _, digits := range []int{-1, 7} {
		if _, ok := TimeOf(digits); ok {
			t.Errorf("there is a TIME(%d)", digits)
		}
	}
	typ, _ := TimeOf(3)
	if v, err := typ.SQL(ctx, nil, nil); err != nil || !v.IsNull() {
		t.Errorf("NULL is %v, %v", v, err)
	}
	if _, err := typ.SQL(ctx, nil, "x"); !types.ErrConvertingToTimeType.Is(err) {
		t.Errorf("x is a time: %v", err)
	}
}

// TIME that was stored before there was TIME(n) keeps its six digits; TIME(n) stays what it is.
func TestStoredTimeTypes(t *testing.T) {
	old, err := columnType(catalog.Type{Kind: catalog.KindTime, Precision: 6})
	if err != nil || old != gms.Type(types.Time) {
		t.Errorf("TIME of before is %v, %v", old, err)
	}
	if d, err := Describe(types.Time); err != nil || d.Length != 0 || d.Precision != 6 {
		t.Errorf("TIME of before is stored as %v, %v", d, err)
	}
	for digits := range timeDigitsMax + 1 {
		typ, _ := TimeOf(digits)
		d, err := Describe(typ)
		if err != nil {
			t.Fatal(err)
		}
		back, err := columnType(d)
		if err != nil || !typ.Equals(back) || !back.Equals(typ) || back.Equals(types.Time) || !IsTimespan(back) || back.Type() != types.Time.Type() {
			t.Errorf("%s is stored as %s, %v", typ, back, err)
		}
	}
}
