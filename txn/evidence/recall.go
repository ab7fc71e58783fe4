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

// recalled holds the logs of this machine's earlier lives. Nobody writes to these logs any more;
// they are evidence until the first recovery is settled. Recovery.mu guards it.
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
	// ledgers holds the ledgers of these logs, and of logs of this life that have been replaced, by
	// writer. A writer has several if recoveries were interrupted.
	ledgers map[record.Coordinator][]*record.Ledger
	// bounds are the bounds learned from other machines, while a region is unavailable.
	bounds bounds
	// firstConfig is the first configuration of this life.
	firstConfig uint32
}

// Recall takes what the machine's earlier lives have left: their logs, the transactions that they have
// parked, and their annexes by number; settled is the last configuration that they settled, in
// which they have parked these transactions. It must be called before the first Freeze. The caller
// can free the memory once a recovery is settled.
//
// Recall fails if evidence would be missing: if one of the logs is damaged or has no ledger, if a record
// has a newer format, or if a record that still counts (countsLocked) names a missing annex.
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

// checkAnnexesLocked returns an error if a record that still counts names a missing annex. An annex
// is freed only after its record, so the log must be damaged.
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

// recordsIn yields the records of a log that Recall has opened, up to the first that does not decode:
// the records after it have never taken effect. Each record is decoded into the same memory.
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

// openLogs opens logs of earlier lives. It returns the logs that may hold records, and the ledgers by
// writer. A log that was being emptied for a new connection has only its ledger; memory that has never
// held a log has neither, and is left out.
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

// checkFormats fails with record.ErrFormat if a log has a record in a newer format: this program
// cannot read that record and the records after it, so evidence would be missing.
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

// gatherLocked takes what coordinators have written to the logs of earlier lives. It leaves the notes,
// which are dated, to gatherNotesLocked.
//
// It takes a record even if a later one names its transaction as truncated: that later record may not
// have been processed, so a backup may not have applied the writes yet. Recovering a transaction once
// more changes nothing.
func (l *recalled) gatherLocked(r *Recovery) {
	if l.firstConfig == 0 { // this is the first recovery of this life
		l.firstConfig = r.Configuration.Load()
	}
	for i, log := range l.logs {
		b, _ := record.OpenLedger(log)
		r.scanLocked(log, route.RecalledKey(i), ^uint64(0), func(rec *record.Record, at uint64) bool {
			_, isDated := rec.NotedIn()
			return !isDated && l.countsLocked(rec) && !b.IsLate(rec.ID.Config, at)
		})
	}
	r.takeFoundLocked()
}

// gatherNotesLocked takes the notes of earlier lives, and those about parked transactions.
func (l *recalled) gatherNotesLocked(r *Recovery) {
	for i, log := range l.logs {
		r.scanLocked(log, route.RecalledKey(i), ^uint64(0), func(rec *record.Record, _ uint64) bool {
			_, isDated := rec.NotedIn()
			return isDated && r.noteCountsLocked(rec)
		})
	}
	for n, p := range l.parked {
		r.scanLocked(p, route.ParkedKey(l.parkedIn, n), ^uint64(0), func(rec *record.Record, _ uint64) bool {
			id, _ := unpackSeen(rec.LowBound)
			return rec.Kind != record.Replicate || r.isOldEnough(id, uint32(l.parkedIn))
		})
	}
	r.takeFoundLocked()
}

// countsLocked reports whether a record in a log is from after the last settled recovery. For a note,
// what counts is in which recovery it was made, not how old its transaction is: machines that had not
// settled the previous recovery may have recovered the transaction once more.
func (l *recalled) countsLocked(rec *record.Record) bool {
	if in, isDated := rec.NotedIn(); isDated {
		return in > l.settled
	}
	return rec.ID.Config >= l.settled
}

// leaveOutOlderLocked drops evidence about regions of which this machine has no replica, and about
// transactions that are older than its replica. The replica may be younger because the machine was
// away, or because the region has moved away and come back. Meanwhile
// the other replicas have decided such transactions, maybe differently from what its records suggest.
// If the region is unavailable, the evidence is not needed either: the region comes back with a
// machine that has all of it, and that has its own records of every transaction that may have been
// reported committed.
//
// For notes and parked transactions what counts is the configuration in which they were made, not the
// transaction's configuration (noteCountsLocked): a replica
// that is at least as old as the note has seen the transaction, and may hold its locks, however old
// the transaction is.
func (r *Recovery) leaveOutOlderLocked() {
	for _, t := range r.traces { // any order
		t.parts = slices.DeleteFunc(t.parts, func(p *tracePart) bool { return !r.isOldEnough(p.region, t.id.Config) })
	}
}

// isOldEnough reports whether evidence from configuration c about a region counts at this machine: its
// replica is at least as old.
func (r *Recovery) isOldEnough(id region.ID, c uint32) bool {
	if sabotage.OwnEvidence.Skipped() && c >= r.recalled.firstConfig {
		return true
	}
	return r.hasHadSince(id, c)
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

// isOlderLocked reports whether a transaction is from before this life of the machine, so that only the
// recalled ledgers can name it. It returns false if no ledgers were recalled.
func (l *recalled) isOlderLocked(id record.ID) bool {
	return len(l.ledgers) > 0 && id.Config < l.firstConfig
}

// truncatedLocked reports whether a transaction was truncated here according to the ledgers of
// earlier lives, of this machine or of the coordinator.
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

// KeepLedgerLocked keeps the ledger of a log that has been replaced. Call it within WithLedgers.
func (r *Recovery) KeepLedgerLocked(c record.Coordinator, b *record.Ledger) {
	l := &r.recalled
	if l.ledgers == nil {
		l.ledgers = make(map[record.Coordinator][]*record.Ledger)
	}
	l.ledgers[c] = append(l.ledgers[c], b)
}

// settleRecalledLocked forgets the logs of earlier lives. From now on the memory parked holds the
// parked transactions, instead of the earlier memory. It keeps the ledgers as long as a region is
// unavailable.
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
