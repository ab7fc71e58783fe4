// Package trigger corrects which triggers go-mysql-server runs, and when.
//
// go-mysql-server has a rule that adds triggers to a plan. By itself, this rule
//
//   - looks for triggers in one database, by default the current one, and not in that of the table;
//   - treats a compound statement, such as IF, as one statement with one event: its parts get each
//     other's triggers, and miss some of their own;
//   - knows a single event for INSERT: the rows that ON DUPLICATE KEY UPDATE updates, or that REPLACE
//     deletes, run no triggers;
//   - refuses a DELETE from a join if one of its tables has triggers;
//   - leaves generated columns as they were computed before the BEFORE triggers changed the row.
//
// This package wraps the rule, for all engines of the process:
//
//   - Each INSERT, UPDATE and DELETE gets the triggers of its own table, from that table's database
//     (trigger.go).
//   - If the triggers depend on the row (ON DUPLICATE KEY UPDATE, REPLACE) or on the table (DELETE
//     from a join), the table's editor runs them as it writes each row (firing.go).
//   - Generated columns are computed again after the BEFORE triggers (regenerate.go).
//
// go-mysql-server still runs the bodies of the triggers.
package trigger
