package compat

import (
	"reflect"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

var defaultType = reflect.TypeFor[*sqlparser.Default]()

// CheckDefaults refuses DEFAULT and DEFAULT(column) unless they are the whole value of
// that column: go-mysql-server's plans cannot replace them elsewhere, and panic.
func CheckDefaults(query string, stmt sqlparser.Statement) (err error) {
	stmt = planned(stmt)
	if !runsNow(stmt) || !ContainsFold(query, "default") {
		return nil
	}
	isWhole := make(map[*sqlparser.Default]bool) // the DEFAULTs that are the whole value of their column
	note := func(name string, e sqlparser.Expr) {
		if d, ok := e.(*sqlparser.Default); ok && (d.ColName == "" || strings.EqualFold(d.ColName, name)) {
			isWhole[d] = true
		}
	}
	noteAll := func(all sqlparser.AssignmentExprs) {
		for _, a := range all {
			note(a.Name.Name.String(), a.Expr)
		}
	}
	switch s := stmt.(type) {
	case *sqlparser.Update:
		noteAll(s.Exprs)
	case *sqlparser.Insert:
		noteAll(sqlparser.AssignmentExprs(s.OnDup))
		noteValues(s, note)
	}
	EachOf(reflect.ValueOf(stmt), defaultType, func(v reflect.Value) {
		if d := v.Interface().(*sqlparser.Default); !isWhole[d] && err == nil {
			err = errDefault(d, stmt)
		}
	})
	return err
}

// noteValues notes the value that an INSERT gives to each column. Without a column list, the
// columns' names are not known here; noteValues then assumes that DEFAULT(column) is assigned to
// that same column.
func noteValues(s *sqlparser.Insert, note func(name string, e sqlparser.Expr)) {
	values, ok := s.Rows.(*sqlparser.AliasedValues)
	if !ok {
		return
	}
	for _, tuple := range values.Values {
		for i, e := range tuple {
			name := ""
			if i < len(s.Columns) {
				name = s.Columns[i].String()
			} else if d, ok := e.(*sqlparser.Default); ok {
				name = d.ColName
			}
			note(name, e)
		}
	}
}

// errDefault returns the error for a DEFAULT or DEFAULT(column) that is not the whole value of that
// column.
func errDefault(d *sqlparser.Default, stmt sqlparser.Statement) error {
	if d.ColName == "" {
		return myerr.MisplacedDefault.New()
	}
	if s, ok := stmt.(*sqlparser.Select); ok && noTables(s) {
		return myerr.UnknownColumn.New(d.ColName)
	}
	return myerr.NotSupported("'DEFAULT(%s)' except as the value of that column in VALUES and SET. Write the default itself", d.ColName)
}

// noTables reports whether a SELECT reads no table: it has no FROM, or FROM DUAL.
func noTables(s *sqlparser.Select) bool {
	if len(s.From) != 1 {
		return len(s.From) == 0
	}
	t, ok := s.From[0].(*sqlparser.AliasedTableExpr)
	if !ok {
		return false
	}
	name, ok := t.Expr.(sqlparser.TableName)
	return ok && strings.EqualFold(name.Name.String(), "dual")
}

// EachOf visits all pointers of the type t in a syntax tree, except nil.
func EachOf(v reflect.Value, t reflect.Type, visit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Interface:
		EachOf(v.Elem(), t, visit)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Type() == t {
			visit(v)
		}
		EachOf(v.Elem(), t, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				EachOf(f, t, visit)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			EachOf(v.Index(i), t, visit)
		}
	}
}
