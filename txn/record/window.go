package record

import "github.com/farmsql/farmsql/internal/invariant"

// A Window tracks the transactions that a worker coordinates, from the start of their commit until
// they are finished: their records may be truncated everywhere. Every record carries the window's low
// bound, below which all transactions are finished. The worker's lock guards the window.
type Window struct {
	// Low is the low bound; Next is the sequence number of the next transaction.
	Low, Next uint64

	done []bool // done[seq mod len] says that seq is finished; len is a power of two
}

// NewWindow returns the window of a life that begins in configuration config.
func NewWindow(config uint32) Window {
	first := uint64(config)<<LifeShift + 1
	return Window{Low: first, Next: first, done: make([]bool, 64)}
}

// Begin returns the sequence number of the next transaction.
func (w *Window) Begin() uint64 {
	if w.Next-w.Low == uint64(len(w.done)) {
		w.grow()
	}
	seq := w.Next
	w.Next++
	return seq
}

func (w *Window) grow() {
	done := make([]bool, 2*len(w.done))
	for seq := w.Low; seq < w.Next; seq++ {
		done[seq%uint64(len(done))] = w.done[seq%uint64(len(w.done))]
	}
	w.done = done
}

// Finish marks seq as finished, and moves the low bound to the first transaction that is not.
func (w *Window) Finish(seq uint64) {
	if seq < w.Low || seq >= w.Next {
		invariant.Violated("finished transaction is in the window from", seq, w.Low)
	}
	w.done[seq%uint64(len(w.done))] = true
	for w.Low < w.Next && w.done[w.Low%uint64(len(w.done))] {
		w.done[w.Low%uint64(len(w.done))] = false
		w.Low++
	}
}

// Finished reports whether seq, a transaction of this life, is finished.
func (w *Window) Finished(seq uint64) bool {
	isBelow := seq < w.Low && SameLife(seq, w.Low)
	isInside := seq >= w.Low && seq < w.Next
	return isBelow || (isInside && w.done[seq%uint64(len(w.done))])
}
