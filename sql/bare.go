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

// twiceOpened matches two opening parentheses before the beginning of a subquery.
var twiceOpened = regexp.MustCompile(`(?i)\(\s*\(\s*(?:SELECT|WITH|\()`)

// bareSubqueries turns IN ((SELECT ...)) into IN (SELECT ...): the parser takes the former for a
// list of one value, and MySQL takes it for a subquery.
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

// bareSubquery corrects one comparison. It also turns = ANY, = SOME and <> ALL into IN and NOT IN,
// and refuses other quantifiers.
func bareSubquery(c *sqlparser.ComparisonExpr) {
	if c.Operator == sqlparser.InStr || c.Operator == sqlparser.NotInStr {
		if q := onlySubquery(c.Right); q != nil {
			c.Right = q
		}
		return
	}
	// The parser takes a quantifier before two parentheses for a function.
	f, ok := c.Right.(*sqlparser.FuncExpr)
	if !ok || len(f.Exprs) != 1 {
		return
	}
	a, ok := f.Exprs[0].(*sqlparser.AliasedExpr)
	word := f.Name.Lowered()
	if !ok || (word != "any" && word != "some" && word != "all") {
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
		c.Right = compat.Refusal(compat.NoQuantifier(c.Operator + " " + word))
	}
}

// onlySubquery returns the subquery that is the only value of a list, within any number of
// parentheses; nil if there is none.
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

// placeView puts the view of CREATE VIEW db.view into database db, even if there is no current
// database. It also adds the current database to those tables in the view's text that name none:
// the stored text is planned with db as the current database, and would otherwise read tables of
// db.
func placeView(ctx context.Context, stmt sqlparser.Statement) {
	d, ok := stmt.(*sqlparser.DDL)
	if !ok || d.ViewSpec == nil || d.ViewSpec.ViewName.DbQualifier.IsEmpty() {
		return
	}
	if d.Table.DbQualifier.IsEmpty() {
		d.Table = d.ViewSpec.ViewName
	}
	c, ok := ctx.(*gms.Context)
	if !ok || c == nil || c.Session == nil {
		return
	}
	current := c.GetCurrentDatabase()
	if current == "" || store.SameName(current, d.ViewSpec.ViewName.DbQualifier.String()) {
		return
	}
	if placeTables(current, d.ViewSpec.ViewExpr) {
		d.SubStatementStr = sqlparser.String(d.ViewSpec.ViewExpr)
	}
}

// placeTables adds db to the tables of a query that name no database, and reports whether there
// were any.
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
	_ = sqlparser.Walk(visit, query) // never fails
	return changed
}
