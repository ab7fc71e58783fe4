package routine

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// putValues puts the values of variables where a statement names them, until restore is called.
func (b *body) putValues(s sqlparser.Statement) (restore func(), err error) {
	var undo []func()
	restore = func() {
		for _, u := range undo {
			u()
		}
	}
	put := func(at reflect.Value) error {
		c, ok := at.Interface().(*sqlparser.ColName)
		if !ok || !c.Qualifier.IsEmpty() {
			return nil
		}
		v := b.variable(c.Name.String())
		if v == nil {
			return nil
		}
		e, err := v.literal(b.ctx)
		if err != nil {
			return err
		}
		undo = append(undo, func() { at.Set(reflect.ValueOf(c)) })
		at.Set(reflect.ValueOf(e))
		return nil
	}
	return restore, eachExpr(reflect.ValueOf(s), put)
}

// eachExpr calls visit for each expression in a value, however deep. It leaves out names that
// are assigned to, and plain names in GROUP BY and ORDER BY: there, a number put in the place
// of a name would be read as the number of a column.
func eachExpr(v reflect.Value, visit func(at reflect.Value) error) error {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if _, isName := v.Interface().(*sqlparser.ColName); isName {
			if v.CanSet() && v.Type() == exprType {
				return visit(v)
			}
			return nil
		}
		return eachExpr(v.Elem(), visit)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		switch n := v.Interface().(type) {
		case *sqlparser.Order:
			if _, isName := n.Expr.(*sqlparser.ColName); isName {
				return nil
			}
		case *sqlparser.AliasedExpr:
			nameAfter(n)
		}
		return eachExpr(v.Elem(), visit)
	case reflect.Struct:
		if v.Type() == authType { // authorization data may lead back to the statement, so the walk would not end
			return nil
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				if err := eachExpr(f, visit); err != nil {
					return err
				}
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.Type() == groupByType {
			return nil
		}
		for i := range v.Len() {
			if err := eachExpr(v.Index(i), visit); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	exprType    = reflect.TypeFor[sqlparser.Expr]()
	groupByType = reflect.TypeFor[sqlparser.GroupBy]()
	authType    = reflect.TypeFor[sqlparser.AuthInformation]()
)

// nameAfter names a result column after the variable that it selects.
func nameAfter(a *sqlparser.AliasedExpr) {
	if c, ok := a.Expr.(*sqlparser.ColName); ok && a.As.IsEmpty() && c.Qualifier.IsEmpty() {
		a.As = sqlparser.NewColIdent(c.Name.String())
	}
}

// literal returns a variable's value as a literal.
func (v *variable) literal(ctx *gms.Context) (sqlparser.Expr, error) {
	if v.value == nil {
		return &sqlparser.NullVal{}, nil
	}
	switch x := v.value.(type) {
	case float64:
		return sqlparser.NewFloatVal(strconv.AppendFloat(nil, x, 'e', -1, 64)), nil
	case float32:
		return sqlparser.NewFloatVal(strconv.AppendFloat(nil, float64(x), 'e', -1, 32)), nil
	case []byte:
		return sqlparser.NewHexVal([]byte(hex.EncodeToString(x))), nil
	}
	s, err := v.typ.SQL(ctx, nil, v.value)
	if err != nil {
		return nil, err
	}
	switch {
	case types.IsInteger(v.typ) || types.IsBit(v.typ) || types.IsYear(v.typ):
		return sqlparser.NewIntVal(fmt.Append(nil, v.value)), nil
	case types.IsDecimal(v.typ):
		if v.typ.(gms.DecimalType).Scale() == 0 {
			return sqlparser.NewIntVal(s.Raw()), nil
		}
		return sqlparser.NewFloatVal(s.Raw()), nil
	}
	return sqlparser.NewStrVal(s.Raw()), nil
}
