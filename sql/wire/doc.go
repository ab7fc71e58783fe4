// Package wire is the MySQL listener: it speaks the client/server protocol through
// go-mysql-server's server, and runs between that server and its clients. It retries
// conflicts and holds results back, so that clients see neither conflicts that a retry
// resolves nor results of transactions that abort.
//
//	client ── net.Listener ──┐                                  ┌─ BeginStatement
//	client ── net.Listener ──┼─ mux ─ vitess ─ handler ─ gms ───┤  run, buffer rows
//	database/sql ── pipe ────┘    (protocol)  (here)  (engine)  └─ EndStatement
//
// Invariants:
//   - Nothing a statement computed reaches its client before the statement has
//     ended well: committed, if it was its own transaction, or validated, if it
//     belongs to an explicit one. So rows wait in a buffer, bounded by
//     Config.ResultBufferBytes, and a SELECT never fails after its first row.
//   - A conflict outside an explicit transaction is retried here, at most
//     Config.RetryMax times, before the client hears of error 1213. So is one of a
//     statement that shows definitions, which runs beside the explicit transaction.
//   - Every attempt is bracketed by Session.BeginStatement and EndStatement, so
//     a session never enters the next statement with a transaction that the
//     last one left behind, which go-mysql-server does after most errors.
//   - The protocol library sees plain packets: TLS is below it (secure.go), so that every
//     byte of a client is seen and counted here before the library allocates memory.
//   - Clients that have not logged in take nobody's place (admission.go).
//   - A database with several machines has an engine on each; clients are dealt
//     out to them in turn. The engines share one process list, so connection ids
//     come from one counter, whatever listener or engine a client is on.
//
// A statement that the storage has compiled skips go-mysql-server (compiled.go),
// between the same brackets, with the same counters and place in the process
// list. A prepared statement finds its compiled form without its text. A connection keeps two things for its next
// statement: the buffer of the result, and the context from which it makes the statement's own.
//
// go-mysql-server runs one statement of a connection at a time; a connection's
// state here is used by that goroutine alone. Server is safe for concurrent use.
//
// Limits: no compression, no COM_CHANGE_USER; caching_sha2_password only over
// TLS; a client that opens a server-side cursor sees "missing result set" instead of
// the error when its statement fails (the protocol library drops it).
package wire
