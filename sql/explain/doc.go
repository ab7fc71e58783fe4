// Package explain says how go-mysql-server runs a plan, as MySQL's EXPLAIN does.
//
//	EXPLAIN              ──► Rows       a row for each table, in the order in which they are read
//	EXPLAIN FORMAT=JSON  ──► JSON       the same rows as a document
//	EXPLAIN ANALYZE      ──► Measuring  the plan's text, with what each node took when it ran
//
// Rows and JSON read no rows; where a range is known they count its keys through Keys. A Measuring
// is of one statement, which runs within Run: whoever builds the nodes of the plan asks it of each.
package explain
