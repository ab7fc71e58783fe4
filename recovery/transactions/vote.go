package transactions

import (
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn/evidence"
)

// A Vote is what the replicas of one region know about a recovering transaction (RECOVERY-VOTE,
// SOSP'15 section 5.3 step 6). Votes are ordered by how far the transaction got.
type Vote uint8

const (
	// VoteUnknown: no replica has a record of the transaction, and none has truncated it.
	VoteUnknown Vote = iota
	// VoteAbort: a replica has seen ABORT-RECOVERY.
	VoteAbort
	// VoteTruncated: the replicas had records of the transaction, but have truncated them.
	VoteTruncated
	// VoteLock: a replica has a LOCK record.
	VoteLock
	// VoteCommitBackup: a replica has a COMMIT-BACKUP record.
	VoteCommitBackup
	// VoteCommitPrimary: a replica has a COMMIT-PRIMARY record.
	VoteCommitPrimary
)

// voteOf returns the vote of a region whose replicas together have seen s (step 6).
func voteOf(s evidence.Seen) Vote {
	switch {
	case s&(evidence.SeenCommitPrimary|evidence.SeenCommitRecovery) != 0:
		return VoteCommitPrimary
	case s&evidence.SeenAbortRecovery != 0:
		return VoteAbort
	case s&evidence.SeenCommitBackup != 0:
		return VoteCommitBackup
	case s&evidence.SeenLock != 0:
		return VoteLock
	case s&evidence.SeenTruncated != 0:
		return VoteTruncated
	}
	return VoteUnknown
}

// A Decision is the outcome of a recovering transaction.
type Decision uint8

const (
	Abort Decision = iota
	Commit
)

// Decide decides a transaction by the votes of all regions that it writes to (SOSP'15 section 5.3
// step 7). It commits if a region votes commit-primary: the transaction may have been reported
// committed. It also commits if a region votes commit-backup and all others vote lock or more, or
// truncated: the transaction has been validated. Otherwise it aborts, since the commit cannot have
// been reported.
func Decide(votes []Vote) Decision {
	backup, all := false, true
	for _, v := range votes {
		switch v {
		case VoteCommitPrimary:
			if sabotage.CommitPrimaryVote.Skipped() {
				continue
			}
			return Commit
		case VoteCommitBackup:
			backup = true
		case VoteUnknown, VoteAbort:
			all = false
		}
	}
	if backup && (all || sabotage.OtherVotes.Skipped()) {
		return Commit
	}
	return Abort
}
