package participant

import (
	"fmt"

	"github.com/farmsql/farmsql/txn/record"
)

// Freeze keeps the records that are in the log, and records that still arrive, for recovery: no
// record has any effect from then on.
func (l *Log) Freeze(config uint32) {
	l.frozen, l.tasks = config, nil
	for _, p := range l.txs { // any order
		p.held, p.locked = true, false
	}
}

// keep keeps a record that arrives while the log is frozen.
func (l *Log) keep(raw []byte, r *record.Record, end uint64) error {
	seq := r.ID.Seq
	if !r.Annex.IsNone() {
		if _, err := l.r.Annexes.Bind(&r.Annex, l); err != nil {
			return err
		}
	}
	if r.Kind.IsNote() {
		return fmt.Errorf("%w: %v of %v, which only this machine itself could note", record.ErrBad, r.Kind, r.ID)
	}
	switch r.Kind {
	case record.Truncate:
		seq = 0
	case record.Lock, record.CommitBackup:
		if l.ledger.Passed(seq) {
			return fmt.Errorf("%w: %v of %v, which is truncated", record.ErrBad, r.Kind, r.ID)
		}
		l.tx(seq).held = true
	}
	l.records.push(logRecord{seq: seq, end: end, annex: r.Annex.Number})
	return nil
}

// Thaw ends Freeze. Records of configuration drained or an older one come too late from now on.
func (l *Log) Thaw(drained uint32) { l.frozen, l.drained = 0, drained }

// Release frees the records of a transaction that has been recovered.
func (l *Log) Release(seq uint64) error {
	p := l.txs[seq]
	if p == nil || !p.held {
		return nil
	}
	*p = tx{}
	delete(l.txs, seq)
	l.pool = append(l.pool, p)
	return l.Free()
}
