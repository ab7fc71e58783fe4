package change

import (
	"reflect"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// Note attaches each INSERT to its authorization data: the authorizer runs before an INSERT is
// planned, and finds the INSERT there.
func Note(stmt sqlparser.Statement) {
	note := func(n *sqlparser.Insert, trigger bool) {
		n.Auth.Extra = &amendment{insert: n, trigger: trigger}
		unqualifyValues(n)
	}
	switch n := stmt.(type) {
	case *sqlparser.Insert:
		note(n, false)
	case *sqlparser.DDL:
		if n.TriggerSpec != nil {
			compat.EachOf(reflect.ValueOf(n.TriggerSpec.Body), insertType, func(v reflect.Value) {
				note(v.Interface().(*sqlparser.Insert), true)
			})
		}
	}
}

var insertType = reflect.TypeFor[*sqlparser.Insert]()

// unqualifyValues turns VALUES(t.c) into VALUES(c): go-mysql-server evaluates VALUES(t.c) as the
// column of the existing row.
func unqualifyValues(n *sqlparser.Insert) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		if v, ok := node.(*sqlparser.ValuesFuncExpr); ok && strings.EqualFold(v.Name.Qualifier.Name.String(), n.Table.Name.String()) {
			v.Name.Qualifier = sqlparser.TableName{}
		}
		return true, nil
	}, sqlparser.AssignmentExprs(n.OnDup))
}

// Tables find the tables that an INSERT names.
type Tables interface {
	Table(ctx *gms.Context, db, name string) (gms.Table, gms.Database, error)
}

// An amender is an authorization handler that also rewrites INSERTs, once they are authorized.
type amender struct {
	gms.AuthorizationHandler
	tables Tables
}

// Authorizer returns a handler that authorizes as h does. Once an INSERT that Note has found is
// authorized, and before it is planned, the handler rewrites it.
func Authorizer(h gms.AuthorizationHandler, t Tables) gms.AuthorizationHandler { return amender{h, t} }

// HandleAuth implements gms.AuthorizationHandler.
func (m amender) HandleAuth(ctx *gms.Context, state gms.AuthorizationQueryState, auth sqlparser.AuthInformation) error {
	insert, isInsert := auth.Extra.(*amendment)
	if isInsert {
		auth.Extra = nil
	}
	if err := m.AuthorizationHandler.HandleAuth(ctx, state, auth); err != nil || !isInsert {
		return err
	}
	return m.amendInsert(ctx, insert)
}

// amendInsert rewrites an INSERT before it is planned.
func (m amender) amendInsert(ctx *gms.Context, a *amendment) error {
	a.takeBack()
	if err := m.refuseGenerated(ctx, a.insert); err != nil {
		return err
	}
	m.amendUpsert(ctx, a)
	m.amendValues(ctx, a.insert)
	return nil
}

// refuseGenerated refuses an ON DUPLICATE KEY UPDATE that gives a value to a generated column.
func (m amender) refuseGenerated(ctx *gms.Context, n *sqlparser.Insert) error {
	if len(n.OnDup) == 0 {
		return nil
	}
	info := m.insertedTable(ctx, n)
	if info == nil {
		return nil
	}
	for _, set := range n.OnDup {
		at := info.Column(set.Name.Name.String())
		if _, isDefault := set.Expr.(*sqlparser.Default); at >= 0 && info.Columns[at].Generated != "" && !isDefault {
			return myerr.GeneratedValue.New(info.Columns[at].Name, info.Name)
		}
	}
	return nil
}

// amendValues rewrites the rows of VALUES for amendInsert.
func (m amender) amendValues(ctx *gms.Context, n *sqlparser.Insert) {
	rows, ok := n.Rows.(*sqlparser.AliasedValues)
	if !ok {
		return
	}
	isEmpty, isLax := ofNothing(n, rows.Values), !gms.LoadSqlMode(ctx).Strict()
	if !isEmpty && !isLax {
		return
	}
	info := m.insertedTable(ctx, n)
	switch {
	case info == nil:
	case isEmpty:
		nameDefault(n, rows.Values, info)
	case isLax:
		leaveGenerated(ctx, n, rows.Values, info)
	}
}

// ofNothing reports whether an INSERT has the form () VALUES (): it names no columns, and all its
// rows are empty.
func ofNothing(n *sqlparser.Insert, rows sqlparser.Values) bool {
	return len(n.Columns) == 0 && !slices.ContainsFunc(rows, func(r sqlparser.ValTuple) bool { return len(r) > 0 })
}

// nameDefault turns () VALUES () into (a) VALUES (DEFAULT): for () VALUES (), go-mysql-server
// computes generated columns as if all others were NULL.
func nameDefault(n *sqlparser.Insert, rows sqlparser.Values, info *store.TableInfo) {
	first := slices.IndexFunc(info.Columns, func(c catalog.Column) bool { return !c.HiddenSystem })
	n.Columns = sqlparser.Columns{sqlparser.NewColIdent(info.Columns[first].Name)}
	for i := range rows {
		rows[i] = sqlparser.ValTuple{&sqlparser.Default{}}
	}
}

// leaveGenerated replaces the values that an INSERT gives to generated columns by DEFAULT, with a
// warning, unless sql_mode is strict. MySQL refuses such values in any mode. But mariadb-dump
// writes them for every table, with a mode that is not strict, because MariaDB replaces them in
// the same way.
func leaveGenerated(ctx *gms.Context, n *sqlparser.Insert, rows sqlparser.Values, info *store.TableInfo) {
	for at, c := range inserted(info, n.Columns) {
		if c >= 0 && info.Columns[c].Generated != "" && leaveColumn(rows, at) {
			myerr.GeneratedValue.Warn(ctx, info.Columns[c].Name, info.Name)
		}
	}
}

// insertedTable returns the table that an INSERT writes to, nil if it is not one of ours.
func (m amender) insertedTable(ctx *gms.Context, n *sqlparser.Insert) *store.TableInfo {
	db := n.Table.DbQualifier.String()
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	t, _, err := m.tables.Table(ctx, db, n.Table.Name.String())
	if err != nil {
		return nil // planning the statement reports the error
	}
	ours, ok := gms.GetUnderlyingTable(t).(*store.Table)
	if !ok {
		return nil
	}
	return ours.Info
}

// inserted returns, for each value of a row, the number of the column that it is for; -1 for
// none.
func inserted(info *store.TableInfo, names sqlparser.Columns) []int {
	var columns []int
	for _, name := range names {
		columns = append(columns, info.Column(name.String()))
	}
	if len(names) > 0 {
		return columns
	}
	for i, c := range info.Columns {
		if !c.HiddenSystem {
			columns = append(columns, i)
		}
	}
	return columns
}

// leaveColumn replaces the literals at one position of the rows by DEFAULT, and reports whether
// there were any.
func leaveColumn(rows sqlparser.Values, at int) (found bool) {
	for _, row := range rows {
		if at >= len(row) {
			continue // the INSERT will be refused
		}
		switch v := row[at].(type) {
		case *sqlparser.SQLVal:
			if v.Type == sqlparser.ValArg {
				continue
			}
		case *sqlparser.NullVal, *sqlparser.UnaryExpr, sqlparser.BoolVal:
		default:
			continue
		}
		row[at], found = &sqlparser.Default{}, true
	}
	return found
}
