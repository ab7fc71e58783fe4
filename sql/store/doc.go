// Package store keeps tables: it is the storage that go-mysql-server reads and changes
// rows in, over the catalog and the indexes.
//
//	Session ──► Transaction ──► txn: one FaRM transaction, its marks, what it has counted
//	   │
//	   ├──► variables, settings     the values that SET has given them
//	   └──► Holding ──► Memory      the statement's memory, within the limit of all
//
//	Store ──► Table ──► Scan ──► rows: through one index, in ranges of its keys
//	  │         ├──► Editor ──► a row and its entries, all or nothing
//	  │         └──► DDL: within the statement's transaction, or for large tables in many (Bulk)
//	  ├──► TableInfo, KeyInfo: descriptors made ready for use, shared and immutable
//	  ├──► Counters: row counts, written now and then
//	  └──► Turns: where transactions of the machine wait for each other
//
// A Store belongs to one machine, and is safe for concurrent use. A Session, its Transaction and
// what belongs to them (tables, scans, editors) are used by one goroutine at a time. The package
// knows nothing of databases, plans, accounts and compiled statements: functions of its Config
// stand for those.
package store
