package shapes

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
)

// drawn draws the parameters of a shape so often, and returns the values of one of them.
func drawn(t *testing.T, from *source, parameters, name string, n int) (values []any) {
	t.Helper()
	all, err := parse("== g\n-- s\n"+parameters+"\nSELECT :"+name, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		values = append(values, from.draw(all[0])[0][name].items...)
	}
	return values
}

func TestDraw(t *testing.T) {
	for parameters, pattern := range map[string]string{
		":a int 7 rows/100-1":                   `^[789]$`,
		":a int 7 9":                            `^[789]$`,
		":a int 2*rows 2*rows+1":                `^200[01]$`,
		":b int 7 9\n:a plus b rows":            `^100[789]$`,
		":a next 5":                             `^([5-9]|[1-9][0-9])$`,
		":a one of x|y":                         `^[xy]$`,
		":a text user%d@example.com of int 3 4": `^user[34]@example\.com$`,
		":a text a%d%% of int 3 4":              `^a[34]%$`,
		":a money of int 105 106":               `^1\.0[56]$`,
		":a day of int 31 31":                   `^2024-02-01$`,
		":a moment of int 3600 3600":            `^2024-01-01 01:00:00$`,
		":b int 1 1\n:a moment of plus b 59":    `^2024-01-01 00:01:00$`,
		":a uuid of int 1 9":                    `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-0000-00000000000[1-9]$`,
		":a list 3 of int 1 3":                  `^[123]$`,
	} {
		for _, v := range drawn(t, newSource(1), parameters, "a", 50) {
			if s := fmt.Sprint(v); !regexp.MustCompile(pattern).MatchString(s) {
				t.Errorf("%s: %s", parameters, s)
			}
		}
	}
	if v := drawn(t, newSource(1), ":a one of 20|40", "a", 1)[0]; v != int64(20) && v != int64(40) {
		t.Errorf("%T %v, want a number", v, v)
	}
	if v, ok := drawn(t, newSource(1), ":a hash of int 1 9", "a", 1)[0].([]byte); !ok || len(v) != 16 {
		t.Errorf("%v, want 16 bytes", v)
	}
}

// The same seed draws the same, another one something else.
func TestSeed(t *testing.T) {
	first := drawn(t, newSource(1), ":a int 1 rows", "a", 20)
	if again := drawn(t, newSource(1), ":a int 1 rows", "a", 20); !slices.Equal(first, again) {
		t.Errorf("%v and %v", first, again)
	}
	if other := drawn(t, newSource(2), ":a int 1 rows", "a", 20); slices.Equal(first, other) {
		t.Errorf("%v twice", first)
	}
}

// Two servers draw the same in a turn, but for how often, and what never repeats goes on after both.
func TestNextNeverRepeats(t *testing.T) {
	all, err := parse("== g\n-- s\n:a next 10 step 5\nSELECT :a", 100)
	if err != nil {
		t.Fatal(err)
	}
	from := newSource(1)
	next := func(s *source) int64 { return s.draw(all[0])[0]["a"].number }
	if n := next(from); n != 10 {
		t.Fatalf("%d is first, want 10", n)
	}
	one, other := from.fork(7), from.fork(7)
	if a, b := next(one), next(other); a != 15 || b != 15 {
		t.Errorf("%d and %d, want 15", a, b)
	}
	next(other)
	next(other)
	from.skip(one)
	from.skip(other)
	if n := next(from); n != 30 {
		t.Errorf("%d after both, want 30", n)
	}
}

// The rows of a table have different keys, and exist: INSERT has a value for each column.
func TestRows(t *testing.T) {
	d := newData(RowsMin)
	if d.prime <= d.rows {
		t.Errorf("the prime %d is not above %d", d.prime, d.rows)
	}
	if other := newData(createdStep - 1); other.created(1) == other.created(2) {
		t.Error("two rows have the same time")
	}
	seen := make(map[string]bool)
	for i := int64(1); i <= d.rows; i++ {
		for _, key := range []string{d.created(i), uuid(i), string(hashOf(i)), fmt.Sprint("member", d.member(i)[1:3]), fmt.Sprint("daily", d.daily(i)[:2]), fmt.Sprint("line", d.line(i)[:2])} {
			if seen[key] {
				t.Fatalf("row %d: %q is there already", i, key)
			}
			seen[key] = true
		}
	}
	if n := len(Statements(tablesText)); n != len(tables) {
		t.Errorf("%d definitions of %d tables", n, len(tables))
	}
}
