package participant

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// A Log is one log in the machine's memory, with the state of each transaction that has records in
// it. It implements the primary's and the backup's side of the commit protocol (SOSP'15 section 4),
// as a state machine that takes the log's records in order. The lock of the worker that reads the log
// guards it.
//
// The records stay in the log until they are truncated. They are the only copy of a transaction
// that has not been applied. So the log's head, which is in NVRAM, passes a record only after
// the transaction has been truncated.
type Log struct {
	r      *Replicas
	from   rdma.MachineID
	worker uint16
	rx     *ring.Receiver
	// record is the record being processed, scratch an earlier record of its transaction.
	record, scratch record.Record

	records deque
	txs     map[uint64]*tx
	pool    []*tx
	// ledger holds which transactions the sender has truncated, for recovery.
	ledger *record.Ledger
	// drained is the last configuration for which this log has been drained (LastDrained of SOSP'15
	// section 5.3). Records of that configuration, or of an earlier one, come too late.
	drained uint32
	// frozen is a configuration whose NEW-CONFIG has come, but not its NEW-CONFIG-COMMIT; 0 if
	// there is none. Meanwhile records of older configurations are evidence only, since the regions
	// have their new primaries already. Records of the new configuration can only be about a region
	// that was made meanwhile.
	frozen uint32
	// tasks are the unfinished work on records already taken from the ring.
	tasks []task
	// passed are the annexes of records that are being freed.
	passed []uint64
}

// A tx is the state of one transaction that writes to regions of this machine, as primary or backup.
type tx struct {
	lock    []byte // the transaction's LOCK record in the log
	backup  []byte // the transaction's COMMIT-BACKUP record in the log
	locked  bool   // the objects of lock are locked here
	applied bool   // the writes of lock have been applied here, and the objects unlocked
	// held says that recovery needs the records: they stay until recovery releases them, even if
	// the coordinator truncates them.
	held bool
	// large is the state of records whose writes are in annexes, nil if there are none.
	large *largePart
}

func NewLog(r *Replicas, from rdma.MachineID, worker uint16, rx *ring.Receiver, b *record.Ledger) *Log {
	return &Log{r: r, from: from, worker: worker, rx: rx, ledger: b, txs: make(map[uint64]*tx)}
}

// Receiver returns the log's ring.
func (l *Log) Receiver() *ring.Receiver { return l.rx }

// Ledger returns the ledger, which shows which of the log's transactions have been truncated.
func (l *Log) Ledger() *record.Ledger { return l.ledger }

// Drained returns the last configuration for which the log has been drained.
func (l *Log) Drained() uint32 { return l.drained }

// IsAtWork reports whether work on a record that has been taken is unfinished.
func (l *Log) IsAtWork() bool { return l.tasks != nil }

// Transactions returns the sequence numbers of the transactions that are not truncated, in order.
func (l *Log) Transactions() []uint64 { return slices.Sorted(maps.Keys(l.txs)) }

// IsHeld reports whether recovery needs the records of a transaction.
func (l *Log) IsHeld(seq uint64) bool {
	p := l.txs[seq]
	return p != nil && p.held
}

// Step does one slice of an unfinished task, or takes the next record from the log. It returns the
// LOCK-REPLY for the sender, if there is one; more is false if there was nothing to do. After an
// error, which means that the log holds garbage, all further input from its sender must be ignored.
func (l *Log) Step() (reply message.Message, more bool, err error) {
	if l.tasks != nil {
		reply, err = l.proceed()
		return reply, err == nil, err
	}
	rec, ok, err := l.rx.Poll()
	if err != nil || !ok {
		return message.Message{}, false, err
	}
	raw, r := rec.Payload, &l.record
	if err := record.Decode(raw, r); err != nil {
		return message.Message{}, false, err
	}
	if r.ID.Machine != l.from || r.ID.Worker != l.worker {
		return message.Message{}, false, fmt.Errorf("%w: %v of %v in the log of machine %d, worker %d", record.ErrBad, r.Kind, r.ID, l.from, l.worker)
	}
	if r.ID.Config <= l.drained && !sabotage.LateRecords.Skipped() {
		l.void(rec)
		l.records.push(logRecord{end: rec.End, annex: l.lateAnnex(r)})
		return message.Message{}, true, l.Free()
	}
	if r.ID.Config < l.frozen && !sabotage.FrozenRecords.Skipped() {
		if err = l.keep(r, rec.End); err != nil {
			l.voidAnnexed(rec, r)
		}
		return message.Message{}, err == nil, err
	}
	if err := l.handle(raw, r, &reply); err != nil {
		l.voidAnnexed(rec, r)
		return message.Message{}, false, err
	}
	if r.Kind != record.Truncate {
		l.records.push(logRecord{seq: r.ID.Seq, end: rec.End, annex: r.Annex.Number})
	} else {
		l.records.push(logRecord{end: rec.End})
	}
	return reply, true, l.truncate(r)
}

// voidAnnexed voids a record that could not be processed, if it names an annex. The annex may be
// missing, so recovery must not take the record for evidence. Records without an annex stay as they
// are: the fault may be in the replica to which they are applied.
func (l *Log) voidAnnexed(rec ring.Record, r *record.Record) {
	if !r.Annex.IsNone() {
		l.void(rec)
	}
}

// void marks a record in place as having no effect, because it came too late or makes no sense. The
// record stays in the log until earlier records are freed; until then no recovery, in this life or a
// later one, may take it for evidence.
func (l *Log) void(rec ring.Record) {
	off, n, rest, _ := l.rx.Extent(rec) // n bytes at off; if the record wraps, the others at rest
	at := off + record.WhoAt
	if n <= record.WhoAt {
		at = rest + record.WhoAt - n
	}
	memory := l.ledger.Log()
	memory.Store(at, memory.Load(at)&^record.VoidMask)
}

// handle processes a record, except for the truncations that it names. It sets reply if the record is
// a LOCK.
func (l *Log) handle(raw []byte, r *record.Record, reply *message.Message) error {
	seq := r.ID.Seq
	if r.Kind.IsNote() {
		return fmt.Errorf("%w: %v of %v, which only this machine itself could note", record.ErrBad, r.Kind, r.ID)
	}
	if r.Kind != record.Truncate && (l.ledger.Passed(seq) || seq < r.LowBound) {
		return fmt.Errorf("%w: %v of %v, which is truncated", record.ErrBad, r.Kind, r.ID)
	}
	if !r.Annex.IsNone() {
		return l.handleAnnexed(raw, r)
	}
	switch r.Kind {
	case record.Lock:
		p := l.tx(seq)
		if p.lock != nil {
			return fmt.Errorf("%w: second LOCK of %v", record.ErrBad, r.ID)
		}
		p.lock = raw
		*reply = l.r.lockWrites(r.Writes)
		reply.Tag = seq
		p.locked = reply.A == uint8(message.Same)
	case record.CommitBackup:
		p := l.tx(seq)
		if p.backup != nil {
			return fmt.Errorf("%w: second COMMIT-BACKUP of %v", record.ErrBad, r.ID)
		}
		p.backup = raw
	case record.CommitPrimary:
		p := l.txs[seq]
		if p == nil || !p.locked {
			return fmt.Errorf("%w: COMMIT-PRIMARY of %v without a lock", record.ErrBad, r.ID)
		}
		if p.isLockLarge() {
			l.begin(taskApply, seq, p, p.large.lock)
			return nil
		}
		return l.apply(p)
	case record.Abort:
		p := l.txs[seq]
		if p == nil || !p.locked { // the lock was refused
			return nil
		}
		if p.isLockLarge() {
			l.begin(taskUnlock, seq, p, p.large.lock)
			return nil
		}
		return l.unlock(p)
	}
	return nil
}

// tx returns the state of the transaction with a sequence number, and begins one if there is none.
func (l *Log) tx(seq uint64) *tx {
	p := l.txs[seq]
	if p == nil {
		if n := len(l.pool); n > 0 {
			p, l.pool = l.pool[n-1], l.pool[:n-1]
		} else {
			p = new(tx)
		}
		l.txs[seq] = p
	}
	return p
}

// apply commits a locked transaction at its primary.
func (l *Log) apply(p *tx) error {
	r := &l.scratch
	if err := record.Decode(p.lock, r); err != nil {
		return err
	}
	for i := range r.Writes {
		l.r.ApplyPrimary(&r.Writes[i])
	}
	p.locked, p.applied = false, true
	return nil
}

func (l *Log) unlock(p *tx) error {
	r := &l.scratch
	if err := record.Decode(p.lock, r); err != nil {
		return err
	}
	l.r.unlockWrites(r.Writes)
	p.locked = false
	return nil
}

// truncate processes the truncations that a record names: it raises the low bound, finishes the
// transactions named one by one, and leaves those below the low bound to Free.
func (l *Log) truncate(r *record.Record) error {
	l.ledger.Raise(r.LowBound)
	for _, seq := range r.Truncated {
		if l.txs[seq] == nil || l.ledger.Passed(seq) {
			continue
		}
		if !l.ledger.CanName(seq) {
			return fmt.Errorf("%w: transaction %d of machine %d named as truncated, the low bound is %d", record.ErrBad, seq, l.from, l.ledger.LowBound())
		}
		done, err := l.finish(seq)
		if err != nil {
			return err
		}
		if done {
			l.ledger.Name(seq)
		}
	}
	return l.Free()
}

// Free moves the log's head past the records of truncated transactions, and past records that belong to
// no transaction. A transaction below the low bound is truncated here, when the head comes to its first
// record.
func (l *Log) Free() error {
	var end uint64
	for l.records.n > 0 {
		r := l.records.front()
		if p := l.txs[r.seq]; p != nil {
			isOpen := r.seq >= l.ledger.LowBound()
			if isOpen || (p.held && !sabotage.HeldRecords.Skipped()) {
				break
			}
			done, err := l.finish(r.seq)
			if err != nil {
				return err
			}
			if !done {
				break
			}
		}
		end = r.end
		if r.annex != 0 {
			l.passed = append(l.passed, r.annex)
		}
		l.records.pop()
	}
	if end != 0 {
		l.rx.Free(end)
		l.r.Reached(step.FreeLog)
	}
	l.freeAnnexes()
	return nil
}

// freeAnnexes gives back the annexes of records that have been freed.
func (l *Log) freeAnnexes() {
	for _, number := range l.passed {
		l.r.Annexes.Free(number)
	}
	l.passed = l.passed[:0]
}

// finish truncates one transaction: a backup applies its writes now. If the writes are in an annex,
// finish only begins a task that applies them, and returns false. If recovery holds the transaction,
// or the log does not know it, finish does nothing and returns true: the ledger can name it.
func (l *Log) finish(seq uint64) (done bool, err error) {
	p := l.txs[seq]
	if p == nil || p.held {
		return true, nil
	}
	if p.locked {
		return false, fmt.Errorf("%w: transaction %d of machine %d truncated while locked", record.ErrBad, seq, l.from)
	}
	if p.backup != nil && p.isBackupLarge() && !sabotage.BackupApply.Skipped() {
		if !p.large.truncated {
			p.large.truncated = true
			l.begin(taskBackup, seq, p, p.large.backup)
		}
		return false, nil
	}
	delete(l.txs, seq)
	if p.backup != nil && !sabotage.BackupApply.Skipped() {
		if err := l.applyBackup(p); err != nil {
			return false, err
		}
	}
	*p = tx{}
	l.pool = append(l.pool, p)
	return true, nil
}

// forgetTx forgets a transaction, and keeps its memory for the next.
func (l *Log) forgetTx(seq uint64, p *tx) {
	delete(l.txs, seq)
	*p = tx{}
	l.pool = append(l.pool, p)
}

// applyBackup applies a COMMIT-BACKUP record to this machine's replicas.
func (l *Log) applyBackup(p *tx) error {
	r := &l.scratch
	if err := record.Decode(p.backup, r); err != nil {
		return err
	}
	l.r.fetchReplicas(r.Writes)
	for i := range r.Writes {
		if err := l.applyBackupWrite(&r.Writes[i]); err != nil {
			return err
		}
	}
	return nil
}

// applyBackupWrite applies one write to this machine's backup of the region.
func (l *Log) applyBackupWrite(w *record.Write) error {
	rt := l.r.Routes.Of(w.Ptr.Addr.Region())
	if rt == nil || rt.Local == nil || rt.PrimaryHere {
		return fmt.Errorf("%w: COMMIT-BACKUP of %v, of which no backup is here", record.ErrBad, w.Ptr)
	}
	if err := ApplyReplica(rt.Local, w); err != nil {
		return err
	}
	l.r.Reached(step.ApplyBackup)
	return nil
}

// A logRecord holds what Free needs of a record in the log.
type logRecord struct {
	seq   uint64 // the record's transaction; 0 if it has none
	end   uint64 // the position in the ring at which the record ends
	annex uint64 // the number of the record's annex; 0 if it has none
}

// A deque is a queue of records.
type deque struct {
	buf     []logRecord // a power of two
	head, n int
}

func (d *deque) push(r logRecord) {
	if d.n == len(d.buf) {
		buf := make([]logRecord, max(64, 2*len(d.buf)))
		for i := range d.n {
			buf[i] = d.buf[(d.head+i)%len(d.buf)]
		}
		d.buf, d.head = buf, 0
	}
	d.buf[(d.head+d.n)%len(d.buf)] = r
	d.n++
}

func (d *deque) front() logRecord { return d.buf[d.head] }

func (d *deque) pop() {
	d.head = (d.head + 1) % len(d.buf)
	d.n--
}
