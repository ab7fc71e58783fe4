// Package evidence is one machine's part in the recovery of transactions (SOSP'15 section 5.3).
//
// A Recovery knows what the logs in the machine's memory say about recovering transactions, and
// carries out what is decided about them. Package recovery/transactions talks to the other
// machines, and calls these methods of it in turn:
//
//	Recall       before the first configuration: the logs of the machine's earlier lives
//	Begin        NEW-CONFIG: the recovery for a configuration begins
//	Drain        NEW-CONFIG-COMMIT: all records in logs are processed; the evidence is returned
//	Learn        what other replicas of a region have seen is noted durably
//	LockRegions  objects that recovering transactions write are locked at their primary
//	Truncated    an answer for a vote: the replica has truncated the transaction
//	Decide       COMMIT-RECOVERY, ABORT-RECOVERY: the outcome is noted and applied
//	Truncate     TRUNCATE-RECOVERY: the transaction is forgotten
//	Park         the transaction waits for an unavailable region
//	Settle       all transactions are decided or parked: memory and log space are freed
//
// Each step names the configuration that it is for, and fails once the next one has begun.
//
// A Recovery is safe for concurrent use. Its lock is taken before the lock of a worker.
package evidence
