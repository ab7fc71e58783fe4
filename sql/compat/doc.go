// Package compat corrects go-mysql-server where it does otherwise than MySQL 8.0: on texts and
// syntax trees, on plans, and on expressions. It needs nothing of our sessions, tables and
// storage, so a correction can be dropped when it is mended there: each file says first what is wrong
// in go-mysql-server.
//
//	text         Respell, ResolveComments, ParseFirst  the parser does not know it      respell.go, escapes.go, ...
//	syntax tree  Check..., CallOurs, NameWindows       planning would not survive it    calls.go, windownames.go, ...
//	plan         ChangeRules, PlainFilters, Framed     a rule returns other rows        rules.go, filters.go, outer.go, ...
//	expression   Compared, StandIn                     it has another value or type     collations.go, standins.go, ...
//	rows         RowSet, DistinctRows, CommonRows      equal rows are not found equal   rowset.go
//
// Where a correction needs more than that it asks for it by an interface: of a table ListTable and
// ExactTable, of a session Lender, and Memory of what keeps rows.
//
// Nothing here is kept between statements; functions may be called by several goroutines.
package compat
