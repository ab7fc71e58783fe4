package compat

import (
	"iter"
	"strings"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser does not know comparisons with ANY, SOME or ALL of a subquery.

// A quantifier is a comparison with ANY, SOME or ALL of a subquery. In the text it goes from start, the
// operator's, to end, the word's; word is where the word starts, and close where the subquery ends.
type quantifier struct {
	operator         int
	all              bool
	start, word, end int
	close            int
}

// quantified returns the comparisons of a statement with ANY, SOME or ALL.
func quantified(s *Tokens) iter.Seq[quantifier] {
	return func(yield func(quantifier) bool) {
		for s.Next(); !s.IsOver(); {
			if !isComparison(s.Token) {
				s.Next()
				continue
			}
			q := quantifier{operator: s.Token, start: s.before}
			s.Next()
			word := strings.ToLower(string(s.value))
			if word != "any" && word != "some" && word != "all" {
				continue
			}
			q.all, q.word, q.end = word == "all", s.end-len(word), s.end
			if s.Next() != '(' {
				continue
			}
			depth := 1
			for s.Next(); s.Token == '('; depth++ {
				s.Next()
			}
			if s.Token != sqlparser.SELECT && s.Token != sqlparser.WITH {
				continue
			}
			if q.close = s.ahead(depth); !yield(q) {
				return
			}
		}
	}
}

// isComparison reports whether a token is a comparison that a quantifier may follow.
func isComparison(token int) bool {
	switch token {
	case '=', '<', '>', sqlparser.LE, sqlparser.GE, sqlparser.NE, sqlparser.NULL_SAFE_EQUAL:
		return true
	}
	return false
}

// asIn returns the spelling of a quantifier with IN; empty if there is none.
func (q quantifier) asIn() string {
	switch {
	case q.operator == '=' && !q.all:
		return " IN "
	case q.operator == sqlparser.NE && q.all:
		return " NOT IN "
	}
	return ""
}

// isOurs reports whether a function of ours does what the quantifier does.
func (q quantifier) isOurs() bool { return q.asIn() == "" && q.operator != sqlparser.NULL_SAFE_EQUAL }

// CheckQuantifiers refuses comparisons with ANY, SOME or ALL that no rule spells anew.
func CheckQuantifiers(query string, o sqlparser.ParserOptions) error {
	for q := range quantified(NewTokens(query, o)) {
		if q.asIn() == "" && !q.isOurs() {
			return NoQuantifier(query[q.start:q.end])
		}
	}
	return nil
}

// NoQuantifier returns the error for an unsupported comparison with ANY or ALL (Respell has
// replaced supported ones).
func NoQuantifier(what string) *mysql.SQLError {
	return myerr.NotSupported("'%s' of a subquery. Write EXISTS with the comparison in its WHERE", strings.TrimSpace(what))
}

// quantifierPrefix starts the names of the functions that take the places of ANY, SOME and ALL in a text. Names are
// quoted, because they contain a dot, and end with the word as the client has written it.
const quantifierPrefix = "`farmsql."

// quantifierCalls makes the subqueries of comparisons with ANY, SOME and ALL arguments of functions, which the parser
// knows.
func quantifierCalls(q quantifier, query string) []Edit {
	word := query[q.word:q.end]
	return []Edit{{q.word, q.end, quantifierPrefix + word + "`("}, {q.close, q.close, ")"}}
}

// withoutCalls returns a text as it was before quantifierCalls.
func withoutCalls(text string) string {
	for {
		at := strings.Index(text, quantifierPrefix)
		if at < 0 {
			return text
		}
		word, rest, ok := strings.Cut(text[at+len(quantifierPrefix):], "`(")
		if !ok {
			return text
		}
		s := NewTokens(rest, sqlparser.ParserOptions{})
		if !s.skipParentheses() {
			return text
		}
		text = text[:at] + word + rest[:s.end-1] + rest[s.end:]
	}
}

// quantifiedName is the name, in a syntax tree, of the function that compares with all rows of a subquery.
const quantifiedName = "farmsql.quantified"

// compareAll replaces comparisons with the functions of quantifierCalls by calls of a function that compares.
func compareAll(stmt sqlparser.Statement) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.AliasedExpr:
			n.InputExpression = withoutCalls(n.InputExpression)
		case *sqlparser.ComparisonExpr:
			compareOne(n)
		}
		return true, nil
	}, stmt)
}

// compareOne replaces one such comparison. It leaves comparisons of rows to noQuantified.
func compareOne(n *sqlparser.ComparisonExpr) {
	call, ok := n.Right.(*sqlparser.FuncExpr)
	if _, isRow := n.Left.(sqlparser.ValTuple); !ok || isRow {
		return
	}
	word, ok := strings.CutPrefix(call.Name.Lowered(), "farmsql.")
	if !ok || (word != "any" && word != "some" && word != "all") {
		return
	}
	text := func(s string) sqlparser.SelectExpr {
		return &sqlparser.AliasedExpr{Expr: sqlparser.NewStrVal([]byte(s))}
	}
	args := append(sqlparser.SelectExprs{text(n.Operator), text(word), &sqlparser.AliasedExpr{Expr: n.Left}}, call.Exprs...)
	n.Left = &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(quantifiedName), Exprs: args}
	n.Operator, n.Right = sqlparser.EqualStr, sqlparser.BoolVal(true)
}
