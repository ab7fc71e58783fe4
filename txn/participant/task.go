package participant

import (
	"fmt"

	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
)

// A task is the work on a record whose writes, maybe millions, are in an annex. The work is done in
// slices, and the worker's lock is released between two slices: others that wait for the worker, such
// as the beat that renews the machine's lease, wait for one slice only. The log's next record waits
// for the whole task.
//
// A reconfiguration ends all tasks in the middle. Recovery then treats the record as if it had not
// been processed: locking and applying writes again changes nothing where the task has done so.
type task struct {
	kind  taskKind
	seq   uint64
	p     *tx
	body  annexBody
	rest  record.Decoder
	done  uint32          // how many writes have been processed
	limit uint32          // how many writes to process
	reply message.Message // the refusal to send at the end of taskRefuse
}

type taskKind uint8

const (
	taskCheckLock   taskKind = iota // check that a LOCK record is valid
	taskLock                        // lock the record's objects
	taskRefuse                      // unlock them again, if one of them could not be locked
	taskCheckBackup                 // check that a COMMIT-BACKUP record is valid
	taskApply                       // apply the writes of a COMMIT-PRIMARY record
	taskUnlock                      // unlock, for an ABORT record
	taskBackup                      // apply the writes of a COMMIT-BACKUP record, for a truncation
)

// An annexBody is the content of a record's annex.
type annexBody struct {
	annex record.Annex
	bytes []byte
}

// A largePart is the state of a participant for a transaction whose records have annexes.
type largePart struct {
	lock, backup annexBody
	// truncated says that the transaction has been truncated, and a taskBackup applies its writes.
	truncated bool
}

// SliceWrites and SliceBytes bound one slice.
const (
	SliceWrites = 256
	SliceBytes  = 128 << 10
)

// handleAnnexed begins the work on a record whose writes are in an annex.
func (l *Log) handleAnnexed(raw []byte, r *record.Record) error {
	body, err := l.r.Annexes.Bind(&r.Annex, l)
	if err != nil {
		return err
	}
	p := l.tx(r.ID.Seq)
	if p.large == nil {
		p.large = new(largePart)
	}
	b := annexBody{annex: r.Annex, bytes: body}
	kind := taskCheckLock
	switch {
	case r.Kind == record.Lock && p.lock == nil:
		p.lock, p.large.lock = raw, b
	case r.Kind == record.CommitBackup && p.backup == nil:
		p.backup, p.large.backup, kind = raw, b, taskCheckBackup
	default:
		return fmt.Errorf("%w: second %v of %v", record.ErrBad, r.Kind, r.ID)
	}
	l.begin(kind, r.ID.Seq, p, b)
	l.earlyAnnex(&r.Annex)
	return nil
}

// lateAnnex binds the annex of a record that has come too late, so that it is freed with the record.
// It returns the annex's number, or 0 if there is none.
func (l *Log) lateAnnex(r *record.Record) uint64 {
	if r.Annex.IsNone() {
		return 0
	}
	if _, err := l.r.Annexes.Bind(&r.Annex, l); err != nil {
		return 0
	}
	return r.Annex.Number
}

// begin adds a task after the tasks that wait already.
func (l *Log) begin(kind taskKind, seq uint64, p *tx, b annexBody) {
	t := task{kind: kind, seq: seq, p: p, limit: b.annex.Writes}
	t.restart(b)
	l.tasks = append(l.tasks, t)
}

// restart restarts the task at the first write.
func (t *task) restart(b annexBody) {
	t.body, t.rest, t.done = b, record.NewDecoder(b.bytes), 0
}

// isLockLarge reports whether the writes of the LOCK record are in an annex.
func (p *tx) isLockLarge() bool { return p.large != nil && p.large.lock.bytes != nil }

// isBackupLarge reports whether the writes of the COMMIT-BACKUP record are in an annex.
func (p *tx) isBackupLarge() bool { return p.large != nil && p.large.backup.bytes != nil }

// proceed does one slice of the first task. It returns the LOCK-REPLY if the slice completes the task and
// the task has one.
func (l *Log) proceed() (reply message.Message, err error) {
	t := &l.tasks[0]
	start, writesMax := t.rest.Len(), l.r.Smallest(SliceWrites) // start: the bytes left when the slice begins
	for n := 0; t.done < t.limit && n < writesMax && start-t.rest.Len() < SliceBytes; n++ {
		w, ok := t.rest.Next()
		if !ok {
			return reply, record.BadAnnex(&t.body.annex, &t.rest)
		}
		if err := l.work(t, &w); err != nil {
			return reply, err
		}
	}
	if t.done < t.limit {
		return reply, nil
	}
	return l.complete(t)
}

// work does the task's work on one write. For a check, there is none: proceed has decoded the write. If a
// taskLock cannot lock the object, work turns it into a taskRefuse.
func (l *Log) work(t *task, w *record.Write) error {
	switch t.kind {
	case taskLock:
		if v := l.r.LockWrite(w); v != message.Same {
			t.reply = message.Message{Kind: message.LockReply, A: uint8(v), C: t.done, Tag: t.seq}
			t.kind, t.limit = taskRefuse, t.done // unlock the objects before this one
			t.restart(t.body)
			return nil
		}
	case taskRefuse, taskUnlock:
		l.r.unlockWrite(w)
	case taskApply:
		l.r.ApplyPrimary(w)
	case taskBackup:
		if err := l.applyBackupWrite(w); err != nil {
			return err
		}
	}
	t.done++
	return nil
}

// complete is called when all writes of the first task have been processed. It ends the task, or
// turns a checked LOCK into a taskLock.
func (l *Log) complete(t *task) (reply message.Message, err error) {
	switch t.kind {
	case taskCheckLock, taskCheckBackup:
		if t.rest.Len() > 0 {
			return reply, record.BadAnnex(&t.body.annex, &t.rest)
		}
		if t.kind == taskCheckLock {
			t.kind = taskLock
			t.restart(t.body)
			return reply, nil
		}
	case taskLock:
		t.p.locked = true
		reply = message.Message{Kind: message.LockReply, A: uint8(message.Same), Tag: t.seq}
	case taskRefuse:
		reply = t.reply
	case taskApply:
		t.p.locked, t.p.applied = false, true
	case taskUnlock:
		t.p.locked = false
	case taskBackup:
		err = l.completeBackup(t.seq, t.p)
	}
	l.tasks = l.tasks[1:]
	if len(l.tasks) == 0 {
		l.tasks = nil // Step and IsAtWork test for nil
	}
	if err == nil && t.kind == taskBackup {
		err = l.Free()
	}
	return reply, err
}

// completeBackup ends a truncated transaction once the backup has applied it.
func (l *Log) completeBackup(seq uint64, p *tx) error {
	l.forgetTx(seq, p)
	if l.ledger.Passed(seq) {
		return nil
	}
	if !l.ledger.CanName(seq) {
		return fmt.Errorf("%w: transaction %d of machine %d truncated, the low bound is %d", record.ErrBad, seq, l.from, l.ledger.LowBound())
	}
	l.ledger.Name(seq)
	return nil
}
