package compat

import (
	"math"
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/shopspring/decimal"
)

// A roundedNumber is FLOOR or CEIL of a double, whose result is a double, or of a decimal that may
// exceed BIGINT, whose result is a decimal. go-mysql-server returns the largest BIGINT for a result
// that exceeds it.
type roundedNumber struct {
	expression.UnaryExpressionStub
	name string
	typ  gms.Type
}

var (
	_ gms.FunctionExpression = (*roundedNumber)(nil)
	_ gms.CollationCoercible = (*roundedNumber)(nil)
)

// bigintDigits is the number of digits before the point that always fit a BIGINT; if a decimal
// may have that many, MySQL's result is a decimal.
const bigintDigits = 18

// wholeFunction returns FLOOR, CEIL and CEILING.
func wholeFunction(name string) (gms.Function, bool) {
	if name != "floor" && name != "ceil" && name != "ceiling" {
		return nil, false
	}
	ordinary, _ := textFunction(name)
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if len(args) == 1 && args[0].Resolved() {
			if typ := wholeType(ctx, args[0]); typ != nil {
				return &roundedNumber{expression.UnaryExpressionStub{Child: args[0]}, name, typ}, nil
			}
		}
		return ordinary.NewInstance(ctx, args)
	}}, true
}

// wholeType returns the type of the result of FLOOR and CEIL; nil leaves it to
// go-mysql-server. InternalDecimalType says neither precision nor scale.
func wholeType(ctx *gms.Context, e gms.Expression) gms.Type {
	of := e.Type(ctx)
	if types.IsFloat(of) {
		return types.Float64
	}
	if !types.IsDecimal(of) || of.Equals(types.InternalDecimalType) {
		return nil
	}
	before := digitsBefore(ctx, e)
	if before < bigintDigits {
		return nil
	}
	return types.MustCreateDecimalType(uint8(min(before+1, types.DecimalTypeMaxPrecision)), 0)
}

// digitsBefore returns the greatest number of digits before a number's point. A quotient has
// at most as many as its dividend (plus the divisor's scale), although its type in
// go-mysql-server allows as many as any decimal has.
func digitsBefore(ctx *gms.Context, e gms.Expression) int {
	if d, ok := e.(*expression.Div); ok {
		scale := 0
		if of, ok := d.RightChild.Type(ctx).(gms.DecimalType); ok {
			scale = int(of.Scale())
		}
		return digitsBefore(ctx, d.LeftChild) + scale
	}
	switch of := e.Type(ctx).(type) {
	case gms.DecimalType:
		return int(of.Precision()) - int(of.Scale())
	case gms.NumberType:
		return len(strconv.FormatUint(largest(of), 10))
	}
	return types.DecimalTypeMaxPrecision
}

// largest returns the largest value of an integer type or, if it is signed, of the unsigned type of that
// size.
func largest(typ gms.Type) uint64 {
	switch typ.Type() {
	case sqltypes.Int8, sqltypes.Uint8:
		return math.MaxUint8
	case sqltypes.Int16, sqltypes.Uint16:
		return math.MaxUint16
	case sqltypes.Int24, sqltypes.Uint24:
		return 1<<24 - 1
	case sqltypes.Int32, sqltypes.Uint32:
		return math.MaxUint32
	}
	return math.MaxUint64
}

// Eval implements gms.Expression.
func (w *roundedNumber) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := w.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	isFloor := w.name == "floor"
	switch n := v.(type) {
	case decimal.Decimal:
		if isFloor {
			return n.Floor(), nil
		}
		return n.Ceil(), nil
	case float32:
		v = float64(n)
	}
	n, ok := v.(float64)
	switch {
	case !ok:
		v, _, err = w.typ.Convert(ctx, v)
		return v, err
	case isFloor:
		return plainZero(math.Floor(n)), nil
	}
	return plainZero(math.Ceil(n)), nil
}

// FunctionName implements gms.FunctionExpression.
func (w *roundedNumber) FunctionName() string { return w.name }

// Description implements gms.FunctionExpression.
func (*roundedNumber) Description() string { return "returns the next whole number." }

// String implements gms.Expression.
func (w *roundedNumber) String() string { return w.name + "(" + w.Child.String() + ")" }

// Type implements gms.Expression.
func (w *roundedNumber) Type(*gms.Context) gms.Type { return w.typ }

// CollationCoercibility implements gms.CollationCoercible.
func (*roundedNumber) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// WithChildren implements gms.Expression.
func (w *roundedNumber) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(w, len(children), 1)
	}
	return &roundedNumber{expression.UnaryExpressionStub{Child: children[0]}, w.name, w.typ}, nil
}
