package row

import (
	"bytes"
	"testing"
	"time"
	_ "time/tzdata"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

func zoneOf(t *testing.T, name string) *Zone {
	t.Helper()
	z, ok := ZoneOf(name)
	if !ok {
		t.Fatalf("there is no zone %s", name)
	}
	return z
}

func TestZoneOf(t *testing.T) {
	for _, name := range []string{"UTC", "+00:00", "-00:00", "Etc/UTC"} {
		if z := zoneOf(t, name); z != nil {
			t.Errorf("%s is not UTC", name)
		}
	}
	for _, name := range []string{"+05:30", "-12:00", "America/New_York", "Europe/London"} {
		if z := zoneOf(t, name); z == nil || z != zoneOf(t, name) {
			t.Errorf("%s: %v", name, z)
		}
	}
	for _, name := range []string{"Mars/Olympus", "5"} {
		if _, ok := ZoneOf(name); ok {
			t.Errorf("there is a zone %q", name)
		}
	}
	was := time.Local
	defer func() { time.Local = was }()
	time.Local = time.UTC
	if at, ok := locationOf("system"); !ok || !isUTC(at) {
		t.Errorf("SYSTEM is %v, %v", at, ok)
	}
}

// Every instant is stored as it was read, also around the changes of clocks.
func TestInstantsStay(t *testing.T) {
	for _, name := range []string{"UTC", "+05:30", "-08:00", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia"} {
		z := zoneOf(t, name)
		for _, day := range []string{"2023-03-12", "2023-11-05", "2023-03-26", "2023-10-29", "2023-04-02", "2023-10-01", "2011-12-30", "2024-04-14", "1985-12-31"} {
			start, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			for at := start.Add(-24 * time.Hour); at.Before(start.Add(48 * time.Hour)); at = at.Add(5 * time.Minute) {
				w := z.wall(at.UnixMicro())
				if us, err := z.micros(w); err != nil || us != at.UnixMicro() {
					t.Fatalf("%s: %v is %v, which is %v, %v", name, at, w, time.UnixMicro(us).UTC(), err)
				}
				if z != nil && w.Format(time.DateTime) != at.In(z.at).Format(time.DateTime) {
					t.Fatalf("%s: %v is %v", name, at, w)
				}
			}
		}
	}
}

func TestInstantsOfWallTimes(t *testing.T) {
	for _, c := range []struct{ zone, wall, want string }{
		{"+05:30", "2020-01-01 00:00:00", "2019-12-31 18:30:00"},
		{"America/New_York", "2023-11-05 00:59:59", "2023-11-05 04:59:59"},
		{"America/New_York", "2023-11-05 01:30:00", "2023-11-05 05:30:00"}, // and an hour later
		{"America/New_York", "2023-11-05 02:00:00", "2023-11-05 07:00:00"},
		{"America/New_York", "2023-03-12 01:59:59", "2023-03-12 06:59:59"},
		{"America/New_York", "2023-03-12 02:00:00", ""},
		{"America/New_York", "2023-03-12 02:59:59", ""},
		{"America/New_York", "2023-03-12 03:00:00", "2023-03-12 07:00:00"},
		{"Pacific/Apia", "2011-12-30 12:00:00", ""}, // the day that was left out
		{"+05:30", "1970-01-01 05:30:00", ""},
		{"+05:30", "1970-01-01 05:30:01", "1970-01-01 00:00:01"},
		{"-01:00", "2038-01-19 02:14:07", "2038-01-19 03:14:07"},
		{"-01:00", "2038-01-19 02:14:08", ""},
	} {
		w, err := time.Parse(time.DateTime, c.wall)
		if err != nil {
			t.Fatal(err)
		}
		us, err := zoneOf(t, c.zone).micros(w)
		switch got := time.UnixMicro(us).UTC().Format(time.DateTime); {
		case c.want == "":
			if !ErrNoInstant.Is(err) {
				t.Errorf("%s in %s is %s, %v", c.wall, c.zone, got, err)
			}
		case err != nil || got != c.want:
			t.Errorf("%s in %s is %s, %v, want %s", c.wall, c.zone, got, err, c.want)
		}
	}
	if us, err := zoneOf(t, "+05:30").micros(types.ZeroTime); err != nil || !zoneOf(t, "+05:30").wall(us).Equal(types.ZeroTime) {
		t.Errorf("0000-00-00 is %d, %v", us, err)
	}
}

// A range has the keys of all rows whose wall times are in it, and says so if it has more.
func TestBoundsOfInstants(t *testing.T) {
	ctx := gms.NewEmptyContext()
	k, err := NewKeyCodec(catalog.Type{Kind: catalog.KindTimestamp}, 0)
	if err != nil {
		t.Fatal(err)
	}
	z := zoneOf(t, "America/New_York")
	k = k.In(z)
	for _, day := range []string{"2023-11-05 ", "2023-03-12 "} {
		for _, at := range []string{"00:59:59", "01:00:00", "01:30:00", "01:59:59", "02:00:00", "02:30:00", "03:00:00"} {
			bound := day + at
			for i, c := range []gms.MySQLRangeColumnExpr{
				gms.LessThanRangeColumnExpr(bound, k.Type), gms.LessOrEqualRangeColumnExpr(bound, k.Type), gms.GreaterThanRangeColumnExpr(bound, k.Type),
				gms.GreaterOrEqualRangeColumnExpr(bound, k.Type), gms.ClosedRangeColumnExpr(bound, bound, k.Type),
			} {
				checkBounds(t, ctx, &k, z, day, bound, i, c)
			}
		}
	}
}

func checkBounds(t *testing.T, ctx *gms.Context, k *KeyCodec, z *Zone, day, bound string, i int, c gms.MySQLRangeColumnExpr) {
	t.Helper()
	r, equal, none := k.Bounds(ctx, c)
	start, err := time.Parse(time.DateOnly, day[:10])
	if err != nil {
		t.Fatal(err)
	}
	for at := start; at.Before(start.Add(24 * time.Hour)); at = at.Add(10 * time.Minute) {
		w := z.wall(at.UnixMicro())
		key, err := k.Append(ctx, nil, w)
		if err != nil {
			t.Fatal(err)
		}
		is, wants := !none && r.Hold(key), k.Holds(ctx, c, w, false)
		if wants && !is || is && !wants && !r.Inexact {
			t.Errorf("range %d of %s: %v is in it: %v, want %v, inexact %v", i, bound, w, is, wants, r.Inexact)
		}
		if equal && is != bytes.Equal(key, r.Lo) {
			t.Errorf("range %d of %s is one key, and %v is in it: %v", i, bound, w, is)
		}
	}
}

// Keys and rows of wall times that are no instants are errors.
func TestNoInstants(t *testing.T) {
	ctx := gms.NewEmptyContext()
	d := catalog.Type{Kind: catalog.KindTimestamp}
	z := zoneOf(t, "America/New_York")
	k, err := NewKeyCodec(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	k = k.In(z)
	for _, v := range []any{"2023-03-12 02:30:00", time.Date(2023, 3, 12, 2, 30, 0, 0, time.UTC)} {
		if _, err := k.Append(ctx, nil, v); !ErrNoInstant.Is(err) {
			t.Errorf("the key of %v: %v", v, err)
		}
	}
	c, err := NewCodec(&catalog.Table{Columns: []catalog.Column{{Name: "ts", Type: d, Nullable: true}}, NextSlot: 1})
	if err != nil {
		t.Fatal(err)
	}
	in := c.In(z)
	if _, err := in.Image(ctx, gms.Row{"2023-03-12 02:30:00"}); !ErrNoInstant.Is(err) {
		t.Errorf("the row: %v", err)
	}
	if _, err := c.Image(ctx, gms.Row{"2023-03-12 02:30:00"}); err != nil {
		t.Errorf("the row in UTC: %v", err)
	}
}
