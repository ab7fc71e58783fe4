package change

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/compat"
)

// A toldID is LAST_INSERT_ID(n): it sets the value that LAST_INSERT_ID() returns from then on,
// and that the client receives with the statement's result.
type toldID struct{ expression.UnaryExpressionStub }

var _ gms.FunctionExpression = (*toldID)(nil)

// insertIDFunction returns LAST_INSERT_ID. With an argument it is ours, without one
// go-mysql-server's.
func insertIDFunction(name string) (gms.Function, bool) {
	if !strings.EqualFold(name, "last_insert_id") {
		return nil, false
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if len(args) == 1 {
			return &toldID{expression.UnaryExpressionStub{Child: args[0]}}, nil
		}
		return compat.BuiltIns["last_insert_id"].NewInstance(ctx, args)
	}}, true
}

// FunctionName implements gms.FunctionExpression.
func (*toldID) FunctionName() string { return "last_insert_id" }

// Description implements gms.FunctionExpression.
func (*toldID) Description() string { return "sets what LAST_INSERT_ID() returns." }

// String implements gms.Expression.
func (t *toldID) String() string { return "last_insert_id(" + t.Child.String() + ")" }

// Type implements gms.Expression.
func (*toldID) Type(*gms.Context) gms.Type { return types.Uint64 }

// IsNonDeterministic implements gms.NonDeterministicExpression: it has an effect.
func (*toldID) IsNonDeterministic() bool { return true }

// Eval implements gms.Expression. NULL sets 0.
func (t *toldID) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := t.Child.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	var id int64
	if v != nil {
		n, _, err := types.Int64.Convert(ctx, v)
		if err != nil {
			return nil, err
		}
		id = n.(int64)
	}
	s, isOurs := ctx.Session.(Session)
	if !isOurs || !s.Generated() { // a number that the statement has generated comes first
		ctx.GetLastQueryInfo().LastInsertId.Store(id)
	}
	if isOurs {
		s.Changing().toldID = true
	}
	if v == nil {
		return nil, nil
	}
	return uint64(id), nil
}

// WithChildren implements gms.Expression.
func (t *toldID) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(t, len(children), 1)
	}
	return &toldID{expression.UnaryExpressionStub{Child: children[0]}}, nil
}
