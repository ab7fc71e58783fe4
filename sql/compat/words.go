package compat

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server's parser does not accept some keywords as names where MySQL does.

// savepointWords quotes the name of a savepoint that is a keyword, as in SAVEPOINT first.
func savepointWords(s *Tokens) []Edit {
	switch s.Next() {
	case sqlparser.SAVEPOINT:
	case sqlparser.RELEASE:
		if s.Next() != sqlparser.SAVEPOINT {
			return nil
		}
	case sqlparser.ROLLBACK:
		for s.Next(); s.Token != sqlparser.TO; s.Next() {
			if s.IsOver() {
				return nil
			}
		}
		t := *s.t
		if ahead := (&Tokens{t: &t, query: s.query, end: s.end}); ahead.Next() == sqlparser.SAVEPOINT {
			s.Next()
		}
	default:
		return nil
	}
	if s.Next(); !isWord(s) {
		return nil
	}
	return []Edit{quotedWord(s)}
}

// quotedWord quotes the token.
func quotedWord(s *Tokens) Edit {
	return Edit{s.before, s.end, " `" + strings.TrimSpace(s.query[s.before:s.end]) + "`"}
}

// dropBehaviors removes RESTRICT and CASCADE behind the column that ALTER TABLE drops: they mean nothing.
func dropBehaviors(s *Tokens) (edits []Edit) {
	if s.Next() != sqlparser.ALTER || s.Next() != sqlparser.TABLE {
		return nil
	}
	for s.Next(); !s.IsOver(); {
		if s.Token != sqlparser.DROP {
			s.Next()
			continue
		}
		if s.Next() == sqlparser.COLUMN {
			s.Next()
		}
		if s.Next(); s.Token == sqlparser.RESTRICT || s.Token == sqlparser.CASCADE {
			edits = append(edits, Edit{s.before, s.end, " "})
		}
	}
	return edits
}
