package recovery

import "testing"

// The rule of SOSP'15 section 5.3, step 7: "The transaction is committed if any
// region votes commit-primary. Otherwise, it votes to commit if at least one
// region votes commit-backup and all other regions modified by the transaction
// vote lock, commit-backup, or truncated. Otherwise it aborts."
func TestPaper5_Decide(t *testing.T) {
	const (
		unknown, abort, truncated   = VoteUnknown, VoteAbort, VoteTruncated
		lock, backup, commitPrimary = VoteLock, VoteCommitBackup, VoteCommitPrimary
	)
	for _, c := range []struct {
		votes []Vote
		want  Decision
	}{
		{nil, Abort},
		{[]Vote{lock}, Abort},
		{[]Vote{backup}, Commit},
		{[]Vote{commitPrimary}, Commit},
		{[]Vote{truncated}, Abort}, // nothing left to do
		{[]Vote{unknown}, Abort},
		{[]Vote{abort}, Abort},
		{[]Vote{lock, lock}, Abort},
		{[]Vote{lock, backup}, Commit},
		{[]Vote{backup, truncated}, Commit},
		{[]Vote{backup, backup, lock, truncated}, Commit},
		{[]Vote{backup, unknown}, Abort},
		{[]Vote{backup, abort}, Abort},
		{[]Vote{unknown, commitPrimary}, Commit},
		{[]Vote{abort, commitPrimary}, Commit},
		{[]Vote{truncated, lock}, Abort},
	} {
		if got := Decide(c.votes); got != c.want {
			t.Errorf("%v: %v, want %v", c.votes, got, c.want)
		}
		reversed := make([]Vote, 0, len(c.votes))
		for i := range c.votes {
			reversed = append(reversed, c.votes[len(c.votes)-1-i])
		}
		if got := Decide(reversed); got != c.want {
			t.Errorf("%v: %v, want %v", reversed, got, c.want)
		}
	}
}
