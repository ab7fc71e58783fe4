// Package trigger corrects which triggers go-mysql-server runs, and when.
//
// For each kind of statement go-mysql-server runs the triggers of one event, around the statement
// or its source, looks for them in the current database, and gives every part of a compound
// statement the triggers of all parts. The package changes the rule that adds triggers to a plan,
// for all engines of the process:
//
//   - each INSERT, UPDATE and DELETE gets the triggers of its own table and events
//     (trigger.go);
//   - INSERT ... ON DUPLICATE KEY UPDATE and REPLACE run others where a row meets an existing
//     one, and a DELETE from a join deletes from several tables: there the table's editor runs
//     the triggers (firing.go);
//   - columns that are computed from others are computed after BEFORE triggers, which may change
//     the row (regenerate.go).
//
// The bodies of triggers are run by go-mysql-server.
package trigger
