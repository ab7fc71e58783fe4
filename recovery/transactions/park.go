package transactions

import (
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
)

// waits reports whether one of the regions is unavailable, so that transactions that write to it
// cannot be decided in this configuration.
func (r *run) waits(regions []region.ID) bool {
	return slices.ContainsFunc(regions, func(id region.ID) bool {
		p, ok := r.c.Placement(id)
		return ok && !p.IsAvailable()
	})
}

// admitCaught adds ballots for this machine's commits that write to an unavailable region and have no
// record in any available one. The memory that is away may have a record, so the commit has to wait,
// and the available regions must remember that they have no record of it.
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

// park handles transactions that have to wait for an unavailable region. If another region of such a
// transaction voted unknown or truncated, park makes all replicas of that region note the vote. For
// any other vote they have noted the evidence already (step 5). park comes before DECIDED: once this
// recovery is settled, the logs are freed, and the next recovery could not find the same vote.
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
			hasRecord := v != VoteUnknown && v != VoteTruncated
			if !ok || !p.IsAvailable() || !hasVoted || hasRecord {
				continue
			}
			e := entry{Evidence: evidence.Evidence{ID: id, Regions: b.regions, Region: reg}}
			if v == VoteTruncated {
				e.Seen = evidence.SeenTruncated
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
		if err := r.m.Recovery().Park(r.c.ID, list[i].Evidence); err != nil {
			return err
		}
	}
	return nil
}
