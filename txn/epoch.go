package txn

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/invariant"
)

// epochs counts what is going on at one worker by the epoch in which it began,
// so that the end of an epoch can be told: memory freed in it may then change
// its size class, because nobody can still hold a pointer into it (NSDI'14
// section 3.5).
//
// At most two epochs are open at a time, so that two counters suffice; the
// current one's parity picks the counter.
type epochs struct {
	current *atomic.Uint64 // the machine's
	open    [2]atomic.Int64
}

// enter counts the caller in and returns its epoch, which exit needs.
func (e *epochs) enter() uint64 {
	for {
		epoch := e.current.Load()
		e.open[epoch&1].Add(1)
		if e.current.Load() == epoch {
			return epoch
		}
		// The epoch ended between the load and the count: whoever ended it may
		// not have seen us.
		e.open[epoch&1].Add(-1)
	}
}

func (e *epochs) exit(epoch uint64) {
	if n := e.open[epoch&1].Add(-1); n < 0 {
		invariant.Violated("operations open in an epoch", n, "at least 0")
	}
}

// An Operation brackets lock-free reads that follow pointers (NSDI'14:
// lockFreeStart, lockFreeEnd). Memory that its reads could reach is not reused
// for objects of another size until End.
type Operation struct {
	w     *worker
	epoch uint64
}

// Start begins an operation.
func (m *Machine) Start() Operation {
	w := m.anyWorker()
	return Operation{w, w.epochs.enter()}
}

// End ends it.
func (o Operation) End() { o.w.epochs.exit(o.epoch) }

// OnEpoch registers a function that clears cached pointers. It is called when
// an epoch ends, before memory freed in it may be reused.
func (m *Machine) OnEpoch(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEpoch = append(m.onEpoch, fn)
}

// endEpoch ends the current epoch at this machine and reports whether all that
// began in it is done. While something is still open in it, or in the one
// before, calling it again goes on with the same epoch.
func (m *Machine) endEpoch(epoch uint64) (done bool) {
	if m.epoch.Load() == epoch {
		if !m.epochClosed(epoch - 1) {
			return false
		}
		m.epoch.Store(epoch + 1)
		m.mu.Lock()
		hooks := m.onEpoch
		m.mu.Unlock()
		for _, fn := range hooks {
			fn()
		}
	}
	return m.epochClosed(epoch)
}

func (m *Machine) epochClosed(epoch uint64) bool {
	for _, w := range m.workers {
		if w.epochs.open[epoch&1].Load() != 0 {
			return false
		}
	}
	return true
}
