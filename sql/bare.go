package sql

import (
	"context"
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// twiceOpened finds what may be a subquery in parentheses of its own.
var twiceOpened = regexp.MustCompile(`(?i)\(\s*\(\s*(?:SELECT|WITH|\()`)

// bareSubqueries makes IN (SELECT ...) of IN ((SELECT ...)), which is no list of one value.
func bareSubqueries(query string, stmt sqlparser.Statement) {
	if stmt == nil || !twiceOpened.MatchString(query) {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if c, ok := n.(*sqlparser.ComparisonExpr); ok {
			bareSubquery(c)
		}
		return true, nil
	}, stmt)
}

func bareSubquery(c *sqlparser.ComparisonExpr) {
	if c.Operator == sqlparser.InStr || c.Operator == sqlparser.NotInStr {
		if q := onlySubquery(c.Right); q != nil {
			c.Right = q
		}
		return
	}
	// With two parentheses the parser takes a quantifier for a function.
	f, ok := c.Right.(*sqlparser.FuncExpr)
	if !ok || len(f.Exprs) != 1 {
		return
	}
	a, ok := f.Exprs[0].(*sqlparser.AliasedExpr)
	word := f.Name.Lowered()
	if !ok || word != "any" && word != "some" && word != "all" {
		return
	}
	q := onlySubquery(a.Expr)
	switch {
	case q == nil:
	case c.Operator == sqlparser.EqualStr && word != "all":
		c.Operator, c.Right = sqlparser.InStr, q
	case c.Operator == sqlparser.NotEqualStr && word == "all":
		c.Operator, c.Right = sqlparser.NotInStr, q
	default:
		c.Right = refusal(compat.NoQuantifier(c.Operator + " " + word))
	}
}

// onlySubquery is the subquery that a list of one value, in any parentheses, is; nil if it is
// none.
func onlySubquery(e sqlparser.Expr) *sqlparser.Subquery {
	switch e := e.(type) {
	case sqlparser.ValTuple:
		if len(e) == 1 {
			return onlySubquery(e[0])
		}
	case *sqlparser.ParenExpr:
		return onlySubquery(e.Expr)
	case *sqlparser.Subquery:
		return e
	}
	return nil
}

// placeView has the view of CREATE VIEW db.view be in that database, without a current one, too,
// and what it reads without a database be in the current one: the text that is kept is read with
// the view's.
func placeView(ctx context.Context, stmt sqlparser.Statement) {
	d, ok := stmt.(*sqlparser.DDL)
	if !ok || d.ViewSpec == nil || d.ViewSpec.ViewName.DbQualifier.IsEmpty() {
		return
	}
	if d.Table.DbQualifier.IsEmpty() {
		d.Table = d.ViewSpec.ViewName
	}
	c, ok := ctx.(*gms.Context)
	if !ok || c == nil || c.Session == nil || c.GetCurrentDatabase() == "" || store.SameName(c.GetCurrentDatabase(), d.ViewSpec.ViewName.DbQualifier.String()) {
		return
	}
	if placeTables(c.GetCurrentDatabase(), d.ViewSpec.ViewExpr) {
		d.SubStatementStr = sqlparser.String(d.ViewSpec.ViewExpr)
	}
}

// placeTables names the database of the tables that a query reads, and reports whether there
// were any without one.
func placeTables(db string, query sqlparser.SQLNode) (changed bool) {
	ctes := make(map[string]bool)
	visit := func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.With:
			if n == nil {
				break
			}
			for _, c := range n.Ctes {
				ctes[strings.ToLower(c.As.String())] = true
			}
		case *sqlparser.AliasedTableExpr:
			t, ok := n.Expr.(sqlparser.TableName)
			if !ok || !t.DbQualifier.IsEmpty() || ctes[strings.ToLower(t.Name.String())] || strings.EqualFold(t.Name.String(), "dual") {
				break
			}
			if n.As.IsEmpty() {
				n.As = t.Name
			}
			t.DbQualifier = sqlparser.NewTableIdent(db)
			n.Expr, changed = t, true
		}
		return true, nil
	}
	_ = sqlparser.Walk(visit, query) // which never fails
	return changed
}
