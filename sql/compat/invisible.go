package compat

import (
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser accepts INVISIBLE after a column or an index, and drops it.

// CheckInvisible refuses definitions of invisible columns and indexes.
func CheckInvisible(query string, stmt sqlparser.Statement) error {
	switch stmt.(type) {
	case *sqlparser.DDL, *sqlparser.AlterTable:
	default:
		return nil
	}
	if !ContainsFold(query, "invisible") {
		return nil
	}
	s := NewTokens(query, sqlparser.ParserOptions{})
	for s.Next(); !s.IsOver(); {
		before := s.Token
		if s.Next() != sqlparser.INVISIBLE || beforeName(before) {
			continue
		}
		if s.Next(); afterAttribute(s) {
			return myerr.NotSupported("'INVISIBLE': columns and indexes are visible. Name the columns that a SELECT wants, or drop the index")
		}
	}
	return nil
}

// beforeName reports whether a token stands before a name, so that INVISIBLE after it is one.
func beforeName(token int) bool {
	switch token {
	case ')':
		return false
	case sqlparser.ADD, sqlparser.DROP, sqlparser.COLUMN, sqlparser.MODIFY, sqlparser.CHANGE, sqlparser.TO, sqlparser.AFTER, sqlparser.AS, sqlparser.BY, sqlparser.TABLE, sqlparser.ON, sqlparser.CONSTRAINT, sqlparser.RENAME:
		return true
	}
	return token < 0x80 // a bracket, a comma or an operator
}

// afterAttribute reports whether a token stands after an attribute of a column or an index.
func afterAttribute(s *Tokens) bool {
	switch s.Token {
	case ',', ')', sqlparser.NOT, sqlparser.NULL, sqlparser.DEFAULT, sqlparser.COMMENT_KEYWORD, sqlparser.PRIMARY, sqlparser.UNIQUE, sqlparser.KEY,
		sqlparser.AUTO_INCREMENT, sqlparser.AFTER, sqlparser.FIRST, sqlparser.CHECK, sqlparser.CONSTRAINT, sqlparser.REFERENCES, sqlparser.COLLATE,
		sqlparser.GENERATED, sqlparser.AS, sqlparser.ON, sqlparser.USING:
		return true
	}
	return s.IsOver()
}
