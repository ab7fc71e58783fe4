package compat

import (
	"math"
	"math/big"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// In go-mysql-server ABS of the least integer of a type is negative, SIGN first rounds its argument
// to an integer, ROUND rounds halves of doubles up (MySQL: to the nearest even number), TRUNCATE
// turns decimals into doubles, and bit operators may turn integers into doubles. It has no operator
// ~ and no BENCHMARK.

func init() {
	registerScalars(
		&scalar{"sign", 1, 1, always(types.Int64), signOf},
		&scalar{invertName, 1, 1, always(types.Uint64), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
			n, err := bitsOf(ctx, v[0])
			return ^n, err
		}})
}

// numberFunction returns ABS, ROUND, TRUNCATE and BENCHMARK; false for other names. A call of the first
// three is ours only for arguments whose type go-mysql-server handles differently from MySQL.
func numberFunction(name string) (gms.Function, bool) {
	var ours func(ctx *gms.Context, args []gms.Expression) *scalar
	switch name {
	case "abs":
		ours = func(ctx *gms.Context, args []gms.Expression) *scalar {
			if t := args[0].Type(ctx); len(args) == 1 && types.IsInteger(t) && !types.IsUnsigned(t) {
				return &scalar{name, 1, 1, always(types.Int64), absolute}
			}
			return nil
		}
	case "round":
		ours = func(ctx *gms.Context, args []gms.Expression) *scalar {
			switch t := args[0].Type(ctx); {
			case types.IsFloat(t):
				return &scalar{name, 1, 2, always(types.Float64), rounded}
			case types.IsInteger(t) && len(args) == 2 && types.IsNumber(args[1].Type(ctx)):
				return &scalar{name, 2, 2, integerType, roundedInteger}
			}
			return nil
		}
	case "truncate":
		ours = func(ctx *gms.Context, args []gms.Expression) *scalar {
			if t, ok := args[0].Type(ctx).(gms.DecimalType); ok && !t.Equals(types.InternalDecimalType) && len(args) == 2 && types.IsNumber(args[1].Type(ctx)) {
				return &scalar{name, 2, 2, truncatedType, truncated}
			}
			if len(args) == 2 && types.IsInteger(args[0].Type(ctx)) && types.IsNumber(args[1].Type(ctx)) {
				return &scalar{name, 2, 2, integerType, truncatedInteger}
			}
			return nil
		}
	case "benchmark":
		return gms.Function2{Name: name, Fn: func(_ *gms.Context, n, e gms.Expression) gms.Expression {
			return &benchmark{expression.BinaryExpressionStub{LeftChild: n, RightChild: e}}
		}}, true
	default:
		return nil, false
	}
	ordinary, ok := textFunction(name)
	if !ok {
		ordinary = BuiltIns[name]
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if len(args) > 0 && args[0].Resolved() {
			if s := ours(ctx, args); s != nil {
				return newScalarCall(s, args)
			}
		}
		return ordinary.NewInstance(ctx, args)
	}}, true
}

// absolute computes ABS of an integer.
func absolute(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	if n, ok := row.Unsigned(v[0]); ok {
		return n, nil // the value is unsigned, although the call's type is signed
	}
	n, err := wholeOf(ctx, v[0])
	if n == math.MinInt64 {
		return nil, myerr.OutOfRange.New("BIGINT", c.String())
	}
	return max(n, -n), err
}

// signOf computes SIGN.
func signOf(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	n, err := doubleOf(ctx, v[0])
	switch {
	case err != nil:
		return nil, err
	case n > 0:
		return int64(1), nil
	case n < 0:
		return int64(-1), nil
	}
	return int64(0), nil
}

// rounded computes ROUND of a double.
func rounded(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	n, err := doubleOf(ctx, v[0])
	if err != nil {
		return nil, err
	}
	digits := int64(0)
	if len(v) > 1 {
		if digits, err = wholeOf(ctx, v[1]); err != nil {
			return nil, err
		}
	}
	scale := math.Pow10(int(min(max(digits, -400), 400)))
	switch scaled := n * scale; {
	case scale == 0: // the place is so far before the point that every double rounds to 0
		return 0.0, nil
	case math.IsInf(scaled, 0) || math.IsInf(scale, 0): // 0 times infinity is NaN
		return n, nil // n has no digits so far behind the point
	case digits < 0:
		unit := math.Pow10(int(min(-digits, 400))) // more exact than its reciprocal, scale
		return plainZero(math.RoundToEven(n/unit) * unit), nil
	default:
		return plainZero(math.RoundToEven(scaled) / scale), nil
	}
}

// integerType returns the type of ROUND and TRUNCATE of an integer.
func integerType(ctx *gms.Context, args []gms.Expression) gms.Type {
	if types.IsUnsigned(args[0].Type(ctx)) {
		return types.Uint64
	}
	return types.Int64
}

// roundedInteger computes ROUND of an integer, whose last digits go-mysql-server loses.
func roundedInteger(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	return shortenedInteger(ctx, c, v, decimal.Decimal.Round)
}

// truncatedInteger computes TRUNCATE of an integer, whose last digits go-mysql-server loses.
func truncatedInteger(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	return shortenedInteger(ctx, c, v, decimal.Decimal.Truncate)
}

// shortenedInteger shortens an integer to a multiple of a power of ten.
func shortenedInteger(ctx *gms.Context, c *scalarCall, v gms.Row, shorten func(decimal.Decimal, int32) decimal.Decimal) (any, error) {
	typ := c.Type(ctx)
	n, _, err := typ.Convert(ctx, v[0])
	if err != nil {
		return nil, err
	}
	digits, err := wholeOf(ctx, v[1])
	if err != nil || digits >= 0 {
		return n, err
	}
	places := int32(min(-digits, types.DecimalTypeMaxPrecision))
	whole := shorten(decimal.NewFromBigInt(bigOf(n), -places), 0).Shift(places).BigInt()
	switch {
	case typ == types.Uint64 && whole.IsUint64():
		return whole.Uint64(), nil
	case typ == types.Int64 && whole.IsInt64():
		return whole.Int64(), nil
	}
	return nil, myerr.OutOfRange.New(strings.ToUpper(typ.String()), c.String())
}

// bigOf returns an int64 or uint64 as a big integer.
func bigOf(v any) *big.Int {
	if n, ok := v.(uint64); ok {
		return new(big.Int).SetUint64(n)
	}
	n, _ := v.(int64)
	return big.NewInt(n)
}

// plainZero returns 0 for -0, which MySQL prints without the sign.
func plainZero(n float64) float64 {
	if n == 0 {
		return 0
	}
	return n
}

// digitsOfLiteral returns the second argument of TRUNCATE if it is a literal.
func digitsOfLiteral(args []gms.Expression) (int64, bool) {
	if l, ok := args[1].(*expression.Literal); ok {
		return row.Signed(l.Value())
	}
	return 0, false
}

// truncatedType returns the type of TRUNCATE of a decimal.
func truncatedType(ctx *gms.Context, args []gms.Expression) gms.Type {
	t, ok := args[0].Type(ctx).(gms.DecimalType)
	if !ok {
		return types.Float64
	}
	digits, known := digitsOfLiteral(args)
	if !known || digits >= int64(t.Scale()) {
		return t
	}
	scale := uint8(max(digits, 0))
	return types.MustCreateDecimalType(max(t.Precision()-t.Scale()+scale, 1), scale)
}

// truncated computes TRUNCATE of a decimal.
func truncated(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	d, ok := v[0].(decimal.Decimal)
	if !ok {
		converted, _, err := types.InternalDecimalType.Convert(ctx, row.BoundedNumber(v[0]))
		if err != nil {
			return nil, err
		}
		d = converted.(decimal.Decimal)
	}
	digits, err := wholeOf(ctx, v[1])
	if err != nil {
		return nil, err
	}
	if digits >= 0 {
		return d.Truncate(int32(min(digits, types.DecimalTypeMaxScale))), nil
	}
	places := int32(min(-digits, types.DecimalTypeMaxPrecision+1))
	return d.Shift(-places).Truncate(0).Shift(places), nil
}

// bitsOf converts a value to the 64 bits on which operators of bits work.
func bitsOf(ctx *gms.Context, v any) (uint64, error) {
	if n, ok := row.Unsigned(v); ok {
		return n, nil
	}
	if d, ok := v.(decimal.Decimal); ok && d.Sign() > 0 {
		if n := d.Round(0).BigInt(); n.IsUint64() {
			return n.Uint64(), nil
		}
		return math.MaxUint64, nil
	}
	n, err := wholeOf(ctx, v)
	return uint64(n), err
}

// An exactBits is an operator of bits. go-mysql-server makes doubles of the operands if one of them
// is signed and the other is not, which loses their last bits.
type exactBits struct{ *expression.BitOp }

// newExactBits returns nil unless the operands are numbers.
func newExactBits(ctx *gms.Context, b *expression.BitOp) gms.Expression {
	for _, e := range b.Children() {
		if !types.IsNumber(e.Type(ctx)) {
			return nil
		}
	}
	return &exactBits{b}
}

// Eval implements gms.Expression.
func (b *exactBits) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	left, err := b.LeftChild.Eval(ctx, row)
	if err != nil || left == nil {
		return nil, err
	}
	right, err := b.RightChild.Eval(ctx, row)
	if err != nil || right == nil {
		return nil, err
	}
	l, err := bitsOf(ctx, left)
	if err != nil {
		return nil, err
	}
	r, err := bitsOf(ctx, right)
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(b.Op) {
	case sqlparser.BitAndStr:
		return l & r, nil
	case sqlparser.BitOrStr:
		return l | r, nil
	case sqlparser.BitXorStr:
		return l ^ r, nil
	case sqlparser.ShiftLeftStr:
		return l << r, nil // shifts by 64 or more return 0, also for a negative r, which is large as unsigned
	}
	return l >> r, nil
}

// WithChildren implements gms.Expression.
func (b *exactBits) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := b.BitOp.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	if ours := newExactBits(ctx, e.(*expression.BitOp)); ours != nil {
		return ours, nil
	}
	return e, nil
}

// invertName is the name of the function that the operator ~ becomes in a syntax tree. No client can
// write it.
const invertName = "farmsql.invert"

// invertBits turns the operator ~ into a call of our function, with a plus before it, which does
// nothing: a node cannot replace itself.
func invertBits(u *sqlparser.UnaryExpr) {
	if u.Operator != sqlparser.TildaStr {
		return
	}
	u.Operator = sqlparser.PlusStr
	u.Expr = &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(invertName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: u.Expr}}}
}

// A benchmark evaluates an expression many times.
type benchmark struct {
	expression.BinaryExpressionStub
}

var (
	_ gms.FunctionExpression = (*benchmark)(nil)
	_ gms.CollationCoercible = (*benchmark)(nil)
)

// FunctionName implements gms.FunctionExpression.
func (*benchmark) FunctionName() string { return "benchmark" }

// Description implements gms.FunctionExpression.
func (*benchmark) Description() string { return "evaluates an expression many times." }

// String implements gms.Expression.
func (b *benchmark) String() string {
	return "benchmark(" + b.LeftChild.String() + ", " + b.RightChild.String() + ")"
}

// Type implements gms.Expression.
func (*benchmark) Type(*gms.Context) gms.Type { return types.Int64 }

// IsNullable implements gms.Expression.
func (*benchmark) IsNullable(*gms.Context) bool { return true }

// CollationCoercibility implements gms.CollationCoercible.
func (*benchmark) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression. It returns 0; NULL if the number is NULL or negative.
func (b *benchmark) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := b.LeftChild.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	n, err := wholeOf(ctx, v)
	if err != nil || n < 0 {
		return nil, err
	}
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := b.RightChild.Eval(ctx, row); err != nil {
			return nil, err
		}
	}
	return int64(0), nil
}

// WithChildren implements gms.Expression.
func (b *benchmark) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 2 {
		return nil, gms.ErrInvalidChildrenNumber.New(b, len(children), 2)
	}
	return &benchmark{expression.BinaryExpressionStub{LeftChild: children[0], RightChild: children[1]}}, nil
}
