// Package exec runs the plans of package plan: an operator for each kind of node, over the tables of
// sql/store.
//
//	Statement ── Query for the literals and the table's version ──► operators ──► rows
//	    │                                                              │
//	    └──────────── ErrPlan: go-mysql-server runs the statement ◄────┘
//
// A Statement stands for all statements whose texts differ only in literals, in one database and
// under the same settings. go-mysql-server plans the first of them: it checks the statement, and
// determines the columns of the result. Then package plan makes a Query. A text that cannot be
// planned here costs only a look at its Statement from then on.
//
// Operators return rows (gms.RowIter), and are made anew for each execution. They count the memory
// of rows that they keep, and check whether the statement has been cancelled. Other errors for
// clients come from go-mysql-server. If an operator fails, what was done is undone, and
// go-mysql-server runs the statement and reports the error. Only conflicts, and errors that say
// that memory or time is used up, are returned directly. An INSERT is executed by go-mysql-server's
// builder, so its errors and warnings are returned as they are.
package exec
