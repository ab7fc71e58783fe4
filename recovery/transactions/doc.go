// Package transactions recovers the state of transactions when the
// configuration changes (SOSP'15 section 5.3). Each member does its part:
//
//	1 block      Freeze: nothing of the old configuration proceeds
//	2 drain      Commit: all logs are processed                        txn.Drain
//	3 find       B --NEED-RECOVERY--> P   what B's logs say
//	4 lock       P READs records it lacks, locks what they write       txn.LockRegions
//	             P --BLOCKS--> B, which is being filled     before it is active
//	             P --REGIONS-ACTIVE--> all
//	5 replicate  P --REPLICATE-TX-STATE--> B, which READs what it lacks
//	6 vote       P --RECOVERY-VOTE--> C   for each transaction and region
//	             C --REQUEST-VOTE--> P    where none has come
//	7 decide     C --COMMIT-RECOVERY, ABORT-RECOVERY--> P, B
//	             C --TRUNCATE-RECOVERY--> P, B    once all have acknowledged
//	             C --PARK--> P, B                 where a region is unavailable
//	8 settle     C --DECIDED--> all
//
// P is a region's primary and B a backup, in the new configuration. C is the transaction's
// coordinator if that is a member, and otherwise another member, which all members compute alike. One
// call carries a list of transactions.
//
// # Why it is right
//
// No machine acts in configuration c before all have left c-1 (precise membership). So the
// evidence, which is the records in the members' logs after the drain, is fixed: nothing is added
// later. From this follows:
//
// A transaction that was reported committed commits. Its coordinator had all acknowledgements of
// COMMIT-BACKUP and one of COMMIT-PRIMARY before it was frozen, or while it held its lease, that
// is, before any member drained. So each region has a replica that votes commit-backup or more, or
// the primary's LOCK, or has truncated the transaction; and some region votes commit-backup or
// more, since if all had truncated the transaction there would be nothing to recover.
//
// A transaction that was aborted, or reported aborted, aborts: no COMMIT-BACKUP was ever written.
//
// The other transactions have one outcome, however often recovery is interrupted. A region's vote
// is the merged evidence of all its replicas, and before the vote is cast each replica has noted
// that evidence in its own log (step 5). Decide depends on votes alone, so any later recovery, from
// whichever replicas are left, decides the same; and each decision is noted before it is carried
// out.
//
// Until a transaction is decided nobody reads or locks the objects that it writes: they are locked
// at the primary before the region becomes active. Each lock counts the transactions that want it.
// Writes are applied by version, so that carrying a decision out twice, or late, changes nothing.
//
// A transaction that writes to an unavailable region is not decided, but parked: see
// txn.Machine.Park. It takes part in every recovery, with the same evidence, until all its regions
// are available. The evidence in the memory that is away is fixed, too, and is added when that
// memory is back. Votes are monotonic in evidence, so this cannot contradict what an earlier
// recovery has carried out, which decided only where all regions were available.
//
// A machine that has truncated a transaction knows that it has: each log has a ledger in its
// memory. The ledger stays until no transaction of an earlier configuration is left anywhere.
// (That is step 8. The paper does not have it, since its memory is not lost in a power
// failure.) So an unknown vote means that the record never came.
package transactions
