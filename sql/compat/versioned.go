package compat

import (
	"strconv"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server's parser ignores the versions of versioned comments: it drops some and
// executes others.

// versionID is the MySQL version that versioned comments are compared with, 8.0.31, written as in
// such a comment.
const versionID = 80031

// ResolveComments replaces each comment that MySQL executes, /*! ... */ and /*!80031 ... */,
// by its content, or by nothing if its version is above 8.0.31. MariaDB's /*M! ... */ is an
// ordinary comment. Removed text is replaced by spaces, so that all other text keeps its
// place. "--" begins a comment only before a space or more dashes; in 5--3 it becomes "+ ", which is the same.
//
// go-mysql-server's parser ignores the version, executes MariaDB's comments, and parses the
// content of a comment without the session's settings. It takes each "--" for a comment.
func ResolveComments(query string, o sqlparser.ParserOptions) string {
	if !strings.Contains(query, "/*!") && !strings.Contains(query, "/*M!") && !strings.Contains(query, "--") {
		return query
	}
	r := resolver{query: query, text: []byte(query), ansiQuotes: o.AnsiQuotes}
	for r.at < len(query) {
		r.step()
	}
	if r.open > 0 {
		return query // the parser reports a comment without an end
	}
	return string(r.text)
}

// A resolver walks through a statement, and distinguishes only the tokens that matter: what
// looks like a comment may be in a string.
type resolver struct {
	query      string
	text       []byte // the statement as it is sent to the parser
	at         int
	open       int // executed comments that are still open
	ansiQuotes bool
}

// step passes one quoted text, comment or byte.
func (r *resolver) step() {
	switch c := r.query[r.at]; {
	case c == '\'' || c == '"' || c == '`':
		r.quoted(c, c != '`' && (c != '"' || !r.ansiQuotes))
	case r.sees("--") && isTwoMinus(r.query[r.at:]):
		copy(r.text[r.at:], "+ ")
		r.at += len("--")
	case c == '#' || r.sees("--") || r.sees("//"):
		r.pass("\n", 1)
	case r.sees("/*!"):
		r.versioned()
	case r.sees("/*M!"):
		r.blank(r.at+len("/*"), r.at+len("/*M!")) // makes it an ordinary comment for the parser
		r.pass("*/", len("/*"))
	case r.sees("/*"):
		r.pass("*/", len("/*"))
	case r.open > 0 && r.sees("*/"):
		r.open--
		r.skip(len("*/"))
	default:
		r.at++
	}
}

// isTwoMinus reports whether the "--" with which a text begins is two signs, and not a comment: what follows is no space, nor a
// line of dashes, which go-mysql-server's parser takes for a comment and MySQL for an error.
func isTwoMinus(text string) bool {
	rest := strings.TrimLeft(text, "-")
	return len(text) > len("--") && text[2] > ' ' && rest != "" && rest[0] > ' '
}

func (r *resolver) sees(prefix string) bool { return strings.HasPrefix(r.query[r.at:], prefix) }

// quoted skips a string or a quoted name. A doubled quote within it is skipped as the end of
// one string and the beginning of another.
func (r *resolver) quoted(quote byte, hasEscapes bool) {
	for r.at++; r.at < len(r.text) && r.text[r.at] != quote; r.at++ {
		if hasEscapes && r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
}

// pass skips at least skipped bytes, and moves behind the next occurrence of end after them.
func (r *resolver) pass(end string, skipped int) {
	i := strings.Index(r.query[r.at+skipped:], end)
	if i < 0 {
		r.at = len(r.query)
		return
	}
	r.at += skipped + i + len(end)
}

// versioned resolves the comment that begins here.
func (r *resolver) versioned() {
	version, digits := r.version()
	if version > versionID {
		r.skip(r.commentBytes())
		return
	}
	r.open++
	r.skip(len("/*!") + digits)
}

// version returns the version that a comment is for and its number of digits, 0 if there is
// none. A version has five digits, or six if a space follows, as from 8.1 on.
func (r *resolver) version() (version, digits int) {
	number := r.query[r.at+len("/*!"):]
	for digits < min(6, len(number)) && '0' <= number[digits] && number[digits] <= '9' {
		digits++
	}
	if digits < 5 {
		return 0, 0
	}
	if digits == 6 && len(number) > 6 && !isBlank(number[6]) {
		digits = 5
	}
	version, _ = strconv.Atoi(number[:digits]) // cannot fail: these are digits
	return version, digits
}

// commentBytes returns the length of the comment to remove, which may contain ordinary comments.
func (r *resolver) commentBytes() int {
	rest := r.query[r.at:]
	for end := len("/*!"); ; {
		i := strings.Index(rest[end:], "*/")
		if i < 0 {
			r.open++ // the comment does not end
			return len(rest)
		}
		hasInner := strings.Contains(rest[end:end+i], "/*")
		if end += i + len("*/"); !hasInner {
			return end
		}
	}
}

// skip removes the next n bytes.
func (r *resolver) skip(n int) {
	r.blank(r.at, r.at+n)
	r.at += n
}

// blank replaces bytes by spaces, and keeps newlines.
func (r *resolver) blank(start, end int) {
	for i := start; i < end; i++ {
		if r.text[i] != '\n' {
			r.text[i] = ' '
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || ('\t' <= c && c <= '\r') }
