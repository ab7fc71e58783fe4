package compat

import (
	"math"
	"math/bits"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Expression = (*checkedArithmetic)(nil)
	_ gms.Expression = (*checkedDoubles)(nil)
	_ gms.Expression = (*signedBits)(nil)
)

// A checkedArithmetic is +, - or * of two integers. A result beyond BIGINT is
// error 1690, as in MySQL; go-mysql-server's wraps around. If one of the two is
// unsigned, so is the result.
type checkedArithmetic struct {
	*expression.Arithmetic
	unsigned bool
}

// A signedBits is CAST AS SIGNED of an unsigned integer. As in MySQL, it keeps the
// bits; go-mysql-server's cast returns the largest BIGINT if the value is larger.
type signedBits struct{ *expression.Convert }

// Eval implements gms.Expression.
func (s *signedBits) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := s.Child.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	if n, ok := v.(uint64); ok {
		return int64(n), nil
	}
	v, _, err = types.Int64.Convert(ctx, v)
	return v, err
}

// WithChildren implements gms.Expression.
func (s *signedBits) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := s.Convert.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &signedBits{e.(*expression.Convert)}, nil
}

// A checkedDoubles is +, - or * with a double. An infinite result is error 1690,
// as in MySQL.
type checkedDoubles struct{ *expression.Arithmetic }

// newCheckedArithmetic returns the checked form of +, - or * if both operands are integers, or
// one is a double; otherwise nil.
func newCheckedArithmetic(ctx *gms.Context, a *expression.Arithmetic) gms.Expression {
	left, right := a.LeftChild.Type(ctx), a.RightChild.Type(ctx)
	switch {
	case a.Op != "+" && a.Op != "-" && a.Op != "*":
		return nil
	case (types.IsFloat(left) && types.IsNumber(right)) || (types.IsNumber(left) && types.IsFloat(right)):
		return &checkedDoubles{a}
	case !types.IsInteger(left) || !types.IsInteger(right):
		return nil
	}
	return &checkedArithmetic{a, isUnsigned(ctx, a.LeftChild) || isUnsigned(ctx, a.RightChild)}
}

// isUnsigned reports whether an expression is unsigned in MySQL. go-mysql-server gives
// small literals, and expressions of them, unsigned types where MySQL's are signed.
func isUnsigned(ctx *gms.Context, e gms.Expression) bool {
	switch e := e.(type) {
	case *checkedArithmetic:
		return e.unsigned
	case *expression.GetField:
		return e.Database() != "" && types.IsUnsigned(e.Type(ctx)) // is a column of a table
	case *expression.Convert:
		return types.IsUnsigned(e.Type(ctx))
	}
	return false
}

// WithChildren implements gms.Expression.
func (a *checkedArithmetic) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := a.Arithmetic.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	e, _, err = Compared(ctx, nil, e)
	return e, err
}

// Eval implements gms.Expression.
func (a *checkedArithmetic) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	left, err := a.LeftChild.Eval(ctx, row)
	if err != nil || left == nil {
		return nil, err
	}
	right, err := a.RightChild.Eval(ctx, row)
	if err != nil || right == nil {
		return nil, err
	}
	l, leftIsInteger := integerOf(left)
	r, rightIsInteger := integerOf(right)
	if !leftIsInteger || !rightIsInteger {
		return a.Arithmetic.Eval(ctx, row) // the values' types differ from the expression's
	}
	n, fits := l.do(a.Op, r)
	isLarge := !n.negative && n.size > math.MaxInt64 // a BIGINT UNSIGNED, but no BIGINT
	// A constant above BIGINT is unsigned, although a.unsigned does not say so.
	isSigned := !a.unsigned && l.size <= math.MaxInt64 && r.size <= math.MaxInt64
	switch {
	case !fits, n.negative && n.size > 1<<63, n.negative && a.unsigned, isLarge && isSigned:
		return nil, a.outOfRange()
	case n.negative && types.IsUnsigned(a.Type(ctx)): // MySQL's type is signed, only go-mysql-server's is not
		return a.Arithmetic.Eval(ctx, row)
	case isLarge || types.IsUnsigned(a.Type(ctx)):
		return n.size, nil
	case n.negative:
		return -int64(n.size), nil // also right for the smallest number, which is its own negative
	}
	return int64(n.size), nil
}

func (a *checkedArithmetic) outOfRange() error {
	kind := "BIGINT"
	if a.unsigned {
		kind = "BIGINT UNSIGNED"
	}
	return myerr.OutOfRange.New(kind, a.String())
}

// WithChildren implements gms.Expression.
func (a *checkedDoubles) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := a.Arithmetic.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	e, _, err = Compared(ctx, nil, e)
	return e, err
}

// Eval implements gms.Expression.
func (a *checkedDoubles) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := a.Arithmetic.Eval(ctx, row)
	if f, ok := v.(float64); ok {
		if math.IsInf(f, 0) {
			return nil, myerr.OutOfRange.New("DOUBLE", a.String())
		}
		return plainZero(f), err
	}
	return v, err
}

// A plainDouble is a double, and 0 where go-mysql-server computes -0.
type plainDouble struct{ gms.Expression }

// Eval implements gms.Expression.
func (d *plainDouble) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := d.Expression.Eval(ctx, row)
	if n, ok := v.(float64); ok {
		v = plainZero(n)
	}
	return v, err
}

// WithChildren implements gms.Expression.
func (d *plainDouble) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := d.Expression.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &plainDouble{e}, nil
}

// An integer has a sign and 64 bits, so it can be any signed or unsigned integer of 64 bits.
type integer struct {
	negative bool
	size     uint64 // the absolute value
}

// integerOf returns an integer, or a truth value as 0 or 1; false for other values.
func integerOf(v any) (integer, bool) {
	if n, ok := row.Signed(v); ok {
		if n < 0 {
			return integer{true, -uint64(n)}, true
		}
		return integer{false, uint64(n)}, true
	}
	if n, ok := row.Unsigned(v); ok {
		return integer{false, n}, true
	}
	if b, ok := v.(bool); ok {
		if b {
			return integer{false, 1}, true
		}
		return integer{}, true
	}
	return integer{}, false
}

// do computes a + b, a - b or a * b, and returns false if the result's size exceeds 64 bits.
func (a integer) do(op string, b integer) (integer, bool) {
	switch op {
	case "*":
		high, low := bits.Mul64(a.size, b.size)
		return integer{a.negative != b.negative && low != 0, low}, high == 0
	case "-":
		b.negative = !b.negative
	}
	if a.negative == b.negative {
		sum, carry := bits.Add64(a.size, b.size, 0)
		return integer{a.negative && sum != 0, sum}, carry == 0
	}
	if a.size >= b.size {
		return integer{a.negative && a.size != b.size, a.size - b.size}, true
	}
	return integer{b.negative, b.size - a.size}, true
}
