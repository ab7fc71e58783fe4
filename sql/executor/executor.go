// Package executor executes the operators of a plan that keep rows, where go-mysql-server does
// not count their memory, or compares strings in another way than MySQL.
//
//	GROUP BY                        groups.go      aggregates, whose values are counted
//	DISTINCT, UNION, INTERSECT, ... setops.go      rows are equal by their collations
//	ORDER BY                        sort.go        strings are compared by tables of weights
//	subqueries in expressions       subqueries.go  go-mysql-server's, with their rows counted
//
// The rows below an operator come from go-mysql-server, which asks the package above for each
// node first. All iterators belong to one statement of one session.
package executor

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/store"
)

// An Executor executes the operators of a session's running statement.
type Executor struct {
	// Builder builds the operators' inputs.
	Builder gms.NodeExecBuilder
	// Holding counts the memory of what operators keep.
	Holding *store.Holding
	// Ordinary executes a node as go-mysql-server does, with inputs that Builder builds.
	Ordinary func(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error)
}
