package fast

import (
	"reflect"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/plan"
)

// A text that differs in literals only has one key; others have none.
func TestNormalise(t *testing.T) {
	for _, c := range []struct {
		query, key string
		values     []Value
	}{
		{"SELECT c FROM t WHERE id=123", "SELECT c FROM t WHERE id=?", []Value{{Number: 123, IsNumber: true}}},
		{"SELECT `a?1` FROM t1 WHERE x='it is' AND y = -5", "SELECT `a?1` FROM t1 WHERE x=? AND y = -?", []Value{{Text: "it is"}, {Number: 5, IsNumber: true}}},
		{"d > DATE '2026-01-31' AND e = timestamp\n'2026-01-31 10:00:00' OR f=Time'10:00:00'", "d > ? AND e = ? OR f=?",
			[]Value{{Text: "2026-01-31", IsRespelled: true}, {Text: "2026-01-31 10:00:00", IsRespelled: true}, {Text: "10:00:00", IsRespelled: true}}},
		{"DATE(x) = date", "DATE(x) = date", nil}, {"a.date 'x'", "a.date ?", []Value{{Text: "x"}}}, {"a . time 'x'", "a . time ?", []Value{{Text: "x"}}}, {"@@timestamp 'x'", "@@timestamp ?", []Value{{Text: "x"}}},
		{"x = _binary'a\xff' AND y = _BINARY  'a''b\\0'", "x = ? AND y = ?", []Value{{Text: "a\xff", Form: plan.Binary, IsRespelled: true}, {Text: "a'b\x00", Form: plan.Binary, IsRespelled: true}}},
		{"x = _binary y", "x = _binary y", nil}, {"_binary'open", "", nil}, {`x = _binary'a\%'`, "", nil}, {"DATE '\xff'", "", nil}, {"a._binary 'x'", "a._binary ?", []Value{{Text: "x"}}},
		{"DATE 'open", "", nil}, {"update 'x'", "update ?", []Value{{Text: "x"}}},
		{"x = 05 AND y = 0 AND z = -00", "x = ? AND y = ? AND z = -?", []Value{{Number: 5, IsNumber: true, IsRespelled: true}, {IsNumber: true}, {IsNumber: true, IsRespelled: true}}},
		{"a1 = 1", "a1 = ?", []Value{{Number: 1, IsNumber: true}}},
		{"x = 1.", "", nil}, {"x = 1e", "", nil}, {"x = 1e+", "", nil}, {"x = 1.5.5", "", nil}, {"x = 1.5a", "", nil}, {"x = 1e5e5", "", nil}, {"x = X'4'", "", nil}, {"x = X'4G'", "", nil}, {"x = X'41", "", nil},
		{"x = 1.50", "x = ?", []Value{{Text: "1.50", Form: plan.Decimal}}}, {"x = -01.5", "x = -?", []Value{{Text: "01.5", Form: plan.Decimal, IsRespelled: true}}},
		{"x = 1e5+1.5E-3", "x = ?+?", []Value{{Text: "1e5", Form: plan.Float}, {Text: "1.5E-3", Form: plan.Float}}},
		{"x = X'4142' AND y=x''", "x = ? AND y=?", []Value{{Text: "AB", Form: plan.Bytes, IsRespelled: true}, {Form: plan.Bytes, IsRespelled: true}}},
		{"'" + strings.Repeat("x", textMax-2) + "'", "?", []Value{{Text: strings.Repeat("x", textMax-2)}}}, {strings.Repeat("x", keyMax+1), "", nil},
		{"x = .5", "", nil}, {"x = 0x1F", "x = ?", []Value{{Text: "\x1f", Form: plan.Bytes, IsRespelled: true}}}, {"x = 0x123", "x = ?", []Value{{Text: "\x01\x23", Form: plan.Bytes, IsRespelled: true}}}, {"x = 0x", "", nil}, {"x = 0x1G", "", nil}, {"x = 0x1.5", "", nil}, {"x = 99999999999999999999", "", nil}, {"1a", "", nil},
		{"x = 'a''b' AND y = ''''", "x = ? AND y = ?", []Value{{Text: "a'b", IsRespelled: true}, {Text: "'", IsRespelled: true}}}, {"x = '' AND y = 1", "x = ? AND y = ?", []Value{{}, {Number: 1, IsNumber: true}}},
		{`x = 'a\'b\"\\' AND y = '\0\b\n\r\t\Z'''`, "x = ? AND y = ?", []Value{{Text: `a'b"\`, IsRespelled: true}, {Text: "\x00\b\n\r\t\x1a'", IsRespelled: true}}},
		{`x = 'a\%'`, "", nil}, {`x = 'a\_'`, "", nil}, {`x = 'a\x'`, "", nil}, {`x = 'a\`, "", nil}, {`x = 'a\'`, "", nil}, {`x = 'a''`, "", nil}, {"x = '\\\\\xff'", "", nil}, {"x = '\\n\xff'", "", nil}, {"x = 'open", "", nil}, {"`open", "", nil}, {`x = "a"`, "x = ?", []Value{{Text: "a", IsRespelled: true}}}, {`x = "it's ""a"" \"b\""`, "x = ?", []Value{{Text: `it's "a" "b"`, IsRespelled: true}}}, {`x = "a`, "", nil}, {`x = _binary"a"`, "x = ?", []Value{{Text: "a", Form: plan.Binary, IsRespelled: true}}}, {"x = 'a\xff'", "", nil},
		{"x --c", "", nil}, {"x /*c*/ y", "x  y", nil}, {"x # c", "x ", nil}, {"x y -- c\n/*d*/ z#", "x y -- c\n/*d*/ z#", nil}, {"x -- c\ny --\tz", "x y --\tz", nil}, {"x /*?*/ y", "x  y", nil},
		{"x y /*?*/ z", "", nil}, {"x y /*'*/ z", "", nil}, {"x y /* z", "", nil}, {"x y /*! z */ z", "", nil}, {"x y /*M! z */ z", "", nil}, {"x /*+ y */ z", "x /*+ y */ z", nil}, {"x y -- z /* a */", "", nil}, {"@x", "", nil}, {"x = ?", "", nil}, {"x = :v1", "", nil}, {"x; y", "", nil}, {"é", "", nil},
		{strings.Repeat("x", textMax+1), "", nil},
		{"/* a */ /*b=1*/\nx = 1 /* c='d', e='f' */ /**/", "x = ?", []Value{{Number: 1, IsNumber: true}}}, {"a != 1", "a != ?", []Value{{Number: 1, IsNumber: true}}}, {"a ! 1", "a ! ?", []Value{{Number: 1, IsNumber: true}}}, {"a % 2 / b", "a % ? / b", []Value{{Number: 2, IsNumber: true}}}, {"a /* b */ c", "a  c", nil},
		{"/*!80000 x */ y", "", nil}, {"/*+ x */ y", "/*+ x */ y", nil}, {"/*M! x */ y", "", nil}, {"x /*! y */", "", nil}, {"x /*+ y */", "x /*+ y */", nil}, {"/* x", "", nil}, {"x */", "", nil},
		{"x = 'a /* b' */", "", nil}, {"x -- a /* b */", "", nil}, {"x /* a */ b */", "", nil}, {"x /* a /* b */", "", nil}, {"/*/", "", nil},
	} {
		n := normaliser{}
		ok := n.add(c.query)
		if ok != (c.key != "") || ok && (string(n.key) != c.key || !reflect.DeepEqual(n.values, c.values)) {
			t.Errorf("%q: %v %q %v", c.query, ok, n.key, n.values)
		}
	}
	for _, query := range []string{`x = "a"`, `x = _binary"a"`} {
		if n := (normaliser{ansiQuotes: true}); n.add(query) && len(n.values) > 0 {
			t.Errorf("%s has a string with ANSI_QUOTES", query)
		}
	}
	n := normaliser{prepared: true, bound: []Value{{Text: "a"}, {Number: 2, IsNumber: true}}}
	if !n.add("x = ? AND y = 1 AND z = ?") || string(n.key) != "x = ? AND y = ? AND z = ?" || n.values[1].Number != 1 || n.values[2].Number != 2 {
		t.Errorf("prepared: %q %v", n.key, n.values)
	}
	for _, query := range []string{"x = ?", "x = ? AND y = ? AND z = ?"} {
		n := normaliser{prepared: true, bound: []Value{{}, {}}}
		if n.add(query) {
			t.Errorf("%s takes two values", query)
		}
	}
}
