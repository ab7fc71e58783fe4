package evidence

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
)

// It is no evidence either: not to a later recovery, though another record of its
// transaction is held in front of it, and not to a later life of the machine, whether
// anybody had looked at it before the machine died or not.
func TestLateRecordsAreNoEvidence(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	for _, seen := range []bool{true, false} {
		l := newPeerLog(t)
		log := l.in.Ledger().Log()
		l.in.Freeze(2)
		l.append(record.Lock, 1, seq, seq)
		l.steps(1)
		l.in.Ledger().Drain(1, l.in.Receiver().Next())
		l.in.Thaw(1)
		l.append(record.CommitBackup, 1, seq, seq)
		if seen {
			l.steps(1)
		}
		l.append(record.CommitBackup, 2, seq+1, seq)
		of := func(gather func(*Recovery)) (first, second Seen) {
			r := &Recovery{Config: l.r.Config}
			r.Init()
			gather(r)
			for id, tr := range r.traces {
				switch {
				case id.Seq == seq && len(tr.parts) == 1:
					first = tr.parts[0].seen
				case id.Seq == seq+1 && id.Config == 2 && len(tr.parts) == 1:
					second = tr.parts[0].seen
				default:
					t.Errorf("evidence of %v", id)
				}
			}
			return first, second
		}
		l.r.recalled.logs = []*nvram.Memory{log}
		if first, second := of(l.r.recalled.gatherLocked); first != SeenLock || second != SeenCommitBackup {
			t.Errorf("seen %v: a later life has seen %v and %v", seen, first, second)
		}
		if !seen {
			continue
		}
		first, _ := of(func(r *Recovery) {
			r.scanLocked(log, 1, l.in.Receiver().Next(), func(*record.Record, uint64) bool { return true })
			r.takeFoundLocked()
		})
		if first != SeenLock {
			t.Errorf("a later recovery has seen %v", first)
		}
	}
}

// A record that names an annex which is not there fences its writer, also while the log is
// frozen, and is no evidence: not beside another record of its transaction, and not in a
// later life, which would take its own memory for damaged.
func TestRecordsWithoutTheirAnnexAreNoEvidence(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	for _, isFrozen := range []bool{false, true} {
		l := newPeerLog(t)
		l.appendRecord(&record.Record{Kind: record.Lock, ID: record.ID{Config: 1, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: l.annex()})
		l.steps(3)
		if isFrozen {
			l.in.Freeze(2)
		}
		rec := &record.Record{Kind: record.CommitBackup, ID: record.ID{Config: 1, Machine: 1, Seq: seq}, LowBound: seq, Regions: []region.ID{1}, Annex: record.Annex{Number: 77, Writes: 1, Bytes: 4096}}
		l.appendRecord(rec)
		if _, _, err := l.in.Step(); !errors.Is(err, record.ErrBad) {
			t.Errorf("frozen %v: %v", isFrozen, err)
		}
		r, log := l.r, l.in.Ledger().Log()
		r.scanLocked(log, 1, l.in.Receiver().Next(), func(*record.Record, uint64) bool { return true })
		r.takeFoundLocked()
		tr := r.traces[rec.ID]
		if tr == nil || len(tr.parts) != 1 || tr.parts[0].seen != SeenLock {
			t.Errorf("frozen %v: %+v", isFrozen, tr)
		}
		r.recalled.logs = []*nvram.Memory{log}
		if err := r.checkAnnexesLocked(); err != nil {
			t.Errorf("frozen %v: a later life: %v", isFrozen, err)
		}
	}
}
