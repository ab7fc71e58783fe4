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
// leads to the body. So a CALL within the statement, or within a trigger that the statement
// fires, finds the calling body: it needs that body's depth, and returns the values of OUT
// parameters to it.
//
// Either the statements belong to the session's transaction, or each has its own: Enter decides
// that. The session is sql/store's. Of the engine the package knows only go-mysql-server's
// engine, with its parser and accounts, and Query.
package routine
