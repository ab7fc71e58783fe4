package transactions

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// The rule of SOSP'15 section 5.3, step 7: "The transaction is committed if any
// region votes commit-primary. Otherwise, it votes to commit if at least one
// region votes commit-backup and all other regions modified by the transaction
// vote lock, commit-backup, or truncated. Otherwise it aborts."
func TestPaper5_3_Decide(t *testing.T) {
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

// Step 6: "The vote is commit-primary if any replica saw COMMIT-PRIMARY or
// COMMIT-RECOVERY. Otherwise, it votes commit-backup if any replica saw
// COMMIT-BACKUP and did not see ABORT-RECOVERY. Otherwise, it votes lock if any
// replica saw a LOCK record and no ABORT-RECOVERY. Otherwise, it votes abort."
// A region without any record votes truncated or unknown; see onRequestVote.
func TestPaper5_3_WhatARegionVotes(t *testing.T) {
	const all = evidence.SeenLock | evidence.SeenCommitBackup | evidence.SeenCommitPrimary | evidence.SeenCommitRecovery | evidence.SeenAbortRecovery
	for seen := evidence.Seen(1); seen <= all; seen++ {
		saw := func(s evidence.Seen) bool { return seen&s != 0 }
		want := VoteAbort
		switch {
		case saw(evidence.SeenCommitPrimary) || saw(evidence.SeenCommitRecovery):
			want = VoteCommitPrimary
		case saw(evidence.SeenCommitBackup) && !saw(evidence.SeenAbortRecovery):
			want = VoteCommitBackup
		case saw(evidence.SeenLock) && !saw(evidence.SeenAbortRecovery):
			want = VoteLock
		}
		if got := voteOf(seen); got != want {
			t.Errorf("seen %05b: votes %d, want %d", seen, got, want)
		}
	}
	if got := voteOf(0); got != VoteUnknown {
		t.Errorf("who has seen nothing votes %d", got)
	}
}

// Step 6: "The coordinator does not change if the machine it is running on is still
// in the configuration, but when a coordinator fails the responsibility for
// coordinating its recovering transactions is spread across the machines in the
// cluster", and "all the primaries independently agree".
func TestPaper5_3_ADeadCoordinatorsTransactionsAreSpread(t *testing.T) {
	c := &cluster.Configuration{ID: 2}
	for m := range rdma.MachineID(10) {
		c.AddMember(cluster.Member{Machine: m, Incarnation: 1})
	}
	const dead, each = rdma.MachineID(10), 200
	backwards := *c
	backwards.Machines = slices.Clone(c.Machines)
	slices.Reverse(backwards.Machines)
	decides := make(map[rdma.MachineID]int)
	for seq := range uint64(each * len(c.Machines)) {
		for _, m := range c.Machines {
			if got := coordinator(c, record.ID{Config: 1, Machine: m, Seq: seq}); got != m {
				t.Fatalf("machine %d decides a transaction of machine %d, which is a member", got, m)
			}
		}
		id := record.ID{Config: 1, Machine: dead, Worker: uint16(seq % 4), Seq: seq}
		to := coordinator(c, id)
		if other := coordinator(&backwards, id); other != to {
			t.Fatalf("%v is decided by machine %d and by machine %d", id, to, other)
		}
		decides[to]++
	}
	for _, m := range c.Machines {
		if n := decides[m]; n < each/2 || n > 2*each {
			t.Errorf("machine %d decides %d transactions, %d would be its share", m, n, each)
		}
	}
}
