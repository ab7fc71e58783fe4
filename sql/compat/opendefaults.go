package compat

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server's parser wants parentheses around every default that is not a literal.

// openDefaults puts parentheses around a DEFAULT that is a function call or a column's name:
// MariaDB accepts and dumps DEFAULT uuid(), concat('a', 'b') and `b`.
func openDefaults(s *Tokens) (edits []Edit) {
	if first := s.Next(); first != sqlparser.CREATE && first != sqlparser.ALTER {
		return nil
	}
	for s.Next(); !s.IsOver(); {
		if s.Token != sqlparser.DEFAULT {
			s.Next()
			continue
		}
		e := Edit{Start: s.end}
		if ok := s.openDefault(); ok {
			e.End = s.end
			e.Text = " (" + s.query[e.Start:e.End] + ")"
			edits = append(edits, e)
		}
	}
	return edits
}

// openDefault moves to the end of a default, and reports whether it lacks parentheses.
func (s *Tokens) openDefault() bool {
	switch s.Next() {
	case '(', sqlparser.CURRENT_TIMESTAMP, sqlparser.NOW, sqlparser.LOCALTIME, sqlparser.LOCALTIMESTAMP, sqlparser.NULL, ',', ')':
		return false
	}
	if s.IsOver() {
		return false
	}
	isQuoted := s.Token == sqlparser.ID && strings.HasSuffix(s.query[:s.end], "`")
	// Look ahead in the text, because s.Next would also move past a token that is not an opening
	// parenthesis: the default would end after it.
	if rest := strings.TrimLeft(s.query[s.end:], " \t\r\n"); !strings.HasPrefix(rest, "(") {
		return isQuoted
	}
	s.Next()
	return s.skipParentheses()
}
