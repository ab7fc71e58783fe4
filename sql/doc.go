// Package sql is MySQL's dialect over FaRM: go-mysql-server parses, plans and
// runs statements, and this package is the storage that it runs them on.
//
//	client ── wire ── go-mysql-server ──► provider, Database, Table, index ──► catalog: what there is
//	                                  ──► Session, transaction             ──► txn: one FaRM transaction
//	                                  ──► editor, rowIter                  ──► rows, B-trees, hash tables
//
// A row is one object, an index maps keys to the addresses of rows. The primary index owns the
// rows; a table without a primary key is given hidden row numbers. Keys are encoded so that their
// bytes have the order of the values. Rows are encoded so that any column is found at once
// (sql/row). Values too large for a row are stored outside of it.
//
// Isolation is strict serializability whatever level a client asks for: each SQL transaction is
// one FaRM transaction, and a statement outside of one has its own FaRM transaction. A statement
// reads everything through its transaction, the descriptors of its tables first, so that no change
// goes unnoticed. A conflict is error 1213 (sql/myerr).
//
// The statements that OLTP consists of are compiled (sql/fast) once go-mysql-server has planned
// them. Stored procedures are run by sql/routine, and sql/trigger decides which triggers run.
//
// go-mysql-server's differences from MySQL are corrected in sql/compat, or here if the correction
// needs our tables or sessions.
//
// A statement that fails undoes what it did and nothing else: each editor marks
// the transaction when its statement begins. A single change of a row is all or
// nothing by itself, which INSERT IGNORE and its kin rely on.
package sql
