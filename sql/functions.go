package sql

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
)

var _ gms.Expression = (*exactLiteral)(nil)

// This extension point of go-mysql-server belongs to the process.
func init() {
	ordinary := planbuilder.IsAggregateFunc
	planbuilder.IsAggregateFunc = func(name string) bool {
		return name == exactSumName || name == exactAvgName || ordinary(name)
	}
}

// standIn returns a function that stands in for go-mysql-server's.
func standIn(name string) (gms.Function, bool) {
	switch {
	case name == exactSumName || strings.EqualFold(name, "sum"):
		return exactSum, true
	case name == exactAvgName || strings.EqualFold(name, "avg"):
		return exactAvg, true
	case name == exactLiteralName:
		return literal, true
	}
	return nil, false
}

// Functions that stand in for go-mysql-server's.
var (
	exactSum = gms.Function1{Name: "sum", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &exactAggregate{child: e}
	}}
	exactAvg = gms.Function1{Name: "avg", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &exactAggregate{child: e, avg: true}
	}}
	literal = gms.Function1{Name: "literal", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		if l, ok := e.(*expression.Literal); ok {
			return &exactLiteral{l}
		}
		return e
	}}
)

// An exactLiteral is a literal that go-mysql-server does not know for one: it
// would convert it to the type of the column that it is compared with, and so
// round it.
type exactLiteral struct{ *expression.Literal }

// WithChildren implements gms.Expression.
func (l *exactLiteral) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(l, len(children), 0)
	}
	return l, nil
}
