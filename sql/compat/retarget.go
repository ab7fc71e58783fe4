package compat

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Retarget returns the text of a CREATE TRIGGER with another table in place of its own, in the same
// database. It returns false for any other text.
func Retarget(text string, o sqlparser.ParserOptions, table string) (string, bool) {
	s := NewTokens(text, o)
	for s.Next(); s.Token != sqlparser.TRIGGER; s.Next() {
		if s.IsOver() {
			return "", false
		}
	}
	s.Next() // the trigger's name may be a word
	for s.Next(); s.Token != sqlparser.ON; s.Next() {
		if s.IsOver() {
			return "", false
		}
	}
	s.Next()
	start, end := s.before, s.end
	if s.Next() == '.' { // the name was the database's
		s.Next()
		start, end = s.before, s.end
	}
	return text[:start] + " `" + strings.ReplaceAll(table, "`", "``") + "`" + text[end:], true
}
