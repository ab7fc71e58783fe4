// Package routine runs stored procedures by the syntax trees of their bodies.
//
//	CREATE PROCEDURE ──► Prepare      go-mysql-server accepts the body
//	                 ──► WithDefiner  whose rights the body has
//
//	CALL ──► Runner ──► body ──► scope: variables, cursors, conditions, handlers of a block
//	           ▲         │
//	           │         └──► Run: one statement, with the variables' values in it
//	           │               │
//	           └───── CALL ────┴──► Query: the engine plans and executes it
//
// A statement of a body goes through go-mysql-server like a client's. Its context is its own and
// leads to the body, so a CALL within it, also in a trigger that it fires, finds the body that
// calls: for its depth, and to return the values of OUT parameters.
//
// The statements belong to the session's transaction, or each has its own: Enter decides. The
// session is the one of sql/store; of the engine the package knows go-mysql-server's, with its
// parser and its accounts, and Query.
package routine
