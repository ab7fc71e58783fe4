package shapes

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The shapes of the package have what they need, however many rows there are.
func TestShapes(t *testing.T) {
	for _, rows := range []int64{RowsMin, 100_000} {
		all, err := parse(shapesText, rows)
		if err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		if len(all) < 150 {
			t.Errorf("%d shapes, want at least 150", len(all))
		}
		from := newSource(1)
		for _, s := range all {
			ds := from.draw(s)
			for _, st := range append(s.before, s.statements...) {
				if n := strings.Count(st.text, "?"); n != len(st.arguments(ds)) {
					t.Errorf("%s: %s: %d placeholders, %d values", s.Name, st.text, n, len(st.slots))
				}
				if strings.ContainsAny(st.text, "{}") {
					t.Errorf("%s: %s: rows to be repeated are left", s.Name, st.text)
				}
			}
		}
	}
}

func TestParse(t *testing.T) {
	all, err := parse(`# a comment
== lookups
-- one
:id int 1 rows
SELECT a FROM t
	WHERE id = :id AND b = ':id' /* :id */ AND c = 'it''s'
-- several
:a int 5 5
:n list 3 of int 1 3
compare counts
before DELETE FROM t WHERE a = :a
BEGIN
insert into t values {2 * (:a, 1)} ON DUPLICATE KEY UPDATE a = :a
/* x */ select a from t where id in (:n) order by a
`, 100)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	one, several := all[0], all[1]
	if one.Group != "lookups" || one.Name != "one" || one.compare != compareAll || !one.isPrepared() || one.repetitions() != 1 {
		t.Errorf("%+v", one)
	}
	if st := one.statements[0]; st.text != "SELECT a FROM t WHERE id = ? AND b = ':id' /* :id */ AND c = 'it''s'" || !st.isQuery || st.isOrdered || len(st.slots) != 1 {
		t.Errorf("%+v", st)
	}
	if several.compare != compareCounts || len(several.before) != 1 || len(several.statements) != 3 || several.repetitions() != 2 {
		t.Errorf("%+v", several)
	}
	if !several.statements[0].isControl {
		t.Error("BEGIN would be prepared")
	}
	st := several.statements[1]
	if st.text != "insert into t values (?, 1), (?, 1) ON DUPLICATE KEY UPDATE a = ?" || st.isQuery || st.isControl {
		t.Errorf("%+v", st)
	}
	if want := []slot{{"a", 0, 0}, {"a", 0, 1}, {"a", 0, 0}}; !reflect.DeepEqual(st.slots, want) {
		t.Errorf("%v, want %v", st.slots, want)
	}
	if st := several.statements[2]; st.text != "/* x */ select a from t where id in (?, ?, ?) order by a" || !st.isQuery || !st.isOrdered || len(st.slots) != 3 {
		t.Errorf("%+v", st)
	}
	if args := st.arguments(newSource(1).draw(several)); fmt.Sprint(args) != "[5 5 5]" {
		t.Errorf("%v", args)
	}
}

func TestParseErrors(t *testing.T) {
	const begin = "== g\n-- s\n"
	for text, says := range map[string]string{
		"SELECT 1":                                      `line 1: "SELECT 1" belongs to no shape`,
		"-- s\nSELECT 1":                                `line 1: shape "s" has no group`,
		begin + "SELECT 1\n-- s\nSELECT 1":              `line 4: group "g" has two shapes "s"`,
		begin:                                           `at the end: shape "s" has no statement`,
		begin + "-- other":                              `line 3: shape "s" has no statement`,
		begin + "== other":                              `line 3: shape "s" has no statement`,
		begin + "SELECT :a":                             "line 3: :a has no draw above",
		begin + "SELECT {2 * (:a)}":                     "line 3: :a has no draw above",
		begin + "SELECT {0 * (1)}":                      "line 3: 0 rows",
		begin + "before SELECT :a":                      "line 3: :a has no draw above",
		begin + "compare rows":                          `compare "rows"; it is counts or nothing`,
		begin + ":a int 1 2\nSELECT 1":                  `parameter "a" of shape "s" is not used`,
		begin + ":a int":                                "it is :NAME DRAW",
		begin + ":a int 1\nSELECT :a":                   `"int 1" draws no number`,
		begin + ":a int x 1\nSELECT :a":                 `the bound "x"`,
		begin + ":a int 1 rows/0\nSELECT :a":            `the bound "rows/0" divides by 0`,
		begin + ":a int 5 rows/1000\nSELECT :a":         "int 5 rows/1000 of 100 rows: 5 is more than 0",
		begin + ":a next x\nSELECT :a":                  "invalid syntax",
		begin + ":a next 1 step x\nSELECT :a":           "invalid syntax",
		begin + ":a color of int 1 2\nSELECT :a":        "is no draw",
		begin + ":a text x\nSELECT :a":                  "is no draw",
		begin + ":a list x of int 1 2\nSELECT :a":       "is not N of int LOW HIGH",
		begin + ":a list 2 of int 1 x\nSELECT :a":       `the bound "x"`,
		begin + ":a list 3 of int 1 2\nSELECT :a":       "there are not 3 numbers from 1 to 2",
		begin + ":a plus b x\nSELECT :a":                `the bound "x"`,
		begin + ":a plus b 1\nSELECT :a":                `:a: there is no parameter "b" above`,
		begin + ":b one of x|y\n:a plus b 1\nSELECT :a": `:a: parameter "b" is no number`,
	} {
		_, err := parse(text, 100)
		if !errors.Is(err, errSyntax) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
