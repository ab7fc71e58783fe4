package sql

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// respell writes what MySQL's parser knows and go-mysql-server's does not, in the
// first statement of a text, in words that it knows, and returns false if there
// is nothing of that:
//
//   - FOR SHARE [OF table, ...] [NOWAIT | SKIP LOCKED] is LOCK IN SHARE MODE, in the same places;
//   - a column of type YEAR(4), as older versions and MariaDB dump it, is a YEAR;
//   - the only statement of a trigger, if it is SIGNAL or a compound one, stands in a block;
//   - = ANY and = SOME of a subquery are IN, and <> ALL is NOT IN;
//   - of START TRANSACTION with several characteristics, READ WRITE or READ ONLY alone remains;
//   - LOCK TABLE and UNLOCK TABLE are LOCK TABLES and UNLOCK TABLES, and SET PASSWORD FOR is ALTER USER;
//   - DESCRIBE of some columns is SHOW COLUMNS, and parameters of procedures have no character sets;
//   - defaults that are calls or columns, as MariaDB dumps them, stand in parentheses;
//   - columns of ALTER TABLE whose names are words of SQL are quoted where the parser wants it;
//   - DO is SELECT, until it is parsed (asDo);
//   - expressions in the indexes of CREATE TABLE and ALTER TABLE are columns, until then (withKeys).
func respell(query string, o sqlparser.ParserOptions) (string, bool) {
	var edits []edit
	for _, rule := range []func(*tokens) []edit{shareLocks, yearWidths, triggerBlocks, quantifiers, openDefaults, synonyms, columnWords, doExpressions, keyColumns} {
		edits = append(edits, rule(newTokens(query, o))...)
	}
	if len(edits) == 0 {
		return query, false
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	done := 0
	for _, e := range edits {
		b.WriteString(query[done:e.start])
		b.WriteString(e.text)
		done = e.end
	}
	b.WriteString(query[done:])
	return b.String(), true
}

// An edit replaces the bytes from start to end of a statement.
type edit struct {
	start, end int
	text       string
}

// tokens goes through those of the first statement of a text: strings, comments and quoted
// names are not taken for what is in them.
type tokens struct {
	t     *sqlparser.Tokenizer
	query string
	token int
	value []byte
	// before is where the token before this one ends, and end where this one does.
	before, end int
}

const noToken = 0

func newTokens(query string, o sqlparser.ParserOptions) *tokens {
	t := sqlparser.NewStringTokenizer(query)
	if o.AnsiQuotes {
		t = sqlparser.NewStringTokenizerForAnsiQuotes(query)
	}
	return &tokens{t: t, query: query}
}

// next goes to the next token and returns it.
func (s *tokens) next() int {
	s.before = s.end
	for s.token, s.value = s.t.Scan(); s.token == sqlparser.COMMENT; {
		s.token, s.value = s.t.Scan()
	}
	s.end = min(s.t.Position-1, len(s.query)) // the tokenizer is a byte ahead, but not at the end
	return s.token
}

// skipParentheses goes from a parenthesis to the one that closes it, and returns false if nothing
// does.
func (s *tokens) skipParentheses() bool {
	for depth := 1; depth > 0; {
		switch s.next(); {
		case s.isOver():
			return false
		case s.token == '(':
			depth++
		case s.token == ')':
			depth--
		}
	}
	return true
}

func (s *tokens) isOver() bool {
	return s.token == noToken || s.token == ';' || s.token == sqlparser.LEX_ERROR
}

const shareLock = " LOCK IN SHARE MODE"

// shareLocks finds the FOR SHARE clauses.
func shareLocks(s *tokens) (edits []edit) {
	for s.next(); !s.isOver(); {
		if s.token != sqlparser.FOR {
			s.next()
			continue
		}
		// The tokenizer looks beyond FOR, so that only the end of the token
		// before it says where it is.
		e := edit{start: s.before, text: shareLock}
		if s.next() != sqlparser.SHARE {
			continue
		}
		e.end = s.end
		if s.next() == sqlparser.OF {
			for s.next(); s.token == sqlparser.ID || s.token == '.' || s.token == ','; s.next() {
				e.end = s.end
			}
		}
		switch s.token {
		case sqlparser.NOWAIT:
			e.end = s.end
			s.next()
		case sqlparser.SKIP:
			if s.next() == sqlparser.LOCKED {
				e.end = s.end
				s.next()
			}
		}
		edits = append(edits, e)
	}
	return edits
}

// yearWidths finds the (4) of columns of type YEAR(4), whose names tell them from
// calls of the function.
func yearWidths(s *tokens) (edits []edit) {
	for last := s.next(); !s.isOver(); last = s.token {
		if s.next() != sqlparser.YEAR || last != sqlparser.ID {
			continue
		}
		e := edit{start: s.end}
		if s.next() != '(' || s.next() != sqlparser.INTEGRAL || string(s.value) != "4" || s.next() != ')' {
			continue
		}
		e.end = s.end
		edits = append(edits, e)
	}
	return edits
}

// triggerBlocks finds a body of a trigger that is not in a block, but has to be.
func triggerBlocks(s *tokens) []edit {
	isTrigger := false
	for s.next(); !s.isOver() && s.token != sqlparser.EACH; s.next() {
		isTrigger = isTrigger || s.token == sqlparser.TRIGGER
	}
	if !isTrigger || s.next() != sqlparser.ROW {
		return nil
	}
	s.next()
	if s.token == sqlparser.FOLLOWS || s.token == sqlparser.PRECEDES {
		s.next()
		s.next()
	}
	start, end := s.before, len(strings.TrimRight(s.query, "; \t\r\n"))
	switch s.token {
	case sqlparser.IF, sqlparser.CASE, sqlparser.WHILE, sqlparser.LOOP, sqlparser.REPEAT:
	case sqlparser.SIGNAL, sqlparser.RESIGNAL:
		for !s.isOver() {
			end = s.end
			s.next()
		}
	default:
		if isLabel := s.token == sqlparser.ID && s.next() == ':'; !isLabel {
			return nil
		}
	}
	return []edit{{start, start, " BEGIN"}, {end, end, "; END"}}
}

// columnWords finds the names of columns in ALTER TABLE ... AFTER, CHANGE and ALTER that are words
// of SQL, which the parser takes for nothing else there.
func columnWords(s *tokens) (edits []edit) {
	if s.next() != sqlparser.ALTER || s.next() != sqlparser.TABLE {
		return nil
	}
	for s.next(); !s.isOver(); {
		switch s.token {
		case sqlparser.AFTER, sqlparser.CHANGE, sqlparser.ALTER:
			if s.next() == sqlparser.COLUMN {
				s.next()
			}
			if isWord(s) {
				edits = append(edits, edit{s.before, s.end, " `" + string(s.value) + "`"})
			}
		}
		s.next()
	}
	return edits
}

// isWord says whether the token is one of SQL's words that a column may be named by.
func isWord(s *tokens) bool {
	switch s.token {
	case sqlparser.ID, sqlparser.INDEX, sqlparser.CONSTRAINT, sqlparser.CHECK:
		return false
	}
	return len(s.value) > 0 && strings.EqualFold(strings.TrimSpace(s.query[s.before:s.end]), string(s.value))
}

// quantifiers finds the comparisons with ANY, SOME and ALL of a subquery that are an IN.
func quantifiers(s *tokens) (edits []edit) {
	for q := range quantified(s) {
		if text := q.in(); text != "" {
			edits = append(edits, edit{q.start, q.end, text})
		}
	}
	return edits
}
