package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The rewrites of conditions: each directive is a rewrite, its input a condition, its output what the
// rewrite makes of it.
func TestSimplify(t *testing.T) {
	rewrites := map[string]func(Condition) Condition{
		"push-not":      func(c Condition) Condition { return pushNot(c, false) },
		"flatten":       flatten,
		"same-in-all":   sameInAll,
		"single-equals": singleEquals,
		"simplify":      Simplify,
	}
	datadriven.RunTest(t, "testdata/simplify", func(t *testing.T, d *datadriven.TestData) string {
		rewrite, ok := rewrites[d.Cmd]
		if !ok {
			t.Fatalf("%s: no rewrite %s", d.Pos, d.Cmd)
		}
		c := parse(t, d.Input)
		if before := c.String(); before != d.Input {
			t.Fatalf("%s: %s is shown as %s", d.Pos, d.Input, before)
		}
		out := rewrite(c)
		if differs(c, out) {
			t.Errorf("%s: %s is not equal to %s", d.Pos, out, c)
		}
		return out.String() + "\n"
	})
}

// parse parses a condition as String shows it.
func parse(t *testing.T, text string) Condition {
	t.Helper()
	tokens := strings.Fields(strings.NewReplacer("(", "( ", ")", " )").Replace(text))
	c, rest := parseTokens(t, tokens)
	if len(rest) > 0 {
		t.Fatalf("%v is left of %s", rest, text)
	}
	return c
}

func parseTokens(t *testing.T, tokens []string) (Condition, []string) {
	t.Helper()
	name, rest := tokens[1], tokens[2:]
	var children []Condition
	var words []string
	for rest[0] != ")" {
		if rest[0] != "(" {
			words, rest = append(words, rest[0]), rest[1:]
			continue
		}
		var c Condition
		c, rest = parseTokens(t, rest)
		children = append(children, c)
	}
	number := func(word string) int {
		n, err := strconv.Atoi(strings.TrimLeft(word, "#?"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rest = rest[1:]
	switch name {
	case "and":
		return And(children), rest
	case "or":
		return Or(children), rest
	case "not":
		return Not{children[0]}, rest
	case "null", "not-null":
		return IsNull{number(words[0]), name == "not-null"}, rest
	case "in", "not-in":
		in := In{Column: number(words[0]), Not: name == "not-in"}
		for _, w := range words[1:] {
			in.Values = append(in.Values, Operand{At: number(w) - 1})
		}
		return in, rest
	}
	for op, n := range opNames {
		if n == name && op == int(Equal) && strings.HasPrefix(words[1], "#") {
			return Same{number(words[0]), number(words[1])}, rest
		}
		if n == name {
			return Compare{number(words[0]), Op(op), Operand{At: number(words[1]) - 1}}, rest
		}
	}
	t.Fatalf("no condition %s", name)
	return nil, nil
}

// differs reports whether two conditions have different values for any row of columns #0 to #2 that
// are NULL, or numbers from 1 to 3, which are also the values of ?1 to ?3.
func differs(a, b Condition) bool {
	for i := range 4 * 4 * 4 {
		row := []int{i % 4, i / 4 % 4, i / 16}
		if valueOf(a, row) != valueOf(b, row) {
			fmt.Println("for the row", row)
			return true
		}
	}
	return false
}

// valueOf returns the value of a condition by its definition: -1 for false, 0 for unknown, 1 for
// true. A 0 in a row is NULL.
func valueOf(c Condition, row []int) int {
	truth := func(b bool) int { return map[bool]int{false: -1, true: 1}[b] }
	switch c := c.(type) {
	case And:
		v := 1
		for _, x := range c {
			v = min(v, valueOf(x, row))
		}
		return v
	case Or:
		v := -1
		for _, x := range c {
			v = max(v, valueOf(x, row))
		}
		return v
	case Not:
		return -valueOf(c.Condition, row)
	case IsNull:
		return truth((row[c.Column] == 0) != c.Not)
	case In:
		v := -1
		for _, o := range c.Values {
			v = max(v, valueOf(Compare{c.Column, Equal, o}, row))
		}
		if c.Not {
			return -v
		}
		return v
	case Same:
		x, y := row[c.Left], row[c.Right]
		if x == 0 || y == 0 {
			return 0
		}
		return truth(x == y)
	case Compare:
		x, y := row[c.Column], c.Value.At+1
		if x == 0 {
			return 0
		}
		return truth(map[Op]bool{Equal: x == y, NotEqual: x != y, Less: x < y, LessEqual: x <= y, Greater: x > y, GreaterEqual: x >= y}[c.Op])
	}
	panic(fmt.Sprintf("%T", c))
}

// The check of TestSimplify notices a rewrite that is wrong for rows with NULL only.
func TestSimplifyIsChecked(t *testing.T) {
	if !differs(Not{Compare{0, Equal, Operand{}}}, Or{Compare{0, NotEqual, Operand{}}, IsNull{Column: 0}}) {
		t.Error("NULL is taken for unequal")
	}
}
