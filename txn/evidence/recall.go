package evidence

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

// recalled holds the logs of this machine's earlier lives. Nobody writes to them any more; they are
// evidence until a recovery is over. Recovery.mu guards them.
type recalled struct {
	logs []*nvram.Memory
	// annexes are the numbers of the annexes of earlier lives.
	annexes []uint64
	// parked are transactions that an earlier recovery has parked, registered under parkedIn.
	parked   []*nvram.Memory
	parkedIn cluster.ID
	// settled is the last configuration whose recovery was settled: for transactions of earlier
	// configurations, only the parked notes count, and the logs do not.
	settled uint32
	// ledgers holds, by writer, the ledgers of these logs and of the logs that have been replaced.
	// A writer has several if recoveries were interrupted.
	ledgers map[record.Coordinator][]*record.Ledger
	// bounds are the bounds learned from other machines, while a region is unavailable.
	bounds bounds
	// before is the first configuration of this life.
	before uint32
}

// Recall gives the machine the logs of its earlier lives and the notes that these lives parked in
// the last configuration that they settled. It must be called before the first Freeze. The memory
// can be freed once a recovery is over. Recall fails if one of the memories is not a log or has no
// ledger: its contents would be missing from the evidence.
//
// annexes are the annexes of the earlier lives, by number. Recall also fails if a record that
// counts names an annex that is missing.
func (r *Recovery) Recall(logs, parked []*nvram.Memory, annexes map[uint64]*nvram.Memory, settled cluster.ID) error {
	formatted, ledgers, err := openLogs(logs)
	if err != nil {
		return err
	}
	if err := r.Replicas.Annexes.Recall(annexes); err != nil {
		return err
	}
	for i, log := range formatted {
		if err := r.Replicas.NIC.Register(route.RecalledKey(i), log); err != nil {
			return fmt.Errorf("txn: a log of an earlier life: %w", err)
		}
	}
	for n, p := range parked {
		if rx, err := record.OpenLog(p); err == nil && rx != nil {
			if err := checkFormats(rx); err != nil {
				return fmt.Errorf("txn: transactions parked by an earlier life: %w", err)
			}
		}
		if err := r.Replicas.NIC.Register(route.ParkedKey(settled, n), p); err != nil {
			return fmt.Errorf("txn: transactions parked by an earlier life: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recalled.logs, r.recalled.ledgers = formatted, ledgers
	r.recalled.parked, r.recalled.parkedIn, r.recalled.settled = parked, settled, uint32(settled)
	r.recalled.annexes = slices.Sorted(maps.Keys(annexes))
	r.recalled.bounds = boundsIn(parked)
	return r.checkAnnexesLocked()
}

// checkAnnexesLocked checks that all annexes named by records that count are there. An annex is
// freed only after its record, so a missing one is damage.
func (r *Recovery) checkAnnexesLocked() error {
	for _, log := range r.recalled.logs {
		b, _ := record.OpenLedger(log)
		for raw, rec := range recordsIn(log) {
			if rec.Annex.IsNone() || rec.IsVoid() || !r.recalled.countsLocked(rec) || b.IsLate(rec.ID.Config, raw.Pos) {
				continue
			}
			if _, err := r.Replicas.Annexes.Body(&rec.Annex); err != nil {
				return fmt.Errorf("%w: %v of %v: %w", errDamagedLog, rec.Kind, rec.ID, err)
			}
		}
	}
	return nil
}

// recordsIn yields the records of a log that Recall has opened, up to the first that does not
// decode: the records after it were never acted upon. Each record is decoded into the same memory.
func recordsIn(log *nvram.Memory) iter.Seq2[ring.Record, *record.Record] {
	return func(yield func(ring.Record, *record.Record) bool) {
		rx, err := record.OpenLog(log)
		if err != nil || rx == nil {
			return // such a log never has records
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

// openLogs opens logs of earlier lives. Some of them never held a record. A log that was being
// emptied for a new connection still has its ledger.
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

// checkFormats fails with record.ErrFormat if a log has a record that only a newer program can
// read: this program cannot read on from there, so evidence would be missing.
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

// gatherLocked takes the evidence of all records, also where a later record names the transaction
// as truncated: that later record may have arrived without being processed, so that a backup has
// not applied the transaction's writes yet. Recovering them once more changes nothing.
func (l *recalled) gatherLocked(r *Recovery) {
	if l.before == 0 {
		l.before = r.Configuration.Load()
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

// countsLocked reports whether a record in a log is from after the last settled recovery. A note
// belongs to the recovery in which it was made, however old its transaction is: machines that had
// not settled the recovery before may have recovered it once more.
func (l *recalled) countsLocked(rec *record.Record) bool {
	if in, dated := rec.NotedIn(); dated {
		return in > l.settled
	}
	return rec.ID.Config >= l.settled
}

// leaveOutOlderLocked drops the evidence from logs of earlier lives that is about regions of which
// this life has no replica, or about transactions from before this life got its replica. A machine
// that was away while its region was available has nothing new to say about those: they have been
// decided without it, maybe differently from what its records suggest. Nor is its evidence needed
// while the region is unavailable: a machine that had all of the region comes back with a replica
// that is not filled, and with its own records of every transaction that may have been reported
// committed.
//
// Notes and parked transactions of an earlier life are dropped in the same way, but by the
// configuration in which that life made them: a replica that has been there since knows the
// transaction as of then, and may be the one that holds its locks, however old the transaction is.
func (r *Recovery) leaveOutOlderLocked() {
	for _, t := range r.traces { // any order
		t.parts = slices.DeleteFunc(t.parts, func(p *tracePart) bool { return !r.hasHadSince(p.region, t.id.Config) })
	}
}

// hasHadSince reports whether this machine has had its replica of a region since configuration c.
func (r *Recovery) hasHadSince(id region.ID, c uint32) bool {
	rt := r.Replicas.Routes.Of(id)
	return rt != nil && rt.Local != nil && rt.Local.Since() <= c
}

// RecalledWrites yields every object written by a record in the logs of earlier lives, or by a
// transaction that they have parked. No other write to this machine's replicas can be undecided:
// the writes of truncated transactions have been applied.
func (r *Recovery) RecalledWrites(yield func(region.Ptr) bool) {
	r.mu.Lock()
	logs := slices.Concat(r.recalled.logs, r.recalled.parked)
	r.mu.Unlock()
	for _, log := range logs {
		for _, rec := range recordsIn(log) {
			for i := range rec.Writes {
				if !yield(rec.Writes[i].Ptr) {
					return
				}
			}
			if !r.Replicas.Annexes.EachPtr(&rec.Annex, yield) {
				return
			}
		}
	}
}

// hasLocked reports whether a transaction was coordinated in an earlier life of this machine.
func (l *recalled) hasLocked(id record.ID) bool { return len(l.ledgers) > 0 && id.Config < l.before }

// truncatedLocked reports whether a transaction was truncated here in an earlier life, of this
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

// KeepLedgerLocked keeps the ledger of a log that has been replaced. It is called within
// WithLedgers.
func (r *Recovery) KeepLedgerLocked(c record.Coordinator, b *record.Ledger) {
	l := &r.recalled
	if l.ledgers == nil {
		l.ledgers = make(map[record.Coordinator][]*record.Ledger)
	}
	l.ledgers[c] = append(l.ledgers[c], b)
}

// settleRecalledLocked forgets the logs, and replaces the notes parked before by parked. It keeps the
// ledgers as long as a region is unavailable.
func (r *Recovery) settleRecalledLocked(in cluster.ID, parked []*nvram.Memory) {
	l := &r.recalled
	for i := range l.logs {
		r.Replicas.NIC.Deregister(route.RecalledKey(i))
	}
	for n := range l.parked {
		r.Replicas.NIC.Deregister(route.ParkedKey(l.parkedIn, n))
	}
	l.logs, l.parked, l.parkedIn, l.settled = nil, parked, in, uint32(in)
	r.Replicas.Annexes.Forget(l.annexes)
	l.annexes = nil
	if !r.awaitsAny() {
		l.ledgers, l.bounds = nil, nil
	}
}
