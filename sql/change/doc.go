// Package change corrects how go-mysql-server plans and executes INSERT, UPDATE and DELETE.
//
//	syntax tree ──► Note ──► Authorizer: an INSERT is rewritten before it is planned     amend.go, upsert.go
//	plan        ──► Function: carry, carried, inserted, LAST_INSERT_ID(n)                carry.go, insertid.go
//	execution   ──► ReadSource, Whole: a source is read whole before the first change    sources.go
//	            ──► Assigned, CheckInserted: a value that does not fit its column fails  assigned.go
//
// In a Statement, each of these leaves notes for those that run later in the same statement. A
// session has a new Statement for each of its statements, so that nothing of a statement, not
// even of one that has failed half-way, reaches the next.
//
// The package finds tables through Tables and the Statement through Session, and knows nothing
// else of the engine. A Statement belongs to one goroutine at a time.
package change
