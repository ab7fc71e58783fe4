package compat

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// In a DELETE or UPDATE of several tables, go-mysql-server treats an undefined alias as a table. It
// treats the word QUICK of DELETE as an alias.

// CheckTargets refuses a DELETE or UPDATE whose target is not one of the statement's tables. It accepts
// every target that is qualified with a database.
func CheckTargets(stmt sqlparser.Statement) error {
	switch s := stmt.(type) {
	case *sqlparser.Delete:
		for _, t := range s.Targets {
			if name := t.Name.String(); t.DbQualifier.IsEmpty() && !isAmong(name, s.TableExprs) {
				return myerr.UnknownTarget.New(name)
			}
		}
	case *sqlparser.Update:
		for _, e := range s.Exprs {
			of := e.Name.Qualifier
			if name := of.Name.String(); name != "" && of.DbQualifier.IsEmpty() && !isAmong(name, s.TableExprs) {
				return myerr.UnknownColumn.New(name + "." + e.Name.Name.String())
			}
		}
	}
	return nil
}

// DropQuick turns DELETE QUICK FROM into DELETE FROM, as MySQL reads it.
func DropQuick(stmt sqlparser.Statement) {
	d, ok := stmt.(*sqlparser.Delete)
	if !ok || len(d.Targets) != 1 || len(d.TableExprs) != 1 || !d.Targets[0].DbQualifier.IsEmpty() {
		return
	}
	if _, isTable := d.TableExprs[0].(*sqlparser.AliasedTableExpr); isTable && strings.EqualFold(d.Targets[0].Name.String(), "quick") && !isAmong("quick", d.TableExprs) {
		d.Targets = nil
	}
}

// isAmong reports whether a name is that of one of the tables, or its alias, if it has one.
func isAmong(name string, tables sqlparser.TableExprs) bool {
	found := false
	for _, t := range tables {
		switch t := t.(type) {
		case *sqlparser.AliasedTableExpr:
			found = strings.EqualFold(tableOf(t), name)
		case *sqlparser.JoinTableExpr:
			found = isAmong(name, sqlparser.TableExprs{t.LeftExpr, t.RightExpr})
		case *sqlparser.ParenTableExpr:
			found = isAmong(name, t.Exprs)
		default:
			found = true // the names of its tables are not known here
		}
		if found {
			return true
		}
	}
	return false
}

// tableOf returns the name by which a statement knows a table: its alias, if it has one.
func tableOf(t *sqlparser.AliasedTableExpr) string {
	if table, ok := t.Expr.(sqlparser.TableName); ok && t.As.IsEmpty() {
		return table.Name.String()
	}
	return t.As.String()
}

// keyOptionPrimary is the parser's number of a column's PRIMARY KEY, whose constant it keeps to
// itself.
const keyOptionPrimary = 1

// CheckPrimaryKeys refuses a CREATE TABLE with several primary keys. go-mysql-server would use the first.
func CheckPrimaryKeys(stmt sqlparser.Statement) error {
	d, ok := stmt.(*sqlparser.DDL)
	if !ok || d.Action != sqlparser.CreateStr || d.TableSpec == nil {
		return nil
	}
	keys := 0
	for _, c := range d.TableSpec.Columns {
		if c.Type.KeyOpt == keyOptionPrimary {
			keys++
		}
	}
	for _, i := range d.TableSpec.Indexes {
		if i.Info.Primary {
			keys++
		}
	}
	if keys > 1 {
		return myerr.SeveralPrimaryKeys.New()
	}
	return nil
}
