package store

import (
	"fmt"
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// What only warns in a SELECT, such as a division by zero or a text that is no number, is an error in an
// INSERT, UPDATE or DELETE without IGNORE if sql_mode is strict: the session notes the warning (Warn), and
// the table's editor fails. MariaDB deletes rows in spite of such warnings, MySQL does not.

// A change holds the notes of one INSERT, UPDATE or DELETE for the table's editor.
type change struct {
	// strict is set if the statement has no IGNORE. failure is the first warning that fails it, until its
	// editor reports it.
	strict  bool
	failure *mysql.SQLError
	// replacing is set if the statement is a REPLACE.
	replacing *replacing
	// inserting is set if the statement is an INSERT, and no REPLACE.
	inserting *inserting
}

// Changes notes that a changing statement is about to be executed. strictly is set if the
// statement has no IGNORE, so that some warnings fail it. The statements of its triggers
// belong to it.
func (s *Session) Changes(ctx *gms.Context, strictly bool) {
	if tr := CurrentOf(ctx); tr == nil || tr.Editing == 0 {
		s.change = change{strict: strictly}
	}
}

// ForgetChange is called when a client's statement begins: the notes of the statement before do
// not concern it.
func (s *Session) ForgetChange() { s.change = change{} }

// noteStrictly notes a warning if it fails the running change.
func (s *Session) noteStrictly(w *gms.Warning) {
	if !s.change.strict || s.change.failure != nil || w.Level != "Warning" {
		return
	}
	switch r := s.Settings(); w.Code {
	case expression.ERDivisionByZero:
		if r.strict && r.divisions {
			s.change.failure = myerr.DivisionByZero.New()
		}
	case mysql.ERTruncatedWrongValue, myerr.NoDateInText.Number:
		if r.strict {
			s.change.failure = myerr.Warned(truncatedValue(w))
		}
	}
}

// failure returns the error of the running change if it has warned of something that fails it. A nil session
// has not.
func (s *Session) failure() error {
	if s == nil || s.change.failure == nil {
		return nil
	}
	err := s.change.failure
	s.change.failure = nil
	return err
}

// truncatedValue returns go-mysql-server's warning about a text that is no number as MySQL words it; other
// warnings as they are.
func truncatedValue(w *gms.Warning) *gms.Warning {
	if w.Code != mysql.ERTruncatedWrongValue {
		return w
	}
	m := truncatedText.FindStringSubmatch(w.Message)
	if m == nil {
		return w
	}
	kind, ok := truncatedKinds[m[1]]
	if !ok {
		kind = strings.ToUpper(m[1])
	}
	return &gms.Warning{Level: w.Level, Code: w.Code, Message: fmt.Sprintf("Truncated incorrect %s value: '%s'", kind, strings.TrimSuffix(strings.TrimPrefix(m[2], "'"), "'"))}
}

// truncatedText matches such a warning of go-mysql-server: the type, and the text with or without quotes.
var truncatedText = regexp.MustCompile(`(?s)^Truncated incorrect (\w+)(?:\([\d,]+\))?(?: unsigned)? value: (.*)$`)

// truncatedKinds are the types in such warnings that MySQL has other names for.
var truncatedKinds = map[string]string{"bigint": "INTEGER", "int": "INTEGER", "time": "time", "datetime": "datetime", "date": "date"}
