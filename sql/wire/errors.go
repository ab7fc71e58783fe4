package wire

import (
	"net"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// ErrClosed is returned once a server is closed.
var ErrClosed = net.ErrClosed

// clientErrorOf returns the error for the client of a failed statement; current is the
// session's current database.
func clientErrorOf(st statement, current string, err error) error {
	ast := st.ast
	if ast == nil { // the statement was prepared or compiled
		ast, _ = sqlparser.Parse(st.text) // if the text does not parse, err says so
	}
	return myerr.In(ast, current, err)
}

// conflictOf returns the error for a statement that is not tried again after a conflict. Error 1213 says that the
// client's transaction has ended. If the statement ran beside an open transaction, it gets another error: the open
// transaction goes on, and a client that began another would commit it.
func conflictOf(st statement, state *connState, err error) error {
	if st.aside && state.session.InTransaction() {
		return myerr.LockWaitTimeout.New()
	}
	return myerr.Of(err)
}
