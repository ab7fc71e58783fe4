// Package explain says how go-mysql-server runs a plan, as MySQL's EXPLAIN does.
//
//	EXPLAIN              ──► Rows       a row for each table, in the order in which they are read
//	EXPLAIN FORMAT=JSON  ──► JSON       the same rows as a document
//	EXPLAIN ANALYZE      ──► Measuring  the plan's text, with each node's loops, rows and times
//
// Rows and JSON read no rows; where a range is known they count its keys through Keys. A
// Measuring measures one statement, which runs within Run: the builder of the plan's nodes calls
// Measures for each node.
package explain
