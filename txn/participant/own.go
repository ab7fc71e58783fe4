package participant

import (
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// An OwnLog is the log that a worker writes to its own machine, guarded by the worker's lock. A
// coordinator acts on its own machine's replicas by direct calls, so only recovery reads the records
// in this log; Free only needs to know where they end. While transactions recover, the machine also
// writes notes there about other machines' transactions (package evidence).
type OwnLog struct {
	// Log is the writing end, Receiver the reading end.
	Log      *ring.Sender
	Receiver *ring.Receiver
	ledger   *record.Ledger
	// front is the oldest record that has not been freed, if hasFront.
	front    ring.Record
	hasFront bool
	// notes says that a recovery needs the notes in the log, so they must not be freed.
	notes bool
	// spare is the space reserved for notes; spareWanted is the space that should be reserved.
	spare, spareWanted uint64
	// passed are the annexes of the records that are being freed.
	passed []uint64
}

// A worker keeps 1/spareShare of its own log free for the notes of a recovery: they cannot wait until
// others truncate transactions.
const spareShare = 8

// NewOwnLog opens the log in m, which must be empty, or makes one. nonce is random.
func NewOwnLog(m *nvram.Memory, c record.Coordinator, nonce uint64) (*OwnLog, error) {
	b := record.NewLedger(m, c)
	rx, err := record.OpenEmptyLog(m, nonce)
	if err != nil {
		return nil, err
	}
	state, err := rx.State()
	if err != nil {
		return nil, err
	}
	l := &OwnLog{Log: ring.NewLocalSender(state, m, 0), Receiver: rx, ledger: b}
	l.spareWanted = l.Log.Bytes() / spareShare
	l.restock()
	return l, nil
}

// Memory returns the memory of the log.
func (l *OwnLog) Memory() *nvram.Memory { return l.ledger.Log() }

// Reserved returns how much space commits have reserved.
func (l *OwnLog) Reserved() uint64 { return l.Log.Reserved() - l.spare }

// Freeze gives up the reservations of commits, which write no more records in this configuration.
func (l *OwnLog) Freeze() {
	l.Log.Release(l.Log.Reserved())
	l.spare = 0
	l.restock()
}

// Settle is called when a recovery is over. It gives up the notes, and frees the records that it can.
func (l *OwnLog) Settle(r *Replicas, w *record.Window) error {
	l.notes = false
	err := l.Free(r, w)
	l.restock()
	return err
}

// restock reserves space for notes, up to spareWanted.
func (l *OwnLog) restock() {
	if missing := l.spareWanted - l.spare; missing > 0 && l.Log.Reserve(missing) {
		l.spare = l.spareWanted
	}
}

// Note appends a note, into free space or else into the spare space.
func (l *OwnLog) Note(b []byte) error {
	need := ring.Space(len(b))
	if need > l.Log.Available() && need <= l.spare {
		l.Log.Release(need)
		l.spare -= need
	}
	_, _, err := l.Log.Append(rdma.Unsignalled, b)
	if err == nil {
		l.notes = true
	}
	return err
}

// Free moves the log's head past the records of finished transactions, and past notes that no
// recovery needs.
func (l *OwnLog) Free(r *Replicas, w *record.Window) error {
	var end uint64
	for {
		if !l.hasFront {
			var err error
			if l.front, l.hasFront, err = l.Receiver.Poll(); err != nil {
				return err
			}
		}
		if !l.hasFront {
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
		end, l.hasFront = l.front.End, false
	}
	if end != 0 {
		l.Receiver.Free(end)
		r.Reached(step.FreeLog)
	}
	for _, number := range l.passed {
		r.Annexes.Free(number)
	}
	l.passed = l.passed[:0]
	return nil
}

// finish reports whether a transaction is truncated, and if so records it in the ledger. It returns
// false also if the ledger has no place for it yet.
func (l *OwnLog) finish(seq uint64, w *record.Window) bool {
	if !w.Finished(seq) {
		return false
	}
	l.ledger.Raise(w.Low)
	if l.ledger.Passed(seq) {
		return true
	}
	if !l.ledger.CanName(seq) {
		return false
	}
	l.ledger.Name(seq)
	return true
}
