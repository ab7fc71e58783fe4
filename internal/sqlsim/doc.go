// Package sqlsim brings SQL into the simulator: a workload for internal/simtest whose
// clients are sessions of package sql, on the engine of each simulated machine, under the
// simulator's faults.
//
// A session runs its statements as a connection of package sql/wire does: in compiled form if
// possible, and otherwise by go-mysql-server's planner; each ends by the listener's rules. A
// session runs on one routine of the simulated machine. That is possible because package sql never
// starts a goroutine or holds a mutex during a wait, and neither does go-mysql-server for the
// statements used here. Statements must not start goroutines (a GROUP BY that groups), nor lock
// go-mysql-server's catalog while they wait (CREATE DATABASE).
//
//	table t                 rows with a key, a value, and two secondary indexes
//	table n                 rows whose key is AUTO_INCREMENT
//	tables t_gone, n_gone   the values of rows that were deleted
//	table s0, s1            tables that DDL statements create, rename and drop
//
// In the history a row is an object, whose value is in its column v. An absent row has the
// value that its deletion has written to the _gone table in the same transaction, or the
// initial value if it never existed.
package sqlsim
