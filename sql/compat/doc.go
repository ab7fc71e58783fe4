// Package compat corrects go-mysql-server where it differs from MySQL 8.0: on texts and syntax
// trees, on plans, and on expressions. It needs nothing of our sessions, tables and storage, so a
// correction can be dropped once go-mysql-server is fixed: each file first says what is wrong in
// go-mysql-server.
//
//	text         Respell, ResolveComments, ParseFirst  the parser does not know it      respell.go, escapes.go, ...
//	syntax tree  Check..., CallOurs, NameWindows       planning would not survive it    calls.go, windownames.go, ...
//	plan         ChangeRules, PlainFilters, Framed     a rule returns other rows        rules.go, filters.go, outer.go, ...
//	expression   Compared, StandIn                     it has another value or type     collations.go, standins.go, ...
//	rows         RowSet, DistinctRows, CommonRows      equal rows are not found equal   rowset.go
//
// Where a correction needs more, it declares an interface: ListTable and ExactTable for tables,
// Lender for sessions, and Memory for what counts kept rows.
//
// The package keeps nothing between statements; several goroutines may call its functions.
package compat
