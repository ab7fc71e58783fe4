// Package participant implements a machine's part in transactions as a primary or a backup of the
// objects that they write (SOSP'15 section 4).
//
// Replicas are the replicas at one machine: they lock objects at their versions, apply writes,
// unlock, and answer VALIDATE. A Log is one log in the machine's memory: a state machine that
// processes the records of the log's sender, in order:
//
//	LOCK            Replicas lock all objects or none; the LOCK-REPLY is returned
//	COMMIT-BACKUP   stays in the log, and is the backup's copy of the writes
//	COMMIT-PRIMARY  the primary applies the writes of LOCK, and unlocks
//	ABORT           the primary unlocks
//	truncation      the backup applies the writes, the ledger notes the truncation, and the
//	                log's head moves on
//
// From Freeze (NEW-CONFIG) on, records only stay as evidence. Thaw ends that, and sets the
// configuration whose records come too late from then on. Release frees the records that recovery no
// longer needs.
//
// An OwnLog is the log that a worker writes to its own machine, for recovery (own.go).
//
// Besides its logs a machine has Annexes, the memory of records that do not fit a log (annex.go has
// the rules; task.go says how they are processed in slices), and Loans, the slots that it has
// reserved for new objects of other machines.
//
// A Log and an OwnLog use no time, goroutine or randomness. Each belongs to one worker, whose lock
// guards it. Replicas, Annexes and Loans are safe for concurrent use.
package participant
