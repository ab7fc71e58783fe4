package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// CASE of a JSON document compares texts if it is compared with texts: CASE doc WHEN 'null' is true of JSON's null, and
// WHEN 'a' is not true of the JSON string "a". go-mysql-server compares JSON values, as = does.

// caseOfJSON returns a CASE of a JSON document with the document's text in its place; nil for another expression, and if
// the document is compared with anything but texts.
func caseOfJSON(ctx *gms.Context, e gms.Expression) gms.Expression {
	c, ok := e.(*expression.Case)
	if !ok || c.Expr == nil || !types.IsJSON(c.Expr.Type(ctx)) {
		return nil
	}
	for _, b := range c.Branches {
		if !types.IsTextOnly(b.Cond.Type(ctx)) {
			return nil
		}
	}
	return expression.NewCase(newAsText(ctx, c.Expr), c.Branches, c.Else)
}
