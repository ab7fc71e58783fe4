package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/mysql"
)

// resolveCreateSelect is the name of the rule for CREATE TABLE ... SELECT.
const resolveCreateSelect = "resolveCreateSelect"

// onlyNew applies the rule for CREATE TABLE ... SELECT only where there is something to create: with IF NOT EXISTS and
// a table of the name, MySQL leaves that table as it is. go-mysql-server inserts the rows into it, and panics if they
// have other columns.
func onlyNew(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, q *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		ct, ok := n.(*plan.CreateTable)
		if !ok || ct.Select() == nil {
			return apply(ctx, a, n, scope, sel, q)
		}
		isThere, err := existsAlready(ctx, ct)
		if err != nil {
			return nil, transform.SameTree, err
		}
		if !isThere {
			return apply(ctx, a, n, scope, sel, q)
		}
		return plan.NewCreateTable(ct.Database(), ct.Name(), true, ct.Temporary(), &plan.TableSpec{Collation: ct.Collation}), transform.NewTree, nil
	}
}

// NoteExisting notes that a CREATE TABLE IF NOT EXISTS has nothing to create, which go-mysql-server does not say.
func NoteExisting(ctx *gms.Context, ct *plan.CreateTable) error {
	isThere, err := existsAlready(ctx, ct)
	if isThere {
		ctx.Session.Warn(&gms.Warning{Level: "Note", Code: mysql.ERTableExists, Message: "Table '" + ct.Name() + "' already exists"})
	}
	return err
}

// existsAlready reports whether a CREATE TABLE IF NOT EXISTS has nothing to create.
func existsAlready(ctx *gms.Context, ct *plan.CreateTable) (bool, error) {
	if !ct.IfNotExists() || ct.Temporary() {
		return false, nil
	}
	_, isThere, err := ct.Database().GetTableInsensitive(ctx, ct.Name())
	return isThere, err
}
