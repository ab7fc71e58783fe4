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
// P is a region's primary and B a backup, in the new configuration. C is the
// transaction's coordinator, if that is a member, or else a member that all
// agree on. Lists of transactions travel in one call.
//
// # Why it is right
//
// Nobody of configuration c acts before everybody has left c-1 (precise
// membership), so that the evidence, the records in the members' logs after they
// were drained, is fixed: nothing is added later. From there on:
//
// What was reported committed commits. Its coordinator had all acknowledgements
// for COMMIT-BACKUP and one for COMMIT-PRIMARY before it was frozen, or while it
// held its lease, that is before any member drained. So each region has a
// replica that votes commit-backup or more, or the primary's LOCK, or has
// truncated the transaction; and somewhere a vote is commit-backup or more, since
// before all were truncated there was nothing to recover.
//
// What was aborted, or reported to be, aborts: no COMMIT-BACKUP was ever written.
//
// The others have one outcome, however often recovery is interrupted. A region's
// vote is what all its replicas together have seen, and before it is cast each of
// them has noted as much in its own log (step 5). Decide looks at nothing but
// votes, so any later recovery, from whichever replicas are left, decides the
// same; and whatever has been carried out is noted first.
//
// Until a transaction is decided nobody reads or locks what it writes: its
// objects are locked at the primary before the region becomes active. Each lock
// counts the transactions that want it. Writes go by version, so that carrying a
// decision out twice, or late, changes nothing.
//
// A transaction that writes to an unavailable region is not decided, but parked: see
// txn.Machine.Park. It takes part in every recovery, with the same evidence, until all
// its regions are available. What the memory that is away has seen is fixed, too, and
// joins the evidence then. Votes are monotonic in evidence, so nothing that an earlier
// recovery has carried out (it decided only where all regions were available) can turn
// out otherwise.
//
// A truncated transaction is known as such where it has been truncated: each log
// has a ledger of them in its memory, which stays until no transaction of an
// earlier configuration is left anywhere (step 8, which is not in the paper: there
// memory is not lost together with power). So an unknown vote means that the
// record never came.
package transactions
