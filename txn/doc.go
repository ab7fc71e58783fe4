// Package txn runs transactions on objects: FaRM's optimistic commit protocol
// (SOSP'15 section 4) with primary-backup replication, lock-free reads and
// function shipping (NSDI'14 sections 3.4, 3.5).
//
// The packages below it: record (the records in logs), message (the messages between workers),
// route (the machines that have each region), step (the steps at which tests interrupt), wait (how
// goroutines wait), set (read sets and write sets), commitstate (the states of a commit), outcome
// (errors), participant (the primary's and the backup's side of the protocol), evidence (a machine's
// part in the recovery of transactions) and worker (a machine below its transactions: its workers,
// lock-free reads, function shipping, epochs and reconfigurations).
//
// A Machine coordinates the transactions that begin on it and takes part, as primary and as backup,
// in the transactions of other machines:
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
// Package commitstate defines the states of a commit, and explains why the steps come in this
// order.
//
// A coordinator reserves space for all its records in all
// participants' logs before it writes the first, so that a transaction cannot get stuck half way;
// if there is no room it waits, without having reserved anything. If a machine is its own
// participant, it does the participant's work by direct calls, but first writes the record to its
// own log.
//
// # Large transactions
//
// The writes of a record that does not fit the log are in an annex beside it, which the coordinator
// has created and filled before it reserves: participant/annex.go has the rules, large.go the
// coordinator's side, and participant/task.go the participants' side, which works on such records
// in slices.
//
// # What a transaction sees
//
// Reading an object again returns the same content, or the transaction's own write. Two objects
// that a transaction reads may never have existed at the same time: nothing that depends on its
// reads may be shown to anyone before Commit or Validate has succeeded. Transactions that commit
// are strictly serializable, at the moment when all their locks were held, or, if they write
// nothing, at the moment of their last read.
//
// # Indexes
//
// An index object, a leaf or a bucket, holds many keys. If transactions read or wrote it as a
// whole, unrelated transactions would conflict. Index code therefore remembers Questions instead of
// reads and applies Intents just before LOCK instead of writes; index.go has the rules.
//
// # Machines that fail
//
// A reconfiguration catches the commits in progress, and recovery decides them: caught.go has their
// coordinators' waits. Package worker takes the machine from one configuration to the next, package
// evidence carries out recovery's decisions. In between, package recovery talks to the other
// machines.
//
// # Concurrency
//
// A Machine is safe for concurrent use. A Tx runs on its caller's goroutine and belongs to it; it
// waits in one place, wait.Waiter. From JoinLocked on, its commit is shared with the worker, whose
// lock guards it, until the worker has removed the commit from its lists (begun, waiting for
// LOCK-REPLYs, caught). A method that needs a lock to be held has a name that ends in Locked. A
// function that takes a lock releases it, too. A method whose name ends in Locked may release the
// lock while it waits, and then says so. No method waits for a reply with a worker's lock held.
// Package worker says what else its lock guards.
package txn
