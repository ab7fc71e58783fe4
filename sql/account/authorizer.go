package account

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Note prepares a statement's syntax tree for its authorization, where go-mysql-server would
// check other privileges than MySQL.
func Note(stmt sqlparser.Statement) {
	noteDatabase(stmt)
	noteOwn(stmt)
	noteOtherTables(stmt)
	noteShown(stmt)
	noteRead(stmt)
}

// noteRead makes an UPDATE of a join check SELECT, not UPDATE, on the tables that it does not change. Columns without a
// table's name may be of any table, so then it checks UPDATE on all, as go-mysql-server does.
func noteRead(stmt sqlparser.Statement) {
	n, ok := stmt.(*sqlparser.Update)
	if !ok {
		return
	}
	changed := make(map[string]bool)
	for _, set := range n.Exprs {
		of := set.Name.Qualifier.Name.String()
		if of == "" {
			return
		}
		changed[strings.ToLower(of)] = true
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		t, ok := node.(*sqlparser.AliasedTableExpr)
		if !ok {
			return true, nil
		}
		name := t.As.String()
		if of, isTable := t.Expr.(sqlparser.TableName); isTable && name == "" {
			name = of.Name.String()
		}
		if !changed[strings.ToLower(name)] && t.Auth.AuthType == sqlparser.AuthType_UPDATE {
			t.Auth.AuthType = sqlparser.AuthType_SELECT
		}
		return true, nil
	}, n.TableExprs)
}

// An otherTable is a table that a definition refers to besides its own.
type otherTable struct {
	privilege string // one of sqlparser's AuthTypes
	table     sqlparser.TableName
}

// noteDatabase makes CREATE and DROP DATABASE check the privilege on the database that they name;
// go-mysql-server checks it on the current one.
func noteDatabase(stmt sqlparser.Statement) {
	if n, ok := stmt.(*sqlparser.DBDDL); ok && n.Auth.TargetType == sqlparser.AuthTargetType_Global {
		n.Auth.TargetType, n.Auth.TargetNames = sqlparser.AuthTargetType_DatabaseIdentifiers, []string{n.DBName}
	}
}

// noteOtherTables makes a definition check privileges on the other tables that it refers to: users
// who may not read a table may not create one LIKE it, and users without the REFERENCES privilege
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

// An authorizer is go-mysql-server's handler, which also checks the privileges on the other tables of definitions, and on what
// SHOW describes.
type authorizer struct {
	gms.AuthorizationHandler
	p Privileges
}

// Authorizer returns a handler that authorizes as h does, and also checks the privileges on the other
// tables, and on what is shown, that Note has recorded.
func Authorizer(h gms.AuthorizationHandler, p Privileges) gms.AuthorizationHandler {
	return authorizer{h, p}
}

// HandleAuth implements gms.AuthorizationHandler. It takes our notes out of Extra before the
// wrapped handler, which does not know them, sees it.
func (a authorizer) HandleAuth(ctx *gms.Context, state gms.AuthorizationQueryState, auth sqlparser.AuthInformation) error {
	if x, ok := auth.Extra.(shown); ok {
		auth.Extra = nil
		if err := a.p.refuseShown(ctx, x); err != nil {
			return err
		}
	}
	others, isDefinition := auth.Extra.([]otherTable)
	if isDefinition {
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
	return nil
}
