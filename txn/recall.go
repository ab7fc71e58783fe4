package txn

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// recalled are the logs of this machine's earlier lives. Nobody writes to them any
// more; they are evidence (see evidence.go) until a recovery is over. recoveryState.mu
// guards them.
type recalled struct {
	logs []*nvram.Memory
	// annexes are the numbers of theirs.
	annexes []uint64
	// parked are transactions that an earlier recovery has parked, registered under parkedIn.
	parked   []*nvram.Memory
	parkedIn cluster.ID
	// settled is the last configuration whose recovery was settled: what logs say of
	// transactions of earlier ones does not count, only what is parked.
	settled uint32
	// ledgers are theirs, by who wrote to them: of several lives, if recoveries
	// were interrupted; and those of logs that have been replaced.
	ledgers map[record.Coordinator][]*record.Ledger
	// bounds are what other machines have truncated, while a region is unavailable.
	bounds bounds
	// before is the first configuration of this life.
	before uint32
}

// Recall gives the machine the logs of its earlier lives, before its first Freeze, and
// what they have parked in the last configuration that they have settled. Their
// memory can go once a recovery is over. It fails if one is no log, or has
// no ledger: what it says would be missing from the evidence.
//
// annexes are those of its earlier lives, by number. It fails also if one is missing that a
// record which counts names.
func (m *Machine) Recall(logs, parked []*nvram.Memory, annexes map[uint64]*nvram.Memory, settled cluster.ID) error {
	formatted, ledgers, err := openLogs(logs)
	if err != nil {
		return err
	}
	if err := m.replicas.Annexes.Recall(annexes); err != nil {
		return err
	}
	for i, log := range formatted {
		if err := m.cfg.NIC.Register(route.RecalledKey(i), log); err != nil {
			return fmt.Errorf("txn: a log of an earlier life: %w", err)
		}
	}
	for n, p := range parked {
		if rx, err := record.OpenLog(p); err == nil && rx != nil {
			if err := checkFormats(rx); err != nil {
				return fmt.Errorf("txn: transactions parked by an earlier life: %w", err)
			}
		}
		if err := m.cfg.NIC.Register(route.ParkedKey(settled, n), p); err != nil {
			return fmt.Errorf("txn: transactions parked by an earlier life: %w", err)
		}
	}
	m.recovery.mu.Lock()
	defer m.recovery.mu.Unlock()
	m.recalled.logs, m.recalled.ledgers = formatted, ledgers
	m.recalled.parked, m.recalled.parkedIn, m.recalled.settled = parked, settled, uint32(settled)
	m.recalled.annexes = slices.Sorted(maps.Keys(annexes))
	m.recalled.bounds = boundsIn(parked)
	return m.checkAnnexesLocked()
}

// checkAnnexesLocked looks whether all annexes are there that count. An annex goes only after its
// record has gone, so that one that is missing is damage.
func (m *Machine) checkAnnexesLocked() error {
	for _, log := range m.recalled.logs {
		b, _ := record.OpenLedger(log)
		for raw, rec := range recordsIn(log) {
			if rec.Annex.IsNone() || rec.IsVoid() || !m.recalled.countsLocked(rec) || b.IsLate(rec.ID.Config, raw.Pos) {
				continue
			}
			if _, err := m.replicas.Annexes.Body(&rec.Annex); err != nil {
				return fmt.Errorf("%w: %v of %v: %w", errDamagedLog, rec.Kind, rec.ID, err)
			}
		}
	}
	return nil
}

// recordsIn yields the records of a log that Recall has opened, as far as they make sense:
// what follows was never acted upon. The next one is decoded over the last.
func recordsIn(log *nvram.Memory) iter.Seq2[ring.Record, *record.Record] {
	return func(yield func(ring.Record, *record.Record) bool) {
		rx, err := record.OpenLog(log)
		if err != nil || rx == nil {
			return // there is never a record in it
		}
		rec := new(record.Record)
		for {
			raw, ok, err := rx.Poll()
			if err != nil || !ok || record.Decode(raw.Payload, rec) != nil || !yield(raw, rec) {
				return
			}
		}
	}
}

// openLogs opens logs of earlier lives. In some there was never a record. One that was
// being emptied for a new connection still has its ledger.
func openLogs(logs []*nvram.Memory) (formatted []*nvram.Memory, ledgers map[record.Coordinator][]*record.Ledger, err error) {
	ledgers = make(map[record.Coordinator][]*record.Ledger)
	for _, log := range logs {
		rx, err := record.OpenLog(log)
		if errors.Is(err, record.ErrWithoutLedger) {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errDamagedLog, err)
		}
		l, from := record.OpenLedger(log)
		switch {
		case l != nil:
			ledgers[from] = append(ledgers[from], l)
		case rx != nil:
			return nil, nil, fmt.Errorf("%w: it does not say who writes to it", errDamagedLog)
		}
		if rx != nil {
			if err := checkFormats(rx); err != nil {
				return nil, nil, fmt.Errorf("txn: the log of an earlier life that machine %d, worker %d wrote: %w", from.Machine, from.Worker, err)
			}
			formatted = append(formatted, log)
		}
	}
	return formatted, ledgers, nil
}

// checkFormats fails with record.ErrFormat if a log has a record that only a newer program can read:
// what it says, and what follows, would be missing from the evidence.
func checkFormats(rx *ring.Receiver) error {
	var rec record.Record
	for {
		raw, ok, err := rx.Poll()
		if err == nil && ok {
			err = record.Decode(raw.Payload, &rec)
		}
		switch {
		case errors.Is(err, record.ErrFormat):
			return err
		case err != nil || !ok:
			return nil
		}
	}
}

var errDamagedLog = errors.New("txn: a log of an earlier life is damaged (without its memory the machine joins as a new one)")

// gatherLocked takes note of all records, also of transactions that a later one says are
// truncated: it may have landed without being processed, so that a backup has
// not applied them yet. Recovering them once more changes nothing.
func (l *recalled) gatherLocked(r *recoveryState) {
	if l.before == 0 {
		l.before = r.m.config.Load()
	}
	for i, log := range l.logs {
		b, _ := record.OpenLedger(log)
		r.scanLocked(log, route.RecalledKey(i), ^uint64(0), func(rec *record.Record, at uint64) bool {
			_, dated := rec.NotedIn()
			return !dated && l.countsLocked(rec) && !b.IsLate(rec.ID.Config, at)
		})
	}
	r.takeFoundLocked()
	r.leaveOutOlderLocked()
	for i, log := range l.logs {
		r.scanLocked(log, route.RecalledKey(i), ^uint64(0), func(rec *record.Record, _ uint64) bool {
			in, dated := rec.NotedIn()
			id, _ := unpackSeen(rec.LowBound)
			return dated && l.countsLocked(rec) && (rec.Kind != record.Replicate || r.hasHadSince(id, in))
		})
	}
	for n, p := range l.parked {
		r.scanLocked(p, route.ParkedKey(l.parkedIn, n), ^uint64(0), func(rec *record.Record, _ uint64) bool {
			id, _ := unpackSeen(rec.LowBound)
			return rec.Kind != record.Replicate || uint32(l.parkedIn) >= l.before || r.hasHadSince(id, uint32(l.parkedIn))
		})
	}
	r.takeFoundLocked()
}

// countsLocked says whether what a log says is of after the last recovery that was settled.
// A note is of the recovery in which it was made, however old its transaction: others
// that had not settled the recovery before may have brought it up once more.
func (l *recalled) countsLocked(rec *record.Record) bool {
	if in, dated := rec.NotedIn(); dated {
		return in > l.settled
	}
	return rec.ID.Config >= l.settled
}

// leaveOutOlderLocked drops what logs of earlier lives say of regions of which this life has
// no replica, and of transactions from before it has had its replica. A machine that was
// away while the region was not says nothing new: all of them have been decided without
// it, maybe otherwise than its records would have it. Nobody needs what it says while
// the region is unavailable either: whoever had all of the region comes back with a
// replica that is not filled, and with records of its own of whatever may have been
// reported committed.
//
// What an earlier life has noted or parked is left out likewise, by the configuration in
// which it did: a replica that has been there since knows the transaction as of then,
// and may be the one that has its objects locked, however old the transaction is.
func (r *recoveryState) leaveOutOlderLocked() {
	for _, t := range r.traces { // any order
		t.parts = slices.DeleteFunc(t.parts, func(p *tracePart) bool { return !r.hasHadSince(p.region, t.id.Config) })
	}
}

// hasHadSince says whether this machine has had its replica of a region since a
// configuration.
func (r *recoveryState) hasHadSince(id region.ID, c uint32) bool {
	rt := r.m.route(id)
	return rt != nil && rt.Local != nil && rt.Local.Since() <= c
}

// RecalledWrites yields every object that a record in the logs of earlier lives writes
// to, or one that they have parked. Of all that this machine's replicas have been given,
// nothing else can be undecided: what is truncated has been applied.
func (m *Machine) RecalledWrites(yield func(region.Ptr) bool) {
	m.recovery.mu.Lock()
	logs := slices.Concat(m.recalled.logs, m.recalled.parked)
	m.recovery.mu.Unlock()
	for _, log := range logs {
		for _, rec := range recordsIn(log) {
			for i := range rec.Writes {
				if !yield(rec.Writes[i].Ptr) {
					return
				}
			}
			if !m.replicas.Annexes.EachPtr(&rec.Annex, yield) {
				return
			}
		}
	}
}

// hasLocked says whether a transaction is of an earlier life of this machine.
func (l *recalled) hasLocked(id record.ID) bool { return len(l.ledgers) > 0 && id.Config < l.before }

// truncatedLocked says whether a transaction has been truncated here in an earlier life, of this
// machine or of the coordinator.
func (l *recalled) truncatedLocked(id record.ID) bool {
	if sabotage.Ledger.Skipped() {
		return false
	}
	for _, b := range l.ledgers[record.Coordinator{Machine: id.Machine, Worker: id.Worker}] {
		if b.Has(id.Seq) {
			return true
		}
	}
	return false
}

// keepLocked keeps a ledger of a log that has been replaced.
func (l *recalled) keepLocked(c record.Coordinator, b *record.Ledger) {
	if l.ledgers == nil {
		l.ledgers = make(map[record.Coordinator][]*record.Ledger)
	}
	l.ledgers[c] = append(l.ledgers[c], b)
}

// settleLocked forgets the logs, and what was parked before: parked is there now. As long as
// a region is unavailable the ledgers stay.
func (l *recalled) settleLocked(m *Machine, in cluster.ID, parked []*nvram.Memory) {
	for i := range l.logs {
		m.cfg.NIC.Deregister(route.RecalledKey(i))
	}
	for n := range l.parked {
		m.cfg.NIC.Deregister(route.ParkedKey(l.parkedIn, n))
	}
	l.logs, l.parked, l.parkedIn, l.settled = nil, parked, in, uint32(in)
	m.replicas.Annexes.Forget(l.annexes)
	l.annexes = nil
	if !m.awaitsAny() {
		l.ledgers, l.bounds = nil, nil
	}
}
