package farmsql

import "testing"

func TestSize(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "4096": 4096, "64KiB": 64 << 10, "2GiB": 2 << 30, "2g": 2 << 30, "1.5MiB": 3 << 19, "7B": 7, "1 TiB": 1 << 40,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(in)); err != nil || s != want {
			t.Errorf("%q: %d, %v; want %d", in, s, err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "1XB", "9999999TiB", "99999999999999999999", "NaN", "1e30"} {
		var s Size
		if err := s.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q was accepted as %d", in, s)
		}
	}
	for s, want := range map[Size]string{0: "0", 2 << 30: "2GiB", 1536: "1536", 3 << 10: "3KiB"} {
		if s.String() != want {
			t.Errorf("%d prints as %q, want %q", int64(s), s, want)
		}
	}
}
