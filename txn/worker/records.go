package worker

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
)

// recordSteps maps each kind of record to the step that is reported when the record has arrived.
var recordSteps = [record.Kinds]step.Step{
	record.Lock: step.LockRecord, record.CommitBackup: step.CommitBackup, record.CommitPrimary: step.CommitPrimary,
	record.Abort: step.Abort, record.Truncate: step.Truncate,
}

// A StagedRecord is a record in the buffer of a log, which is not appended yet.
type StagedRecord struct {
	Bytes int
	kind  record.Kind
	// piggybacked is how many of the record's bytes name truncated transactions. The room for these
	// bytes comes from the reservations of the truncated transactions, not from this commit's.
	piggybacked int
}

// StageLocked stages one of the commit's records in the participant's log: its header, which b
// holds, and room for further bytes, which the caller appends to b. The caller must append the record
// before anything else is staged there. kind may have record.AnnexedFlag. The header also names transactions
// that the participant may truncate.
func (w *Worker) StageLocked(c *Commit, p *Participant, kind record.Kind, regions []region.ID, writes, bytes int) (rec StagedRecord, b []byte) {
	var truncated []uint64
	if p.peer != nil {
		truncated = w.takeTruncatedLocked(p.peer)
	}
	rec = StagedRecord{kind: kind &^ record.AnnexedFlag, Bytes: record.HeaderBytes(len(truncated), len(regions)) + bytes, piggybacked: 8 * len(truncated)}
	b = w.logOfLocked(p).Stage(rec.Bytes)[:0]
	return rec, record.AppendHeader(b, kind, c.ID, w.window.Low, truncated, regions, writes)
}

// AppendLocked appends the record staged in the participant's log, using its reservation.
func (w *Worker) AppendLocked(p *Participant, rec StagedRecord) error {
	return w.appendLocked(p, rec, nil)
}

// AppendAwaitedLocked is AppendLocked of a record whose acknowledgement, or failure, wt waits for.
func (w *Worker) AppendAwaitedLocked(p *Participant, rec StagedRecord, wt *wait.Waiter) {
	wt.Add(1)
	_ = w.appendLocked(p, rec, &pendingOp{wait: wt}) // wt has the error, too
}

// appendLocked is AppendLocked. If op is not nil, its waiter learns of the completion or failure. A
// failure is returned, too.
func (w *Worker) appendLocked(p *Participant, rec StagedRecord, op *pendingOp) error {
	w.stats.records.Add(1)
	need := ring.Space(rec.Bytes - rec.piggybacked)
	p.Reserved -= need
	log := w.logOfLocked(p)
	if sabotage.Reservations.Skipped() {
		log.Reserve(need) // it is no error if this reservation fails
	}
	if extra := ring.Space(rec.Bytes) - need; extra > 0 && !log.Reserve(extra) {
		invariant.Violated("room for what a truncation had reserved", extra, log.Available())
	}
	if p.peer != nil && p.peer.broken != nil {
		return w.settleLocked(op, p.peer.broken)
	}
	tag := uint64(rdma.Unsignalled)
	if op != nil {
		op.record = true
		tag = w.ops.add(*op)
	}
	post := log.PostReserved
	if p.peer != nil && p.peer.ringsWithLocked(rec) {
		post = log.PostReservedRing
	}
	_, done, err := post(tag)
	w.m.Replicas.Reached(recordSteps[rec.kind])
	if op != nil && (done || err != nil) {
		w.ops.drop(tag)
		err = w.settleLocked(op, err)
	}
	if err != nil && p.peer != nil {
		w.fenceLocked(p.peer, err)
	}
	return err
}

// AppendAckedLocked is AppendLocked for a COMMIT-PRIMARY record to another machine. The record's
// acknowledgement is counted in a.
func (w *Worker) AppendAckedLocked(p *Participant, rec StagedRecord, a *Acks) {
	a.open++
	// If a peer does not get the record, recovery deals with it: the transaction has committed.
	_ = w.appendLocked(p, rec, &pendingOp{acks: a})
}

// ringsWithLocked reports whether the peer has to be rung with a record. The peer must act on LOCK,
// COMMIT-PRIMARY and ABORT immediately, since somebody waits for the effect. After COMMIT-BACKUP it
// only has to keep the log short, so it is rung once much has been written.
func (p *peer) ringsWithLocked(rec StagedRecord) bool {
	p.unrung += rec.Bytes
	if rec.kind == record.CommitBackup && p.unrung <= ringAfterBytes {
		return false
	}
	p.unrung = 0
	return true
}
