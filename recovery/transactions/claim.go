package transactions

import (
	"cmp"
	"context"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

type claimID struct {
	tx     record.ID
	region region.ID
}

// A claim is the merged evidence of a region's replicas about a transaction.
type claim struct {
	evidence.Evidence // the evidence of all replicas together
	sources           map[rdma.MachineID]evidence.Evidence
}

// needRecovery sends the evidence about each region that this machine backs up to the region's
// primary.
func (r *run) needRecovery(found []evidence.Evidence) {
	lists := make(map[rdma.MachineID][]entry)
	for _, p := range r.c.Regions { // any order
		if r.backsUp(p) && lists[p.Primary] == nil {
			lists[p.Primary] = []entry{} // a primary waits for the list even if there is no evidence
		}
	}
	for _, e := range found {
		if p, ok := r.c.Placement(e.Region); ok && r.backsUp(p) {
			lists[p.Primary] = append(lists[p.Primary], entry{Evidence: e})
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindNeedRecovery, lists[to]) })
	r.t.reached(recovery.StepNeedRecovery)
}

// backsUp reports whether this machine has a backup of a region that has a primary.
func (r *run) backsUp(p cluster.Placement) bool {
	return p.IsAvailable() && p.Primary != r.self && p.Has(r.self)
}

// claimLocked merges a replica's evidence about transactions into the claims on this machine's
// regions.
func (r *run) claimLocked(from rdma.MachineID, found []evidence.Evidence) {
	for _, e := range found {
		p, ok := r.c.Placement(e.Region)
		if !ok || !p.IsPrimary(r.self) || !p.Has(from) {
			continue
		}
		if sabotage.Votes.Skipped() && from != r.self {
			e.Seen &= evidence.SeenLock
		}
		id := claimID{e.ID, e.Region}
		c := r.mu.claims[id]
		if c == nil {
			c = &claim{Evidence: e, sources: make(map[rdma.MachineID]evidence.Evidence)}
			r.mu.claims[id] = c
		}
		c.Seen |= e.Seen
		c.sources[from] = e
	}
}

// claimed returns the claims in order.
func (r *run) claimed() []*claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*claim
	for _, c := range r.mu.claims { // any order
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *claim) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Region, b.Region))
	})
	return all
}

// complete notes a claim in this primary's log, with the writes: it READs them from a backup if they
// are not here.
func (r *run) complete(ctx context.Context, c *claim) error {
	return r.again(ctx, func() error {
		writes, err := r.fetch(c)
		if err != nil {
			return err
		}
		return r.m.Recovery().Learn(r.c.ID, c.Evidence, writes)
	})
}

// fetch READs a transaction's writes from a backup. If they are here already, it returns nil. It also
// returns nil if no replica has them: an earlier recovery that reached truncation may have left notes
// without the writes.
func (r *run) fetch(c *claim) (writes []record.Write, err error) {
	if own := c.sources[r.self]; !own.At.Empty() {
		return nil, nil
	}
	for _, from := range sortedKeys(c.sources) {
		if e := c.sources[from]; !e.At.Empty() {
			if writes, err = r.m.Recovery().Fetch(from, e); err == nil {
				return writes, nil
			}
		}
	}
	return nil, err
}

// replicate is step 5: it sends the merged evidence of all replicas to each backup that lacks some of
// it, or lacks the writes.
func (r *run) replicate() {
	lists := make(map[rdma.MachineID][]entry)
	for _, c := range r.claimed() {
		own, ok := r.m.Recovery().Evidence(c.ID, c.Region)
		if !ok {
			continue
		}
		p, _ := r.c.Placement(c.Region)
		for _, b := range p.Backups {
			e := c.sources[b]
			lacksWrites, lacksSeen := e.At.Empty(), c.Seen&^e.Seen != 0
			if lacksWrites || lacksSeen {
				known := c.Evidence
				known.At = own.At // the backup READs the writes from this machine's log
				lists[b] = append(lists[b], entry{Evidence: known})
			}
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindReplicate, lists[to]) })
}
