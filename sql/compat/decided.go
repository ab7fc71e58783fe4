package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/shopspring/decimal"
)

// In MySQL the result of CASE, IF and IFNULL of decimals and whole numbers is a decimal with the most
// digits before and behind the point that one of them has. In go-mysql-server it has 65 digits, 30 of
// them behind the point. So the possible results become decimals of the same type, from the time when names
// are resolved: the types of all that is computed from the result follow from it.

// decidedName is the name of the function that encloses a CASE in a syntax tree. No client can write it.
const decidedName = "farmsql.decided"

var decided = gms.Function1{Name: decidedName, Fn: func(ctx *gms.Context, e gms.Expression) gms.Expression {
	c, ok := e.(*expression.Case)
	if !ok {
		return e
	}
	results, ok := sameDecimals(ctx, resultsOf(c))
	if !ok {
		return e
	}
	changed := *c
	changed.Branches = slices.Clone(c.Branches)
	for i := range changed.Branches {
		changed.Branches[i].Value = results[i]
	}
	if c.Else != nil {
		changed.Else = results[len(results)-1]
	}
	return &changed
}}

// decideCase encloses a CASE, in parentheses or not, in a call of decided, because go-mysql-server builds it without asking
// for a function.
func decideCase(e sqlparser.Expr) sqlparser.Expr {
	if caseWithin(e) == nil {
		return e
	}
	return &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(decidedName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: e}}}
}

// caseWithin returns the CASE that an expression is, in parentheses or not; nil for other expressions.
func caseWithin(e sqlparser.Expr) *sqlparser.CaseExpr {
	for {
		switch x := e.(type) {
		case *sqlparser.CaseExpr:
			return x
		case *sqlparser.ParenExpr:
			e = x.Expr
		default:
			return nil
		}
	}
}

// decideCases encloses the CASEs of a query in calls of decided where the type of their results matters: as columns,
// arguments of functions, operands of arithmetic and of casts, and results of another CASE.
func decideCases(query sqlparser.SQLNode) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.FuncExpr:
			if n.Name.Lowered() == decidedName { // encloses the CASE already
				decideCases(caseWithin(n.Exprs[0].(*sqlparser.AliasedExpr).Expr))
				return false, nil
			}
		case *sqlparser.When:
			n.Val = decideCase(n.Val)
		case *sqlparser.CaseExpr:
			n.Else = decideCase(n.Else)
		case *sqlparser.ConvertExpr:
			n.Expr = decideCase(n.Expr)
		case *sqlparser.AliasedExpr:
			n.Expr = decideCase(n.Expr)
		case *sqlparser.BinaryExpr:
			n.Left, n.Right = decideCase(n.Left), decideCase(n.Right)
		case *sqlparser.Order:
			n.Expr = decideCase(n.Expr)
		case *sqlparser.Select:
			for i, e := range n.GroupBy {
				n.GroupBy[i] = decideCase(e)
			}
		}
		return true, nil
	}, query)
}

// decidesFrom has the position of the first possible result among the arguments of functions that return one of them.
var decidesFrom = map[string]int{"if": 1, "ifnull": 0}

// ofDecimals returns a function whose possible results are decimals of one type, if they are decimals and whole numbers.
func ofDecimals(name string, f gms.Function) gms.Function {
	first, ok := decidesFrom[name]
	if !ok {
		return f
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if len(args) > first {
			if results, ok := sameDecimals(ctx, args[first:]); ok {
				args = slices.Concat(args[:first], results)
			}
		}
		return f.NewInstance(ctx, args)
	}}
}

// sameDecimals returns expressions as decimals of one type. It returns false if none of them is a decimal, if they have one
// type already, or if one is neither an exact number nor NULL.
func sameDecimals(ctx *gms.Context, all []gms.Expression) ([]gms.Expression, bool) {
	whole, scale, hasDecimal, isSame := 0, 0, false, true
	for _, e := range all {
		if !e.Resolved() {
			return nil, false
		}
		t := e.Type(ctx)
		if t == types.Null {
			continue
		}
		if types.IsDeferredType(t) {
			return nil, false
		}
		p, s, ok := digits(t)
		if !ok {
			return nil, false
		}
		if l, isLiteral := e.(*expression.Literal); isLiteral && s == 0 {
			p = min(p, digitsOf(l.Value(), p))
		}
		hasDecimal = hasDecimal || types.IsDecimal(t)
		isSame = isSame && t.Equals(all[0].Type(ctx))
		whole, scale = max(whole, p-s), max(scale, s)
	}
	if !hasDecimal || isSame {
		return nil, false
	}
	typ, err := types.CreateDecimalType(uint8(max(1, min(whole+scale, decimalDigits))), uint8(scale))
	if err != nil {
		return nil, false
	}
	out := slices.Clone(all)
	for i, e := range all {
		if t := e.Type(ctx); t != types.Null && !t.Equals(typ) {
			out[i] = &asDecimal{expression.UnaryExpressionStub{Child: e}, typ}
		}
	}
	return out, true
}

// digitsOf returns the number of digits of a whole number; otherwise for another value.
func digitsOf(v any, otherwise int) int {
	n, ok := integerOf(v)
	if !ok {
		return otherwise
	}
	digits := 1
	for size := n.size; size > 9; size /= 10 {
		digits++
	}
	return digits
}

// An asDecimal is a number as a decimal with other digits.
type asDecimal struct {
	expression.UnaryExpressionStub
	typ gms.DecimalType
}

var (
	_ gms.Expression         = (*asDecimal)(nil)
	_ gms.CollationCoercible = (*asDecimal)(nil)
)

// Type implements gms.Expression.
func (d *asDecimal) Type(*gms.Context) gms.Type { return d.typ }

// String implements gms.Expression.
func (d *asDecimal) String() string { return d.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (d *asDecimal) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression.
func (d *asDecimal) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := d.Child.Eval(ctx, over)
	if err != nil || v == nil {
		return nil, err
	}
	if v, _, err = d.typ.Convert(ctx, v); err != nil {
		return nil, err
	}
	if n, ok := v.(decimal.Decimal); ok && n.Exponent() > -int32(d.typ.Scale()) { // zeros at its end are shown
		return n.Add(decimal.New(0, -int32(d.typ.Scale()))), nil
	}
	return v, nil
}

// WithChildren implements gms.Expression.
func (d *asDecimal) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(d, len(children), 1)
	}
	return &asDecimal{expression.UnaryExpressionStub{Child: children[0]}, d.typ}, nil
}
