// Package fast runs the statements that dominate OLTP without go-mysql-server: lookups of a key or
// of a list of keys, ranges, joins by keys, changes of single rows, and INSERTs of literals.
//
// All statements that differ only in their literals share a Compiled. go-mysql-server has planned
// it once; it then runs directly on the index of that plan. If a statement is not clearly covered
// by what was compiled, fast falls back on go-mysql-server (ErrPlan) before it has done anything:
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
