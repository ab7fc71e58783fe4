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
// Besides its logs a machine has Annexes, the memory of records that do not fit a log (annex.go has
// the rules; task.go says how they are processed in slices), and Loans, the slots that it has
// reserved for new objects of other machines.
//
// A Log uses no time, goroutine or randomness of its own and has no lock: it is part of the worker
// that it is written for, and that worker's lock guards it. Replicas, Annexes and Loans are safe
// for concurrent use.
package participant
