package sql

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/myerr"
)

// assignable refuses to SET what cannot be set in the scope that it says, and to a constant of
// another type, with MySQL's numbers. What cannot be set at all go-mysql-server refuses.
func assignable(ctx *gms.Context, to *expression.SystemVar, value gms.Expression) error {
	v, _, ok := gms.SystemVariables.GetGlobal(to.Name)
	if !ok || v.IsReadOnly() {
		return nil
	}
	known, isKnown := v.(*gms.MysqlSystemVariable)
	scope, isScope := to.Scope.(*gms.MysqlScope)
	if isKnown && isScope {
		of := known.Scope
		switch {
		case of == nil:
		case of.Type == gms.SystemVariableScope_Session && scope.Type == gms.SystemVariableScope_Global:
			return myerr.SessionVariable.New(to.Name)
		case of.Type == gms.SystemVariableScope_Global && scope.Type == gms.SystemVariableScope_Session:
			return myerr.GlobalVariable.New(to.Name)
		}
	}
	if l, ok := value.(*expression.Literal); ok && !fits(ctx, l, v.GetType()) {
		return myerr.WrongType.New(to.Name)
	}
	return nil
}

// fits reports whether a constant is of a type that a variable may be set to. Numbers are taken
// from texts, too, as go-mysql-server does.
func fits(ctx *gms.Context, l *expression.Literal, of gms.Type) bool {
	if isCount(of) && (types.IsFloat(l.Type(ctx)) || types.IsDecimal(l.Type(ctx))) {
		return false
	}
	text, ok := l.Value().(string)
	return !ok || isNumeral(text) || !isCount(of) && of.Type() != sqltypes.Float64
}

// isCount reports whether a variable's type is a whole number; that of switches is one of fewer bits.
func isCount(t gms.Type) bool { return t.Type() == sqltypes.Int64 || t.Type() == sqltypes.Uint64 }

func isNumeral(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}

// wrongValue is the error of a SET, with MySQL's number where go-mysql-server's is that of a
// column's value.
func wrongValue(name string, value any, err error) error {
	if gms.ErrInvalidSetValue.Is(err) {
		return myerr.WrongValue.New(name, value)
	}
	return err
}
