// Package evidence is one machine's part in the recovery of transactions (SOSP'15 section 5.3).
//
// A Recovery gathers the evidence about recovering transactions from the logs in the machine's
// memory, and carries out their outcomes. Package recovery/transactions talks to the other machines,
// and calls these methods in turn:
//
//	Recall       takes the logs of the machine's earlier lives, before the first configuration
//	Begin        begins the recovery for a configuration, at NEW-CONFIG
//	Drain        processes all records in logs, at NEW-CONFIG-COMMIT, and returns the evidence
//	Learn        notes durably the evidence of a region's other replicas
//	LockRegions  locks, at their primary, the objects that recovering transactions write
//	Truncated    reports, for a vote, whether the replica has truncated a transaction
//	Decide       notes and applies an outcome (COMMIT-RECOVERY, ABORT-RECOVERY)
//	Truncate     forgets a transaction (TRUNCATE-RECOVERY)
//	Park         notes durably that a transaction waits for an unavailable region
//	Settle       frees memory and log space: all transactions are decided or parked
//
// Each step names its configuration, and fails once the next configuration has begun.
//
// A Recovery is safe for concurrent use. Its mutex is taken before the lock of a worker.
package evidence
