package compat

import (
	"fmt"
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server has hooks in which a syntax tree can be corrected, but a hook cannot return an error.

// refusedName is the function for which planning fails.
const refusedName = "farmsql.refused"

// Refusal returns an expression that makes planning fail with e.
func Refusal(e *mysql.SQLError) sqlparser.Expr {
	f := &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(refusedName)}
	for _, a := range []sqlparser.Expr{sqlparser.NewIntVal([]byte(strconv.Itoa(e.Num))), sqlparser.NewStrVal([]byte(e.State)), sqlparser.NewStrVal([]byte(e.Message))} {
		f.Exprs = append(f.Exprs, &sqlparser.AliasedExpr{Expr: a})
	}
	return f
}

// refused fails with the error that its arguments describe. go-mysql-server passes no context when
// it creates calls.
var refused = gms.FunctionN{Name: refusedName, Fn: func(_ *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	var said []string
	for _, a := range args {
		v, err := a.Eval(gms.NewEmptyContext(), nil)
		if err != nil {
			return nil, err
		}
		said = append(said, fmt.Sprint(v))
	}
	if len(said) != 3 {
		return nil, gms.ErrInvalidArgumentNumber.New(refusedName, 3, len(said))
	}
	code, err := strconv.Atoi(said[0])
	if err != nil {
		return nil, err
	}
	if code == myerr.ValueCount.Number { // go-mysql-server has its own error with this number
		return nil, gms.ErrInsertIntoMismatchValueCount.New()
	}
	return nil, myerr.Remade(code, said[1], said[2])
}}
