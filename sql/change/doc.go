// Package change has what INSERT, UPDATE and DELETE do in MySQL and do not do in go-mysql-server.
//
//	syntax tree ──► Note ──► Authorizer: an INSERT is rewritten before it is planned   amend.go, upsert.go
//	plan        ──► Function: carry, carried, inserted, LAST_INSERT_ID(n)              carry.go, insertid.go
//	execution   ──► Assigned, CheckInserted: what is assigned fits its column, or fails  assigned.go
//
// What one of these notes for a later one of the same statement is in a Statement. A session has a
// new one for each of its statements, so that nothing of a statement, not even of one that has
// failed half-way, reaches the next.
//
// The package finds tables through Tables and the Statement through Session, and knows nothing
// else of the engine. A Statement belongs to one goroutine at a time.
package change
