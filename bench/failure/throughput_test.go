package failure

import (
	"slices"
	"testing"
)

// milliseconds of so many transactions each.
func flat(n int, each uint32) []uint32 { return slices.Repeat([]uint32{each}, n) }

func TestBackAfter(t *testing.T) {
	for _, c := range []struct {
		name         string
		series       []uint32
		killed, from int
		end          int
		ok           bool
	}{
		{"never less", flat(300, 10), 100, 110, 130, true},
		{"nothing for 50 ms", slices.Concat(flat(100, 10), flat(50, 0), flat(100, 10)), 100, 110, 166, true},
		{"back before it is suspected does not count", slices.Concat(flat(100, 10), flat(60, 20), flat(40, 0), flat(100, 10)), 100, 160, 216, true},
		{"79 %", slices.Concat(flat(100, 100), flat(100, 79)), 100, 100, 0, false},
		{"80 %", slices.Concat(flat(100, 100), flat(100, 80)), 100, 100, 120, true},
		{"over too soon", slices.Concat(flat(100, 10), flat(19, 10)), 100, 100, 0, false},
		{"in lumps", slices.Concat(flat(100, 1), []uint32{0, 0, 16}, flat(40, 0)), 100, 100, 120, true},
		{"no time before", flat(100, 10), 0, 10, 0, false},
		{"killed after all", flat(100, 10), 101, 110, 0, false},
	} {
		if end, ok := backAfter(c.series, c.killed, c.from); end != c.end || ok != c.ok {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, end, ok, c.end, c.ok)
		}
	}
}

func TestSmooth(t *testing.T) {
	if got := smooth([]uint32{1, 2, 3, 4, 5}, 2); !slices.Equal(got, []float64{1500, 3500}) {
		t.Error(got)
	}
	if got := smooth(nil, 1); got != nil || mean(nil) != 0 {
		t.Error(got)
	}
}
