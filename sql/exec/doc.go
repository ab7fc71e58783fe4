// Package exec runs the plans of package plan: an operator for each kind of node, over the tables of
// sql/store.
//
//	Statement ── Query for the literals and the table's version ──► operators ──► rows
//	    │                                                              │
//	    └──────────── ErrPlan: go-mysql-server runs the statement ◄────┘
//
// A Statement is what is known about all statements whose texts differ only in literals, in one
// database and under the same settings. go-mysql-server plans the first of them: it says whether the
// statement is right, and which columns it returns. Then package plan makes a Query. A text that
// cannot be planned here costs a look at the Statement from then on.
//
// Operators return rows (gms.RowIter), and are made anew for each execution. They count the memory of
// rows that they keep, and look whether the statement has been cancelled. An error that a client
// should see comes from go-mysql-server: unless it is a conflict, or says that memory or time is used
// up, what was done is undone, and go-mysql-server runs the statement and reports the error. An INSERT
// is executed by go-mysql-server's builder, so its errors and warnings are returned as they are.
package exec
