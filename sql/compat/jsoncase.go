package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// CASE of a JSON document compares its text with texts: CASE doc WHEN 'null' is true of JSON's null, and
// WHEN 'a' is not true of the JSON string "a". go-mysql-server compares JSON values, as = does.

// caseOfJSON returns a CASE of a JSON document as one of conditions, in which the document's text is compared with texts;
// nil for another expression, and if the document is not compared with texts.
func caseOfJSON(ctx *gms.Context, e gms.Expression) gms.Expression {
	c, ok := e.(*expression.Case)
	if !ok || c.Expr == nil || !types.IsJSON(c.Expr.Type(ctx)) {
		return nil
	}
	branches := make([]expression.CaseBranch, len(c.Branches))
	hasTexts := false
	for i, b := range c.Branches {
		of := c.Expr
		if types.IsTextOnly(b.Cond.Type(ctx)) {
			of, hasTexts = newAsText(ctx, c.Expr), true
		}
		branches[i] = expression.CaseBranch{Cond: expression.NewEquals(of, b.Cond), Value: b.Value}
	}
	if !hasTexts {
		return nil
	}
	return expression.NewCase(nil, branches, c.Else)
}
