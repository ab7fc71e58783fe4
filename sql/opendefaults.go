package sql

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// openDefaults finds the defaults of columns that are calls or columns, and have no parentheses
// around them: MariaDB takes and dumps DEFAULT uuid(), concat('a', 'b') and `b`.
func openDefaults(s *tokens) (edits []edit) {
	if first := s.next(); first != sqlparser.CREATE && first != sqlparser.ALTER {
		return nil
	}
	for s.next(); !s.isOver(); {
		if s.token != sqlparser.DEFAULT {
			s.next()
			continue
		}
		e := edit{start: s.end}
		if ok := s.openDefault(); ok {
			e.end = s.end
			e.text = " (" + s.query[e.start:e.end] + ")"
			edits = append(edits, e)
		}
	}
	return edits
}

// openDefault goes to the end of a default, and reports whether it lacks parentheses.
func (s *tokens) openDefault() bool {
	switch s.next() {
	case '(', sqlparser.CURRENT_TIMESTAMP, sqlparser.NOW, sqlparser.LOCALTIME, sqlparser.LOCALTIMESTAMP, sqlparser.NULL, ',', ')':
		return false
	}
	if s.isOver() {
		return false
	}
	isQuoted := s.token == sqlparser.ID && strings.HasSuffix(s.query[:s.end], "`")
	// What may follow a quoted name alone is no part of it.
	if rest := strings.TrimLeft(s.query[s.end:], " \t\r\n"); !strings.HasPrefix(rest, "(") {
		return isQuoted
	}
	s.next()
	return s.skipParentheses()
}
