package row

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
)

// AppendResult writes values as their types do.
func TestAppendResult(t *testing.T) {
	ctx := gms.NewContext(context.Background())
	r := rand.New(rand.NewPCG(1, 3))
	taken := 0
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
		got, ok := c.AppendResult([]byte("before"), b)
		if !ok {
			if string(got) != "before" {
				t.Errorf("%v of %s: refused with %q", v, c.Type, got)
			}
			return
		}
		taken++
		want, err := c.Type.SQL(ctx, nil, v)
		if err != nil || string(got) != "before"+want.ToString() {
			t.Errorf("%v of %s is %q, %q by its type: %v", v, c.Type, got, want, err)
		}
	}
	for _, s := range samples {
		for range 200 {
			check(s.typ, s.make(r))
		}
	}
	for _, n := range []int64{0, 1, -1, 5, -5, 10, 99, -100, 12345, -12345, math.MaxInt64, math.MinInt64 + 1, math.MinInt64} {
		for _, scale := range []int32{0, 1, 2, 5, 18} {
			check(catalog.Type{Kind: catalog.KindDecimal, Precision: 38, Scale: uint8(scale)}, decimal.New(n, -scale))
		}
	}
	for _, year := range []int{0, 1, 999, 1000, 1969, 1970, 2024, 9999} {
		for _, at := range []time.Time{time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(0, 0, 0, 0, 0, 0, 0, time.UTC)} {
			check(catalog.Type{Kind: catalog.KindDate}, at.Truncate(24*time.Hour))
			check(catalog.Type{Kind: catalog.KindDatetime}, at)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d values were taken", taken)
	}
	bad := ValueCodec{Kind: catalog.KindInt64}
	if _, ok := bad.AppendResult(nil, make([]byte, 9)); ok {
		t.Error("an integer of nine bytes is taken")
	}
}
