// Package participant implements a machine's part in transactions as a primary or a backup of the
// objects that they write (SOSP'15 section 4).
//
// Replicas are the replicas at one machine: they lock objects at their versions, apply writes,
// unlock, and answer VALIDATE. A Log is one log in the machine's memory: a state machine that takes
// the records which the log's sender has written there, in order:
//
//	LOCK            Replicas lock all objects or none; the LOCK-REPLY is returned
//	COMMIT-BACKUP   is kept: the record in the log is the backup's copy
//	COMMIT-PRIMARY  the primary applies what it has locked, and unlocks
//	ABORT           the primary unlocks
//	truncation      the backup applies, the ledger notes it, the log's head moves on
//
// From Freeze (NEW-CONFIG) on, records are kept as evidence. Thaw ends that, and says which records
// come too late from then on. Release frees the records that recovery has needed.
//
// An OwnLog is the log that a worker writes to its own machine, for recovery (own.go).
//
// Besides its logs a machine has Annexes, the memory of records that do not fit a log (annex.go has
// the rules; task.go says how they are processed in slices), and Loans, the slots that it has
// reserved for new objects of other machines.
//
// A Log and an OwnLog use no time, goroutine or randomness and have no lock: they are parts of the
// worker that they are written for or by, and its lock guards them. Replicas, Annexes and Loans are safe
// for concurrent use.
package participant
