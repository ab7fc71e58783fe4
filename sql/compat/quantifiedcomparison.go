package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// A quantifiedComparison compares a value with all rows of a subquery: ANY, SOME and ALL.
type quantifiedComparison struct {
	expression.BinaryExpressionStub
	operator string
	all      bool
	// compare compares the value, the first of its row, with a value of the subquery, the second.
	compare gms.Expression
}

var (
	_ gms.Expression         = (*quantifiedComparison)(nil)
	_ gms.CollationCoercible = (*quantifiedComparison)(nil)
)

// comparisonsOf are the comparisons that may stand before ANY, SOME and ALL.
var comparisonsOf = map[string]func(l, r gms.Expression) gms.Expression{
	"=": equals, "<": lessThan, ">": greaterThan, "<=": lessOrEqual, ">=": greaterOrEqual,
	"!=": func(l, r gms.Expression) gms.Expression { return expression.NewNot(equals(l, r)) },
}

// quantifiedFunction has the arguments of compareOne: operator, word, value and subquery.
var quantifiedFunction = gms.FunctionN{Name: quantifiedName, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	if len(args) != 4 {
		return nil, NoQuantifier("ANY")
	}
	operator, word := args[0].(*expression.Literal), args[1].(*expression.Literal)
	return newQuantifiedComparison(ctx, operator.Value().(string), word.Value() == "all", args[2], args[3])
}}

// noQuantified refuses what compareOne has left: comparisons of rows.
var noQuantified = gms.FunctionN{Name: quantifiedName, Fn: func(*gms.Context, ...gms.Expression) (gms.Expression, error) {
	return nil, NoQuantifier("a comparison of rows with ANY or ALL")
}}

// newQuantifiedComparison returns the comparison of a value with ANY row of a subquery or, if all is set, with ALL.
func newQuantifiedComparison(ctx *gms.Context, operator string, all bool, value, rows gms.Expression) (gms.Expression, error) {
	query, ok := rows.(*plan.Subquery)
	if !ok {
		return nil, NoQuantifier("ANY")
	}
	columns := query.Query.Schema(ctx)
	if len(columns) != 1 {
		return nil, gms.ErrInvalidOperandColumns.New(1, len(columns))
	}
	if !areAlike(value.Type(ctx), columns[0].Type) {
		return nil, NoQuantifier("ANY or ALL of another type")
	}
	return compareEach(ctx, &quantifiedComparison{expression.BinaryExpressionStub{LeftChild: value, RightChild: rows}, operator, all, nil})
}

// compareEach returns q with the comparison of the value with each row.
func compareEach(ctx *gms.Context, q *quantifiedComparison) (gms.Expression, error) {
	column := q.RightChild.(*plan.Subquery).Query.Schema(ctx)[0]
	l, _ := exactColumn(ctx, q.LeftChild)
	r, _ := exactColumn(ctx, expression.NewGetField(1, column.Type, column.Name, true))
	compare := comparisonsOf[q.operator](&placed{l, 0}, r)
	not, isNot := compare.(*expression.Not)
	if isNot {
		compare = not.Child
	}
	if changed, err := withElements(ctx, compare); err != nil {
		return nil, err
	} else if changed != nil {
		compare = changed
	}
	compare, _, err := ofTimes(ctx, compare)
	if err != nil {
		return nil, err
	}
	if compare, _, err = Compared(ctx, nil, compare); err != nil {
		return nil, err
	}
	if q.compare = compare; isNot {
		q.compare = expression.NewNot(compare)
	}
	return q, nil
}

// areAlike reports whether values of two types are compared as they are. MariaDB compares others with ANY and ALL in
// ways of its own: a number with the least or greatest text, for example.
func areAlike(a, b gms.Type) bool {
	if _, isUnknown := a.(gms.DeferredType); isUnknown || a == types.Null || b == types.Null {
		return true
	}
	for _, is := range []func(gms.Type) bool{types.IsNumber, types.IsText, types.IsTime, row.IsTimespan} {
		if is(a) || is(b) {
			return is(a) && is(b) && !isElement(a) && !isElement(b)
		}
	}
	return false
}

// Type implements gms.Expression.
func (*quantifiedComparison) Type(*gms.Context) gms.Type { return types.Boolean }

// CollationCoercibility implements gms.CollationCoercible.
func (*quantifiedComparison) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// String implements gms.Expression.
func (q *quantifiedComparison) String() string {
	word := " ANY "
	if q.all {
		word = " ALL "
	}
	return q.LeftChild.String() + " " + q.operator + word + q.RightChild.String()
}

// Eval implements gms.Expression.
func (q *quantifiedComparison) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	value, err := q.LeftChild.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	values, err := q.RightChild.(*plan.Subquery).EvalMultiple(ctx, row)
	if err != nil {
		return nil, err
	}
	var result any = q.all // for no rows, ALL is true and ANY is false
	for _, v := range values {
		matches, err := q.compare.Eval(ctx, gms.Row{value, v})
		if err != nil {
			return nil, err
		}
		if matches == nil {
			result = nil
		} else if gms.IsTrue(matches) != q.all {
			return !q.all, nil // this row decides
		}
	}
	return result, nil
}

// WithChildren implements gms.Expression.
func (q *quantifiedComparison) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 2 {
		return nil, gms.ErrInvalidChildrenNumber.New(q, len(children), 2)
	}
	if _, ok := children[1].(*plan.Subquery); !ok {
		return nil, NoQuantifier("ANY")
	}
	return compareEach(ctx, &quantifiedComparison{expression.BinaryExpressionStub{LeftChild: children[0], RightChild: children[1]}, q.operator, q.all, nil})
}
