package sql

import (
	"cmp"
	"context"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
)

// Definitions, and statements about accounts, commit the open transaction; no other
// statement may. go-mysql-server commits after any plan of a definition. That is too
// often, since views are planned as definitions when they are read; and too rarely, since the plans of
// statements about accounts are not definitions.

// readView remembers the CREATE VIEW text of a view that is being read: go-mysql-server parses it
// next, and plans it with the view's database as the current one. To restore the current database
// afterwards, go-mysql-server asks the session for it. If there is none, the session returns the
// view's database.
func readView(ctx *gms.Context, db, statement string) error {
	s, ok := ctx.Session.(*Session)
	if !ok {
		return nil
	}
	s.running.viewDatabase = db
	s.running.view = gms.RemoveSpaceAndDelimiter(compat.ResolveComments(statement, sqlparser.ParserOptions{}), ';')
	return s.noteView(statement)
}

// noteView notes that the current statement reads a view; text is its definition.
func (s *Session) noteView(text string) error {
	if s.running.viewDepth += compat.ViewDepth(text); s.running.viewDepth > compat.ViewDepthMax {
		return myerr.ViewRecursion.New()
	}
	return nil
}

// GetCurrentDatabase implements gms.Session.
func (s *Session) GetCurrentDatabase() string {
	return cmp.Or(s.Session.GetCurrentDatabase(), s.running.viewDatabase)
}

// spareView marks the CREATE VIEW of a view that is being read as temporary: otherwise it would
// commit the transaction, as every permanent definition does. Clients cannot create
// temporary views.
func spareView(ctx context.Context, query string, stmt sqlparser.Statement) {
	c, ok := ctx.(*gms.Context)
	if !ok {
		return // a client's statement
	}
	s, ok := c.Session.(*Session)
	if !ok || s.running.view == "" {
		return
	}
	if ddl, isDDL := stmt.(*sqlparser.DDL); isDDL && ddl.ViewSpec != nil && query == s.running.view {
		ddl.Temporary = true
	}
	s.running.view = ""
}

// accountsRule is the number of the rule commitForAccounts. It is above all of go-mysql-server's
// own.
const accountsRule analyzer.RuleId = 1002

// commitForAccounts is a rule that makes statements about accounts commit.
func commitForAccounts(_ *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.CreateUser, *plan.AlterUser, *plan.RenameUser, *plan.DropUser, *plan.CreateRole, *plan.DropRole,
		*plan.Grant, *plan.GrantRole, *plan.GrantProxy, *plan.Revoke, *plan.RevokeRole, *plan.RevokeProxy, *plan.FlushPrivileges, *plan.AnalyzeTable:
		flags.Set(gms.QFlagDDL)
	}
	return n, transform.SameTree, nil
}
