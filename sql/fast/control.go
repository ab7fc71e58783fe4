package fast

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/store"
)

// controlOf returns the shape of a statement that begins or ends a transaction, or sets, releases or
// goes back to a savepoint; nil for others.
func controlOf(stmt sqlparser.Statement) *shape {
	switch n := stmt.(type) {
	case *sqlparser.Begin:
		switch n.TransactionCharacteristic {
		case "":
			return &shape{kind: shapeBegin}
		case sqlparser.TxReadOnly:
			return &shape{kind: shapeBeginReadOnly}
		}
	case *sqlparser.Commit:
		return &shape{kind: shapeCommit}
	case *sqlparser.Rollback:
		return &shape{kind: shapeRollback}
	case *sqlparser.Savepoint:
		return &shape{kind: shapeSavepoint, savepoint: n.Identifier}
	case *sqlparser.RollbackSavepoint:
		return &shape{kind: shapeRollbackTo, savepoint: n.Identifier}
	case *sqlparser.ReleaseSavepoint:
		return &shape{kind: shapeRelease, savepoint: n.Identifier}
	}
	return nil
}

// control begins or ends the session's transaction, with the same effect as go-mysql-server, which
// begins a transaction first if there is none.
func (c *Compiled) control(ctx *gms.Context, s *Session) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.ClearWarnings()
	if open := store.Current(ctx); open != nil {
		if err := s.End(ctx, open, c.shape.kind == shapeRollback); err != nil {
			return nil, err
		}
	}
	switch c.shape.kind {
	case shapeBegin:
		ctx.SetTransaction(s.BeginNext(gms.ReadWrite))
		s.SetIgnoreAutoCommit(true)
	case shapeBeginReadOnly:
		ctx.SetTransaction(s.BeginNext(gms.ReadOnly))
		s.SetIgnoreAutoCommit(true)
	default:
		s.SetIgnoreAutoCommit(false)
		ctx.SetTransaction(nil)
	}
	s.noteControl()
	return &Result{}, nil
}

// noteControl sets the values of FOUND_ROWS() and ROW_COUNT() after a statement without rows.
func (s *Session) noteControl() {
	last := s.GetLastQueryInfo()
	last.RowCount.Store(-1)
	last.FoundRows.Store(0)
}

// atSavepoint sets a savepoint, releases it or goes back to it. It returns ErrPlan if go-mysql-server has to
// report an error.
func (c *Compiled) atSavepoint(ctx *gms.Context, s *Session, values []Value) (*Result, error) {
	name := c.shape.savepoint
	switch {
	case name == "" && len(values) == 0: // SAVEPOINT ``
		return nil, ErrPlan
	case name == "":
		name = values[0].Text
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tr := s.Began(ctx)
	var err error
	switch c.shape.kind {
	case shapeSavepoint:
		err = s.CreateSavepoint(ctx, tr, name)
	case shapeRollbackTo:
		err = s.RollbackToSavepoint(ctx, tr, name)
	default:
		err = s.ReleaseSavepoint(ctx, tr, name)
	}
	if err != nil {
		return nil, ErrPlan // nothing has been done: there is no such savepoint
	}
	s.ClearWarnings()
	s.noteControl()
	return &Result{}, s.autocommitted(ctx, tr)
}

// savepointWords are the beginnings of the statements about savepoints.
var savepointWords = []struct {
	words string
	ast   sqlparser.Statement
}{
	{"ROLLBACK TO SAVEPOINT ", &sqlparser.RollbackSavepoint{}},
	{"RELEASE SAVEPOINT ", &sqlparser.ReleaseSavepoint{}},
	{"SAVEPOINT ", &sqlparser.Savepoint{}},
}

// newSavepoints returns a Compiled for each of savepointWords.
func newSavepoints(c *Cache) (all []*Compiled) {
	for _, w := range savepointWords {
		all = append(all, &Compiled{st: c.st, cache: c, ast: w.ast, shape: controlOf(w.ast)})
	}
	return all
}

// savepoint returns the execution of a statement about a savepoint whose name an application has most likely generated:
// Django gives each savepoint another name, so that the texts of these statements never come again.
func (s *Session) savepoint(query string) (Execution, bool) {
	for i, w := range savepointWords {
		if len(query) <= len(w.words) || !strings.EqualFold(query[:len(w.words)], w.words) {
			continue
		}
		name, ok := generatedName(query[len(w.words):])
		if !ok {
			return Execution{}, false
		}
		s.values = append(s.values[:0], Value{Text: name})
		return Execution{Compiled: s.cache.savepoints[i], Values: s.values}, true
	}
	return Execution{}, false
}

// generatedName returns the name that a text is; false if it is no name, or may be a word of SQL: without quotes it must have a
// digit and an underscore.
func generatedName(text string) (string, bool) {
	if len(text) > 2 && text[0] == '`' && text[len(text)-1] == '`' {
		name := text[1 : len(text)-1]
		return name, strings.IndexByte(name, '`') < 0 && len(name) <= savepointNameMax
	}
	isName := nameEnd(text, 0) == len(text) && !isDigit(text[0]) && text[0] != '_' && len(text) <= savepointNameMax
	return text, isName && strings.ContainsAny(text, "0123456789") && strings.Contains(text, "_")
}

// savepointNameMax is the length of the longest name that is not left to go-mysql-server.
const savepointNameMax = 64
