package exec

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file tests conditions on the stored form of rows, so that most rows that do not pass need not become Go values.

// A storedTest tests a condition on a stored row; false if the stored form cannot decide it.
type storedTest func(*row.View) (truth, bool)

// A storedCompiler compiles conditions to storedTests.
type storedCompiler struct {
	compiler
	rows *row.Codec
}

// verdict returns a function that decides, as far as the stored form can, whether a row meets a
// condition; nil if it never can.
func (c *storedCompiler) verdict(cond plan.Condition) func(*row.View) store.Verdict {
	all, isAnd := cond.(plan.And)
	if !isAnd {
		all = plan.And{cond}
	}
	var tests []storedTest
	for _, x := range all {
		t, ok := c.compile(x)
		if !ok { // evaluating this condition may fail, which later tests must not hide
			break
		}
		tests = append(tests, t)
	}
	if len(tests) == 0 {
		return nil
	}
	passed := store.Yes
	if len(tests) < len(all) {
		passed = store.Maybe
	}
	return func(v *row.View) store.Verdict {
		result := passed
		for _, t := range tests {
			truth, known := t(v)
			switch {
			case !known:
				result = store.Maybe
			case truth != isTrue:
				return store.No
			}
		}
		return result
	}
}

// compile returns the storedTest of a condition; false if there is none.
func (c *storedCompiler) compile(cond plan.Condition) (storedTest, bool) {
	switch cond := cond.(type) {
	case plan.And:
		return c.combined(cond, isFalse)
	case plan.Or:
		return c.combined(cond, isTrue)
	case plan.Not:
		t, ok := c.compile(cond.Condition)
		return negatedStored(t), ok
	case plan.Compare:
		return c.comparison(cond)
	case plan.In:
		return c.membership(cond)
	case plan.Like:
		return c.likeness(cond)
	case plan.IsNull:
		slot := c.rows.Columns[cond.Column].Slot
		return func(v *row.View) (truth, bool) {
			b, _, err := v.Slot(slot)
			return truthOf((b == nil) != cond.Not), err == nil
		}, true
	}
	return nil, false
}

func negatedStored(t storedTest) storedTest {
	return func(v *row.View) (truth, bool) {
		truth, known := t(v)
		return isTrue - truth, known
	}
}

// combined is compiler.combined on stored rows.
func (c *storedCompiler) combined(all []plan.Condition, decides truth) (storedTest, bool) {
	tests := make([]storedTest, len(all))
	for i, cond := range all {
		var ok bool
		if tests[i], ok = c.compile(cond); !ok {
			return nil, false
		}
	}
	return func(v *row.View) (truth, bool) {
		result, areAllKnown := isTrue-decides, true
		for _, t := range tests {
			truth, known := t(v)
			switch {
			case !known:
				areAllKnown = false
			case truth == decides:
				return truth, true
			case truth == isUnknown:
				result = isUnknown
			}
		}
		return result, areAllKnown
	}, true
}

// value returns the stored value of a column; nil for NULL; false if the row does not contain it.
func value(v *row.View, slot int) ([]byte, bool) {
	b, isOut, err := v.Slot(slot)
	return b, err == nil && !isOut
}

// comparison returns the test of a comparison.
func (c *storedCompiler) comparison(cond plan.Compare) (storedTest, bool) {
	compare, isNull, ok := c.comparer(cond.Column, cond.Value)
	if !ok {
		return nil, false
	}
	slot := c.rows.Columns[cond.Column].Slot
	return func(v *row.View) (truth, bool) {
		b, known := value(v, slot)
		if !known || b == nil || isNull {
			return isUnknown, known
		}
		n, known := compare(b)
		return truthOf(holds(cond.Op, n)), known
	}, true
}

// likeness returns the test that a column matches a pattern.
func (c *storedCompiler) likeness(cond plan.Like) (storedTest, bool) {
	test, ok := c.compiler.likenessOf(cond)
	if codec := c.codec(cond.Column); !ok || !codec.IsDirect() || !row.IsCharacter(codec.Kind) {
		return nil, false
	}
	slot := c.rows.Columns[cond.Column].Slot
	return func(v *row.View) (truth, bool) {
		b, known := value(v, slot)
		if !known || b == nil {
			return isUnknown, known
		}
		return test(string(b)), true
	}, true
}

// membership returns the test of IN, as compiler.membership does.
func (c *storedCompiler) membership(cond plan.In) (storedTest, bool) {
	all, hasNull, ok := c.sorted(cond)
	if !ok {
		return nil, false
	}
	slot := c.rows.Columns[cond.Column].Slot
	t := func(v *row.View) (truth, bool) {
		if len(all) == 0 && !hasNull { // the subquery has no rows
			return isFalse, true
		}
		b, known := value(v, slot)
		if !known || b == nil {
			return isUnknown, known
		}
		_, found := slices.BinarySearchFunc(all, b, func(x storedComparer, b []byte) int {
			n, ok := x(b)
			known = known && ok
			return -n
		})
		switch {
		case found:
			return isTrue, known
		case hasNull:
			return isUnknown, known
		}
		return isFalse, known
	}
	if cond.Not {
		return negatedStored(t), true
	}
	return t, true
}

// sorted returns comparers with the values of a list, in order and without NULL.
func (c *storedCompiler) sorted(cond plan.In) (all []storedComparer, hasNull, ok bool) {
	members, hasNull, ok := c.compiler.sorted(cond)
	for _, m := range members {
		compare, isComparable := storedComparerOf(c.codec(cond.Column), m.value)
		if !isComparable {
			return nil, false, false
		}
		all = append(all, compare)
	}
	return all, hasNull, ok
}

// A storedComparer compares a stored value with a constant; false if the stored form cannot decide.
type storedComparer func(b []byte) (order int, known bool)

// comparer returns the storedComparer of a column with an operand, which may be NULL; false if there is none.
func (c *storedCompiler) comparer(column int, o plan.Operand) (compare storedComparer, isNull, ok bool) {
	_, constant, ok := c.compiler.comparer(column, o)
	if !ok || constant == nil {
		return nil, true, ok
	}
	compare, ok = storedComparerOf(c.codec(column), constant)
	return compare, false, ok
}

// storedComparerOf returns the storedComparer of a column with a constant of its Go type; false if there is none.
func storedComparerOf(codec *row.KeyCodec, constant any) (storedComparer, bool) {
	switch constant := constant.(type) {
	case string:
		text := []byte(constant)
		return func(b []byte) (int, bool) { return row.CompareWeights(codec.Weights, b, text) }, row.IsCharacter(codec.Kind) && codec.IsDirect()
	case []byte:
		return func(b []byte) (int, bool) { return bytes.Compare(b, constant), true }, codec.Kind == catalog.KindVarbinary
	case time.Time:
		return signedComparer(constant.UnixMicro()), codec.Kind == catalog.KindDate || codec.Kind == catalog.KindDatetime
	case decimal.Decimal:
		units, ok := wholeUnits(constant, codec.Scale)
		return signedComparer(units), ok && codec.Kind == catalog.KindDecimal
	}
	if n, ok := row.Signed(constant); ok {
		return signedComparer(n), codec.IsSigned()
	}
	n, ok := row.Unsigned(constant)
	return func(b []byte) (int, bool) {
		x, ok := row.ReadUint(b)
		return cmp.Compare(x, n), ok
	}, ok && codec.IsUnsigned()
}

// signedComparer compares stored integers.
func signedComparer(n int64) storedComparer {
	return func(b []byte) (int, bool) {
		x, ok := row.ReadInt(b)
		return cmp.Compare(x, n), ok
	}
}

// unitDigitsMax bounds the digits of decimals that are compared as integers.
const unitDigitsMax = 18

// wholeUnits returns a decimal as a number of units of a column's last digit; false if that number
// is not an integer, or is too large.
func wholeUnits(d decimal.Decimal, scale int32) (int64, bool) {
	if d.NumDigits()+int(max(0, d.Exponent()+scale)) > unitDigitsMax {
		return 0, false
	}
	units := d.Shift(scale)
	n := units.IntPart()
	return n, units.IsInteger() && n != math.MinInt64
}
