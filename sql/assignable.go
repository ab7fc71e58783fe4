package sql

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/myerr"
)

// settable refuses SET of a global variable to users without the privilege for it, because
// it affects everybody, and refuses SET PERSIST.
func (e *Engine) settable(ctx *gms.Context, n *plan.Set) error {
	for _, x := range n.Exprs {
		f, ok := x.(*expression.SetField)
		if !ok {
			continue
		}
		v, ok := f.LeftChild.(*expression.SystemVar)
		if !ok {
			continue
		}
		if err := assignable(ctx, v, f.RightChild); err != nil {
			return err
		}
		if scope, ok := v.Scope.(*gms.MysqlScope); ok && scope.Type == gms.SystemVariableScope_Session {
			continue
		}
		if !e.privileges.Has(ctx, gms.PrivilegeType_Super) {
			return myerr.AccessDenied.New("SUPER") // SYSTEM_VARIABLES_ADMIN cannot be granted yet
		}
		if scope, ok := v.Scope.(*gms.MysqlScope); ok && scope.Type != gms.SystemVariableScope_Global {
			return myerr.NotSupported("'SET PERSIST': '%s' cannot be kept over a restart; SET GLOBAL sets it until then, and what serve has a flag for is set at start", v.Name)
		}
	}
	return nil
}

// sets reports whether a SET statement sets a variable.
func sets(n *plan.Set, name string) bool {
	for _, x := range n.Exprs {
		if f, ok := x.(*expression.SetField); ok {
			if v, ok := f.LeftChild.(*expression.SystemVar); ok && strings.EqualFold(v.Name, name) {
				return true
			}
		}
	}
	return false
}

// assignable returns MySQL's error if a SET uses a scope that the variable does not have, or
// assigns a constant of another type. go-mysql-server itself refuses variables that cannot be set
// at all.
func assignable(ctx *gms.Context, to *expression.SystemVar, value gms.Expression) error {
	v, _, ok := gms.SystemVariables.GetGlobal(to.Name)
	if !ok || v.IsReadOnly() {
		return nil
	}
	known, isKnown := v.(*gms.MysqlSystemVariable)
	scope, isScope := to.Scope.(*gms.MysqlScope)
	if isKnown && isScope {
		own := known.Scope
		switch {
		case own == nil:
		case own.Type == gms.SystemVariableScope_Session && scope.Type == gms.SystemVariableScope_Global:
			return myerr.SessionVariable.New(to.Name)
		case own.Type == gms.SystemVariableScope_Global && scope.Type == gms.SystemVariableScope_Session:
			return myerr.GlobalVariable.New(to.Name)
		}
	}
	if l, ok := value.(*expression.Literal); ok && !fits(ctx, l, v.GetType()) {
		return myerr.WrongType.New(to.Name)
	}
	return nil
}

// fits reports whether a constant may be assigned to a variable of type typ: a whole number takes no constant with a
// point or an exponent, and a number takes no text but a numeral, which counts as a number in go-mysql-server, too.
func fits(ctx *gms.Context, l *expression.Literal, typ gms.Type) bool {
	if isCount(typ) && (types.IsFloat(l.Type(ctx)) || types.IsDecimal(l.Type(ctx))) {
		return false
	}
	isNumber := isCount(typ) || typ.Type() == sqltypes.Float64
	text, isText := l.Value().(string)
	return !isNumber || !isText || isNumeral(text)
}

// isCount reports whether a variable's type is a whole number. A switch (ON or OFF) has an integer
// type of fewer bits, and is no count.
func isCount(t gms.Type) bool { return t.Type() == sqltypes.Int64 || t.Type() == sqltypes.Uint64 }

func isNumeral(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}

// wrongValue gives MySQL's number to the error of a SET. For some errors, go-mysql-server uses the
// number of a wrong column value.
func wrongValue(name string, value any, err error) error {
	if gms.ErrInvalidSetValue.Is(err) {
		return myerr.WrongValue.New(name, value)
	}
	return err
}
