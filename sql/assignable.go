package sql

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
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
			return mysql.NewSQLError(erLocalVariable, "HY000", "Variable '%s' is a SESSION variable and can't be used with SET GLOBAL", to.Name)
		case of.Type == gms.SystemVariableScope_Global && scope.Type == gms.SystemVariableScope_Session:
			return mysql.NewSQLError(erGlobalVariable, "HY000", "Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL", to.Name)
		}
	}
	if l, ok := value.(*expression.Literal); ok && !fits(ctx, l, v.GetType()) {
		return mysql.NewSQLError(erWrongTypeForVar, "42000", "Incorrect argument type to variable '%s'", to.Name)
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

// OfOtherType reports whether a variable is a number and a value, which was refused, is none.
func OfOtherType(name, value string) bool {
	v, _, ok := gms.SystemVariables.GetGlobal(name)
	return ok && (isCount(v.GetType()) || v.GetType().Type() == sqltypes.Float64) && !isNumeral(value)
}

// wrongValue is the error of a SET, with MySQL's number where go-mysql-server's is that of a
// column's value.
func wrongValue(name string, value any, err error) error {
	if gms.ErrInvalidSetValue.Is(err) {
		return mysql.NewSQLError(erWrongValueForVar, "42000", "Variable '%s' can't be set to the value of '%v'", name, value)
	}
	return err
}
