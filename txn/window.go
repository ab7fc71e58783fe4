package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn/record"
)

// A window tracks a worker's own transactions from the start of their commit until their records
// may be truncated everywhere. Every record carries the window's low bound: all transactions below
// it are finished. The worker's lock guards it.
type window struct {
	low, next uint64
	done      []bool // done[seq mod len]; len is a power of two
}

// newWindow returns the window of a life that begins in configuration config.
func newWindow(config uint32) window {
	first := uint64(config)<<record.LifeShift + 1
	return window{low: first, next: first, done: make([]bool, 64)}
}

// begin opens the next sequence number.
func (w *window) begin() uint64 {
	if w.next-w.low == uint64(len(w.done)) {
		w.grow()
	}
	seq := w.next
	w.next++
	return seq
}

func (w *window) grow() {
	done := make([]bool, 2*len(w.done))
	for seq := w.low; seq < w.next; seq++ {
		done[seq%uint64(len(done))] = w.done[seq%uint64(len(w.done))]
	}
	w.done = done
}

// finish closes seq.
func (w *window) finish(seq uint64) {
	if seq < w.low || seq >= w.next {
		invariant.Violated("finished transaction is in the window from", seq, w.low)
	}
	w.done[seq%uint64(len(w.done))] = true
	for w.low < w.next && w.done[w.low%uint64(len(w.done))] {
		w.done[w.low%uint64(len(w.done))] = false
		w.low++
	}
}

// finished reports whether seq is closed.
func (w *window) finished(seq uint64) bool {
	return seq < w.low && record.SameLife(seq, w.low) || seq >= w.low && seq < w.next && w.done[seq%uint64(len(w.done))]
}
