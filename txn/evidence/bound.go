package evidence

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

// A Bound names the truncated transactions of one life of a coordinating worker: all below Low, and
// the transactions in Named. A machine takes bounds from the ledgers of its logs.
//
// While a region is unavailable, machines also need each other's bounds. The memory that is away may
// hold a COMMIT-BACKUP record of a transaction that another region, A, has truncated. A machine that
// becomes a replica of A meanwhile has no ledger that says so: it would vote that A has never seen
// the transaction, and a transaction that was reported committed would be aborted. Therefore all
// machines exchange their bounds before a recovery is settled, and keep them until no region is
// unavailable.
//
// A transaction that is truncated anywhere counts as truncated by A, because all participants knew
// its outcome. A parked transaction may be below a bound, since its coordinator has gone on; but each
// replica has noted it as parked, and such a note takes precedence over bounds. Bounds are not used
// for a machine that has been a replica since before the transaction: its own ledgers show whether
// it has seen the transaction.
type Bound struct {
	Machine rdma.MachineID
	Worker  uint16
	Low     uint64
	Named   []uint64
}

// NamedBound returns a bound that names a single transaction as truncated.
func NamedBound(machine rdma.MachineID, worker uint16, seq uint64) Bound {
	return Bound{Machine: machine, Worker: worker, Low: record.FirstOfLife(seq), Named: []uint64{seq}}
}

func (b *Bound) has(seq uint64) bool {
	return (seq < b.Low && record.SameLife(seq, b.Low)) || slices.Contains(b.Named, seq)
}

// bounds are the bounds learned so far, by coordinator and life.
type bounds map[boundKey]*Bound

type boundKey struct {
	record.Coordinator
	life uint64
}

func (b *Bound) key() boundKey {
	return boundKey{record.Coordinator{Machine: b.Machine, Worker: b.Worker}, b.Low >> record.LifeShift}
}

// learn merges b into the bounds.
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

// truncated reports whether a transaction is known to be truncated.
func (all bounds) truncated(id record.ID) bool {
	b := all[boundKey{record.Coordinator{Machine: id.Machine, Worker: id.Worker}, id.Seq >> record.LifeShift}]
	return b != nil && b.has(id.Seq)
}

// sorted returns all bounds in order.
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

// clone returns an independent copy.
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

// boundIn returns the bound in a ledger of coordinator c.
func boundIn(l *record.Ledger, c record.Coordinator) Bound {
	return Bound{Machine: c.Machine, Worker: c.Worker, Low: l.LowBound(), Named: l.Named()}
}

// boundOf returns the bound of a worker's own transactions.
func boundOf(window *record.Window, c record.Coordinator) Bound {
	b := Bound{Machine: c.Machine, Worker: c.Worker, Low: window.Low}
	for seq := window.Low; seq < window.Next; seq++ {
		if window.Finished(seq) {
			b.Named = append(b.Named, seq)
		}
	}
	return b
}

// Bounds returns all bounds that this machine knows. It returns none if no region is unavailable:
// then nobody needs them.
func (r *Recovery) Bounds() []Bound {
	if !r.awaitsAny() || sabotage.Bounds.Skipped() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.recalled.bounds.clone()
	for c, ledgers := range r.recalled.ledgers { // any order
		for _, l := range ledgers {
			all.learn(boundIn(l, c))
		}
	}
	for i, w := range r.Workers {
		w.Locked(func() {
			_, window := w.OwnLocked()
			all.learn(boundOf(window, record.Coordinator{Machine: r.Replicas.ID, Worker: uint16(i)}))
			for _, l := range w.LogsLocked() {
				all.learn(boundIn(l.Ledger(), record.Coordinator{Machine: l.From, Worker: uint16(i)}))
			}
		})
	}
	return all.sorted()
}

// LearnBound adds a bound that another machine knows. It becomes durable when the recovery is
// settled.
func (r *Recovery) LearnBound(in cluster.ID, b Bound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	if r.recalled.bounds == nil {
		r.recalled.bounds = make(bounds)
	}
	r.recalled.bounds.learn(b)
	return nil
}

// records encodes b as TRUNCATE records, with the given configuration in their IDs. They are kept
// beside the parked transactions, not in a log.
func (b *Bound) records(in cluster.ID) (records [][]byte) {
	named := b.Named
	for {
		n := min(len(named), record.TruncatedMax)
		rec := record.Record{Kind: record.Truncate, ID: record.ID{Config: uint32(in), Machine: b.Machine, Worker: b.Worker}, LowBound: b.Low, Truncated: named[:n]}
		records = append(records, record.Append(nil, &rec))
		named = named[n:]
		if len(named) == 0 {
			return records
		}
	}
}

// boundsIn returns the bounds found in the memory of parked transactions. It skips memory that is no
// log, and ends each log at the first record that does not decode.
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
