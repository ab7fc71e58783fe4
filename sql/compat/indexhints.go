package compat

import "github.com/dolthub/vitess/go/vt/sqlparser"

// indexHints removes index hints: USE, FORCE or IGNORE, INDEX or KEY, and a list of names. The parser knows only one
// for each table, of INDEX, without FOR and without PRIMARY in the list. Neither our plans nor go-mysql-server's
// follow them.
func indexHints(s *Tokens) (edits []Edit) {
	for s.Next(); !s.IsOver(); {
		start := s.before
		switch s.Token {
		case sqlparser.USE, sqlparser.FORCE, sqlparser.IGNORE:
		default:
			s.Next()
			continue
		}
		if s.Next(); s.Token != sqlparser.INDEX && s.Token != sqlparser.KEY {
			continue
		}
		if s.Next(); s.Token == sqlparser.FOR && !s.skipPurpose() {
			continue
		}
		if s.Token == '(' && s.skipParentheses() {
			edits = append(edits, Edit{start, s.end, ""})
			s.Next()
		}
	}
	return edits
}

// skipPurpose moves behind JOIN, ORDER BY or GROUP BY of an index hint; false if there is none of them.
func (s *Tokens) skipPurpose() bool {
	switch s.Next() {
	case sqlparser.JOIN:
		s.Next()
		return true
	case sqlparser.ORDER, sqlparser.GROUP:
		if s.Next() == sqlparser.BY {
			s.Next()
			return true
		}
	}
	return false
}
