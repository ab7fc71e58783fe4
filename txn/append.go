package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
)

// writeLockRecordsLocked writes a LOCK record to each primary.
func (w *worker) writeLockRecordsLocked(c *commit) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.lockWrites == 0 {
			continue
		}
		if p.peer != nil {
			c.wait.add(1)
			w.commits[c.id.Seq], c.since = c, w.beats
			w.ringLocked(p.peer)
		}
		w.encodeLocked(c, p, RecordLock)
		if err := w.appendLocked(p, RecordLock, nil); err != nil {
			c.lostLocked(p.machine, err)
		}
	}
}

// encodeLocked stages one of the commit's records in the part's log.
func (w *worker) encodeLocked(c *commit, p *part, kind RecordKind) {
	var regions []region.ID
	writes, bytes := 0, 0
	switch kind {
	case RecordLock:
		regions, writes, bytes = c.regions, p.lockWrites, p.lockBytes
	case RecordCommitBackup:
		regions, writes, bytes = c.regions, p.backupWrites, p.backupBytes
	}
	var annex *ownAnnex
	if c.large != nil {
		if annex = c.annexFor(p, kind); annex != nil {
			annex.named, bytes, kind = true, annexedBytes, kind|annexedFlag
		}
	}
	var truncated []uint64
	if p.peer != nil {
		truncated = w.takeTruncatedLocked(p.peer)
	}
	w.piggybacked = 8 * len(truncated)
	w.staged = recordBytes(len(truncated), len(regions)) + bytes
	b := w.logOfLocked(p).Stage(w.staged)[:0]
	b = appendRecordHeader(b, kind, c.id, w.window.low, truncated, regions, writes)
	switch {
	case annex != nil:
		b = annex.append(b)
	case writes > 0:
		b = c.appendWrites(b, p, kind)
	}
	if len(b) != w.staged {
		invariant.Violated("bytes of a record", len(b), w.staged)
	}
}

func (c *commit) appendWrites(b []byte, p *part, kind RecordKind) []byte {
	for _, e := range c.writes {
		if c.belongs(e, p, kind) {
			wr := e.write()
			b = appendWrite(b, &wr)
		}
	}
	return b
}

// appendLocked appends the staged record to the part's log, out of its reservation.
// op is told of its completion, or of its failure, which is returned too.
func (w *worker) appendLocked(p *part, kind RecordKind, op *pendingOp) error {
	w.stats.records.Add(1)
	need := ring.Space(w.staged - w.piggybacked)
	p.reserved -= need
	log := w.logOfLocked(p)
	if sabotage.Reservations.Skipped() {
		log.Reserve(need) // or not
	}
	if extra := ring.Space(w.staged) - need; extra > 0 && !log.Reserve(extra) {
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
	w.m.reached(recordSteps[kind])
	if p.peer != nil {
		p.peer.unrung += w.staged
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
