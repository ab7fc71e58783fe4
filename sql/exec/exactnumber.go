package exec

import (
	"math"
	"math/big"
	"math/bits"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// This file computes decimals and whole numbers of stored rows in integers.

// An exactNumber computes a number of a stored row, in units of 10^-scale.
type exactNumber struct {
	scale int32
	value func(from storeRows, v *row.View) (units int64, isNull bool, err error)
}

// exactScaleMax bounds the digits behind the point.
const exactScaleMax = 18

// exactNumberOf returns the exactNumber of an expression of columns, numbers, +, - and *; false for others.
func exactNumberOf(ctx *gms.Context, e gms.Expression, scan *plan.Scan) (*exactNumber, bool) {
	switch e := e.(type) {
	case *expression.GetField:
		return exactColumn(e, scan)
	case *expression.Literal:
		return exactConstant(e.Value())
	case *plan.Parameter:
		return exactConstant(e.Value())
	case *expression.Arithmetic:
		// What is not a decimal may be beyond its type, which is an error.
		if !types.IsDecimal(e.Type(ctx)) {
			return nil, false
		}
		left, isLeft := exactNumberOf(ctx, e.LeftChild, scan)
		right, isRight := exactNumberOf(ctx, e.RightChild, scan)
		if !isLeft || !isRight {
			return nil, false
		}
		switch e.Op {
		case "+", "-":
			return exactAddition(left, right, e.Op == "-")
		case "*":
			return exactProduct(left, right)
		}
	}
	return nil, false
}

// exactColumn returns the exactNumber of a column.
func exactColumn(e *expression.GetField, scan *plan.Scan) (*exactNumber, bool) {
	c, ok := totalColumnOf(e, scan)
	if !ok {
		return nil, false
	}
	k := scan.Table.Codec(c.at)
	scale := int32(0)
	if k.Kind == catalog.KindDecimal {
		scale = k.Scale
	} else if !k.IsInteger() {
		return nil, false
	}
	isUnsigned, at := k.IsUnsigned(), c.at
	return &exactNumber{scale, func(from storeRows, v *row.View) (int64, bool, error) {
		b, err := from.StoredValue(v, at)
		if err != nil || b == nil {
			return 0, true, err
		}
		if isUnsigned {
			n, ok := row.ReadUint(b)
			return int64(n), false, unlessWide(ok && n <= math.MaxInt64)
		}
		n, ok := row.ReadInt(b)
		return n, false, unlessWide(ok)
	}}, scale <= exactScaleMax
}

func unlessWide(ok bool) error {
	if ok {
		return nil
	}
	return errWide
}

// exactConstant returns the exactNumber of a constant.
func exactConstant(v any) (*exactNumber, bool) {
	n, scale := int64(0), int32(0)
	switch v := v.(type) {
	case decimal.Decimal:
		c := v.Coefficient()
		if scale = -v.Exponent(); scale < 0 || scale > exactScaleMax || !c.IsInt64() {
			return nil, false
		}
		n = c.Int64()
	default:
		var ok bool
		if n, ok = row.Signed(v); !ok {
			u, isUnsigned := row.Unsigned(v)
			if n = int64(u); !isUnsigned || n < 0 {
				return nil, false
			}
		}
	}
	return &exactNumber{scale, func(storeRows, *row.View) (int64, bool, error) { return n, false, nil }}, true
}

// exactAddition returns the exactNumber of a sum or a difference, in the smaller of both units.
func exactAddition(left, right *exactNumber, subtracts bool) (*exactNumber, bool) {
	scale := max(left.scale, right.scale)
	ofLeft, ofRight := powerOfTen(scale-left.scale), powerOfTen(scale-right.scale)
	return &exactNumber{scale, func(from storeRows, v *row.View) (int64, bool, error) {
		x, y, isNull, err := operands(left, right, from, v)
		if err != nil || isNull {
			return 0, isNull, err
		}
		x, isX := times(x, ofLeft)
		y, isY := times(y, ofRight)
		if subtracts {
			y = -y
		}
		sum := x + y
		overflows := (x < 0) == (y < 0) && (sum < 0) != (x < 0)
		return sum, false, unlessWide(isX && isY && !overflows && y != math.MinInt64)
	}}, true
}

// exactProduct returns the exactNumber of a product.
func exactProduct(left, right *exactNumber) (*exactNumber, bool) {
	return &exactNumber{left.scale + right.scale, func(from storeRows, v *row.View) (int64, bool, error) {
		x, y, isNull, err := operands(left, right, from, v)
		if err != nil || isNull {
			return 0, isNull, err
		}
		n, ok := times(x, y)
		return n, false, unlessWide(ok)
	}}, left.scale+right.scale <= exactScaleMax
}

// operands returns the operands' values; isNull if one of them is NULL.
func operands(left, right *exactNumber, from storeRows, v *row.View) (x, y int64, isNull bool, err error) {
	if x, isNull, err = left.value(from, v); err != nil || isNull {
		return 0, 0, isNull, err
	}
	y, isNull, err = right.value(from, v)
	return x, y, isNull, err
}

// times returns a product; false if it does not fit, or is the smallest number, which has no negative.
func times(x, y int64) (int64, bool) {
	if x == math.MinInt64 || y == math.MinInt64 {
		return 0, false
	}
	high, low := bits.Mul64(uint64(max(x, -x)), uint64(max(y, -y)))
	if high != 0 || low > math.MaxInt64 {
		return 0, false
	}
	if (x < 0) != (y < 0) {
		return -int64(low), true
	}
	return int64(low), true
}

// powerOfTen returns 10^n, for n up to exactScaleMax.
func powerOfTen(n int32) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// An exactSum is a sum of integers, of 128 bits. Fewer than 2^63 of them cannot overflow it.
type exactSum struct {
	high int64
	low  uint64
}

func (s *exactSum) add(n int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(n), 0)
	s.high += n>>63 + int64(carry)
}

// decimal returns the sum in units of 10^-scale.
func (s *exactSum) decimal(scale int32) decimal.Decimal {
	n := new(big.Int).Lsh(big.NewInt(s.high), 64)
	return decimal.NewFromBigInt(n.Add(n, new(big.Int).SetUint64(s.low)), -scale)
}
