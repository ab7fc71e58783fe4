package sql

import (
	"regexp"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// synonyms finds statements that say in older or shorter words what others do.
func synonyms(s *tokens) []edit {
	switch s.next() {
	case sqlparser.LOCK, sqlparser.UNLOCK:
		if s.next() == sqlparser.TABLE {
			return []edit{{s.end, s.end, "S"}}
		}
	case sqlparser.START:
		return characteristics(s)
	case sqlparser.DESC, sqlparser.DESCRIBE, sqlparser.EXPLAIN:
		return describedColumns(s)
	case sqlparser.CREATE:
		return parameterCharsets(s)
	case sqlparser.SET:
		if s.next() == sqlparser.PASSWORD {
			return passwordFor(s)
		}
	}
	return nil
}

// characteristics leaves out WITH CONSISTENT SNAPSHOT where START TRANSACTION says more: every
// transaction has one, and the parser takes one characteristic at most.
func characteristics(s *tokens) []edit {
	if s.next() != sqlparser.TRANSACTION {
		return nil
	}
	start, kept, several := s.end, "", false
	for s.next(); !s.isOver(); s.next() {
		switch s.token {
		case sqlparser.READ:
			if s.next() != sqlparser.WRITE && s.token != sqlparser.ONLY || kept != "" {
				return nil
			}
			kept = " READ " + string(s.value)
		case sqlparser.WITH:
			if s.next() != sqlparser.CONSISTENT || s.next() != sqlparser.SNAPSHOT {
				return nil
			}
		case ',':
			several = true
		default:
			return nil
		}
	}
	if !several {
		return nil
	}
	return []edit{{start, s.before, kept}}
}

// describedColumns makes SHOW COLUMNS of DESCRIBE with a column, or a pattern for some.
func describedColumns(s *tokens) []edit {
	verb := edit{0, s.end, "SHOW COLUMNS FROM"}
	if s.next() != sqlparser.ID {
		return nil
	}
	end := s.end
	if s.next() == '.' {
		if s.next() != sqlparser.ID {
			return nil
		}
		end = s.end
		s.next()
	}
	if s.token != sqlparser.ID && s.token != sqlparser.STRING {
		return nil
	}
	pattern := edit{end, s.end, " LIKE " + sqlparser.String(sqlparser.NewStrVal(s.value))}
	if s.next(); !s.isOver() {
		return nil
	}
	return []edit{verb, pattern}
}

// parameterCharsets leaves out the character sets of a procedure's parameters, which dumps of
// MySQL have: texts have one here.
func parameterCharsets(s *tokens) (edits []edit) {
	for s.next(); s.token != sqlparser.PROCEDURE; s.next() {
		if s.isOver() || s.token == '(' {
			return nil
		}
	}
	for s.next(); s.token != '('; s.next() {
		if s.isOver() {
			return nil
		}
	}
	for depth := 1; depth > 0; {
		from := s.end
		switch s.next(); {
		case s.isOver():
			return nil
		case s.token == '(':
			depth++
		case s.token == ')':
			depth--
		case s.token == sqlparser.CHARSET, s.token == sqlparser.COLLATE:
			s.next()
			edits = append(edits, edit{from, s.end, ""})
		case s.token == sqlparser.CHARACTER:
			if s.next() == sqlparser.SET {
				s.next()
				edits = append(edits, edit{from, s.end, ""})
			}
		}
	}
	return edits
}

// passwordFor makes ALTER USER account IDENTIFIED BY of SET PASSWORD FOR account =.
func passwordFor(s *tokens) []edit {
	rest := s.query[s.end:]
	blank := len(rest) - len(strings.TrimLeft(rest, " \t\r\n"))
	start := edit{end: s.end + blank + len("FOR"), text: "ALTER USER"} // the tokenizer looks beyond FOR
	if s.next() != sqlparser.FOR {
		return nil
	}
	for s.token != '=' {
		if s.next(); s.isOver() {
			return nil
		}
	}
	all := []edit{start, {s.end - 1, s.end, " IDENTIFIED BY "}}
	if s.next() != sqlparser.PASSWORD { // the function, which MariaDB wants here
		return all
	}
	from := s.before
	if s.next() != '(' {
		return nil
	}
	all = append(all, edit{from, s.end, " "})
	if s.next() != sqlparser.STRING || s.next() != ')' {
		return nil
	}
	return append(all, edit{s.end - 1, s.end, ""})
}

// unsupported are statements of MySQL's that the parser does not know, with what there is
// to be done instead.
var unsupported = []struct {
	begins        *regexp.Regexp
	what, instead string
}{
	{beginning("SHOW CREATE USER"), "SHOW CREATE USER", "SHOW GRANTS shows what an account may do"},
	{beginning("SET PASSWORD"), "SET PASSWORD", "use ALTER USER"},
	{beginning("(?:UN)?LOCK INSTANCE"), "LOCK INSTANCE", "farmsql save copies all that there is"},
	{beginning("HANDLER"), "HANDLER", "use SELECT"},
	{beginning("XA"), "XA", "a transaction is one of one database"},
	{beginning("(?:CHECK|OPTIMIZE|REPAIR|CHECKSUM) TABLES?"), "CHECK, OPTIMIZE, REPAIR and CHECKSUM TABLE", "farmsql check examines a stopped database"},
}

func beginning(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)^\s*` + strings.ReplaceAll(words, " ", `\s+`) + `\b`)
}

// knownStatements refuses statements that there are not, with a reason.
func knownStatements(query string) error {
	for _, u := range unsupported {
		if u.begins.MatchString(query) {
			return myerr.NotSupported("'%s': %s", u.what, u.instead)
		}
	}
	return nil
}
