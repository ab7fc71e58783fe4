package plan

import (
	"context"
	"math"
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
)

var _ gms.Expression = (*Parameter)(nil)

// A Parameter is an expression that stands for a value of a statement. In each execution it is the
// literal that go-mysql-server would make of the value.
type Parameter struct {
	*expression.Literal
	operand Operand
	text    gms.Type // the type of texts
	// class is the class of the values that the parameter may have; empty for any.
	class string
	// isTime is set if its text is compared with a time.
	isTime bool
}

// NewParameter returns the parameter for a value of the statement, or for its negative; false where Bind returns false.
func NewParameter(ctx *gms.Context, o Operand, values []Value) (*Parameter, bool) {
	p := &Parameter{operand: o, text: types.CreateLongText(ctx.GetCollation())}
	return p, p.Bind(values)
}

// Bind gives the parameter its value. It returns false if go-mysql-server would not make a literal of the value, or if the
// value is of another class, or no time although isTime is set.
func (p *Parameter) Bind(values []Value) bool {
	v, ok := p.operand.In(values)
	if !ok || (p.class != "" && p.class != p.classOf(values)) || (p.isTime && !isTime(v)) {
		return false
	}
	switch {
	case v.IsNull:
		p.Literal = expression.NewLiteral(nil, types.Null)
	case v.IsNumber:
		p.Literal = wholeLiteral(v.Number)
	case v.Form == Bytes:
		p.Literal = expression.NewLiteral([]byte(v.Text), types.LongBlob)
	case v.Form == Binary: // a text, which X'4142' is not
		p.Literal = expression.NewLiteral(v.Text, types.LongBlob)
	case v.Form == Float:
		f, err := strconv.ParseFloat(v.Text, 64)
		p.Literal = expression.NewLiteral(f, types.Float64)
		return err == nil
	case v.Form == Decimal:
		return p.bindDecimal(v.Text)
	default:
		p.Literal = expression.NewLiteral(v.Text, p.text)
	}
	return true
}

// isTime reports whether a value is NULL, or a text of a date, with a time or without, in the form
// in which times are shown.
func isTime(v Value) bool {
	_, ok := Constant(&row.KeyCodec{ValueCodec: row.ValueCodec{Kind: catalog.KindDatetime}}, v)
	return ok && (v.Form != Plain || v.IsNull || len(v.Text) <= len(time.DateTime))
}

// classOf returns the class of the parameter's value; empty if it cannot be negated.
func (p *Parameter) classOf(values []Value) string {
	v, _ := p.operand.In(values)
	return string(v.class(nil))
}

// bindDecimal is Bind for a decimal. The literal's type has as many digits as the text.
func (p *Parameter) bindDecimal(text string) bool {
	t, err := types.CreateDecimalType(expression.GetDecimalPrecisionAndScale(text))
	if err != nil {
		return false
	}
	v, in, err := t.Convert(context.Background(), text)
	p.Literal = expression.NewLiteral(v, t)
	return err == nil && in == gms.InRange
}

// wholeLiteral returns the literal of a whole number, which has the smallest type that holds it.
func wholeLiteral(n int64) *expression.Literal {
	switch {
	case n < 0:
		return negativeLiteral(n)
	case n <= math.MaxInt8:
		return expression.NewLiteral(int8(n), types.Int8)
	case n <= math.MaxUint8:
		return expression.NewLiteral(uint8(n), types.Uint8)
	case n <= math.MaxInt16:
		return expression.NewLiteral(int16(n), types.Int16)
	case n <= math.MaxUint16:
		return expression.NewLiteral(uint16(n), types.Uint16)
	case n <= math.MaxInt32:
		return expression.NewLiteral(int32(n), types.Int32)
	case n <= math.MaxUint32:
		return expression.NewLiteral(uint32(n), types.Uint32)
	}
	return expression.NewLiteral(n, types.Int64)
}

func negativeLiteral(n int64) *expression.Literal {
	switch {
	case n >= math.MinInt8:
		return expression.NewLiteral(int8(n), types.Int8)
	case n >= math.MinInt16:
		return expression.NewLiteral(int16(n), types.Int16)
	case n >= math.MinInt32:
		return expression.NewLiteral(int32(n), types.Int32)
	}
	return expression.NewLiteral(n, types.Int64)
}

// negated is the suffix of the names of negative parameters.
const negated = "n"

// Negate replaces -:v1 by :v1n: go-mysql-server's parser makes one literal of - and a number, and its
// operator has other types.
func Negate(stmt sqlparser.Statement) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		u, ok := n.(*sqlparser.UnaryExpr)
		if !ok || u.Operator != sqlparser.UMinusStr {
			return true, nil
		}
		if v, ok := u.Expr.(*sqlparser.SQLVal); ok && v.Type == sqlparser.ValArg {
			u.Operator, u.Expr = sqlparser.UPlusStr, sqlparser.NewValArg([]byte(string(v.Val)+negated))
		}
		return true, nil
	}, stmt)
}

// Parameters returns the parameters for the values with these numbers. Their names are v1, v2 and
// so on, as in the text of Literals.Fixed. For the negative of each value that has one there is another parameter, named
// as Negate does. It returns false if a value is not a literal.
func Parameters(ctx *gms.Context, numbers []int, values []Value) (map[string]gms.Expression, bool) {
	bound := make(map[string]gms.Expression, 2*len(numbers))
	for i, at := range numbers {
		name := "v" + strconv.Itoa(i+1)
		p, ok := NewParameter(ctx, Operand{At: at}, values)
		if !ok {
			return nil, false
		}
		bound[name] = p
		if p, ok = NewParameter(ctx, Operand{At: at, Negative: true}, values); ok {
			bound[name+negated] = p
		}
	}
	return bound, true
}

// parametersOf returns the parameters in an expression.
func parametersOf(ctx *gms.Context, e gms.Expression) (all []*Parameter) {
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		if p, ok := e.(*Parameter); ok {
			all = append(all, p)
		}
		return true
	})
	return all
}

// WithChildren implements gms.Expression. All copies of the expression share the parameter.
func (p *Parameter) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(p, len(children), 0)
	}
	return p, nil
}
