// Package participant is what a machine does for transactions as a primary or a backup of
// the objects that they write (SOSP'15 section 4).
//
// Replicas are those of one machine: they lock objects at their versions, apply writes,
// unlock, and answer VALIDATE. A Log is one log that lies in the machine's memory: a state
// machine, fed with the records that the log's sender has written there, in order:
//
//	LOCK            Replicas lock all objects or none; the LOCK-REPLY is returned
//	COMMIT-BACKUP   is kept: the record in the log is the backup's copy
//	COMMIT-PRIMARY  the primary applies what it has locked, and unlocks
//	ABORT           the primary unlocks
//	truncation      the backup applies, the ledger notes it, the log's head moves on
//
// From Freeze (NEW-CONFIG) on records are evidence, and Thaw says what comes too late from
// then on; recovery releases what it has needed.
//
// Beside the logs a machine has Annexes, the memory of records that do not fit a log
// (annex.go has the rules, task.go how they are worked on in slices), and Loans, the slots
// that it has reserved for new objects of other machines.
//
// A Log takes no time, goroutine or randomness of its own and has no lock: it is a part of the
// worker that it is written for, and guarded by that worker's. Replicas, Annexes and Loans are
// safe for concurrent use.
package participant
