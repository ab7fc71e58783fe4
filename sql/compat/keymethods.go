package compat

import (
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// keyMethods moves USING BTREE and USING HASH of the keys in CREATE TABLE and ALTER TABLE, and of CREATE INDEX, behind
// the key's columns: MySQL takes them on either side, and go-mysql-server's parser only there.
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
		if s.Token == sqlparser.ID || isWord(s) && s.Token != sqlparser.USING && s.Token != sqlparser.KEY { // the key's name
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
