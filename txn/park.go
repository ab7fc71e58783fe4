package txn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
)

// A transaction that writes to an unavailable region (cluster.Placement.Away) cannot
// be decided: what that region has seen of it is in memory that is away. It is parked.
// What is known of it here goes into memory of its own, so that logs can be given back
// and everything else goes on; its objects in other regions stay locked. With each
// configuration it is recovered again, and in the first in which all its regions are
// available it is decided.
//
// What must outlast that time:
//
//   - The notes of parked transactions: Settle writes them before it frees records,
//     and Settling then says, by one store, that they count and the logs do not.
//   - That a region has seen nothing of one, or has truncated it (Park): later the
//     logs could not tell, since low bounds go on.
//   - The ledgers of all logs. The memory that is away may have a COMMIT-BACKUP record
//     of a transaction that has long been truncated here.

// Awaits says whether one of the regions is unavailable in the present configuration.
func (m *Machine) awaits(regions []region.ID) bool {
	routes := m.routes.Load()
	return slices.ContainsFunc(regions, func(id region.ID) bool {
		rt := routes.of(id)
		return rt != nil && !rt.IsAvailable()
	})
}

// awaitsAny says whether a region is unavailable.
func (m *Machine) awaitsAny() bool {
	return slices.ContainsFunc(*m.routes.Load(), func(rt *route) bool { return rt != nil && !rt.IsAvailable() })
}

// Park notes durably what a region with a replica here has seen of a transaction that
// is going to be parked, though it is nothing. It fails with ring.ErrFull while the own
// log has no room.
func (m *Machine) Park(in cluster.ID, e Evidence) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	if !r.going.Load() || r.traces[e.ID].knows(e.Region) {
		return nil
	}
	rec := Record{Kind: RecordReplicate, ID: e.ID, LowBound: packSeen(e.Region, e.Seen), Regions: e.Regions}
	at, err := m.note(in, &rec)
	if err == nil {
		r.take(&rec, at)
	}
	return err
}

// knows says whether there is something about a region.
func (t *trace) knows(id region.ID) bool {
	return t != nil && slices.ContainsFunc(t.parts, func(p *tracePart) bool { return p.region == id })
}

// park writes all that is known of transactions that have to wait into memory of
// their own, and returns that.
func (r *recoveryState) park(in cluster.ID) (parked []*nvram.Memory, err error) {
	var log *ring.Sender
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), ID.Compare) {
		t := r.traces[id]
		if !r.m.awaits(t.regions) {
			continue
		}
		for _, b := range t.notes() {
			if log == nil || ring.Space(len(b)) > log.Available() {
				var memory *nvram.Memory
				if memory, log, err = r.m.parkingLog(in, len(parked)); err != nil {
					return nil, fmt.Errorf("txn: park %v: %w", id, err)
				}
				parked = append(parked, memory)
			}
			if _, _, err = log.Append(rdma.Unsignalled, b); err != nil {
				return nil, fmt.Errorf("txn: park %v: %w", id, err)
			}
		}
	}
	return parked, nil
}

// notes returns records that say all that is known of t.
func (t *trace) notes() (notes [][]byte) {
	for _, p := range t.parts {
		rec := Record{Kind: RecordReplicate, ID: t.id, LowBound: packSeen(p.region, p.seen), Regions: t.regions, Writes: p.writes}
		notes = append(notes, AppendRecord(nil, &rec))
	}
	for kind, seen := range map[RecordKind]Seen{RecordCommitRecovery: SeenCommitRecovery, RecordAbortRecovery: SeenAbortRecovery} { // any order: it has one at most
		if t.outcome&seen != 0 {
			notes = append(notes, AppendRecord(nil, &Record{Kind: kind, ID: t.id}))
		}
	}
	return notes
}

// parkingLog makes the n'th memory for transactions parked in a configuration.
func (m *Machine) parkingLog(in cluster.ID, n int) (*nvram.Memory, *ring.Sender, error) {
	memory, err := m.cfg.Park(in, n)
	if err != nil {
		return nil, nil, err
	}
	rx, err := CreateLog(memory, m.cfg.Clock.Uint64())
	if err != nil {
		return nil, nil, err
	}
	state, err := rx.State()
	if err != nil {
		return nil, nil, err
	}
	return memory, ring.NewLocalSender(state, memory, 0), m.cfg.NIC.Register(parkedKey(in, n), memory)
}
