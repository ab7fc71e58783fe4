package record

import "github.com/farmsql/farmsql/internal/invariant"

// A Window tracks a worker's own transactions from the start of their commit until their records
// may be truncated everywhere. Every record carries the window's low bound: all transactions below
// it are finished. The worker's lock guards it.
type Window struct {
	// Low is the low bound; Next is the sequence number of the next transaction.
	Low, Next uint64

	done []bool // done[seq mod len]; len is a power of two
}

// NewWindow returns the window of a life that begins in configuration config.
func NewWindow(config uint32) Window {
	first := uint64(config)<<LifeShift + 1
	return Window{Low: first, Next: first, done: make([]bool, 64)}
}

// Begin opens the next sequence number.
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

// Finish closes seq.
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

// Finished reports whether seq is closed.
func (w *Window) Finished(seq uint64) bool {
	return seq < w.Low && SameLife(seq, w.Low) || seq >= w.Low && seq < w.Next && w.done[seq%uint64(len(w.done))]
}
