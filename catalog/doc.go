// Package catalog holds what the database knows about itself: databases,
// tables, columns, indexes, constraints, views and other definitions, users,
// and sequences, all of them FaRM objects that transactions read and write.
//
//	root object ──► anchor ──► names: B-tree of  kind | database | 0 | name
//	                             │
//	                             ├─► database, definition, account, setting: one object each
//	                             ├─► dropped storage, by number
//	                             └─► table head ──► table body
//
// A table is two objects. The head is small and says which generation of the
// body is valid; every statement reads it in its transaction. So a change of
// the table's schema, which writes the head, and a change of the table's rows
// cannot both commit if they overlap, and neither needs a lock. The body is
// the descriptor itself, decoded once per generation and machine.
//
// What does not belong into the user's transaction is outside of it: sequences
// hand out numbers from ranges that each machine reserves in transactions of
// their own, so that two inserts never conflict over one; and the memory of a
// dropped table is freed after the drop has committed, in bounded transactions
// that a restart resumes (see Sweep).
//
// A Catalog is safe for concurrent use. Decoded descriptors are shared between
// goroutines and immutable.
package catalog
