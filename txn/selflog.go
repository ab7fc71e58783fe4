package txn

import (
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// A selfLog is the log that a worker writes to its own machine, guarded by the worker's lock. The
// coordinator acts on its own replicas by direct call, so only recovery needs this log: nothing but
// the ends of its records is read from it before. While transactions recover, the machine also
// writes notes there about other machines' transactions (evidence.go).
type selfLog struct {
	log    *ring.Sender
	rx     *ring.Receiver
	ledger *record.Ledger
	// front is the oldest record that has not been freed.
	front ring.Record
	has   bool
	// notes says that notes must be kept.
	notes bool
	// spare is the space reserved for notes; spareWanted is the space that should be reserved.
	spare, spareWanted uint64
	// passed are the annexes of the records that are being freed.
	passed []uint64
}

// spareShare: a worker keeps one eighth of its own log free for the notes of a recovery, which
// cannot wait for others to truncate.
const spareShare = 8

func newSelfLog(m *nvram.Memory, c record.Coordinator, nonce uint64) (*selfLog, error) {
	b := record.NewLedger(m, c)
	rx, err := record.OpenEmptyLog(m, nonce)
	if err != nil {
		return nil, err
	}
	state, err := rx.State()
	if err != nil {
		return nil, err
	}
	l := &selfLog{log: ring.NewLocalSender(state, m, 0), rx: rx, ledger: b}
	l.spareWanted = l.log.Bytes() / spareShare
	l.restock()
	return l, nil
}

// restock reserves space for notes, up to spareWanted.
func (l *selfLog) restock() {
	if missing := l.spareWanted - l.spare; missing > 0 && l.log.Reserve(missing) {
		l.spare = l.spareWanted
	}
}

// note appends a note, into free space or else into the spare space.
func (l *selfLog) note(b []byte) error {
	need := ring.Space(len(b))
	if need > l.log.Available() && need <= l.spare {
		l.log.Release(need)
		l.spare -= need
	}
	_, _, err := l.log.Append(rdma.Unsignalled, b)
	if err == nil {
		l.notes = true
	}
	return err
}

// free moves the log's head past the records of finished transactions, and past notes that are not
// needed any more.
func (l *selfLog) free(r *participant.Replicas, w *window) error {
	var end uint64
	for {
		if !l.has {
			var err error
			if l.front, l.has, err = l.rx.Poll(); err != nil {
				return err
			}
		}
		if !l.has {
			break
		}
		if record.KindOf(l.front.Payload).IsNote() {
			if l.notes {
				break
			}
		} else if !l.finish(record.SeqOf(l.front.Payload), w) {
			break
		}
		if number := record.AnnexOf(l.front.Payload); number != 0 {
			l.passed = append(l.passed, number)
		}
		end, l.has = l.front.End, false
	}
	if end != 0 {
		l.rx.Free(end)
		r.Reached(step.FreeLog)
	}
	for _, number := range l.passed {
		r.Annexes.Free(number)
	}
	l.passed = l.passed[:0]
	return nil
}

// finish reports whether a transaction is truncated, and if so records it in the ledger.
func (l *selfLog) finish(seq uint64, w *window) bool {
	if !w.finished(seq) {
		return false
	}
	l.ledger.Raise(w.low)
	if l.ledger.Passed(seq) {
		return true
	}
	if !l.ledger.CanName(seq) {
		return false
	}
	l.ledger.Name(seq)
	return true
}
