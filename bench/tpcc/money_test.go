package tpcc

import "testing"

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		n money
		s string
	}{{0, "0.00"}, {7, "0.07"}, {-7, "-0.07"}, {123456, "1234.56"}, {-1000, "-10.00"}} {
		if c.n.String() != c.s {
			t.Errorf("%d prints as %s, want %s", int64(c.n), c.n, c.s)
		}
		var back money
		if err := back.Scan([]byte(c.s)); err != nil || back != c.n {
			t.Errorf("%s reads as %d, %v; want %d", c.s, int64(back), err, int64(c.n))
		}
	}
	var r rate
	if err := r.Scan("0.05"); err != nil || r != 500 {
		t.Errorf("0.05 reads as %d, %v; want 500", int(r), err)
	}
	if got := money(10000).less(1000).plus(2000); got != 10800 {
		t.Errorf("100.00 less 10 %% plus 20 %% is %v, want 108.00", got)
	}
}

func TestMoneyRefusesWhatIsNone(t *testing.T) {
	var m money
	for _, src := range []any{"1.234", "x", nil, 1.5} {
		if m.Scan(src) == nil {
			t.Errorf("%v read as money", src)
		}
	}
}
