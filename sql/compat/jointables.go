package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server represents the tables of a join as bits of a number, and panics if there are too many.

// joinTablesMax is the number of tables that MySQL can join. plannedTablesMax is the number that
// go-mysql-server can, including subqueries that become tables of a join.
const (
	joinTablesMax    = 61
	plannedTablesMax = 64
)

// withinJoins leaves subqueries as they are if the rule would make joins of too many tables from them.
func withinJoins(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err == nil && !bool(same) && joinsTooMany(out) {
			return n, transform.SameTree, nil
		}
		return out, same, err
	}
}

// joinsTooMany reports whether a plan has a join of more tables than go-mysql-server can plan.
func joinsTooMany(n gms.Node) (found bool) {
	transform.Inspect(n, func(n gms.Node) bool {
		if _, ok := n.(*plan.JoinNode); ok && !found {
			found = leaves(n) > plannedTablesMax
			return false
		}
		return !found
	})
	return found
}

// leaves counts the tables of a join in a plan.
func leaves(n gms.Node) (tables int) {
	transform.Inspect(n, func(n gms.Node) bool {
		if _, ok := n.(plan.TableIdNode); ok {
			tables++
			return false
		}
		return true
	})
	return tables
}

// CheckJoins refuses joins of more tables than MySQL can join.
func CheckJoins(query string, stmt sqlparser.Statement) error {
	if stmt == nil || strings.Count(query, ",")+countFold(query, "join") < joinTablesMax {
		return nil // walking costs more than parsing
	}
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		tables := 0
		switch n := n.(type) {
		case *sqlparser.Select:
			tables = joined(n.From)
		case *sqlparser.Update:
			tables = joined(n.TableExprs)
		case *sqlparser.Delete:
			tables = joined(n.TableExprs)
		}
		if tables > joinTablesMax {
			return false, myerr.TooManyTables.New(joinTablesMax)
		}
		return true, nil
	}, planned(stmt))
}

// joined counts the tables of a join.
func joined(tables sqlparser.TableExprs) (n int) {
	for _, t := range tables {
		switch t := t.(type) {
		case *sqlparser.JoinTableExpr:
			n += joined(sqlparser.TableExprs{t.LeftExpr, t.RightExpr})
		case *sqlparser.ParenTableExpr:
			n += joined(t.Exprs)
		default:
			n++
		}
	}
	return n
}

// planned returns the statement that is planned when a statement is executed: the statement of an
// EXPLAIN, or the SELECT of CREATE VIEW or CREATE TABLE, which Walk does not visit.
func planned(stmt sqlparser.Statement) sqlparser.Statement {
	switch s := stmt.(type) {
	case *sqlparser.Explain:
		return planned(s.Statement)
	case *sqlparser.DDL:
		switch {
		case s.ViewSpec != nil && s.ViewSpec.ViewExpr != nil:
			return s.ViewSpec.ViewExpr
		case s.OptSelect != nil && s.OptSelect.Select != nil:
			return s.OptSelect.Select
		}
	}
	return stmt
}

// countFold counts the lower-case ASCII word in a text, in any case of letters.
func countFold(s, word string) (n int) {
	for {
		at := indexFold(s, word)
		if at < 0 {
			return n
		}
		n++
		s = s[at+len(word):]
	}
}
