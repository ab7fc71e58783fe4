package change

import gms "github.com/dolthub/go-mysql-server/sql"

// A Statement holds the notes that parts of one statement leave for later parts: go-mysql-server
// plans and executes the parts one by one, and passes nothing of ours from one to another. Each
// statement has a new one; the zero value is ready.
type Statement struct {
	// load holds what the INSERT being planned carries.
	load *load
	// inserted is the source of an INSERT until it is built, columns are the columns
	// that its rows go into, convert converts values for them, and missing finds those
	// that are missing.
	inserted gms.Node
	columns  gms.Schema
	convert  assign
	missing  *missing
	// whole is the node whose rows must be read to the end when it is built.
	whole gms.Node
	// toldID is set once LAST_INSERT_ID(n) has run.
	toldID bool
}

// A Session is a client's session whose statements may change rows.
type Session interface {
	// Changing returns the running statement's Statement.
	Changing() *Statement
	// Generated reports whether the running INSERT has stored a row with a generated number.
	Generated() bool
}

// statementOf returns the running statement's Statement; nil if the session is go-mysql-server's own.
func statementOf(ctx *gms.Context) *Statement {
	if s, ok := ctx.Session.(Session); ok {
		return s.Changing()
	}
	return nil
}

// ToldID reports whether LAST_INSERT_ID(n) has run.
func (s *Statement) ToldID() bool { return s.toldID }

// Function returns our function of a name, if only statements that change rows call it.
func Function(ctx *gms.Context, name string) (gms.Function, bool) {
	if f, ok := upsertFunction(ctx, name); ok {
		return f, true
	}
	return insertIDFunction(name)
}
