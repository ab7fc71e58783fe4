// Package catalog stores the descriptions of databases, tables, columns, indexes,
// constraints, views and other definitions, of users, and of sequences. All are
// FaRM objects that transactions read and write.
//
//	root object ──► anchor ──► names: B-tree of  kind | database | 0 | name
//	                             │
//	                             ├─► database, definition, account, setting: one object each
//	                             ├─► dropped storage, by number
//	                             └─► table head ──► table body
//
// A table has two objects. The head is small and says which generation of the body is valid; every
// statement reads the head in its transaction. A change of the table's schema writes the head. So
// it cannot commit together with an overlapping change of the table's rows, and neither needs a
// lock. The body is the table's descriptor, which each machine decodes once per generation.
//
// Two things happen outside of the user's transaction. Sequences hand out numbers from ranges. A
// machine reserves a range in a transaction of its own, so two inserts never conflict over a
// sequence. And the memory of a dropped table is freed after the drop has committed, in bounded
// transactions that are resumed after a restart (see Sweep).
//
// A Catalog is safe for concurrent use. Decoded descriptors are shared between
// goroutines and immutable.
package catalog
