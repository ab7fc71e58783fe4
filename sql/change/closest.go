package change

import (
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file finds the value that a column takes in place of one that does not fit, if sql_mode is not strict: MySQL then
// warns and stores the nearest value, and the type's own default for a value that is missing. go-mysql-server does not look at the mode.

// closest is like store.Assign, for a session whose sql_mode is not strict: it returns the nearest value that the column can
// hold, with a warning. It leaves JSON and spatial values unchanged: go-mysql-server reports their errors in any mode.
func closest(ctx *gms.Context, v any, t gms.Type, column string, at int) (any, error) {
	if v == nil || !isClosest(t) {
		return v, nil
	}
	if types.IsDecimal(t) {
		v = row.BoundedNumber(v)
	}
	out, err := store.Assign(ctx, v, t, column, at)
	if err == nil {
		_, in, failed := store.ConvertNumber(ctx, out, t)
		if failed == nil && in == gms.InRange {
			return out, nil
		}
	}
	switch {
	case types.IsNumber(t) || types.IsBit(t):
		return closestNumber(ctx, v, t, column, at)
	case types.IsSet(t):
		myerr.DataTruncated.Warn(ctx, column, at)
		return membersOf(v, t.(gms.SetType)), nil
	case types.IsText(t):
		return cut(ctx, v, t, column, at)
	case row.IsTimespan(t):
		return closestTimespan(ctx, v, t, column, at), nil
	}
	myerr.DataTruncated.Warn(ctx, column, at)
	return t.Zero(), nil
}

// isClosest reports whether values of a type are brought into its range.
func isClosest(t gms.Type) bool {
	return types.IsNumber(t) || types.IsBit(t) || types.IsText(t) || types.IsEnum(t) || types.IsSet(t) || types.IsTime(t) || row.IsTimespan(t)
}

// numberPrefix matches the number that a text begins with, as MySQL reads it.
var numberPrefix = regexp.MustCompile(`^[ \t\n]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)`)

// closestNumber returns the number of a type that is nearest to v, or to the number that the text v begins with.
func closestNumber(ctx *gms.Context, v any, t gms.Type, column string, at int) (any, error) {
	isTold := false
	if s, ok := v.(string); ok {
		m := numberPrefix.FindStringSubmatch(s)
		if m == nil {
			myerr.IncorrectNumber.Warn(ctx, store.NumberName(t), s, column, at)
			return t.Zero(), nil
		}
		if strings.TrimSpace(s[len(m[0]):]) != "" {
			myerr.DataTruncated.Warn(ctx, column, at)
			isTold = true
		}
		v = m[1]
	}
	if types.IsUnsigned(t) && numberOf(ctx, v) < 0 {
		return cutNegative(ctx, v, t, column, at), nil
	}
	out, in, err := store.ConvertNumber(ctx, v, t)
	if err == nil && in == gms.InRange {
		return out, nil
	}
	if !isTold {
		myerr.ColumnOutOfRange.Warn(ctx, column, at)
	}
	switch {
	case types.IsDecimal(t):
		return greatestDecimal(t.(gms.DecimalType), numberOf(ctx, v) < 0), nil
	case types.IsBit(t):
		return ^uint64(0) >> (64 - t.(types.BitType).NumberOfBits()), nil
	case err != nil || out == nil:
		return t.Zero(), nil
	}
	return out, nil
}

// greatestDecimal returns the greatest number of a type of decimals, or the least.
func greatestDecimal(t gms.DecimalType, isLeast bool) decimal.Decimal {
	d := decimal.New(1, int32(t.Precision())).Sub(decimal.New(1, 0)).Shift(-int32(t.Scale()))
	if isLeast {
		return d.Neg()
	}
	return d
}

// membersOf returns the members of a SET that a text names, without those that the SET does not have.
func membersOf(v any, t gms.SetType) string {
	s, _ := v.(string)
	var members []string
	for name := range strings.SplitSeq(s, ",") {
		for _, known := range t.Values() {
			if strings.EqualFold(name, known) {
				members = append(members, known)
				break
			}
		}
	}
	return strings.Join(members, ",")
}

// closestTimespan returns the end of the range of TIME for a time beyond it, and 0 for what is no time.
func closestTimespan(ctx *gms.Context, v any, t gms.Type, column string, at int) any {
	n, err := t.(types.TimeType).ConvertToTimespan(v)
	if err != nil {
		myerr.DataTruncated.Warn(ctx, column, at)
		return t.Zero()
	}
	myerr.ColumnOutOfRange.Warn(ctx, column, at)
	return n
}

// A missing finds the values that the rows of an INSERT lack, if sql_mode is not strict.
type missing struct {
	// omitted are the columns that the INSERT does not name and that have no default.
	omitted gms.FastIntSet
	// isEmpty is set if the INSERT names no columns and no values: all are omitted.
	isEmpty bool
	// isOnly is set if the INSERT has a single row of values: its NULL is an error in any mode.
	isOnly bool
}

// missingOf returns the missing of an INSERT.
func missingOf(n *plan.InsertInto) *missing {
	m := &missing{omitted: n.DeferredDefaults}
	transform.Inspect(n.Source, func(n gms.Node) bool {
		if values, ok := n.(*plan.Values); ok {
			m.isOnly = len(values.ExpressionTuples) == 1
			m.isEmpty = len(values.ExpressionTuples) > 0 && len(values.ExpressionTuples[0]) == 0
		}
		return true
	})
	return m
}

// value returns the value that column i takes in place of NULL, with a warning; nil if NULL stays.
func (m *missing) value(ctx *gms.Context, i int, c *gms.Column) any {
	if c.Nullable || c.AutoIncrement || c.Generated != nil || !isClosest(c.Type) {
		return nil
	}
	isOmitted := m.isEmpty || m.omitted.Contains(i)
	switch {
	case isOmitted && types.IsEnum(c.Type):
		return nil // go-mysql-server takes the first member
	case isOmitted:
		myerr.NoDefault.Warn(ctx, c.Name)
	case m.isOnly:
		return nil
	default:
		myerr.NotNull.Warn(ctx, c.Name)
	}
	return c.Type.Zero()
}

// notNull returns the value that an UPDATE gives to a column in place of NULL, if sql_mode is not strict; nil if NULL stays.
func notNull(ctx *gms.Context, c *expression.GetField) any {
	t := c.Type(ctx)
	if c.IsNullable(ctx) || !isClosest(t) {
		return nil
	}
	myerr.NotNull.Warn(ctx, c.Name())
	return t.Zero()
}
