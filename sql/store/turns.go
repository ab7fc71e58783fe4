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

// Turns is where transactions of one machine that are about to change the same row
// wait for each other, so that the second is not run for nothing. It is a courtesy: who
// has a turn has no right to anything, who has waited for long enough or would wait for
// ever goes on without, and commits decide which transactions conflict, as they do
// between machines. Only transactions that a client has opened take turns; statements
// that are transactions by themselves are over sooner than anybody could wait.
//
// A turn is at what a statement looks up: a key of an index, or the first parts of one.
// Transactions that are run again after a conflict stand in one of a few lines besides,
// before they have read anything: where most conflict with most, because they read what
// others change, nothing that a statement looks up tells which, and of more of them than
// there are processors the rest would only be run for nothing.
type Turns struct {
	clock clock.Clock
	// Patience is how long a statement waits.
	Patience time.Duration
	// Lines are the names of the turns that are taken to run again.
	Lines []string
	mu    lockrank.Mutex[lockrank.Leaf]
	taken map[string]*turn
}

// A turn is one transaction's; others wait for it.
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

// turnPatience is for how long: transactions that are at work are over sooner, and one
// whose client thinks holds others up no longer than this.
const turnPatience = 200 * time.Millisecond

// TurnsMax is how many turns one transaction takes: one that changes more rows than that
// is no matter of turns.
const TurnsMax = 1000

// newTurns returns turns with a line for each processor; 0: as many as this computer has.
func newTurns(c clock.Clock, processors int) *Turns {
	t := &Turns{clock: c, Patience: turnPatience, taken: make(map[string]*turn)}
	if processors == 0 {
		processors = runtime.GOMAXPROCS(0)
	}
	for i := range processors {
		t.Lines = append(t.Lines, fmt.Sprint("#", i)) // shorter than an anchor
	}
	return t
}

// Await returns when it is the transaction's turn at a key, or when waiting is of no
// use.
func (t *Turns) Await(tr *Transaction, x *catalog.Index, key []byte) {
	if len(key) == 0 {
		return // a scan of everything
	}
	t.mu.Lock()
	w := t.enterLocked(tr, string(append(x.Anchor.Append(nil), key...)))
	t.mu.Unlock()
	t.wait(w, t.Patience)
}

// awaitAgain is await for a transaction that has just begun, and is to do what its
// client has tried in vain for so long: it waits no longer than that, so that nobody
// loses more by it than by the conflicts.
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

// shortestLocked returns the line in which the fewest wait.
func (t *Turns) shortestLocked() string {
	return slices.MinFunc(t.Lines, func(a, b string) int { return t.lengthLocked(a) - t.lengthLocked(b) })
}

// lengthLocked returns how many have a turn or wait for it.
func (t *Turns) lengthLocked(name string) int {
	if at := t.taken[name]; at != nil {
		return 1 + len(at.waiting)
	}
	return 0
}

// wait returns when a waiter is called, or gives up; nil waits for nothing.
func (t *Turns) wait(w *waiter, patience time.Duration) {
	if w != nil {
		w.called.WaitFor(patience)
		t.leave(w)
	}
}

// enterLocked takes a turn, or returns a waiter for it; nil if tr has the turn or does not
// wait.
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

// giveLocked makes a turn a transaction's.
func (t *Turns) giveLocked(at *turn, tr *Transaction) {
	at.holder = tr
	tr.turns = append(tr.turns, at)
	tr.waitsFor = nil
}

// endWithLocked has a transaction pass on its turns when it ends. Its own goroutine
// calls it.
func (t *Turns) endWithLocked(tr *Transaction) {
	if !tr.takesTurns {
		tr.takesTurns = true
		tr.Tx.OnEnd(func() { t.passOn(tr) })
	}
}

// waitsForLocked reports whether the turn's holder waits, itself or for somebody who
// does, for the transaction.
func (at *turn) waitsForLocked(tr *Transaction) bool {
	for ; at != nil; at = at.holder.waitsFor {
		if at.holder == tr {
			return true
		}
	}
	return false
}

// leave has a waiter that was not called go on without the turn.
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
