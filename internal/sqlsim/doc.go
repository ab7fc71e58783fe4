// Package sqlsim brings SQL into the simulator: a workload for internal/simtest whose
// clients are sessions of package sql, on the engine of each simulated machine, among the
// faults that the simulator has.
//
// A session runs its statements as a connection of package sql/wire does: compiled if they can
// be, by go-mysql-server's planner if not, and each is ended by the listener's rules. A
// session runs on one routine of the simulated machine, because neither package sql nor, for
// the statements used here, go-mysql-server starts a goroutine or holds a mutex during a wait.
// Statements that start goroutines (a GROUP BY that groups) must not be used, nor those that
// lock go-mysql-server's catalog while they wait (CREATE DATABASE).
//
//	table t                 rows with a key, a value, and two secondary indexes
//	table n                 rows whose key is AUTO_INCREMENT
//	tables t_gone, n_gone   the value that says so, of rows that were deleted
//	table s0, s1            what comes and goes, by DDL
//
// In the history a row is an object, whose value is in its column v. An absent row has the
// value that its deletion has written to the _gone table in the same transaction, or the
// initial value if it never existed.
package sqlsim
