package evidence

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// The set of recovering transactions, and the evidence about them, depend only on a machine's
// non-volatile memory:
//
//   - the records in its logs that coordinators wrote and that are not truncated (the logs' ledgers
//     say which transactions are truncated);
//   - notes, which the machine itself has appended in earlier recoveries: to its own log, to
//     memory beside it if the log was full (spill.go), or to the memory of parked transactions
//     (park.go).
//
// So when another failure interrupts a recovery, the next one starts again from everything that this
// one has found and decided.
//
// Every transaction of an older configuration that has a record somewhere is recovering. (The paper
// leaves out transactions that the change does not affect; here there are at most a few hundred.)
// Drain alone determines which transactions these are.

// Seen is the set of records of a recovering transaction that a replica has seen.
type Seen uint8

const (
	SeenLock Seen = 1 << iota
	SeenCommitBackup
	SeenCommitPrimary
	SeenCommitRecovery
	SeenAbortRecovery
	SeenTruncated // noted only for a parked transaction: its records have been truncated
)

// Evidence is what one machine's logs say about one transaction, in one region that the transaction
// writes to.
type Evidence struct {
	ID      record.ID
	Regions []region.ID // all regions that the transaction writes to
	Region  region.ID
	Seen    Seen
	// At locates the writes to the region; it is empty if this machine does not have them.
	At Extent
}

// An Extent locates a record in a registration: N bytes at offset Off, and, if the log's ring wraps
// inside the record, More further bytes at offset Rest.
type Extent struct {
	Key                rdma.Key
	Off, N, Rest, More uint64
}

// Empty reports whether there is no record.
func (e *Extent) Empty() bool { return e.N+e.More == 0 }

// found is a record and its location.
type found struct {
	record *record.Record
	at     Extent
}

// A trace is this machine's knowledge of one recovering transaction.
type trace struct {
	id      record.ID
	regions []region.ID
	parts   []*tracePart // one for each region; there are few
	// outcome is the decision noted at this machine: SeenCommitRecovery or SeenAbortRecovery.
	outcome Seen
}

// A tracePart is the part of a trace about one region.
type tracePart struct {
	region region.ID
	seen   Seen
	writes []record.Write
	at     Extent
	locked bool // Recovery.locks counts its objects
	left   bool // Recovery.left counts its objects
}

// part returns the trace's part about a region, and adds one if there is none.
func (t *trace) part(id region.ID) *tracePart {
	for _, p := range t.parts {
		if p.region == id {
			return p
		}
	}
	p := &tracePart{region: id}
	t.parts = append(t.parts, p)
	return p
}

func (t *trace) evidence(p *tracePart) Evidence {
	return Evidence{ID: t.id, Regions: t.regions, Region: p.region, Seen: p.seen | t.outcome, At: p.at}
}

// Drain processes every record in every log of this machine, including the logs of machines that
// have left the configuration, and returns the evidence in order. From then on, records of older
// configurations that arrive late have no effect. Drain fails once the next configuration has begun,
// which would forget its findings.
func (r *Recovery) Drain(in cluster.ID) ([]Evidence, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return nil, err
	}
	for _, w := range r.Workers {
		w.Locked(func() { drainLocked(w, uint32(in)-1) })
	}
	r.traces, r.over = make(map[record.ID]*trace), make(map[record.ID]bool)
	r.recalled.gatherLocked(r)
	r.gatherWorkersLocked(r.gatherLogsLocked)
	r.leaveOutOlderLocked() // before the notes are gathered: a note is as old as the configuration in which it was made
	r.recalled.gatherNotesLocked(r)
	r.gatherWorkersLocked(r.gatherOwnNotesLocked)
	r.gatherNotesLocked()
	r.takeFoundLocked()
	maps.DeleteFunc(r.traces, func(_ record.ID, t *trace) bool {
		return len(t.parts) == 0 // has no evidence, at most an outcome
	})
	r.countLeftLocked()
	return r.evidenceLocked(), nil
}

func (r *Recovery) evidenceLocked() []Evidence {
	var all []Evidence
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), record.ID.Compare) {
		t := r.traces[id]
		for _, p := range t.parts {
			all = append(all, t.evidence(p))
		}
	}
	return all
}

// drainLocked processes all records in the worker's logs. After that, records of the given
// configuration or an earlier one come too late, and have no effect.
func drainLocked(w Worker, config uint32) {
	for _, l := range w.LogsLocked() {
		for !sabotage.Drain.Skipped() {
			_, more, err := l.Step() // no machine waits for the reply any more
			if err != nil {
				w.FencePeerLocked(l.From, err)
			}
			if !more {
				break
			}
		}
		l.Ledger().Drain(config, l.Receiver().Next()) // durably, before any of the log's evidence is reported
		l.Thaw(config)
	}
}

// gatherWorkersLocked calls gather for each worker, with its number and with its lock held, and takes
// what gather has found.
func (r *Recovery) gatherWorkersLocked(gather func(id uint16, w Worker)) {
	for i, w := range r.Workers {
		w.Locked(func() { gather(uint16(i), w) })
		r.takeFoundLocked() // read annexes without the worker's lock: it may take long
	}
}

// gatherLogsLocked finds what coordinators have written to the logs of a worker.
func (r *Recovery) gatherLogsLocked(id uint16, w Worker) {
	for _, l := range w.LogsLocked() {
		r.scanLocked(l.Memory, l.Key, l.Receiver().Next(), func(rec *record.Record, _ uint64) bool {
			return l.IsHeld(rec.ID.Seq)
		})
	}
	own, window := w.OwnLocked()
	r.scanLocked(own.Memory(), route.LogKey(r.Replicas.ID, id, 0), own.Log.Tail(), func(rec *record.Record, _ uint64) bool {
		return !rec.Kind.IsNote() && !window.Finished(rec.ID.Seq)
	})
}

// gatherOwnNotesLocked finds the notes in a worker's own log.
func (r *Recovery) gatherOwnNotesLocked(id uint16, w Worker) {
	own, _ := w.OwnLocked()
	r.scanLocked(own.Memory(), route.LogKey(r.Replicas.ID, id, 0), own.Log.Tail(), func(rec *record.Record, _ uint64) bool {
		return rec.Kind.IsNote() && r.noteCountsLocked(rec)
	})
}

// noteCountsLocked reports whether a note is from after the last settled recovery, and, if it is
// about a region, whether this machine's replica is at least as old as the note.
func (r *Recovery) noteCountsLocked(rec *record.Record) bool {
	if !r.recalled.countsLocked(rec) {
		return false
	}
	in, isDated := rec.NotedIn()
	id, _ := unpackSeen(rec.LowBound)
	return rec.Kind != record.Replicate || !isDated || r.isOldEnough(id, in)
}

// scanLocked appends to found the records of a log, up to position end, for which want returns true.
// want gets a record and its position. TRUNCATE records and void records are left out; a record that
// does not decode ends the scan.
func (r *Recovery) scanLocked(log *nvram.Memory, k rdma.Key, end uint64, want func(rec *record.Record, at uint64) bool) {
	rx, err := record.OpenLog(log)
	if err != nil || rx == nil {
		return
	}
	for {
		raw, ok, err := rx.Poll()
		if err != nil || !ok || raw.Pos >= end {
			return
		}
		rec := new(record.Record)
		if record.Decode(raw.Payload, rec) != nil {
			return // the writer of the log is fenced
		}
		if rec.Kind != record.Truncate && !rec.IsVoid() && want(rec, raw.Pos) {
			r.found = append(r.found, found{rec, extentOf(rx, k, raw)})
		}
	}
}

// takeFoundLocked adds the records that scanLocked has found to the traces, in order.
func (r *Recovery) takeFoundLocked() {
	for i := range r.found {
		r.takeLocked(r.found[i].record, r.found[i].at)
	}
	clear(r.found)
	r.found = r.found[:0]
}

func extentOf(rx *ring.Receiver, k rdma.Key, raw ring.Record) Extent {
	e := Extent{Key: k}
	e.Off, e.N, e.Rest, e.More = rx.Extent(raw)
	return e
}

// packSeen packs a region and the Seen of one of its replicas into one word of a note. In other
// records that word is the low bound.
func packSeen(id region.ID, s Seen) uint64 { return uint64(id)<<32 | uint64(s) }

func unpackSeen(v uint64) (region.ID, Seen) { return region.ID(v >> 32), Seen(v) }

// takeLocked adds one record to the traces.
func (r *Recovery) takeLocked(rec *record.Record, at Extent) {
	t := r.traces[rec.ID]
	if t == nil {
		t = &trace{id: rec.ID}
		r.traces[rec.ID] = t
	}
	if len(rec.Regions) > 0 {
		t.regions = rec.Regions
	}
	if !rec.Annex.IsNone() {
		r.takeAnnexedLocked(t, rec)
		return
	}
	switch rec.Kind {
	case record.Lock:
		t.takeWrites(rec.Writes, SeenLock, at)
	case record.CommitBackup:
		t.takeWrites(rec.Writes, SeenCommitBackup, at)
	case record.CommitPrimary: // has no writes: it is about the LOCK record before it
		for _, p := range t.parts {
			if p.seen&SeenLock != 0 {
				p.seen |= SeenCommitPrimary
			}
		}
	case record.Replicate:
		id, seen := unpackSeen(rec.LowBound)
		t.takeWrites(rec.Writes, 0, at)
		t.part(id).seen |= seen
	case record.CommitRecovery:
		t.outcome |= SeenCommitRecovery
	case record.AbortRecovery:
		t.outcome |= SeenAbortRecovery
	}
}

// takeWrites adds a record's writes, which must be sorted by address, to the parts of their
// regions. A part that has its writes already, from an earlier record, keeps those: they are the same.
func (t *trace) takeWrites(writes []record.Write, seen Seen, at Extent) {
	for len(writes) > 0 {
		id, n := writes[0].Ptr.Addr.Region(), 1
		for n < len(writes) && writes[n].Ptr.Addr.Region() == id { // ascending by address
			n++
		}
		p := t.part(id)
		p.seen |= seen
		if p.writes == nil {
			p.writes, p.at = writes[:n:n], at
		}
		writes = writes[n:]
	}
}

// Evidence returns this machine's present evidence about a transaction and a region; false if it has none.
func (r *Recovery) Evidence(id record.ID, in region.ID) (Evidence, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traces[id]
	if t == nil {
		return Evidence{}, false
	}
	for _, p := range t.parts {
		if p.region == in {
			return t.evidence(p), true
		}
	}
	return Evidence{}, false
}

// Truncated reports whether this machine's replica of a region has truncated a transaction. It is
// asked about a transaction without a record here: false means that no record ever came.
func (r *Recovery) Truncated(id record.ID, at region.ID) (isTruncated bool) {
	if sabotage.Truncated.Skipped() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hasOwnLedgers := r.hasHadSince(at, id.Config) && !sabotage.ForeignBounds.Skipped()
	switch {
	case !hasOwnLedgers && r.recalled.bounds.truncated(id):
		return true
	case r.recalled.truncatedLocked(id):
		return true
	case r.recalled.isOlderLocked(id): // the logs of this life do not know it
		return false
	}
	if int(id.Worker) >= len(r.Workers) {
		return false
	}
	w := r.Workers[id.Worker]
	w.Locked(func() { isTruncated = r.isTruncatedLocked(w, id) })
	return isTruncated
}

// isTruncatedLocked reports whether a transaction is truncated, by the worker's own window or by the
// ledger of its coordinator's log. The coordinator must be in the same life.
func (r *Recovery) isTruncatedLocked(w Worker, id record.ID) bool {
	if id.Machine == r.Replicas.ID {
		_, window := w.OwnLocked()
		return window.Finished(id.Seq)
	}
	l := logFromLocked(w, id.Machine)
	return l.Log != nil && l.Ledger().Has(id.Seq)
}

// logFromLocked returns the log that a machine writes to the worker; its Log is nil if there is
// none.
func logFromLocked(w Worker, from rdma.MachineID) Log {
	for _, l := range w.LogsLocked() {
		if l.From == from {
			return l
		}
	}
	return Log{}
}

// Fetch READs a transaction's writes to a region from another machine, at the place that its evidence
// e names.
func (r *Recovery) Fetch(from rdma.MachineID, e Evidence) ([]record.Write, error) {
	raw := make([]byte, e.At.N+e.At.More)
	if err := r.Read(from, e.At.Key, e.At.Off, raw[:e.At.N]); err != nil {
		return nil, err
	}
	if e.At.More > 0 {
		if err := r.Read(from, e.At.Key, e.At.Rest, raw[e.At.N:]); err != nil {
			return nil, err
		}
	}
	if route.KindOf(e.At.Key) == route.KeyAnnex {
		writes, err := record.WritesIn(raw)
		if err == nil && !isOf(e.Region, writes) {
			err = fmt.Errorf("%w: writes of %v to other regions than %d", record.ErrBad, e.ID, e.Region)
		}
		return writes, err
	}
	var rec record.Record
	if err := record.Decode(raw, &rec); err != nil {
		return nil, err
	}
	if rec.ID != e.ID {
		return nil, fmt.Errorf("%w: %v of %v where %v is expected", record.ErrBad, rec.Kind, rec.ID, e.ID)
	}
	return slices.DeleteFunc(rec.Writes, func(w record.Write) bool { return w.Ptr.Addr.Region() != e.Region }), nil
}

// Learn durably notes e, the merged evidence of a region's replicas, with the writes if this machine
// does not have them. Repeating the call changes nothing, nor does a call after the recovery was
// settled or the transaction truncated. Learn fails with ring.ErrFull while there is no room for a note.
func (r *Recovery) Learn(in cluster.ID, e Evidence, writes []record.Write) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	if !r.going.Load() || r.over[e.ID] {
		return nil
	}
	t := r.traces[e.ID]
	if t == nil {
		t = &trace{id: e.ID, regions: e.Regions}
	}
	// If the transaction waits for an unavailable region, it is news even that this region has seen
	// nothing of it.
	isNews := !t.knows(e.Region) && r.awaits(e.Regions)
	p := t.part(e.Region)
	if p.writes != nil {
		writes = nil
	}
	if !isNews && len(writes) == 0 && p.seen|e.Seen == p.seen {
		return nil
	}
	rec := record.Record{Kind: record.Replicate, ID: e.ID, LowBound: packSeen(e.Region, e.Seen), Regions: e.Regions, Writes: writes}
	at, err := r.noteLocked(in, &rec)
	if err != nil {
		return err
	}
	r.traces[e.ID] = t
	p.seen |= e.Seen
	if writes != nil {
		p.writes, p.at = writes, at
	}
	return nil
}

// takeAnnexedLocked is like takeLocked, for a record whose writes are in an annex. Recall and Bind
// have checked that the annex is there. If it does not decode, its writes are left out; its writer is
// fenced, as after any malformed record.
func (r *Recovery) takeAnnexedLocked(t *trace, rec *record.Record) {
	seen := SeenLock
	if rec.Kind == record.CommitBackup {
		seen = SeenCommitBackup
	}
	body, err := r.Replicas.Annexes.Body(&rec.Annex)
	if err != nil {
		invariant.Violated("a record that counts has its annex", err, rec.ID)
	}
	_ = t.takeAnnexed(&rec.Annex, body, seen)
}

// takeAnnexed adds the writes in an annex to the trace. The Extent of each part is the stretch of the
// annex that has the region's writes, so that other machines can READ just these.
func (t *trace) takeAnnexed(x *record.Annex, body []byte, seen Seen) error {
	writes, err := record.AnnexWrites(x, body)
	if err != nil {
		return err
	}
	at := Extent{Key: route.AnnexKey(x.Number)}
	for len(writes) > 0 {
		id, n := writes[0].Ptr.Addr.Region(), 0
		at.Off, at.N = at.Off+at.N, 0
		for n < len(writes) && writes[n].Ptr.Addr.Region() == id {
			at.N += uint64(record.WriteBytes(&writes[n]))
			n++
		}
		t.takeWrites(writes[:n:n], seen, at)
		writes = writes[n:]
	}
	return nil
}

// isOf reports whether all writes are to region id.
func isOf(id region.ID, writes []record.Write) bool {
	return !slices.ContainsFunc(writes, func(w record.Write) bool { return w.Ptr.Addr.Region() != id })
}
