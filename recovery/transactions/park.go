package transactions

import (
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// waits says whether one of the regions is unavailable, so that what writes to them
// cannot be decided in this configuration.
func (r *run) waits(regions []region.ID) bool {
	return slices.ContainsFunc(regions, func(id region.ID) bool {
		p, ok := r.c.Placement(id)
		return ok && !p.IsAvailable()
	})
}

// admitCaught adds ballots for commits of this machine that have to wait, although no
// region that is available has a record of them: they may have one in memory that is
// away, and the regions here must remember that they have none.
func (r *run) admitCaught() {
	caught := r.m.Caught()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range caught {
		if r.waits(c.Regions) && r.mu.ballots[c.ID] == nil {
			r.mu.ballots[c.ID] = &ballot{regions: c.Regions, votes: make(map[region.ID]Vote)}
		}
	}
}

// park has all replicas of a region remember that it has seen nothing of a transaction
// that has to wait, or has truncated it. Whatever else it has seen they know already
// (step 5), and their logs, from which the next recovery would learn it, are given back
// when this one is settled: so this comes before DECIDED.
func (r *run) park() {
	lists := make(map[rdma.MachineID][]entry)
	for _, id := range r.ballotIDs() {
		b := r.mu.ballots[id]
		if !r.waits(b.regions) {
			continue
		}
		for _, reg := range b.regions {
			p, ok := r.c.Placement(reg)
			v, hasVoted := b.votes[reg]
			if !ok || !p.IsAvailable() || !hasVoted || v != VoteUnknown && v != VoteTruncated {
				continue
			}
			e := entry{Evidence: txn.Evidence{ID: id, Regions: b.regions, Region: reg}}
			if v == VoteTruncated {
				e.Seen = txn.SeenTruncated
			}
			for _, m := range p.Replicas() {
				lists[m] = append(lists[m], e)
			}
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindPark, lists[to]) })
}

func (r *run) onPark(list []entry) error {
	for i := range list {
		if err := r.m.Park(r.c.ID, list[i].Evidence); err != nil {
			return err
		}
	}
	return nil
}
