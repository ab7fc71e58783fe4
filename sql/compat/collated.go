package compat

import (
	"sync"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// The types of many text functions of go-mysql-server say that results are compared by bytes,
// although the functions know the collation of their arguments. Sorting, grouping and joins use the
// type.

// losesCollation are the functions whose type lacks the collation of their arguments. The types of
// most functions of a single text have it.
var losesCollation = setOf("coalesce", "concat", "concat_ws", "elt", "greatest", "if", "ifnull", "insert", "least", "left", "lpad", "quote", "repeat", "replace", "right", "rpad",
	"substring_index")

// toTextName is the name of the function that encloses a CAST to CHAR in a syntax tree. No client
// can write it.
const toTextName = "farmsql.text"

var toText = gms.Function1{Name: toTextName, Fn: func(_ *gms.Context, e gms.Expression) gms.Expression { return newCollated(e) }}

// castToText encloses a CAST to CHAR in a call of toText, because go-mysql-server builds casts
// without asking for a function. The parentheses keep the cast from being enclosed again.
func castToText(e sqlparser.Expr) sqlparser.Expr {
	c, ok := e.(*sqlparser.ConvertExpr)
	if !ok || c.Type == nil || !ContainsFold(c.Type.Type, "char") {
		return e
	}
	return &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(toTextName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: &sqlparser.ParenExpr{Expr: e}}}}
}

// cutByCharacters makes a CAST to CHAR(n) cut the text by LEFT: go-mysql-server cuts bytes, and does not
// cut to CHAR(0).
func cutByCharacters(c *sqlparser.ConvertExpr) {
	if c.Type == nil || c.Type.Length == nil || !ContainsFold(c.Type.Type, "char") {
		return
	}
	whole := *c.Type
	whole.Length = nil
	c.Expr = &sqlparser.FuncExpr{Name: sqlparser.NewColIdent("left"), Exprs: sqlparser.SelectExprs{
		&sqlparser.AliasedExpr{Expr: &sqlparser.ParenExpr{Expr: &sqlparser.ConvertExpr{Name: c.Name, Expr: c.Expr, Type: &whole}}}, &sqlparser.AliasedExpr{Expr: c.Type.Length},
	}}
	c.Type = &whole
}

// withCollation returns a function whose type has the collation of its arguments.
func withCollation(name string, f gms.Function) gms.Function {
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		call, err := f.NewInstance(ctx, args)
		if err != nil {
			return nil, err
		}
		return newCollated(call), nil
	}}
}

// A collated is a call whose type has the collation of its result.
type collated struct{ expression.UnaryExpressionStub }

var (
	_ gms.FunctionExpression = (*collated)(nil)
	_ gms.CollationCoercible = (*collated)(nil)
)

func newCollated(e gms.Expression) *collated {
	return &collated{expression.UnaryExpressionStub{Child: e}}
}

// Type implements gms.Expression. The type stays as it is if the result's character set is not certain.
func (c *collated) Type(ctx *gms.Context) gms.Type {
	typ := c.Child.Type(ctx)
	text, ok := typ.(gms.TypeWithCollation)
	if !ok || !types.IsTextOnly(typ) || ctx == nil {
		return typ // without a context, as in some of go-mysql-server's calls, a cast cannot ask for the session's collation
	}
	collation, _ := c.CollationCoercibility(ctx)
	if collation == text.Collation() || collation == gms.Collation_Unspecified || collation.CharacterSet() != text.Collation().CharacterSet() {
		return typ
	}
	if typ == types.LongText {
		return longTextIn(collation)
	}
	changed, err := text.WithNewCollation(collation)
	if err != nil {
		return typ
	}
	return changed
}

// longTexts caches the results of longTextIn, because a type is asked for with each row.
var longTexts sync.Map

func longTextIn(c gms.CollationID) gms.Type {
	if known, ok := longTexts.Load(c); ok {
		return known.(gms.Type)
	}
	typ := types.CreateLongText(c)
	longTexts.Store(c, typ)
	return typ
}

// CollationCoercibility implements gms.CollationCoercible.
func (c *collated) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	if _, isCast := c.Child.(*expression.Convert); isCast {
		return gms.GetCoercibility(ctx, c.Child)
	}
	return ofAll(ctx, valuesOf(c.Child))
}

// valuesOf returns the operands from which the result of a call, or a CASE, is made.
func valuesOf(e gms.Expression) []gms.Expression {
	switch e := e.(type) {
	case *function.If:
		return e.Children()[1:]
	case *function.NullIf:
		return e.Children()[:1]
	case *expression.Case:
		var values []gms.Expression
		for _, b := range e.Branches {
			values = append(values, b.Value)
		}
		if e.Else != nil {
			values = append(values, e.Else)
		}
		return values
	}
	return e.Children()
}

// ofAll returns the collation of a result that is made from several expressions. In go-mysql-server
// COALESCE and CASE have the collation of their type, IF and IFNULL that of their first value, and
// a subquery has none.
func ofAll(ctx *gms.Context, all []gms.Expression) (gms.CollationID, byte) {
	const weakest = 6 // the coercibility of NULL
	collation, coercibility := gms.Collation_binary, byte(weakest)
	for _, e := range all {
		other, strength := gms.Collation_binary, byte(weakest)
		switch e := e.(type) {
		case *expression.Case:
			other, strength = ofAll(ctx, valuesOf(e))
		case *plan.Subquery:
			if text, ok := e.Type(ctx).(gms.TypeWithCollation); ok {
				other, strength = text.Collation(), columnCoercibility
			}
		default:
			other, strength = gms.GetCoercibility(ctx, e)
		}
		isBinary := other == gms.Collation_binary || collation == gms.Collation_binary
		if strength == coercibility && isBinary {
			collation = gms.Collation_binary // with equal strengths the binary string wins
			continue
		}
		collation, coercibility = gms.ResolveCoercibility(collation, coercibility, other, strength)
	}
	return collation, coercibility
}

// FunctionName implements gms.FunctionExpression.
func (c *collated) FunctionName() string {
	if f, ok := c.Child.(gms.FunctionExpression); ok {
		return f.FunctionName()
	}
	return ""
}

// Description implements gms.FunctionExpression.
func (c *collated) Description() string {
	if f, ok := c.Child.(gms.FunctionExpression); ok {
		return f.Description()
	}
	return ""
}

// String implements gms.Expression.
func (c *collated) String() string { return c.Child.String() }

// Eval implements gms.Expression.
func (c *collated) Eval(ctx *gms.Context, row gms.Row) (any, error) { return c.Child.Eval(ctx, row) }

// WithChildren implements gms.Expression.
func (c *collated) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(c, len(children), 1)
	}
	return newCollated(children[0]), nil
}
