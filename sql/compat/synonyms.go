package compat

import (
	"regexp"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser does not know some of MySQL's older or shorter spellings of
// statements.

// synonyms replaces older or shorter spellings of statements by those that the parser knows.
func synonyms(s *Tokens) []Edit {
	switch s.Next() {
	case sqlparser.LOCK, sqlparser.UNLOCK:
		if s.Next() == sqlparser.TABLE {
			return []Edit{{s.end, s.end, "S"}}
		}
	case sqlparser.START:
		return characteristics(s)
	case sqlparser.DESC, sqlparser.DESCRIBE, sqlparser.EXPLAIN:
		return describedColumns(s)
	case sqlparser.CREATE:
		return parameterCharsets(s)
	case sqlparser.INSERT, sqlparser.REPLACE, sqlparser.UPDATE, sqlparser.DELETE:
		return priorities(s)
	case sqlparser.SET:
		if s.Next() == sqlparser.PASSWORD {
			return passwordFor(s)
		}
	}
	return nil
}

// priorities removes LOW_PRIORITY, HIGH_PRIORITY, DELAYED and QUICK after the verb: they advise only
// engines that lock whole tables. QUICK may be a table's alias, except before FROM.
func priorities(s *Tokens) []Edit {
	verb := s.Token
	if s.Next(); s.IsOver() {
		return nil
	}
	e := Edit{Start: s.before, End: s.end}
	switch strings.ToLower(strings.TrimSpace(s.query[e.Start:e.End])) {
	case "low_priority":
		return []Edit{e}
	case "high_priority":
		if verb == sqlparser.INSERT {
			return []Edit{e}
		}
	case "delayed":
		if verb == sqlparser.INSERT || verb == sqlparser.REPLACE {
			return []Edit{e}
		}
	case "quick":
		if verb == sqlparser.DELETE && s.Next() == sqlparser.FROM {
			return []Edit{e}
		}
	}
	return nil
}

// characteristics removes WITH CONSISTENT SNAPSHOT if START TRANSACTION has other
// characteristics: every transaction has a consistent snapshot, and the parser takes at most
// one characteristic.
func characteristics(s *Tokens) []Edit {
	if s.Next() != sqlparser.TRANSACTION {
		return nil
	}
	start, kept, several := s.end, "", false
	for s.Next(); !s.IsOver(); s.Next() {
		switch s.Token {
		case sqlparser.READ:
			if (s.Next() != sqlparser.WRITE && s.Token != sqlparser.ONLY) || kept != "" {
				return nil
			}
			kept = " READ " + string(s.value)
		case sqlparser.WITH:
			if s.Next() != sqlparser.CONSISTENT || s.Next() != sqlparser.SNAPSHOT {
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
	return []Edit{{start, s.before, kept}}
}

// describedColumns turns DESCRIBE with a column, or a pattern, into SHOW COLUMNS.
func describedColumns(s *Tokens) []Edit {
	verb := Edit{0, s.end, "SHOW COLUMNS FROM"}
	if s.Next() != sqlparser.ID {
		return nil
	}
	end := s.end
	if s.Next() == '.' {
		if s.Next() != sqlparser.ID {
			return nil
		}
		end = s.end
		s.Next()
	}
	if s.Token != sqlparser.ID && s.Token != sqlparser.STRING {
		return nil
	}
	pattern := Edit{end, s.end, " LIKE " + sqlparser.String(sqlparser.NewStrVal(s.value))}
	if s.Next(); !s.IsOver() {
		return nil
	}
	return []Edit{verb, pattern}
}

// parameterCharsets drops the character sets of a procedure's parameters, which MySQL's dumps
// have: all text has the same one here.
func parameterCharsets(s *Tokens) (edits []Edit) {
	for s.Next(); s.Token != sqlparser.PROCEDURE; s.Next() {
		if s.IsOver() || s.Token == '(' {
			return nil
		}
	}
	for s.Next(); s.Token != '('; s.Next() {
		if s.IsOver() {
			return nil
		}
	}
	for depth := 1; depth > 0; {
		from := s.end
		switch s.Next(); {
		case s.IsOver():
			return nil
		case s.Token == '(':
			depth++
		case s.Token == ')':
			depth--
		case s.Token == sqlparser.CHARSET, s.Token == sqlparser.COLLATE:
			s.Next()
			edits = append(edits, Edit{from, s.end, ""})
		case s.Token == sqlparser.CHARACTER:
			if s.Next() == sqlparser.SET {
				s.Next()
				edits = append(edits, Edit{from, s.end, ""})
			}
		}
	}
	return edits
}

// passwordFor turns SET PASSWORD FOR account = ... into ALTER USER account IDENTIFIED BY ....
func passwordFor(s *Tokens) []Edit {
	rest := s.query[s.end:]
	blank := len(rest) - len(strings.TrimLeft(rest, " \t\r\n"))
	start := Edit{End: s.end + blank + len("FOR"), Text: "ALTER USER"} // the tokenizer reads beyond FOR
	if s.Next() != sqlparser.FOR {
		return nil
	}
	for s.Token != '=' {
		if s.Next(); s.IsOver() {
			return nil
		}
	}
	all := []Edit{start, {s.end - 1, s.end, " IDENTIFIED BY "}}
	if s.Next() != sqlparser.PASSWORD { // MariaDB requires the function PASSWORD here
		return all
	}
	from := s.before
	if s.Next() != '(' {
		return nil
	}
	all = append(all, Edit{from, s.end, " "})
	if !s.Match(sqlparser.STRING, ')') {
		return nil
	}
	return append(all, Edit{s.end - 1, s.end, ""})
}

// unsupported lists MySQL's statements that the parser does not know, with advice on what to
// do instead.
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

// CheckStatements refuses unsupported statements, with a reason.
func CheckStatements(query string) error {
	for _, u := range unsupported {
		if u.begins.MatchString(query) {
			return myerr.NotSupported("'%s': %s", u.what, u.instead)
		}
	}
	return nil
}
