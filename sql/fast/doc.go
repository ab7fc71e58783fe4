// Package fast runs the statements that OLTP is made of without go-mysql-server: lookups,
// ranges, joins by keys, and changes of single rows.
//
// All statements that differ in their literals only share a Compiled, which go-mysql-server
// has planned once and which then runs straight on the index that the plan has taken. It
// falls back on go-mysql-server (ErrPlan), before it has done anything, whenever a statement
// is not plainly what was compiled:
//
//	text ── literals out ──► Cache ──► shape, by the text alone ──► form, for one version of the table ──► keys from the literals ──► rows
//	              │             │               │                       │                                       │
//	              └─────────────┴───────────────┴──── go-mysql-server ◄─┴───────────────────────────────────────┘
//
// Both ways give the same rows, types, warnings and errors. A Cache and what is in it are
// shared by the sessions of a machine, and safe for concurrent use; a Session belongs to one
// goroutine at a time, and the literals and rows that it returns are valid as long as their
// docs say.
package fast
