package compat

import (
	"context"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server's parser removes the backslash of \% and \_, which LIKE needs.

// keptEscapes returns the places of \% and \_ in the strings of a text. Outside of LIKE they
// stand for themselves. The parser removes a single backslash, so the caller doubles it.
func keptEscapes(query string, ansiQuotes bool) (at []int) {
	if !strings.Contains(query, `\_`) && !strings.Contains(query, `\%`) {
		return nil
	}
	for i := 0; i < len(query); {
		switch c := query[i]; {
		case c == '\'', c == '"' && !ansiQuotes:
			i = endOfString(query, i, &at)
		case c == '"', c == '`':
			i = endAfter(query, i+1, string(c))
		case c == '#', strings.HasPrefix(query[i:], "-- "):
			i = endAfter(query, i, "\n")
		case strings.HasPrefix(query[i:], "/*") && !strings.HasPrefix(query[i:], "/*!"):
			i = endAfter(query, i+2, "*/")
		default:
			i++
		}
	}
	return at
}

// endOfString returns the index after a string that begins at i. It appends the places of the string's escapes to at.
func endOfString(query string, i int, at *[]int) int {
	quote := query[i]
	for i++; i < len(query); i++ {
		switch query[i] {
		case quote:
			return i + 1
		case '\\':
			if i+1 < len(query) && (query[i+1] == '%' || query[i+1] == '_') {
				*at = append(*at, i)
			}
			i++
		}
	}
	return len(query)
}

// endAfter returns the index after the next occurrence of end in a text, from i on; the text's
// length if there is none.
func endAfter(query string, i int, end string) int {
	n := strings.Index(query[i:], end)
	if n < 0 {
		return len(query)
	}
	return i + n + len(end)
}

// doubled returns a text with the backslashes at the given places doubled.
func doubled(query string, places []int) string {
	var b strings.Builder
	done := 0
	for _, i := range places {
		b.WriteString(query[done:i])
		b.WriteByte('\\')
		done = i
	}
	b.WriteString(query[done:])
	return b.String()
}

// inOriginal converts a place in the doubled text to the place in the original.
func inOriginal(at []int, place int) int {
	n := 0
	for n < len(at) && at[n]+n < place {
		n++
	}
	return place - n
}

// movePlaces converts the positions that a definition stores from the doubled text to the
// original.
func movePlaces(stmt sqlparser.Statement, at []int) {
	if d, ok := stmt.(*sqlparser.DDL); ok && len(at) > 0 {
		d.SubStatementPositionStart = inOriginal(at, d.SubStatementPositionStart)
		d.SubStatementPositionEnd = inOriginal(at, d.SubStatementPositionEnd)
	}
}

// ParseFirst parses the first statement of a text, and returns where it ends.
func ParseFirst(ctx context.Context, query string, o sqlparser.ParserOptions) (sqlparser.Statement, int, error) {
	at := keptEscapes(query, o.AnsiQuotes)
	stmt, end, err := sqlparser.ParseOneWithOptions(ctx, doubled(query, at), o)
	movePlaces(stmt, at)
	return stmt, inOriginal(at, end), err
}

// ParseWhole parses a text that must be a single statement.
func ParseWhole(ctx context.Context, query string, o sqlparser.ParserOptions) (sqlparser.Statement, error) {
	at := keptEscapes(query, o.AnsiQuotes)
	stmt, err := sqlparser.ParseWithOptions(ctx, doubled(query, at), o)
	movePlaces(stmt, at)
	return stmt, err
}
