package txn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/record"
)

// A Bound says which transactions of one life of a coordinating worker have been
// truncated: all below Low, and those that are Named. A machine knows it from its logs'
// ledgers, and needs that of others while a region is unavailable: memory that is away may
// have a COMMIT-BACKUP record of a transaction that another region, A, has truncated. Who
// becomes a replica of A meanwhile has no ledger that would say so, and would vote that
// A has never heard of the transaction, which would abort what was reported committed.
// So before a recovery is settled everybody gives everybody its bounds, and keeps theirs
// until no region is unavailable any more.
//
// That a transaction has been truncated anywhere says as much as that A has truncated
// it: its outcome was known everywhere. One that waits, though its coordinator has gone
// on, is known to each replica as parked, which counts before what bounds say. Only
// memory that was away then does not know. So bounds say nothing of a replica that has been
// one since before the transaction: its own ledgers know whether it had seen it.
type Bound struct {
	Machine rdma.MachineID
	Worker  uint16
	Low     uint64
	Named   []uint64
}

// NamedBound returns the bound that says of one transaction alone that it has been truncated.
func NamedBound(machine rdma.MachineID, worker uint16, seq uint64) Bound {
	return Bound{Machine: machine, Worker: worker, Low: record.FirstOfLife(seq), Named: []uint64{seq}}
}

func (b *Bound) has(seq uint64) bool {
	return seq < b.Low && record.SameLife(seq, b.Low) || slices.Contains(b.Named, seq)
}

// bounds are what has been learned, by coordinator and life.
type bounds map[boundKey]*Bound

type boundKey struct {
	record.Coordinator
	life uint64
}

func (b *Bound) key() boundKey {
	return boundKey{record.Coordinator{Machine: b.Machine, Worker: b.Worker}, b.Low >> record.LifeShift}
}

// learn adds what b says.
func (all bounds) learn(b Bound) {
	known := all[b.key()]
	if known == nil {
		known = &Bound{Machine: b.Machine, Worker: b.Worker}
		all[b.key()] = known
	}
	known.Low = max(known.Low, b.Low)
	named := append(slices.Clone(known.Named), b.Named...)
	slices.Sort(named)
	known.Named = slices.DeleteFunc(slices.Compact(named), func(seq uint64) bool { return seq < known.Low })
}

// truncated says whether a transaction is known to have been truncated.
func (all bounds) truncated(id record.ID) bool {
	b := all[boundKey{record.Coordinator{Machine: id.Machine, Worker: id.Worker}, id.Seq >> record.LifeShift}]
	return b != nil && b.has(id.Seq)
}

// sorted returns all in order.
func (all bounds) sorted() []Bound {
	list := make([]Bound, 0, len(all))
	for _, b := range all { // any order
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b Bound) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Low, b.Low))
	})
	return list
}

// clone returns a copy that learns by itself.
func (all bounds) clone() bounds {
	copied := maps.Clone(all)
	if copied == nil {
		copied = make(bounds)
	}
	for k, b := range copied { // any order
		c := *b
		copied[k] = &c
	}
	return copied
}

// boundIn returns what a ledger says.
func boundIn(l *record.Ledger, c record.Coordinator) Bound {
	return Bound{Machine: c.Machine, Worker: c.Worker, Low: l.LowBound(), Named: l.Named()}
}

// boundLocked returns what is known of the worker's own transactions.
func (w *worker) boundLocked() Bound {
	b := Bound{Machine: w.m.cfg.ID, Worker: w.id, Low: w.window.low}
	for seq := w.window.low; seq < w.window.next; seq++ {
		if w.window.finished(seq) {
			b.Named = append(b.Named, seq)
		}
	}
	return b
}

// Bounds returns all that this machine knows of what has been truncated, if a region
// is unavailable; otherwise nobody needs it.
func (m *Machine) Bounds() []Bound {
	if !m.awaitsAny() || sabotage.Bounds.Skipped() {
		return nil
	}
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	all := m.recalled.bounds.clone()
	for c, ledgers := range m.recalled.ledgers { // any order
		for _, l := range ledgers {
			all.learn(boundIn(l, c))
		}
	}
	for _, w := range m.workers {
		w.lock()
		all.learn(w.boundLocked())
		for _, p := range w.peers {
			if p != nil {
				all.learn(boundIn(p.in.Ledger(), record.Coordinator{Machine: p.id, Worker: w.id}))
			}
		}
		w.unlock()
	}
	return all.sorted()
}

// LearnBound learns what another machine knows. It becomes durable when the recovery is
// settled.
func (m *Machine) LearnBound(in cluster.ID, b Bound) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	if m.recalled.bounds == nil {
		m.recalled.bounds = make(bounds)
	}
	m.recalled.bounds.learn(b)
	return nil
}

// records returns TRUNCATE records that say what b says, for memory of its own.
func (b *Bound) records(in cluster.ID) (records [][]byte) {
	named := b.Named
	for {
		n := min(len(named), record.TruncatedMax)
		rec := record.Record{Kind: record.Truncate, ID: record.ID{Config: uint32(in), Machine: b.Machine, Worker: b.Worker}, LowBound: b.Low, Truncated: named[:n]}
		records = append(records, record.Append(nil, &rec))
		if named = named[n:]; len(named) == 0 {
			return records
		}
	}
}

// boundsIn returns the bounds that are in memory of parked transactions.
func boundsIn(parked []*nvram.Memory) bounds {
	all := make(bounds)
	for _, p := range parked {
		rx, err := record.OpenLog(p)
		if err != nil || rx == nil {
			continue
		}
		for {
			raw, ok, err := rx.Poll()
			var rec record.Record
			if err != nil || !ok || record.Decode(raw.Payload, &rec) != nil {
				break
			}
			if rec.Kind == record.Truncate {
				all.learn(Bound{Machine: rec.ID.Machine, Worker: rec.ID.Worker, Low: rec.LowBound, Named: rec.Truncated})
			}
		}
	}
	return all
}
