// Package trigger decides which triggers a statement runs, and when, and so how UPDATE and DELETE change
// the tables of a join. It takes the place of go-mysql-server's rule that adds triggers to a plan. That
// rule
//
//   - goes by names: it takes the last table of an UPDATE, which may be that of a subquery, and looks for
//     triggers in one database;
//   - treats a compound statement, such as IF, as one statement with one event: its parts get each
//     other's triggers, and miss some of their own;
//   - knows a single event for INSERT: the rows that ON DUPLICATE KEY UPDATE updates, or that REPLACE
//     deletes, run no triggers;
//   - runs the triggers of an UPDATE of a join for each row of the join, even if the row of the table has
//     been changed before, and refuses those of a DELETE from a join;
//   - leaves generated columns as they were computed before the BEFORE triggers changed the row.
//
// In this package, for all engines of the process,
//
//   - each INSERT, UPDATE and DELETE gets the triggers of the tables that it changes (trigger.go, tables.go),
//     planned by planner.go from the texts in the table's database;
//   - triggers of an INSERT are around its source, and around the INSERT; if they depend on the rows that
//     exist (ON DUPLICATE KEY UPDATE, REPLACE), the table's editor runs them as it writes each row
//     (firing.go), and so do the triggers of a DELETE (delete.go);
//   - those of an UPDATE run as its rows pass (update.go, updaterows.go);
//   - a join gives the rows of one table after the other, each row once (joined.go);
//   - generated columns are computed again after the BEFORE triggers (regenerate.go).
//
// go-mysql-server still runs the bodies of the triggers.
package trigger
