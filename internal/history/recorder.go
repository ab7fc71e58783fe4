package history

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Recorder collects a history from many goroutines. Its clock is a counter: an event that
// ends before another begins gets the smaller stamp, which is all that the check needs.
type Recorder struct {
	stamp atomic.Int64
	value atomic.Uint64
	lists lists
	mu    struct {
		sync.Mutex
		txs  []Transaction
		open int
	}
}

// NewRecorder returns an empty history.
func NewRecorder() *Recorder { return new(Recorder) }

// Value returns a value that it has not returned before.
func (r *Recorder) Value() Value { return Value(r.value.Add(1)) }

// Begin starts to record a transaction. Call it before its first operation.
func (r *Recorder) Begin(label string) *Recording {
	r.mu.Lock()
	r.mu.open++
	r.mu.Unlock()
	return &Recording{recorder: r, tx: Transaction{Label: label, Start: r.stamp.Add(1)}}
}

// A Recording is a transaction that has not ended. It belongs to one goroutine.
type Recording struct {
	recorder *Recorder
	tx       Transaction
	ended    bool
}

// Read records that the transaction read o and saw v.
func (t *Recording) Read(o Object, v Value) { t.tx.Ops = append(t.tx.Ops, Op{Object: o, Value: v}) }

// Write records that the transaction wrote v to o, which it has read before.
func (t *Recording) Write(o Object, v Value) { t.WriteVersion(o, v, 0) }

// WriteVersion records that the transaction wrote v to o, and that this was the object's version
// with the given number; see Op.
func (t *Recording) WriteVersion(o Object, v Value, version uint64) {
	t.tx.Ops = append(t.tx.Ops, Op{Write: true, Object: o, Value: v, Version: version})
}

// Delete records that the transaction wrote v to o, and that o is absent while v is its value. The
// transaction has read o before.
func (t *Recording) Delete(o Object, v Value) {
	t.tx.Ops = append(t.tx.Ops, Op{Write: true, Object: o, Value: v, Absent: true})
}

// Absent records that the transaction found o absent, and that it does nothing else.
func (t *Recording) Absent(o Object) { t.tx.Ops = append(t.tx.Ops, Op{Object: o, Absent: true}) }

// Undo removes the writes among the operations since mark, for a transaction that was rolled
// back to a savepoint: nobody may see them. The reads since mark stay, except reads of the
// removed writes.
func (t *Recording) Undo(mark int) {
	undone := make(map[place]bool)
	for _, op := range t.tx.Ops[mark:] {
		if op.Write {
			undone[place{op.Object, op.Value}] = true
		}
	}
	kept := slices.DeleteFunc(t.tx.Ops[mark:], func(op Op) bool { return undone[place{op.Object, op.Value}] })
	t.tx.Ops = t.tx.Ops[:mark+len(kept)]
}

// Mark returns how many operations were recorded, for Undo.
func (t *Recording) Mark() int { return len(t.tx.Ops) }

// Shown records that the transaction's reads were shown to somebody, whether or not it
// commits.
func (t *Recording) Shown() { t.tx.Shown = true }

// End records how the transaction ended. Call it once the outcome is known. Only the first
// call counts, so that End(Unknown) can be deferred; it returns whether this was the first.
func (t *Recording) End(o Outcome) bool {
	if t.ended {
		return false
	}
	t.ended = true
	t.tx.Outcome, t.tx.End = o, t.recorder.stamp.Add(1)
	r := t.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.open--
	r.mu.txs = append(r.mu.txs, t.tx)
	return true
}

// Transactions returns the transactions that have ended so far.
func (r *Recorder) Transactions() []Transaction {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.txs)
}

// Check checks the transactions that have ended. One that has not is reported as Malformed,
// because its writes would have no writer.
func (r *Recorder) Check(o Options) Report {
	order, found := r.lists.order()
	report := check(r.Transactions(), order, o)
	for _, v := range found.Violations {
		report.add(v)
	}
	report.Dropped += found.Dropped
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.open != 0 {
		report.add(Violation{Kind: Malformed, Text: "transactions were begun and not ended"})
	}
	return report
}
