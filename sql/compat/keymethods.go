package compat

import (
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// keyMethods moves USING BTREE or USING HASH of a key behind the key's columns, in CREATE TABLE,
// ALTER TABLE and CREATE INDEX. MySQL accepts it before or after the columns, go-mysql-server's
// parser only after.
func keyMethods(s *Tokens) (edits []Edit) {
	if verb := s.Next(); verb != sqlparser.CREATE && verb != sqlparser.ALTER {
		return nil
	}
	for s.Next(); !s.IsOver(); {
		if s.Token != sqlparser.KEY && s.Token != sqlparser.INDEX && s.Token != sqlparser.UNIQUE {
			s.Next()
			continue
		}
		s.Next()
		if s.Token == sqlparser.ID || (isWord(s) && s.Token != sqlparser.USING && s.Token != sqlparser.KEY) { // the key's name
			s.Next()
		}
		if s.Token != sqlparser.USING {
			continue
		}
		using := Edit{Start: s.before}
		s.Next()
		using.End = s.end
		method := s.query[using.Start:using.End]
		if s.Next() == sqlparser.ON { // CREATE INDEX name USING method ON table
			for s.Next(); s.Token == sqlparser.ID || s.Token == '.'; s.Next() {
			}
		}
		if s.Token == '(' && s.skipParentheses() {
			edits = append(edits, using, Edit{s.end, s.end, method})
			s.Next()
		}
	}
	return edits
}
