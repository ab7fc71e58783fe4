package sql

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// may reports whether a session's user has a privilege.
func (e *Engine) may(ctx *gms.Context, op gms.PrivilegedOperation) bool {
	return e.gms.Analyzer.Catalog.MySQLDb.UserHasPrivileges(ctx, op)
}

// denied returns the error for an operation that needs these privileges.
func denied(privileges string) error {
	return myerr.AccessDenied.New(privileges)
}

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
		if !e.may(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, gms.PrivilegeType_Super)) {
			return denied("SUPER") // SYSTEM_VARIABLES_ADMIN cannot be granted yet
		}
		if scope, ok := v.Scope.(*gms.MysqlScope); ok && scope.Type != gms.SystemVariableScope_Global {
			return myerr.NotSupported("'SET PERSIST': '%s' cannot be kept over a restart; SET GLOBAL sets it until then, and what serve has a flag for is set at start", v.Name)
		}
	}
	return nil
}

// hideProcesses makes information_schema show other users' statements only to users who may
// see them, because their texts contain values and passwords.
func (e *Engine) hideProcesses(infoSchema gms.Database) {
	t, ok, err := infoSchema.GetTableInsensitive(nil, information_schema.ProcessListTableName)
	list, isList := t.(*information_schema.InformationSchemaTable)
	if err != nil || !ok || !isList {
		panic("sql: information_schema has no processlist") // a dependency has changed
	}
	read := list.Reader
	list.Reader = func(ctx *gms.Context, c gms.Catalog) (gms.RowIter, error) {
		rows, err := read(ctx, c)
		if err != nil || e.seesAll(ctx) {
			return rows, err
		}
		return ownProcesses(ctx, rows)
	}
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

// An otherTable is a table that a definition refers to besides its own.
type otherTable struct {
	privilege string // one of sqlparser's AuthTypes
	table     sqlparser.TableName
}

// noteDatabase has CREATE and DROP DATABASE authorized for the database that they name:
// go-mysql-server checks the privilege on the current one.
func noteDatabase(stmt sqlparser.Statement) {
	if n, ok := stmt.(*sqlparser.DBDDL); ok && n.Auth.TargetType == sqlparser.AuthTargetType_Global {
		n.Auth.TargetType, n.Auth.TargetNames = sqlparser.AuthTargetType_DatabaseIdentifiers, []string{n.DBName}
	}
}

// noteOtherTables has the other tables of a definition authorized with it: users who may
// not read a table may not create one LIKE it, and users without the REFERENCES privilege
// may not create a foreign key to it, which would reveal its values. go-mysql-server checks
// neither.
func noteOtherTables(stmt sqlparser.Statement) {
	switch n := stmt.(type) {
	case *sqlparser.DDL:
		if others := otherTables(n); len(others) > 0 {
			n.Auth.Extra = others
		}
	case *sqlparser.AlterTable:
		var others []otherTable
		for _, s := range n.Statements {
			others = append(others, otherTables(s)...)
		}
		if len(others) > 0 {
			n.Auth.Extra = others
		}
	}
}

// otherTables returns the tables that a definition copies with LIKE or refers to by foreign keys,
// each with the privilege that this needs.
func otherTables(d *sqlparser.DDL) (others []otherTable) {
	if d.OptLike != nil {
		for _, t := range d.OptLike.LikeTables {
			others = append(others, otherTable{sqlparser.AuthType_SELECT, t})
		}
	}
	if d.TableSpec == nil {
		return others
	}
	refers := func(f *sqlparser.ForeignKeyDefinition) {
		if f.ReferencedTable.Name.String() != d.Table.Name.String() || f.ReferencedTable.DbQualifier != d.Table.DbQualifier {
			others = append(others, otherTable{sqlparser.AuthType_FOREIGN_KEY, f.ReferencedTable})
		}
	}
	for _, c := range d.TableSpec.Constraints {
		if f, ok := c.Details.(*sqlparser.ForeignKeyDefinition); ok {
			refers(f)
		}
	}
	for _, c := range d.TableSpec.Columns {
		if f := c.Type.ForeignKeyDef; f != nil {
			refers(f)
		}
	}
	return others
}

// An authorizer is go-mysql-server's, and checks those other tables as well.
type authorizer struct {
	gms.AuthorizationHandler
	e *Engine
}

// HandleAuth implements gms.AuthorizationHandler.
func (a authorizer) HandleAuth(ctx *gms.Context, state gms.AuthorizationQueryState, auth sqlparser.AuthInformation) error {
	others, isDefinition := auth.Extra.([]otherTable)
	insert, isInsert := auth.Extra.(*amendment)
	if isDefinition || isInsert {
		auth.Extra = nil
	}
	if err := a.AuthorizationHandler.HandleAuth(ctx, state, auth); err != nil {
		return err
	}
	for _, o := range others {
		err := a.AuthorizationHandler.HandleAuth(ctx, state, sqlparser.AuthInformation{
			AuthType:    o.privilege,
			TargetType:  sqlparser.AuthTargetType_SingleTableIdentifier,
			TargetNames: []string{strings.ToLower(o.table.DbQualifier.String()), strings.ToLower(o.table.Name.String())},
		})
		if err != nil {
			return err
		}
	}
	if isInsert {
		return a.e.amendInsert(ctx, insert)
	}
	return nil
}
