package fast

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/plan"
)

// A Value is a literal of a statement, or the value bound to a parameter.
type Value = plan.Value

// areKnown reports whether all values are of the kinds that compiled statements know.
func areKnown(values []Value) bool {
	return !slices.ContainsFunc(values, func(v Value) bool { return v.Form != plan.Plain && !isBytes(v) })
}

// isBytes reports whether a literal is written as bytes.
func isBytes(v Value) bool { return v.Form == plan.Bytes || v.Form == plan.Binary }

// A normaliser computes one text for all statements that differ only in their
// literals: it replaces each literal by a question mark.
type normaliser struct {
	key    []byte
	values []Value
	// bound has the parameters' values of a prepared statement.
	bound    []Value
	prepared bool
	// ansiQuotes is set if double quotes enclose names, and not strings.
	ansiQuotes bool
}

// setWord begins a SET.
const setWord = "SET "

// variable is the prefix of the names of system variables.
const variable = "@@"

const (
	// textMax is the length of the longest statement that is considered for compiling: longer
	// statements spend their time elsewhere.
	textMax = 64 << 10
	// keyMax bounds the normalised text, which the cache keeps.
	keyMax = 8 << 10
)

// add appends the text of a statement, and reports whether it understands the statement. It leaves out
// comments before and after the statement and behind its first word, where programs put what they trace, and copies
// others. It refuses user variables outside of SET, and escaped wildcards.
func (n *normaliser) add(query string) bool {
	if len(query) > textMax {
		return false
	}
	whole := len(query)
	query = withoutComments(query)
	isCut, start := len(query) < whole, len(n.key)
	isSet := len(query) > len(setWord) && strings.EqualFold(query[:len(setWord)], setWord)
	for i := 0; i < len(query); {
		c := query[i]
		var next int
		switch {
		case c|0x20 == 'x' && i+1 < len(query) && query[i+1] == '\'':
			next = n.bytes(query, i)
		case isNameByte(c) && !isDigit(c):
			if next = n.introduced(query, i); next > 0 {
				break
			}
			next = nameEnd(query, i)
			n.key = append(n.key, query[i:next]...)
		case isDigit(c):
			next = n.number(query, i)
		case c == '\'', c == '"' && !n.ansiQuotes:
			next = n.text(query, i)
		case c == '`':
			next = n.quoted(query, i)
		case strings.HasPrefix(query[i:], variable):
			n.key, next = append(n.key, variable...), i+len(variable)
		case c == '@' && isSet: // no other statement with a variable of the user is compiled
			n.key, next = append(n.key, c), i+1
		case c == '?':
			next = n.parameter(i)
		case beginsComment(query, i):
			next = n.comment(query, i, start, isCut)
		case isPlain(query, i):
			n.key, next = append(n.key, c), i+1
		}
		if next == 0 {
			return false
		}
		i = next
	}
	return len(n.bound) == 0 && len(n.key) <= keyMax // each bound value has a question mark
}

// space has the characters between words.
const space = " \t\r\n"

func isSpace(c byte) bool { return strings.IndexByte(space, c) >= 0 }

// withoutComments returns a text without the comments at its ends, except comments that have a meaning.
func withoutComments(query string) string {
	for strings.HasPrefix(query, "/*") && isIdle(query) {
		_, rest, ok := strings.Cut(query[2:], "*/")
		if !ok {
			break
		}
		query = strings.TrimLeft(rest, space)
	}
	for strings.HasSuffix(query, "*/") {
		// If this "/*" is within a string, the rest has a string without an end, which the normaliser refuses.
		at := strings.LastIndex(query, "/*")
		if at < 0 || len(query)-at < len("/**/") || !isIdle(query[at:]) || strings.Index(query[at+2:], "*/") != len(query)-at-4 {
			break
		}
		query = strings.TrimRight(query[:at], space)
	}
	return query
}

// isIdle reports whether the comment with which a text begins is neither a hint nor executed.
func isIdle(text string) bool {
	return len(text) > 2 && text[2] != '!' && text[2] != '+' && !strings.HasPrefix(text[2:], "M!")
}

// beginsComment reports whether a comment begins at i.
func beginsComment(s string, i int) bool {
	switch rest := s[i:]; rest[0] {
	case '#':
		return true
	case '-':
		return strings.HasPrefix(rest, "--") && (len(rest) == len("--") || rest[2] <= ' ')
	case '/':
		return strings.HasPrefix(rest, "/*")
	}
	return false
}

// comment passes the comment at i, and returns where it ends: 0 if it has no end, is executed, or has characters
// that have a meaning in keys. It leaves out a comment behind the statement's first word, and copies others, because they may
// be part of a column's name. start is where the statement begins in the key; isCut is set if a comment behind the
// text has been left out.
func (n *normaliser) comment(s string, i, start int, isCut bool) int {
	isHint := strings.HasPrefix(s[i:], "/*+")
	end := len(s)
	switch isBlock := s[i] == '/'; {
	case isBlock && !isHint && !isIdle(s[i:]):
		return 0
	case isBlock:
		length := strings.Index(s[i+len("/*"):], "*/")
		if length < 0 {
			return 0
		}
		end = i + length + len("/**/")
	default:
		if length := strings.IndexByte(s[i:], '\n'); length >= 0 {
			end = i + length + 1
		} else if isCut { // the comment goes on in what was left out
			return 0
		}
	}
	isBehindFirst := !bytes.ContainsAny(bytes.TrimSpace(n.key[start:]), space)
	if isBehindFirst && !isHint {
		return end
	}
	if strings.ContainsAny(s[i:end], "?`'\"") {
		return 0
	}
	n.key = append(n.key, s[i:end]...)
	return end
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameByte(c byte) bool {
	isLetter := c|0x20 >= 'a' && c|0x20 <= 'z' // 0x20 makes a letter lower case
	return isLetter || c == '_' || c == '$' || isDigit(c)
}

// nameEnd returns where the name that begins at i ends.
func nameEnd(s string, i int) int {
	for i < len(s) && isNameByte(s[i]) {
		i++
	}
	return i
}

// isPlain reports whether a character has no special meaning: it neither begins or ends a
// comment nor belongs to a number.
func isPlain(s string, i int) bool {
	after := byte(0)
	if i+1 < len(s) {
		after = s[i+1]
	}
	switch s[i] {
	case '-':
		return after != '-'
	case '.':
		return !isDigit(after)
	case '*':
		return after != '/'
	case '(', ')', ',', '=', '/', '%', '+', '<', '>', '!', '&', '|', '^', '~', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// number replaces the number at i by a parameter, and returns where it ends; 0 if it is not a plain
// number, or is an integer above the greatest int64. 0x41 stands for bytes, as X'41' does.
func (n *normaliser) number(s string, i int) int {
	if strings.HasPrefix(s[i:], "0x") {
		return n.hexadecimal(s, i)
	}
	v := Value{IsNumber: true, IsRespelled: s[i] == '0' && i+1 < len(s) && isDigit(s[i+1])}
	end := digitsEnd(s, i)
	if end < len(s) && s[end] == '.' {
		v.IsNumber, v.Form = false, plan.Decimal
		if end = digitsEnd(s, end+1); !isDigit(s[end-1]) {
			return 0
		}
	}
	if end < len(s) && s[end]|0x20 == 'e' {
		v.IsNumber, v.Form = false, plan.Float
		if end++; end < len(s) && (s[end] == '-' || s[end] == '+') {
			end++
		}
		if end = digitsEnd(s, end); !isDigit(s[end-1]) {
			return 0
		}
	}
	if end < len(s) && (isNameByte(s[end]) || s[end] == '.') {
		return 0
	}
	if !v.IsNumber {
		v.Text = s[i:end]
		n.literal(v)
		return end
	}
	var err error
	if v.Number, err = strconv.ParseInt(s[i:end], 10, 64); err != nil {
		return 0
	}
	n.literal(v)
	return end
}

// digitsEnd returns where the digits at i end.
func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// bytes replaces X'4142' at i by a parameter, and returns where it ends; 0 if it is not of this form.
func (n *normaliser) bytes(s string, i int) int {
	start := i + len("X'")
	digits, _, ok := strings.Cut(s[start:], "'")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return 0
	}
	n.literal(Value{Text: string(b), Form: plan.Bytes, IsRespelled: true})
	return start + len(digits) + 1
}

// hexadecimal replaces 0x4142 at i by a parameter, and returns where it ends; 0 if it is not of this form. In an odd number of
// digits the first one is a byte.
func (n *normaliser) hexadecimal(s string, i int) int {
	end := nameEnd(s, i)
	digits := s[i+len("0x") : end]
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) == 0 || (end < len(s) && s[end] == '.') {
		return 0
	}
	n.literal(Value{Text: string(b), Form: plan.Bytes, IsRespelled: true})
	return end
}

// text replaces the string at i by a parameter, and returns where it ends; 0 if the string has no
// end, or has invalid characters or escapes that do not stand for one character.
func (n *normaliser) text(s string, i int) int {
	v, end := stringAt(s, i)
	if end == 0 || !utf8.ValidString(v.Text) {
		return 0
	}
	n.literal(v)
	return end
}

// stringAt returns the string at i, which may have invalid characters, and where it ends; 0 if it has no end, or escapes
// that do not stand for one character. s[i] is its quote.
func stringAt(s string, i int) (v Value, end int) {
	start, quote := i+1, s[i]
	length := strings.IndexByte(s[start:], quote)
	if length < 0 {
		return v, 0
	}
	v.Text, end = s[start:start+length], start+length+1
	if (end < len(s) && s[end] == quote) || strings.IndexByte(v.Text, '\\') >= 0 { // two quotes stand for one
		v.Text, end = unescape(s, start, quote)
		v.IsRespelled = true
	}
	v.IsRespelled = v.IsRespelled || quote == '"'
	return v, end
}

// introduced replaces a literal that begins with a word, such as DATE '2026-01-31' or _binary'ab', at i by a parameter, and
// returns where it ends; 0 if there is none. go-mysql-server's parser takes a time for the string alone.
func (n *normaliser) introduced(s string, i int) int {
	end := nameEnd(s, i)
	name := s[i:end]
	isBinary := strings.EqualFold(name, "_binary")
	switch {
	case !isBinary && !strings.EqualFold(name, "DATE") && !strings.EqualFold(name, "TIME") && !strings.EqualFold(name, "TIMESTAMP"):
		return 0
	case n.isQualified(): // t.date 'x' is a column and its alias
		return 0
	}
	for end < len(s) && isSpace(s[end]) {
		end++
	}
	if end == len(s) || (s[end] != '\'' && (s[end] != '"' || n.ansiQuotes)) {
		return 0
	}
	v, end := stringAt(s, end)
	if end == 0 || (!isBinary && !utf8.ValidString(v.Text)) {
		return 0
	}
	v.IsRespelled = true
	if isBinary {
		v.Form = plan.Binary
	}
	n.literal(v)
	return end
}

// isQualified reports whether the next name is qualified by the text before it.
func (n *normaliser) isQualified() bool {
	before := strings.TrimRight(string(n.key), space)
	return strings.HasSuffix(before, ".") || strings.HasSuffix(before, "@")
}

// unescape returns the string whose first character is at i, and where it ends: behind its closing quote; 0 if
// it has no end, or an escape that does not stand for one character, such as those of LIKE's wildcards.
func unescape(s string, i int, quote byte) (text string, end int) {
	b := make([]byte, 0, len(s)-i)
	special := string([]byte{quote, '\\'})
	for i < len(s) {
		plain := strings.IndexAny(s[i:], special)
		if plain < 0 || (i+plain+1 == len(s) && s[i+plain] == '\\') {
			return "", 0
		}
		b = append(b, s[i:i+plain]...)
		i += plain + 1
		isQuote := s[i-1] == quote
		switch {
		case isQuote && (i == len(s) || s[i] != quote):
			return string(b), i
		case isQuote:
			b = append(b, quote)
		case sqltypes.SQLDecodeMap[s[i]] == sqltypes.DontEscape:
			return "", 0
		default:
			b = append(b, sqltypes.SQLDecodeMap[s[i]])
		}
		i++
	}
	return "", 0
}

// quoted copies the quoted name at i, and returns where it ends; 0 if it has no end.
func (n *normaliser) quoted(s string, i int) int {
	length := strings.IndexByte(s[i+1:], '`')
	if length < 0 {
		return 0
	}
	end := i + length + 2
	n.key = append(n.key, s[i:end]...)
	return end
}

// parameter takes the next bound value for the question mark at i, and returns where that ends; 0
// if there is no value for it.
func (n *normaliser) parameter(i int) int {
	if !n.prepared || len(n.bound) == 0 {
		return 0
	}
	v := n.bound[0]
	v.IsBound = true
	n.literal(v)
	n.bound = n.bound[1:]
	return i + 1
}

// literal appends a parameter to the text, and its value to the values.
func (n *normaliser) literal(v Value) {
	n.key = append(n.key, '?')
	n.values = append(n.values, v)
}
