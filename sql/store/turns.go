package store

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// Turns let transactions of one machine that are about to change the same row wait for
// each other, so that the second does not run in vain. They guarantee nothing: a turn is not a lock; a transaction that
// has waited long enough, or would deadlock, continues without it; and commits decide which transactions conflict, as
// between machines. Only transactions that a client has opened take turns; single statements are over sooner than
// waiting would pay.
//
// A turn belongs to what a statement looks up: a key of an index, or the first parts of one.
// Besides, transactions that are retried after a conflict wait in one of a few lines before they
// read anything. Lines help where most transactions conflict because they read what others
// change: then no single key tells which transactions will conflict, and it is a waste to run
// more of them at a time than there are processors.
type Turns struct {
	clock clock.Clock
	// Patience is how long a statement waits.
	Patience time.Duration
	// Lines are the names of the turns for retried transactions.
	Lines []string
	mu    lockrank.Mutex[lockrank.Leaf]
	taken map[string]*turn
}

// A turn is held by one transaction; others wait for it.
type turn struct {
	name    string
	holder  *Transaction
	waiting []*waiter
}

// A waiter has the turn once called is set, unless it has given up.
type waiter struct {
	tr     *Transaction
	called clock.Event
}

// turnPatience is the default of Patience: running transactions end sooner, and a client
// that is thinking holds others up no longer than this.
const turnPatience = 200 * time.Millisecond

// TurnsMax bounds the turns of one transaction: a transaction that changes more rows would hold up too many others.
const TurnsMax = 1000

// newTurns returns Turns with this many lines; 0: one for each processor of the computer.
func newTurns(c clock.Clock, processors int) *Turns {
	t := &Turns{clock: c, Patience: turnPatience, taken: make(map[string]*turn)}
	if processors == 0 {
		processors = runtime.GOMAXPROCS(0)
	}
	for i := range processors {
		t.Lines = append(t.Lines, fmt.Sprint("#", i)) // shorter than an anchor, and so unlike a turn at a key
	}
	return t
}

// Await returns when it is the transaction's turn at a key, or when it should not wait any
// longer.
func (t *Turns) Await(tr *Transaction, x *catalog.Index, key []byte) {
	if len(key) == 0 {
		return // the statement scans everything
	}
	t.mu.Lock()
	w := t.enterLocked(tr, string(append(x.Anchor.Append(nil), key...)))
	t.mu.Unlock()
	t.wait(w, t.Patience)
}

// awaitAgain is like Await, for a new transaction in which a client retries its work. inVain is the
// time for which the client has tried so far. awaitAgain waits no longer than that, so that waiting
// never costs more than the conflicts have cost.
func (t *Turns) awaitAgain(tr *Transaction, inVain time.Duration) {
	t.mu.Lock()
	w := t.enterLocked(tr, t.shortestLocked())
	t.mu.Unlock()
	t.wait(w, min(inVain, t.Patience))
}

// Counts returns how many turns are taken, and how many transactions wait for one.
func (t *Turns) Counts() (taken, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.taken { // any order
		waiting += len(at.waiting)
	}
	return len(t.taken), waiting
}

// shortestLocked returns the line in which the fewest transactions wait.
func (t *Turns) shortestLocked() string {
	return slices.MinFunc(t.Lines, func(a, b string) int { return t.lengthLocked(a) - t.lengthLocked(b) })
}

// lengthLocked returns how many transactions hold a turn or wait for it.
func (t *Turns) lengthLocked(name string) int {
	if at := t.taken[name]; at != nil {
		return 1 + len(at.waiting)
	}
	return 0
}

// wait returns when w is called, or after patience; if w is nil, at once.
func (t *Turns) wait(w *waiter, patience time.Duration) {
	if w != nil {
		w.called.WaitFor(patience)
		t.leave(w)
	}
}

// enterLocked takes a turn, or returns a waiter for it; nil if tr has the turn, or should
// not wait.
func (t *Turns) enterLocked(tr *Transaction, name string) *waiter {
	at := t.taken[name]
	switch {
	case tr.Ended || len(tr.turns) == TurnsMax:
		return nil
	case at == nil:
		at = &turn{name: name}
		t.taken[name] = at
		t.endWithLocked(tr)
		t.giveLocked(at, tr)
		return nil
	case at.holder == tr, at.waitsForLocked(tr):
		return nil
	}
	w := &waiter{tr, t.clock.NewEvent()}
	at.waiting = append(at.waiting, w)
	tr.waitsFor = at
	t.endWithLocked(tr)
	return w
}

// giveLocked gives a turn to a transaction.
func (t *Turns) giveLocked(at *turn, tr *Transaction) {
	at.holder = tr
	tr.turns = append(tr.turns, at)
	tr.waitsFor = nil
}

// endWithLocked makes a transaction pass on its turns when it ends. The transaction's
// goroutine calls it.
func (t *Turns) endWithLocked(tr *Transaction) {
	if !tr.takesTurns {
		tr.takesTurns = true
		tr.Tx.OnEnd(func() { t.passOn(tr) })
	}
}

// waitsForLocked reports whether the turn's holder waits, directly or through others, for
// the transaction.
func (at *turn) waitsForLocked(tr *Transaction) bool {
	for ; at != nil; at = at.holder.waitsFor {
		if at.holder == tr {
			return true
		}
	}
	return false
}

// leave removes a waiter that was not called.
func (t *Turns) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := w.tr.waitsFor; at != nil {
		at.waiting = slices.DeleteFunc(at.waiting, func(other *waiter) bool { return other == w })
		w.tr.waitsFor = nil
	}
}

// passOn gives the turns of a transaction that has ended to those that have waited
// longest.
func (t *Turns) passOn(tr *Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range tr.turns {
		if len(at.waiting) == 0 {
			delete(t.taken, at.name)
			continue
		}
		next := at.waiting[0]
		at.waiting = at.waiting[1:]
		t.giveLocked(at, next.tr)
		next.called.Set()
	}
	tr.turns = nil
}
