package wire

import (
	"net"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// ErrClosed is returned once a server is closed.
var ErrClosed = net.ErrClosed

// clientErrorOf returns what a client is told of a statement that failed; current is the
// database it is in.
func clientErrorOf(st statement, current string, err error) error {
	ast := st.ast
	if ast == nil { // it has been prepared or compiled
		ast, _ = sqlparser.Parse(st.text) // what cannot be parsed says so itself
	}
	return myerr.In(ast, current, err)
}
