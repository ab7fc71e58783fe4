package participant

import (
	"fmt"

	"github.com/farmsql/farmsql/txn/record"
)

// Freeze turns the log's records into mere evidence for recovery: from now on the records in the
// log, and records that still arrive, have no effect of their own. config is the configuration that
// begins.
func (l *Log) Freeze(config uint32) {
	l.frozen, l.tasks = config, nil
	for _, p := range l.txs { // any order
		p.held, p.locked = true, false
	}
}

// keep keeps a record that arrives while the log is frozen, as evidence.
func (l *Log) keep(r *record.Record, end uint64) error {
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
		seq = 0 // the record belongs to no transaction
	case record.Lock, record.CommitBackup:
		if l.ledger.Passed(seq) {
			return fmt.Errorf("%w: %v of %v, which is truncated", record.ErrBad, r.Kind, r.ID)
		}
		l.tx(seq).held = true
	}
	l.records.push(logRecord{seq: seq, end: end, annex: r.Annex.Number})
	return nil
}

// Thaw ends Freeze. From now on, records of configuration drained, or an older one, come too late.
func (l *Log) Thaw(drained uint32) { l.frozen, l.drained = 0, drained }

// Release frees the records of a transaction that has been recovered.
func (l *Log) Release(seq uint64) error {
	p := l.txs[seq]
	if p == nil || !p.held {
		return nil
	}
	l.forgetTx(seq, p)
	return l.Free()
}
