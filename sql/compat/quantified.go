package compat

import (
	"iter"
	"strings"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser does not know comparisons with ANY, SOME or ALL of a subquery.

// A quantifier is a comparison with ANY, SOME or ALL of a subquery; start and end are its place in
// the text.
type quantifier struct {
	operator   int
	all        bool
	start, end int
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
			q.all, q.end = word == "all", s.end
			if s.Next() != '(' {
				continue
			}
			for s.Next(); s.Token == '('; {
				s.Next()
			}
			if (s.Token == sqlparser.SELECT || s.Token == sqlparser.WITH) && !yield(q) {
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

// CheckQuantifiers refuses comparisons with ANY, SOME or ALL that cannot be spelled with IN.
func CheckQuantifiers(query string, o sqlparser.ParserOptions) error {
	for q := range quantified(NewTokens(query, o)) {
		if q.asIn() == "" {
			return NoQuantifier(query[q.start:q.end])
		}
	}
	return nil
}

// NoQuantifier returns the error for an unsupported comparison with ANY or ALL (Respell has
// replaced supported ones).
func NoQuantifier(what string) *mysql.SQLError {
	return myerr.NotSupported("'%s' of a subquery, except = ANY and <> ALL. "+
		"Compare with MIN or MAX of its column, or write EXISTS with the comparison in its WHERE", strings.TrimSpace(what))
}
