package compat

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/row"
)

// WithTimeDigits gives columns, parameters and variables that are declared TIME or TIME(n) a type
// with n fractional digits. go-mysql-server refuses TIME(3), and keeps six digits in a TIME.
func WithTimeDigits(query string, stmt sqlparser.Statement) {
	switch stmt.(type) {
	case *sqlparser.DDL, *sqlparser.AlterTable:
	default:
		return
	}
	if !ContainsFold(query, "time") {
		return
	}
	tree := reflect.ValueOf(stmt)
	EachOf(tree, reflect.TypeFor[*sqlparser.ColumnDefinition](), func(v reflect.Value) {
		asTime(&v.Interface().(*sqlparser.ColumnDefinition).Type)
	})
	EachOf(tree, reflect.TypeFor[*sqlparser.DeclareVariables](), func(v reflect.Value) {
		asTime(&v.Interface().(*sqlparser.DeclareVariables).VarType)
	})
	if d, ok := stmt.(*sqlparser.DDL); ok && d.ProcedureSpec != nil {
		for i := range d.ProcedureSpec.Params {
			asTime(&d.ProcedureSpec.Params[i].Type)
		}
	}
}

// asTime sets the type of a TIME that has a valid number of digits.
func asTime(c *sqlparser.ColumnType) {
	if !strings.EqualFold(c.Type, "time") {
		return
	}
	digits := 0
	if c.Length != nil {
		var err error
		if digits, err = strconv.Atoi(string(c.Length.Val)); err != nil {
			return // go-mysql-server reports the error
		}
	}
	if t, ok := row.TimeOf(digits); ok {
		c.ResolvedType = t
	}
}

// isTimeColumn reports whether an expression has the type of a column TIME(n). go-mysql-server
// compares values, and adds intervals, only of its own type TIME.
func isTimeColumn(ctx *gms.Context, e gms.Expression) bool {
	if e == nil || !e.Resolved() {
		return false
	}
	_, ok := e.Type(ctx).(row.TimeType)
	return ok
}

// asPlainTime converts an expression of type TIME(n) to go-mysql-server's own type TIME.
func asPlainTime(ctx *gms.Context, e gms.Expression) gms.Expression {
	f, ok := e.(*expression.GetField)
	if !ok {
		return expression.NewConvert(e, expression.ConvertToTime)
	}
	plain := row.BoundType(f.Type(ctx))
	return expression.NewGetFieldWithTable(int(f.Id()), int(f.TableId()), plain, f.Database(), f.Table(), f.Name(), f.IsNullable(ctx)).WithIndex(f.Index())
}

// withPlainTimes applies asPlainTime to the columns TIME(n) that an expression compares, or adds an interval to.
func withPlainTimes(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	switch e.(type) {
	case expression.Comparer, *expression.Between, *function.DateAdd, *function.DateSub:
	default:
		return e, transform.SameTree, nil
	}
	children, same := slices.Clone(e.Children()), transform.SameTree
	for i, c := range children {
		if _, isColumn := c.(*expression.GetField); isColumn && isTimeColumn(ctx, c) {
			children[i], same = asPlainTime(ctx, c), transform.NewTree
		}
	}
	if same {
		return e, same, nil
	}
	e, err := e.WithChildren(ctx, children...)
	return e, same, err
}
