// Package plan makes plans of statements over one table, of joins, of SELECTs without a table, and of
// derived tables and UNIONs of these. It replaces go-mysql-server's analyzer for the statements that it understands; go-mysql-server still
// parses them and resolves their names.
//
//	text with parameters ── go-mysql-server ──► resolved tree ──► Build ──► nodes ──► rewrites ──► Query
//
// A Query is made once for all statements whose texts differ only in literals. A literal is a
// parameter where it is compared with a column, assigned to one, or counts rows (LIMIT); any other
// literal belongs to the Query (Literals). A Query is immutable, and shared by sessions. Package
// exec runs it.
//
// # UPDATE and DELETE
//
// A Change reads all of its rows before it changes the first. Those of a join hold rows of several tables; each row of
// each table is changed once (ChangedTable).
//
// # INSERT
//
// An INSERT of VALUES is analyzed by go-mysql-server, once, with a Parameter in place of each literal
// (Insert): the checks of rows are those of statements without a plan. An INSERT of a SELECT takes the rows of the
// SELECT's plan.
//
// # Conditions
//
// A WHERE is a tree of conditions in three-valued logic. Comparisons of a column with parameters are
// ours; they are exact because a parameter must be a plain value of the column's type (Constant),
// else the statement is left to go-mysql-server. Every other condition is an expression of
// go-mysql-server, which is evaluated for each row.
//
// # Accesses
//
// An Access is a way to read a table: by ranges of an index, which are functions of the parameters.
// Ranges hold all rows that meet the WHERE, and perhaps others: the WHERE is evaluated for each row
// in any case. So an Access can make a statement slow, but not wrong.
//
// # Joins
//
// A Join is read by nested loops: the rows of an outermost table, and for each of them the rows of
// the next table that a lookup finds (JoinOrder). A lookup finds all rows that meet the conditions,
// and perhaps others. Two columns can be a lookup only if they are compared like keys. Other rows
// are read once, and kept by the columns that equal columns of earlier tables (JoinStep.IsKept):
// rows that are not a table's, and rows of a table for which no index can be used.
//
// A join returns all combinations of rows that meet the conditions. A LEFT JOIN to a table adds to
// each combination of rows of the earlier tables the rows that its ON admits or, if there are none,
// NULLs. That depends on the combination alone. So the LEFT JOIN may come after any other table,
// but not before one to which its ON refers. Conditions of WHERE come after it.
//
// # Subqueries
//
// A SELECT in an expression is a Subquery; a Scalar is its value. Its rows have a plan of their
// own, in which the columns of the outer query are Outers. A value that depends on Outers is
// computed for each outer row, another value once for each execution. IN of a subquery without
// Outers becomes IN of a list that is read first.
package plan
