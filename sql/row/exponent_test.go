package row

import (
	"strings"
	"testing"

	"github.com/dolthub/go-mysql-server/sql/types"
)

// Numbers with great exponents become such that are out of range, or 0; all other texts stay.
func TestBoundedText(t *testing.T) {
	for text, want := range map[string]string{
		"1e111111111": "1e401", "-1e111111111": "-1e401", "+1E401": "1e401", " 1.5e99999999999999999999x": "1e401x", "1e400": "1e401", "12e+400 ": "1e401 ",
		"1e-111111111": "0", "-1.5e-99999999999999999999": "0", "1e-402": "0", "0e111111111": "0", "0.00e-5": "0", "0e9": "0", ".0e1x": "0x",
		"0x1p1000000000": "0x", "0b1e999999999": "0b", "1_0e999999999": "1_", "1p999999999": "1p", "1e5_000_000_000": "1e5_", "1e999_9": "1e401_",
		strings.Repeat("0", 500) + "1e-1000000": "0",
	} {
		if got := BoundedText(text); got != want {
			t.Errorf("BoundedText(%q) = %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"", "e", "1e", "1e+", "1e+-999999", "-e5", ".e999", "1.5", "1e399", "-1.5E-9", "1e-399", "1e308", "hello", "1 piece", "0x1e5", "pens", "1pence", "1x9", "_1e999999999", "1.5e+3rest",
		"0." + strings.Repeat("0", 300) + "1e301", strings.Repeat("1", 300) + "e-390",
	} {
		if got := BoundedText(text); got != text {
			t.Errorf("BoundedText(%q) = %q", text, got)
		}
	}
}

// Values other than texts stay.
func TestBoundedNumber(t *testing.T) {
	for _, c := range []struct{ v, want any }{
		{"1e999999", "1e401"}, {[]byte("1e999999"), "1e401"}, {[]byte("15"), "15"}, {types.JSONDocument{Val: "1e999999"}, types.JSONDocument{Val: "1e401"}}, {types.JSONDocument{Val: 1.5}, types.JSONDocument{Val: 1.5}}, {1e300, 1e300}, {nil, nil},
	} {
		got := BoundedNumber(c.v)
		if b, ok := got.([]byte); ok {
			got = string(b)
		}
		if got != c.want {
			t.Errorf("BoundedNumber(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}
