package compat

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Respell rewrites words of the first statement of a text that MySQL's parser knows and
// go-mysql-server's does not. If there is nothing to rewrite, it returns false. It rewrites as
// follows:
//
//   - FOR SHARE [OF table, ...] [NOWAIT | SKIP LOCKED] becomes LOCK IN SHARE MODE, in the same places;
//   - a column of type YEAR(4), as older versions and MariaDB dump it, becomes a YEAR;
//   - the only statement of a trigger, if it is SIGNAL or a compound one, is put into a block;
//   - = ANY and = SOME of a subquery become IN, and <> ALL becomes NOT IN; in other comparisons ANY, SOME and ALL
//     become functions, until they are parsed (compareAll);
//   - START TRANSACTION with several characteristics keeps only READ WRITE or READ ONLY;
//   - LOCK TABLE and UNLOCK TABLE become LOCK TABLES and UNLOCK TABLES, and SET PASSWORD FOR becomes
//     ALTER USER;
//   - DESCRIBE of some columns becomes SHOW COLUMNS, and parameters of procedures lose their character
//     sets;
//   - defaults that are calls or columns, as MariaDB dumps them, are put into parentheses;
//   - columns of ALTER TABLE whose names are words of SQL are quoted where the parser wants it;
//   - LOW_PRIORITY, HIGH_PRIORITY, DELAYED and QUICK of statements that change rows are removed;
//   - DO becomes SELECT, until it is parsed (AsDo);
//   - expressions in the indexes of CREATE TABLE and ALTER TABLE become columns, until they are parsed
//     (withKeys);
//   - columns in the lists of USING and REFERENCES whose names are words of SQL are quoted;
//   - index hints are removed;
//   - names of savepoints that are words of SQL are quoted;
//   - RESTRICT and CASCADE are removed from ALTER TABLE ... DROP COLUMN;
//   - USING BTREE or USING HASH of a key moves behind its columns;
//   - units of several parts, such as DAY_HOUR, are quoted.
func Respell(query string, o sqlparser.ParserOptions) (string, bool) {
	var edits []Edit
	for _, rule := range []func(*Tokens) []Edit{shareLocks, yearWidths, triggerBlocks, quantifiers, openDefaults, synonyms, columnWords, doExpressions, keyColumns, keyMethods, listWords, indexHints, savepointWords, dropBehaviors, compoundUnits} {
		edits = append(edits, rule(NewTokens(query, o))...)
	}
	if len(edits) == 0 {
		return query, false
	}
	slices.SortFunc(edits, func(a, b Edit) int { return a.Start - b.Start })
	var b strings.Builder
	done := 0
	for _, e := range edits {
		b.WriteString(query[done:e.Start])
		b.WriteString(e.Text)
		done = e.End
	}
	b.WriteString(query[done:])
	return b.String(), true
}

// An Edit replaces the bytes from Start to End of a statement.
type Edit struct {
	Start, End int
	Text       string
}

// Tokens iterates over the tokens of the first statement of a text. The content of strings,
// comments and quoted names is not taken for tokens.
type Tokens struct {
	t     *sqlparser.Tokenizer
	query string
	Token int
	value []byte
	// before is the end of the token before this one, and end is this one's.
	before, end int
}

const noToken = 0

// NewTokens returns the tokens of a statement; call Next for the first one.
func NewTokens(query string, o sqlparser.ParserOptions) *Tokens {
	t := sqlparser.NewStringTokenizer(query)
	if o.AnsiQuotes {
		t = sqlparser.NewStringTokenizerForAnsiQuotes(query)
	}
	return &Tokens{t: t, query: query}
}

// Match moves over the given tokens, and reports whether they come next. At the first token that
// differs it stops.
func (s *Tokens) Match(tokens ...int) bool {
	for _, t := range tokens {
		if s.Next() != t {
			return false
		}
	}
	return true
}

// Next goes to the next token and returns it.
func (s *Tokens) Next() int {
	s.before = s.end
	for s.Token, s.value = s.t.Scan(); s.Token == sqlparser.COMMENT; {
		s.Token, s.value = s.t.Scan()
	}
	s.end = min(s.t.Position-1, len(s.query)) // the tokenizer is a byte ahead, except at the end
	return s.Token
}

// skipParentheses moves from an opening parenthesis to its closing one; false if there is none.
func (s *Tokens) skipParentheses() bool {
	for depth := 1; depth > 0; {
		switch s.Next(); {
		case s.IsOver():
			return false
		case s.Token == '(':
			depth++
		case s.Token == ')':
			depth--
		}
	}
	return true
}

// ahead returns where the given number of open parentheses are closed, without moving.
func (s *Tokens) ahead(depth int) int {
	t := *s.t
	c := *s
	c.t = &t
	for range depth {
		c.skipParentheses()
	}
	return c.end
}

// IsOver reports whether the statement has ended.
func (s *Tokens) IsOver() bool {
	return s.Token == noToken || s.Token == ';' || s.Token == sqlparser.LEX_ERROR
}

const shareLock = " LOCK IN SHARE MODE"

// shareLocks replaces FOR SHARE clauses by LOCK IN SHARE MODE.
func shareLocks(s *Tokens) (edits []Edit) {
	for s.Next(); !s.IsOver(); {
		if s.Token != sqlparser.FOR {
			s.Next()
			continue
		}
		// The tokenizer reads beyond FOR, so only the end of the token before FOR shows its place.
		e := Edit{Start: s.before, Text: shareLock}
		if s.Next() != sqlparser.SHARE {
			continue
		}
		e.End = s.end
		if s.Next() == sqlparser.OF {
			for s.Next(); s.Token == sqlparser.ID || s.Token == '.' || s.Token == ','; s.Next() {
				e.End = s.end
			}
		}
		switch s.Token {
		case sqlparser.NOWAIT:
			e.End = s.end
			s.Next()
		case sqlparser.SKIP:
			if s.Next() == sqlparser.LOCKED {
				e.End = s.end
				s.Next()
			}
		}
		edits = append(edits, e)
	}
	return edits
}

// yearWidths removes the (4) of columns of type YEAR(4). A name before YEAR distinguishes them from
// calls of the function.
func yearWidths(s *Tokens) (edits []Edit) {
	for last := s.Next(); !s.IsOver(); last = s.Token {
		if s.Next() != sqlparser.YEAR || last != sqlparser.ID {
			continue
		}
		e := Edit{Start: s.end}
		if !s.Match('(', sqlparser.INTEGRAL) || string(s.value) != "4" || !s.Match(')') {
			continue
		}
		e.End = s.end
		edits = append(edits, e)
	}
	return edits
}

// triggerBlocks puts BEGIN and END around a trigger's body that needs them and lacks them.
func triggerBlocks(s *Tokens) []Edit {
	isTrigger := false
	for s.Next(); !s.IsOver() && s.Token != sqlparser.EACH; s.Next() {
		isTrigger = isTrigger || s.Token == sqlparser.TRIGGER
	}
	if !isTrigger || s.Next() != sqlparser.ROW {
		return nil
	}
	s.Next()
	if s.Token == sqlparser.FOLLOWS || s.Token == sqlparser.PRECEDES { // skips the word and another trigger's name
		s.Next()
		s.Next()
	}
	start, end := s.before, len(strings.TrimRight(s.query, "; \t\r\n"))
	switch s.Token {
	case sqlparser.IF, sqlparser.CASE, sqlparser.WHILE, sqlparser.LOOP, sqlparser.REPEAT:
	case sqlparser.SIGNAL, sqlparser.RESIGNAL:
		for !s.IsOver() {
			end = s.end
			s.Next()
		}
	default:
		if isLabel := s.Token == sqlparser.ID && s.Next() == ':'; !isLabel {
			return nil
		}
	}
	return []Edit{{start, start, " BEGIN"}, {end, end, "; END"}}
}

// columnWords quotes the names of columns in ALTER TABLE ... AFTER, CHANGE and ALTER that are
// keywords: the parser does not accept these as names there.
func columnWords(s *Tokens) (edits []Edit) {
	if s.Next() != sqlparser.ALTER || s.Next() != sqlparser.TABLE {
		return nil
	}
	for s.Next(); !s.IsOver(); {
		switch s.Token {
		case sqlparser.AFTER, sqlparser.CHANGE, sqlparser.ALTER:
			if s.Next() == sqlparser.COLUMN {
				s.Next()
			}
			if isWord(s) {
				edits = append(edits, Edit{s.before, s.end, " `" + string(s.value) + "`"})
			}
		}
		s.Next()
	}
	return edits
}

// listWords quotes the names of columns in USING (...) of a join and REFERENCES table (...) that are keywords: the parser
// does not accept these as names there.
func listWords(s *Tokens) (edits []Edit) {
	for s.Next(); !s.IsOver(); {
		isReferences := s.Token == sqlparser.REFERENCES
		if !isReferences && s.Token != sqlparser.USING {
			s.Next()
			continue
		}
		for s.Next(); isReferences && !s.IsOver() && s.Token != '('; s.Next() { // the table's name
		}
		if s.Token != '(' {
			continue
		}
		for s.Next(); !s.IsOver() && s.Token != ')'; s.Next() {
			if s.Token != ',' && isWord(s) {
				edits = append(edits, Edit{s.before, s.end, " `" + string(s.value) + "`"})
			}
		}
	}
	return edits
}

// isWord reports whether the token is a keyword, written without quotes, that may be the name of a
// column here. INDEX, CONSTRAINT and CHECK belong to the statement itself.
func isWord(s *Tokens) bool {
	switch s.Token {
	case sqlparser.ID, sqlparser.INDEX, sqlparser.CONSTRAINT, sqlparser.CHECK:
		return false
	}
	written := strings.TrimSpace(s.query[s.before:s.end]) // with its quotes, if it has any
	return len(s.value) > 0 && strings.EqualFold(written, string(s.value))
}

// quantifiers replaces comparisons with ANY, SOME or ALL of a subquery by IN or NOT IN, where
// these are the same, and else by comparisons with functions.
func quantifiers(s *Tokens) (edits []Edit) {
	for q := range quantified(s) {
		if text := q.asIn(); text != "" {
			edits = append(edits, Edit{q.start, q.end, text})
		} else if q.isOurs() {
			edits = append(edits, quantifierCalls(q, s.query)...)
		}
	}
	return edits
}
