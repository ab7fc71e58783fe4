package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/worker"
)

// writeLockRecordsLocked writes a LOCK record to each primary.
func (s *state) writeLockRecordsLocked() {
	w, c := s.w, &s.commit
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.LockWrites == 0 {
			continue
		}
		if !p.IsOwn() {
			w.ExpectReplyLocked(&c.Commit)
		}
		if err := w.AppendLocked(p, s.encodeLocked(p, record.Lock)); err != nil {
			c.LostLocked(p.Machine, err)
		}
	}
}

// encodeLocked stages one of the commit's records in the participant's log. The caller must append
// it before anything else is staged there.
func (s *state) encodeLocked(p *worker.Participant, kind record.Kind) worker.StagedRecord {
	c := &s.commit
	var regions []region.ID
	writes, bytes := 0, 0 // records of other kinds have no regions and no writes
	switch kind {
	case record.Lock:
		regions, writes, bytes = c.Regions, p.LockWrites, p.LockBytes
	case record.CommitBackup:
		regions, writes, bytes = c.Regions, p.BackupWrites, p.BackupBytes
	}
	var annex *ownAnnex
	var flag record.Kind
	if c.large != nil {
		if annex = c.annexFor(p, kind); annex != nil {
			annex.named, bytes, flag = true, record.AnnexedBytes, record.AnnexedFlag
		}
	}
	rec, b := s.w.StageLocked(&c.Commit, p, kind|flag, regions, writes, bytes)
	switch {
	case annex != nil:
		b = annex.Append(b)
	case writes > 0:
		b = c.appendWrites(b, p, kind == record.Lock)
	}
	if len(b) != rec.Bytes {
		invariant.Violated("bytes of a record", len(b), rec.Bytes)
	}
	return rec
}

// appendWrites appends the writes of a LOCK or COMMIT-BACKUP record of the participant.
func (c *commit) appendWrites(b []byte, p *worker.Participant, isLock bool) []byte {
	for _, e := range c.writes {
		if c.belongs(e, p, isLock) {
			wr := e.Write()
			b = record.AppendWrite(b, &wr)
		}
	}
	return b
}
