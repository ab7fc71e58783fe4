package transactions

import (
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn"
)

// A Vote is what the replicas of one region know about a recovering transaction
// (RECOVERY-VOTE, SOSP'15 section 5.3 step 6). Votes are in the order of how far
// the transaction got.
type Vote uint8

const (
	// VoteUnknown: no replica has a record of it, or knows it truncated.
	VoteUnknown Vote = iota
	// VoteAbort: a replica has seen ABORT-RECOVERY.
	VoteAbort
	// VoteTruncated: no replica has a record of it any more.
	VoteTruncated
	// VoteLock: a replica has a LOCK record.
	VoteLock
	// VoteCommitBackup: a replica has a COMMIT-BACKUP record.
	VoteCommitBackup
	// VoteCommitPrimary: a replica has a COMMIT-PRIMARY record.
	VoteCommitPrimary
)

// voteOf is what a region votes whose replicas have seen so much (step 6).
func voteOf(s txn.Seen) Vote {
	switch {
	case s&(txn.SeenCommitPrimary|txn.SeenCommitRecovery) != 0:
		return VoteCommitPrimary
	case s&txn.SeenAbortRecovery != 0:
		return VoteAbort
	case s&txn.SeenCommitBackup != 0:
		return VoteCommitBackup
	case s&txn.SeenLock != 0:
		return VoteLock
	case s&txn.SeenTruncated != 0:
		return VoteTruncated
	}
	return VoteUnknown
}

// A Decision is how a recovering transaction ends.
type Decision uint8

const (
	Abort Decision = iota
	Commit
)

// Decide decides a transaction by the votes of all regions that it writes
// (SOSP'15 section 5.3 step 7). It commits if a region votes commit-primary:
// then it may have been reported committed. It also commits if a region votes
// commit-backup and all others have locked, or more, or truncated: it has been
// validated. Otherwise it aborts, for nobody can have been told of a commit.
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
