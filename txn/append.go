package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// writeLockRecordsLocked writes a LOCK record to each primary.
func (w *worker) writeLockRecordsLocked(c *commit) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.lockWrites == 0 {
			continue
		}
		if p.peer != nil {
			c.wait.Add(1)
			w.commits[c.id.Seq], c.since = c, w.beats
			w.ringLocked(p.peer)
		}
		if err := w.appendLocked(p, w.encodeLocked(c, p, record.Lock), nil); err != nil {
			c.lostLocked(p.machine, err)
		}
	}
}

// recordSteps maps each kind of record to the step that its arrival is reported as.
var recordSteps = [record.Kinds]step.Step{
	record.Lock: step.LockRecord, record.CommitBackup: step.CommitBackup, record.CommitPrimary: step.CommitPrimary,
	record.Abort: step.Abort, record.Truncate: step.Truncate,
}

// A stagedRecord is a record that is encoded in the buffer of a log but not appended yet.
type stagedRecord struct {
	kind  record.Kind
	bytes int
	// piggybacked is how many of the record's bytes name truncated transactions. The room for these
	// bytes comes from the reservations of the truncated transactions, not from this commit's.
	piggybacked int
}

// encodeLocked stages one of the commit's records in the part's log. The caller must append it
// before anything else is staged there.
func (w *worker) encodeLocked(c *commit, p *part, kind record.Kind) stagedRecord {
	var regions []region.ID
	writes, bytes := 0, 0
	switch kind {
	case record.Lock:
		regions, writes, bytes = c.regions, p.lockWrites, p.lockBytes
	case record.CommitBackup:
		regions, writes, bytes = c.regions, p.backupWrites, p.backupBytes
	}
	var annex *ownAnnex
	var flag record.Kind
	if c.large != nil {
		if annex = c.annexFor(p, kind); annex != nil {
			annex.named, bytes, flag = true, record.AnnexedBytes, record.AnnexedFlag
		}
	}
	var truncated []uint64
	if p.peer != nil {
		truncated = w.takeTruncatedLocked(p.peer)
	}
	rec := stagedRecord{kind: kind, bytes: record.HeaderBytes(len(truncated), len(regions)) + bytes, piggybacked: 8 * len(truncated)}
	b := w.logOfLocked(p).Stage(rec.bytes)[:0]
	b = record.AppendHeader(b, kind|flag, c.id, w.window.Low, truncated, regions, writes)
	switch {
	case annex != nil:
		b = annex.Append(b)
	case writes > 0:
		b = c.appendWrites(b, p, kind)
	}
	if len(b) != rec.bytes {
		invariant.Violated("bytes of a record", len(b), rec.bytes)
	}
	return rec
}

func (c *commit) appendWrites(b []byte, p *part, kind record.Kind) []byte {
	for _, e := range c.writes {
		if c.belongs(e, p, kind) {
			wr := e.Write()
			b = record.AppendWrite(b, &wr)
		}
	}
	return b
}

// appendLocked appends the record staged in the part's log, using the part's reservation. op is
// told of the completion, or of the failure, which is returned too.
func (w *worker) appendLocked(p *part, rec stagedRecord, op *pendingOp) error {
	w.stats.records.Add(1)
	need := ring.Space(rec.bytes - rec.piggybacked)
	p.reserved -= need
	log := w.logOfLocked(p)
	if sabotage.Reservations.Skipped() {
		log.Reserve(need) // it is no error if this reservation fails
	}
	if extra := ring.Space(rec.bytes) - need; extra > 0 && !log.Reserve(extra) {
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
	_, done, err := log.PostReserved(tag)
	w.m.replicas.Reached(recordSteps[rec.kind])
	if p.peer != nil {
		p.peer.unrung += rec.bytes
	}
	if op != nil && (done || err != nil) {
		w.ops.drop(tag)
		err = w.settleLocked(op, err)
	}
	if err != nil && p.peer != nil {
		w.fenceLocked(p.peer, err)
	}
	return err
}
