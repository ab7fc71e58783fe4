package evidence

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// A transaction that writes to an unavailable region (cluster.Placement.Away) cannot be decided: the
// evidence of that region is in memory that is away. Each machine parks the transaction: it writes
// its evidence to separate memory, so that logs can be freed and everything else goes on. The
// transaction's objects in other regions stay locked. Each configuration recovers the transaction
// again; the first in which all its regions are available decides it.
//
// Until then each machine must not forget:
//
//   - The notes of parked transactions. Settle writes them before it frees records. Settling
//     then records, by one store, that the notes count and the logs do not.
//   - That a region has seen nothing of a parked transaction, or has truncated it (Park). The logs
//     cannot show it later, since low bounds advance.
//   - The ledgers of all logs, and those of other machines (Bound). The memory that is away
//     may hold a COMMIT-BACKUP record of a transaction that was truncated here long ago.

// awaits reports whether one of the regions is unavailable in the present configuration.
func (r *Recovery) awaits(regions []region.ID) bool {
	routes := r.Replicas.Routes.Load()
	return slices.ContainsFunc(regions, func(id region.ID) bool {
		rt := routes.Of(id)
		return rt != nil && !rt.IsAvailable()
	})
}

// awaitsAny reports whether any region is unavailable.
func (r *Recovery) awaitsAny() bool {
	return slices.ContainsFunc(*r.Replicas.Routes.Load(), func(rt *route.Route) bool { return rt != nil && !rt.IsAvailable() })
}

// Park durably notes the evidence e of a region with a replica here, about a transaction that is
// going to be parked, even if the region has seen nothing of it. It does nothing if this machine has
// evidence about the region already, or if the recovery was settled. It fails with ring.ErrFull while
// there is no room for a note.
func (r *Recovery) Park(in cluster.ID, e Evidence) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	if !r.going.Load() || r.traces[e.ID].knows(e.Region) {
		return nil
	}
	rec := record.Record{Kind: record.Replicate, ID: e.ID, LowBound: packSeen(e.Region, e.Seen), Regions: e.Regions}
	at, err := r.noteLocked(in, &rec)
	if err == nil {
		r.takeLocked(&rec, at)
	}
	return err
}

// knows reports whether the trace has evidence about a region.
func (t *trace) knows(id region.ID) bool {
	return t != nil && slices.ContainsFunc(t.parts, func(p *tracePart) bool { return p.region == id })
}

// parkLocked writes the evidence about transactions that wait for an unavailable region to new
// memory, and, while any region is unavailable, the bounds of other machines. It returns that memory.
func (r *Recovery) parkLocked(in cluster.ID) ([]*nvram.Memory, error) {
	l := spill{r: r, open: r.OpenParked, key: route.ParkedKey}
	if err := r.parkInLocked(&l, in); err != nil {
		l.forget() // the next attempt registers new memory under the same keys
		return nil, err
	}
	return l.memory(), nil
}

// parkInLocked does the work of parkLocked, into the spill l.
func (r *Recovery) parkInLocked(l *spill, in cluster.ID) error {
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), record.ID.Compare) {
		t := r.traces[id]
		if !r.awaits(t.regions) {
			continue
		}
		if err := l.appendAll(in, t.notes()); err != nil {
			return fmt.Errorf("txn: park %v: %w", id, err)
		}
	}
	if !r.awaitsAny() {
		return nil
	}
	for _, b := range r.recalled.bounds.sorted() {
		if err := l.appendAll(in, b.records(in)); err != nil {
			return fmt.Errorf("txn: keep what machine %d has truncated: %w", b.Machine, err)
		}
	}
	return nil
}

// notes encodes t as records.
func (t *trace) notes() (notes [][]byte) {
	for _, p := range t.parts {
		rec := record.Record{Kind: record.Replicate, ID: t.id, LowBound: packSeen(p.region, p.seen), Regions: t.regions, Writes: p.writes}
		notes = append(notes, record.Append(make([]byte, 0, record.Bytes(&rec)), &rec))
	}
	for kind, seen := range map[record.Kind]Seen{record.CommitRecovery: SeenCommitRecovery, record.AbortRecovery: SeenAbortRecovery} { // any order: at most one is set
		if t.outcome&seen != 0 {
			notes = append(notes, record.Append(nil, &record.Record{Kind: kind, ID: t.id}))
		}
	}
	return notes
}
