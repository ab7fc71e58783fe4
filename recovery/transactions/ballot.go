package transactions

import (
	"slices"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// A ballot collects the votes of the regions that a transaction writes to.
type ballot struct {
	regions []region.ID
	votes   map[region.ID]Vote
}

// sendVotes is step 6: it sends each transaction's coordinator the votes of the regions whose primary
// is here. Every member sends a list to every member, even an empty one, so that a coordinator knows
// when it has all votes.
func (r *run) sendVotes() {
	lists := make(map[rdma.MachineID][]entry)
	for _, c := range r.claimed() {
		to := coordinator(r.c, c.ID)
		e := c.Evidence
		e.At = evidence.Extent{}
		lists[to] = append(lists[to], entry{Evidence: e})
	}
	r.enter(voted)
	r.t.parallel(r.c.Machines, func(to rdma.MachineID) { r.send(to, kindVote, lists[to]) })
}

// decide is step 7 for the transactions that this machine decides. Replicas truncate a transaction
// only after all of them know its outcome: a replica that truncated earlier would have forgotten its
// vote, and the next recovery might decide differently.
func (r *run) decide() error {
	err := r.wait(r.ctx, func() bool { return sabotage.AllVotes.Skipped() || len(r.mu.voters) == len(r.c.Machines) })
	if err != nil {
		return err
	}
	r.admitCaught()
	if !sabotage.RequestVote.Skipped() {
		r.requestVotes()
	}
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	r.park()
	commits, lists := r.countVotes()
	r.t.reached(recovery.StepDecided)
	if sabotage.OutcomeFirst.Skipped() {
		r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindTruncateRecovery, lists[to]) })
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindOutcome, lists[to]) })
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	for _, c := range r.m.Caught() { // a transaction without any record is aborted
		if !r.waits(c.Regions) {
			r.m.Resolve(c.ID, commits[c.ID])
		}
	}
	r.t.reached(recovery.StepResolved)
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindTruncateRecovery, lists[to]) })
	return r.ctx.Err()
}

// countVotes decides all transactions whose regions are available. It returns which of them commit,
// and for each replica the list of outcomes to send there.
func (r *run) countVotes() (commits map[record.ID]bool, lists map[rdma.MachineID][]entry) {
	commits, lists = make(map[record.ID]bool), make(map[rdma.MachineID][]entry)
	for _, id := range r.ballotIDs() {
		b := r.mu.ballots[id]
		if r.waits(b.regions) {
			continue
		}
		commit := Decide(r.votes(b)) == Commit
		commits[id] = commit
		e := entry{Evidence: evidence.Evidence{ID: id}}
		if commit {
			e.flag = 1
		}
		for _, m := range replicasOf(r.c, b.regions) {
			lists[m] = append(lists[m], e)
		}
	}
	return commits, lists
}

// ballotIDs returns the transactions to be decided, in order. Callers then read the ballots without
// mu: all votes have come, so the ballots do not change any more.
func (r *run) ballotIDs() []record.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []record.ID
	for id := range r.mu.ballots { // any order
		ids = append(ids, id)
	}
	slices.SortFunc(ids, record.ID.Compare)
	return ids
}

// votes returns a vote for each region. A region that has lost all its replicas counts as
// VoteTruncated. VoteUnknown could abort the transaction, but nobody can tell any more whether the
// region had a record.
func (r *run) votes(b *ballot) []Vote {
	var votes []Vote
	for _, id := range b.regions {
		v := b.votes[id]
		if _, ok := r.c.Placement(id); !ok {
			v = VoteTruncated
		}
		votes = append(votes, v)
	}
	return votes
}

// requestVotes asks the primaries that have not voted for their votes (REQUEST-VOTE).
func (r *run) requestVotes() {
	lists := make(map[rdma.MachineID][]entry)
	for _, id := range r.ballotIDs() {
		b := r.mu.ballots[id]
		for _, reg := range b.regions {
			if _, hasVoted := b.votes[reg]; hasVoted {
				continue
			}
			if p, ok := r.c.Placement(reg); ok && p.IsAvailable() {
				lists[p.Primary] = append(lists[p.Primary], entry{Evidence: evidence.Evidence{ID: id, Region: reg}})
			}
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) {
		for _, b := range batches(r.c.ID, lists[to]) {
			reply, err := r.call(to, kindRequestVote, b)
			_, list, _, _ := decodeBatch(b) // the entries of this batch: the reply has a vote for each
			if err != nil || len(reply) != len(list) {
				return
			}
			for i, e := range list {
				r.mu.Lock()
				r.mu.ballots[e.ID].votes[e.Region] = Vote(reply[i])
				r.mu.Unlock()
			}
		}
	})
}
