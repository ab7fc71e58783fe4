package exec

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// A truth is a value of three-valued logic. AND returns the least of its operands, OR the greatest.
type truth int8

const (
	isFalse truth = iota
	isUnknown
	isTrue
)

// A test decides a condition for a row.
type test func(*gms.Context, gms.Row) (truth, error)

// A compiler compiles conditions on rows for the values of a statement.
type compiler struct {
	place  func(column int) int // the position of a column in the rows
	codec  func(column int) *row.KeyCodec
	values []plan.Value
}

// compile returns the test of a condition; false if a value is not plain.
func (c *compiler) compile(cond plan.Condition) (test, bool) {
	switch cond := cond.(type) {
	case plan.And:
		return c.combined(cond, isFalse)
	case plan.Or:
		return c.combined(cond, isTrue)
	case plan.Not:
		t, ok := c.compile(cond.Condition)
		return negated(t), ok
	case plan.Compare:
		return c.comparison(cond)
	case plan.In:
		return c.membership(cond)
	case plan.Same:
		return c.sameness(cond)
	case plan.Like:
		return c.likeness(cond)
	case plan.IsNull:
		at := c.place(cond.Column)
		return func(_ *gms.Context, r gms.Row) (truth, error) { return truthOf((r[at] == nil) != cond.Not), nil }, true
	case plan.Other:
		if in, ok := cond.Expr.(*expression.InTuple); ok && isConstantList(in.Right()) {
			return remembered(in), true
		}
		return func(ctx *gms.Context, r gms.Row) (truth, error) {
			v, err := gms.EvaluateCondition(ctx, cond.Expr, r)
			switch {
			case err != nil || v == nil:
				return isUnknown, err
			}
			return truthOf(gms.IsTrue(v)), nil
		}, true
	}
	return nil, false
}

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

func negated(t test) test {
	return func(ctx *gms.Context, r gms.Row) (truth, error) {
		v, err := t(ctx, r)
		return isTrue - v, err // isUnknown stays as it is
	}
}

// combined returns the test of an AND or OR. decides is the result of the whole as soon as one
// condition has it: false for AND, true for OR.
func (c *compiler) combined(all []plan.Condition, decides truth) (test, bool) {
	tests := make([]test, len(all))
	for i, cond := range all {
		var ok bool
		if tests[i], ok = c.compile(cond); !ok {
			return nil, false
		}
	}
	return func(ctx *gms.Context, r gms.Row) (truth, error) {
		result := isTrue - decides // if no condition decides: the opposite
		for _, t := range tests {
			v, err := t(ctx, r)
			if err != nil || v == decides {
				return v, err
			}
			if v == isUnknown {
				result = isUnknown
			}
		}
		return result, nil
	}, true
}

// comparison returns the test of a comparison.
func (c *compiler) comparison(cond plan.Compare) (test, bool) {
	compare, _, ok := c.comparer(cond.Column, cond.Value)
	if !ok {
		return nil, false
	}
	at := c.place(cond.Column)
	return func(_ *gms.Context, r gms.Row) (truth, error) {
		n, known, err := compare(r[at])
		if err != nil || !known {
			return isUnknown, err
		}
		return truthOf(holds(cond.Op, n)), nil
	}, true
}

// likeness returns the test that a column matches a pattern.
func (c *compiler) likeness(cond plan.Like) (test, bool) {
	like, ok := c.likenessOf(cond)
	at := c.place(cond.Column)
	return func(_ *gms.Context, r gms.Row) (truth, error) {
		if r[at] == nil {
			return isUnknown, nil
		}
		s, ok := r[at].(string)
		if !ok {
			return isUnknown, ErrPlan
		}
		return like(s), nil
	}, ok
}

// likenessOf returns a function that reports whether a text of a column matches a pattern; false if the pattern is neither
// a plain text nor NULL.
func (c *compiler) likenessOf(cond plan.Like) (func(string) truth, bool) {
	codec := c.codec(cond.Column)
	v, ok := cond.Pattern.In(c.values)
	if !ok {
		return nil, false
	}
	constant, ok := plan.Constant(codec, v)
	pattern, isText := constant.(string)
	if !ok || !isText {
		return func(string) truth { return isUnknown }, ok && constant == nil // nothing matches NULL
	}
	matcher, err := compat.NewLikeMatcher(codec.Collation, pattern)
	return func(s string) truth { return truthOf(matcher.Match(s)) }, err == nil
}

// sameness returns the test that two columns are equal.
func (c *compiler) sameness(cond plan.Same) (test, bool) {
	left, right := c.place(cond.Left), c.place(cond.Right)
	equal := equalerOf(c.codec(cond.Left))
	return func(_ *gms.Context, r gms.Row) (truth, error) {
		a, b := r[left], r[right]
		if a == nil || b == nil {
			return isUnknown, nil
		}
		areEqual, ok := equal(a, b)
		return truthOf(areEqual), unless(ok)
	}, true
}

// equalerOf returns the function that compares values of two columns for equality. One column has
// this codec, and the other is compared alike. ok is false for values of other Go types.
func equalerOf(codec *row.KeyCodec) func(a, b any) (areEqual, ok bool) {
	switch {
	case codec.IsInteger():
		return equalNumbers
	case row.IsCharacter(codec.Kind):
		return func(a, b any) (areEqual, ok bool) {
			s, isText := a.(string)
			t, isOtherText := b.(string)
			if !isText || !isOtherText {
				return false, false
			}
			order, ok := codec.Weights.Compare(s, t)
			return order == 0, ok
		}
	case codec.Kind == catalog.KindDecimal:
		return func(a, b any) (areEqual, ok bool) {
			d, isDecimal := a.(decimal.Decimal)
			e, isOtherDecimal := b.(decimal.Decimal)
			ok = isDecimal && isOtherDecimal
			return ok && d.Cmp(e) == 0, ok
		}
	}
	return func(a, b any) (areEqual, ok bool) {
		s, isTime := a.(time.Time)
		t, isOtherTime := b.(time.Time)
		ok = isTime && isOtherTime
		return ok && s.Equal(t), ok
	}
}

// equalNumbers compares integers of any types.
func equalNumbers(a, b any) (areEqual, ok bool) {
	x, xIsNegative, xIsWhole := bitsOf(a)
	y, yIsNegative, yIsWhole := bitsOf(b)
	return x == y && xIsNegative == yIsNegative, xIsWhole && yIsWhole
}

// bitsOf returns the bits of an integer, and whether it is negative; ok is false for other values.
func bitsOf(v any) (bits uint64, isNegative, ok bool) {
	if n, ok := row.Signed(v); ok {
		return uint64(n), n < 0, true
	}
	bits, ok = row.Unsigned(v)
	return bits, false, ok
}

// holds reports whether a comparison holds for the order of its operands.
func holds(op plan.Op, order int) bool {
	switch op {
	case plan.Equal:
		return order == 0
	case plan.NotEqual:
		return order != 0
	case plan.Less:
		return order < 0
	case plan.LessEqual:
		return order <= 0
	case plan.Greater:
		return order > 0
	}
	return order >= 0
}

// membership returns the test of IN: true if the column equals a value, otherwise unknown if a
// value is NULL. The values are sorted, so that a long list takes few comparisons for each row.
func (c *compiler) membership(cond plan.In) (test, bool) {
	all, hasNull, ok := c.sorted(cond)
	if !ok {
		return nil, false
	}
	at := c.place(cond.Column)
	t := func(_ *gms.Context, r gms.Row) (truth, error) {
		if len(all) == 0 && !hasNull { // the subquery has no rows
			return isFalse, nil
		}
		if r[at] == nil {
			return isUnknown, nil
		}
		var failed error
		_, found := slices.BinarySearchFunc(all, r[at], func(x member, v any) int {
			n, _, err := x.compare(v) // the order of v relative to x
			failed = cmp.Or(failed, err)
			return -n
		})
		switch {
		case failed != nil:
			return isUnknown, failed
		case found:
			return isTrue, nil
		case hasNull:
			return isUnknown, nil
		}
		return isFalse, nil
	}
	if cond.Not {
		return negated(t), true
	}
	return t, true
}

// A member is a value of a list, with its encoding as a key. Encodings have the order of the values.
type member struct {
	compare comparer
	value   any
	key     []byte
}

// sorted returns the values of a list in order, without NULL; false if one is not plain.
func (c *compiler) sorted(cond plan.In) (all []member, hasNull, ok bool) {
	codec := c.codec(cond.Column)
	values, ok := plan.Constants(codec, cond.Values, c.values)
	if !ok {
		return nil, false, false
	}
	for _, v := range values {
		if v == nil {
			hasNull = true
			continue
		}
		compare, ok := comparerOf(codec, v)
		if !ok {
			return nil, false, false
		}
		key, ok := codec.AppendNative(nil, v)
		if !ok {
			return nil, false, false
		}
		all = append(all, member{compare, v, key})
	}
	slices.SortFunc(all, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	return all, hasNull, true
}

// A comparer compares a column's value with a constant. known is false if one of them is NULL.
type comparer func(v any) (order int, known bool, err error)

// comparer returns the comparer of a column with an operand, and the operand's value. It returns
// false if the value is not a plain value of the column's type.
func (c *compiler) comparer(column int, o plan.Operand) (comparer, any, bool) {
	v, ok := o.In(c.values)
	if !ok {
		return nil, nil, false
	}
	codec := c.codec(column)
	constant, ok := plan.Constant(codec, v)
	if !ok {
		return nil, nil, false
	}
	compare, ok := comparerOf(codec, constant)
	return compare, constant, ok
}

// comparerOf returns the comparer of a column with a constant of its Go type; false if the type has none.
func comparerOf(codec *row.KeyCodec, constant any) (comparer, bool) {
	switch constant := constant.(type) {
	case nil:
		return func(any) (int, bool, error) { return 0, false, nil }, true
	case string:
		return texts(codec, constant), true
	case []byte:
		return func(v any) (int, bool, error) {
			b, ok := v.([]byte)
			return bytes.Compare(b, constant), ok, unless(ok || v == nil)
		}, true
	case time.Time:
		return func(v any) (int, bool, error) {
			t, ok := v.(time.Time)
			return t.Compare(constant), ok, unless(ok || v == nil)
		}, true
	case decimal.Decimal:
		return func(v any) (int, bool, error) {
			d, ok := v.(decimal.Decimal)
			if !ok {
				return 0, false, unless(v == nil)
			}
			return d.Cmp(constant), true, nil
		}, true
	}
	return numbers(constant)
}

// unless returns ErrPlan if ok is false: a value of a Go type that this package does not expect is
// left to go-mysql-server.
func unless(ok bool) error {
	if ok {
		return nil
	}
	return ErrPlan
}

// texts compares texts by the weights of their characters.
func texts(codec *row.KeyCodec, constant string) comparer {
	return func(v any) (int, bool, error) {
		s, ok := v.(string)
		if !ok {
			return 0, false, unless(v == nil)
		}
		n, ok := codec.Weights.Compare(s, constant)
		return n, ok, unless(ok)
	}
}

// numbers compares integers of one type.
func numbers(constant any) (comparer, bool) {
	if n, ok := row.Signed(constant); ok {
		return func(v any) (int, bool, error) {
			x, ok := row.Signed(v)
			return cmp.Compare(x, n), ok, unless(ok || v == nil)
		}, true
	}
	n, ok := row.Unsigned(constant)
	return func(v any) (int, bool, error) {
		x, ok := row.Unsigned(v)
		return cmp.Compare(x, n), ok, unless(ok || v == nil)
	}, ok
}
