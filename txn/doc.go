// Package txn runs transactions on objects: FaRM's optimistic commit protocol
// (SOSP'15 section 4) with primary-backup replication, lock-free reads and
// function shipping (NSDI'14 sections 3.4, 3.5).
//
// The packages below it: record (what lies in logs), message (what workers send each other),
// route (where regions live), step (what tests look at) and participant (the primary's and the
// backup's side of the protocol).
//
// A Machine coordinates the transactions that begin on it and takes part, as
// primary and as backup, in those of others:
//
//	C = coordinator, P = primary, B = backup of an object written
//
//	C reads objects with one-sided READs and buffers its writes      execute
//	C --LOCK record--> P's log; P locks by compare-and-swap          lock
//	C <--LOCK-REPLY message-- P
//	C --READ versions, or VALIDATE message--> primaries of reads     validate
//	C --COMMIT-BACKUP record--> B's log, waits for the NIC's acks    commit backups
//	C --COMMIT-PRIMARY record--> P's log; P applies and unlocks      commit primaries
//	C reports success when one of these has arrived
//	C names the transaction as truncated in later records;           truncate
//	  B applies, and P and B free their logs
//
// commitstate.go has the states of a commit, and says why the steps come in this order.
//
// Between siblings, worker w of one machine and worker w of another, there are a
// log and a message queue in each direction (package ring). A coordinator
// reserves space for all its records in all participants' logs before it writes
// the first, so that a transaction cannot get stuck half way; where there is no
// room it waits, having reserved nothing. What a machine is to itself it does by
// direct call, but the record goes into its own log first.
//
// # Large transactions
//
// The writes of a record that does not fit the log are in an annex beside it, which the
// coordinator has made and filled before it reserves: participant/annex.go has the rules, large.go
// the coordinator's side and participant/task.go the participants', who work on such records in slices.
//
// # What a transaction sees
//
// Reading an object again returns the same, and what the transaction itself
// wrote. Two objects that it reads may never have coexisted: nothing that
// depends on what it saw may be shown to anyone before Commit or Validate has
// succeeded. Transactions that commit are strictly serializable, at the moment
// when all their locks were held, or, if they write nothing, of their last read.
//
// # Indexes
//
// An index object, a leaf or a bucket, holds many keys, so that reading or
// writing it as a whole would make transactions conflict that have nothing to do
// with each other. Index code therefore remembers Questions instead of reads and
// applies Intents just before LOCK instead of writes; index.go has the rules.
//
// # Machines that fail
//
// reconfigure.go takes a machine from one configuration to the next, evidence.go
// says what logs know of transactions that are not decided, resolve.go carries out
// what has been decided; package recovery talks to the others in between.
//
// # Concurrency
//
// A Machine is safe for concurrent use. A Tx runs on its caller's goroutine and
// belongs to it; it waits in one place, waiter. What arrives at a worker is
// handled by its stepLocked method, which takes no time, goroutine or randomness of
// its own and runs under the worker's lock: package participant has the participants' side.
// A method that needs a lock to be held ends in Locked; participant.Log, selfLog, window and ops
// are parts of a worker and guarded by its lock as a whole. Who takes a lock gives it back
// in the same function; a method that ends in Locked may give it away while it waits, and
// says so.
// A worker's lock may be held when Machine.mu is taken, not the other way round.
// No reply is waited for with a worker's lock held. Peers are rung with it held, once for
// all that was written (ringPeersLocked): a bell only tries the lock of its worker, and where
// that is taken its holder looks at the bell after unlocking (answerBell).
package txn
