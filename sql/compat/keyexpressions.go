package compat

import (
	"fmt"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server's parser knows indexes of expressions only in CREATE INDEX. In CREATE TABLE and
// ALTER TABLE, an invented column's name takes the expression's place until the statement is parsed.

// A KeyExpression is the expression of an index, and the column that takes its place.
type KeyExpression struct {
	Text   string // with the expression's parentheses
	Column Edit   // replaces the expression by the column
}

// keyColumns replaces the expressions of indexes by columns.
func keyColumns(s *Tokens) (edits []Edit) {
	for _, k := range KeyExpressions(s) {
		edits = append(edits, k.Column)
	}
	return edits
}

// KeyExpressions returns the expressions of indexes whose only part is an expression. The edit of
// each also replaces the direction, ASC or DESC, behind it.
func KeyExpressions(s *Tokens) (keys []KeyExpression) {
	s.Next()
	if s.Token != sqlparser.CREATE && s.Token != sqlparser.ALTER {
		return nil
	}
	for s.Next(); !s.IsOver(); {
		if s.Token != sqlparser.KEY && s.Token != sqlparser.INDEX {
			s.Next()
			continue
		}
		if s.Next() == sqlparser.ID { // skip the index's name
			s.Next()
		}
		if s.Token != '(' {
			continue
		}
		opened := s.end
		if s.Next() != '(' || !s.skipParentheses() {
			continue
		}
		closed := s.end
		if s.Next() == sqlparser.ASC || s.Token == sqlparser.DESC {
			s.Next()
		}
		if s.Token == ')' { // the key has no other part
			keys = append(keys, KeyExpression{s.query[opened:closed], Edit{opened, s.end - 1, keyColumn(len(keys))}})
		}
	}
	return keys
}

// keyColumn returns the column name that replaces the i-th key expression of a statement.
func keyColumn(i int) string { return fmt.Sprintf("`farmsql.key.%d`", i) }
