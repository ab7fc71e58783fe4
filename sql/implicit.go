package sql

import (
	"context"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
)

// Definitions, and statements about accounts, commit the transaction that is open; nothing
// else may. go-mysql-server commits it if any definition was planned, which is true of
// too much, the views that a statement reads, and of too little.

// readView notes the CREATE VIEW of a view that is read: go-mysql-server parses it next.
// It is planned with the database of the view as the current one. Of a session without any
// go-mysql-server asks for it all the same, to go back to it: it is told the same one.
func readView(ctx *gms.Context, db, statement string) error {
	s, ok := ctx.Session.(*Session)
	if !ok {
		return nil
	}
	s.ViewDatabase = db
	s.view = gms.RemoveSpaceAndDelimiter(compat.ResolveComments(statement, sqlparser.ParserOptions{}), ';')
	return s.noteView(ctx, statement)
}

// spareView has the CREATE VIEW of a view that is read be no definition: temporary
// ones, of which there are no views, do not commit.
func spareView(ctx context.Context, query string, stmt sqlparser.Statement) {
	c, ok := ctx.(*gms.Context)
	if !ok {
		return // of a client
	}
	s, ok := c.Session.(*Session)
	if !ok || s.view == "" {
		return
	}
	if ddl, is := stmt.(*sqlparser.DDL); is && ddl.ViewSpec != nil && query == s.view {
		ddl.Temporary = true
	}
	s.view = ""
}

// accountsRule is commitForAccounts' number, above go-mysql-server's own.
const accountsRule analyzer.RuleId = 1002

// commitForAccounts is a rule that has statements about accounts commit.
func commitForAccounts(_ *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.CreateUser, *plan.AlterUser, *plan.RenameUser, *plan.DropUser, *plan.CreateRole, *plan.DropRole,
		*plan.Grant, *plan.GrantRole, *plan.GrantProxy, *plan.Revoke, *plan.RevokeRole, *plan.RevokeProxy, *plan.FlushPrivileges, *plan.AnalyzeTable:
		flags.Set(gms.QFlagDDL)
	}
	return n, transform.SameTree, nil
}
