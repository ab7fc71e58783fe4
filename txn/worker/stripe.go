package worker

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/prefetch"
)

// A Stripe holds, for one processor, everything that lock-free reads and transactions write besides
// objects and logs: which of them are open, and their counters. Goroutines use the stripe of the
// processor that they run on when they begin, so that its cache lines stay in that processor's
// cache. A goroutine that has moved meanwhile is correct, only slower.
type Stripe struct {
	_        prefetch.Pad
	brackets [stripeBrackets]bracket
	// shared are for operations and transactions that found no free bracket, by the parity of the
	// epoch in which they began: at most two epochs are open at a time.
	shared [2]bracket
	// Number is the number of the stripe, from 0 on. Worker is the worker of the transactions that
	// begin there. Neither changes.
	Number int
	Worker *Worker
	epoch  *atomic.Uint64 // the epoch of the machine
	_      prefetch.Pad
}

const (
	stripeBrackets = 4
	// transactionBrackets is the first bracket that transactions use. The brackets before it are
	// for operations, which are short: transactions that clients keep open must not take all
	// brackets.
	transactionBrackets = 2
)

// A bracket says that one operation or transaction is open, and in which epoch it began. An epoch is
// over when no bracket of it is open: then memory freed in it may change its size class, because
// nobody can still hold a pointer into it (NSDI'14 section 3.5).
//
// Only the operation that has opened a bracket writes to it. So an operation needs a single atomic
// read-modify-write, to open the bracket.
type bracket struct {
	// word is 0 while the bracket is free, otherwise the epoch << 1 | 1. In a shared bracket it is
	// the number of operations and transactions that are open.
	word     uint64
	reads    uint64 // objects read from regions of this machine by all that have had the bracket
	w        *Worker
	isShared bool
}

// enter opens a bracket for the caller: the first free one, not before the bracket with number first. If
// none is free, it counts the caller in a shared bracket. The caller calls the result's End.
func (s *Stripe) enter(first int) Operation {
	for {
		epoch := s.epoch.Load()
		b := &s.brackets[first]
		if !b.open(epoch) {
			b = s.openOther(first+1, epoch)
		}
		if s.epoch.Load() == epoch {
			return Operation{b}
		}
		// The epoch ended between the load and the count: the machine that ended it may not have
		// seen this count.
		Operation{b}.End()
	}
}

// EnterTransaction is enter for a transaction.
func (s *Stripe) EnterTransaction() Operation { return s.enter(transactionBrackets) }

// open opens the bracket in an epoch, and reports whether it was free.
func (b *bracket) open(epoch uint64) bool {
	return atomic.LoadUint64(&b.word) == 0 && atomic.CompareAndSwapUint64(&b.word, 0, epoch<<1|1)
}

// openOther opens the first free bracket, not before the bracket with number first. If none is free, it
// counts the caller in a shared bracket.
func (s *Stripe) openOther(first int, epoch uint64) *bracket {
	for i := first; i < stripeBrackets; i++ {
		if b := &s.brackets[i]; b.open(epoch) {
			return b
		}
	}
	b := &s.shared[epoch&1]
	atomic.AddUint64(&b.word, 1)
	return b
}

// End ends the operation: it counts the caller of enter out.
func (o Operation) End() {
	b := o.b
	if b.isShared {
		if n := atomic.AddUint64(&b.word, ^uint64(0)); int64(n) < 0 {
			invariant.Violated("operations open in an epoch", int64(n), "at least 0")
		}
		return
	}
	if word := atomic.LoadUint64(&b.word); word == 0 { // others try to open the bracket meanwhile
		invariant.Violated("an open operation has its bracket", word, "an epoch")
	}
	publish(&b.word, 0)
}

// count counts n objects read from regions of this machine.
func (o Operation) count(n int) {
	if o.b.isShared {
		atomic.AddUint64(&o.b.reads, uint64(n))
		return
	}
	publish(&o.b.reads, o.b.reads+uint64(n))
}

// open returns how many operations and transactions of an epoch are open. It looks only at whether their
// epoch is even or odd: of each, no more than one epoch is open. The number may change while it counts.
func (s *Stripe) open(epoch uint64) int {
	n := int(atomic.LoadUint64(&s.shared[epoch&1].word))
	for i := range s.brackets {
		if word := atomic.LoadUint64(&s.brackets[i].word); word != 0 && (word>>1)&1 == epoch&1 {
			n++
		}
	}
	return n
}

// localReads returns how many reads of regions of this machine the stripe's brackets have counted.
func (s *Stripe) localReads() (n uint64) {
	for i := range s.brackets {
		n += atomic.LoadUint64(&s.brackets[i].reads)
	}
	for i := range s.shared {
		n += atomic.LoadUint64(&s.shared[i].reads)
	}
	return n
}

// newStripes makes at least one stripe for each processor and for each worker. Their number is a
// power of two.
func newStripes(m *Machine) []Stripe {
	n := 1
	for n < max(m.cfg.Clock.Processors(), len(m.workers)) {
		n *= 2
	}
	_, m.isReal = m.cfg.Clock.(clock.System)
	stripes := make([]Stripe, n)
	for i := range stripes {
		s := &stripes[i]
		s.Number, s.Worker, s.epoch = i, m.workers[i%len(m.workers)], &m.epoch
		for k := range s.brackets {
			s.brackets[k].w = s.Worker
		}
		for k := range s.shared {
			s.shared[k].w, s.shared[k].isShared = s.Worker, true
		}
	}
	return stripes
}

// Stripes returns how many stripes the machine has.
func (m *Machine) Stripes() int { return len(m.stripes) }

// Stripe returns the stripe of the processor that the caller runs on.
func (m *Machine) Stripe() *Stripe {
	var processor int
	if m.isReal {
		processor = clock.Processor()
	} else {
		processor = m.cfg.Clock.Processor()
	}
	return &m.stripes[processor&(len(m.stripes)-1)]
}

// anyWorker returns the worker of the processor that the caller runs on.
func (m *Machine) anyWorker() *Worker { return m.Stripe().Worker }
