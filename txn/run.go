package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// runPatience bounds how long Run goes on repeating a transaction.
const runPatience = 30 * time.Second

// Run runs fn in a transaction and commits it. If fn or the commit meets a conflict, Run waits for
// a random time and runs fn again from the beginning, until runPatience has passed. If fn fails
// with another error, Run aborts the transaction and returns that error, but only after it has
// validated the read set: fn may have failed because it saw objects that never coexisted. fn must
// not keep the Tx, which is reused after fn returns.
func (m *Machine) Run(ctx context.Context, fn func(*Tx) error) error {
	b := wait.Backoff{Lease: &m.Lease, Patience: runPatience}
	for {
		err := m.runOnce(ctx, fn)
		if !errors.Is(err, outcome.ErrConflict) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !b.Again() {
			return cmp.Or(m.ConfirmWithin(ctx), fmt.Errorf("txn: given up after %d attempts: %w", b.Tries(), err))
		}
	}
}

// runOnce runs fn in one transaction. If fn fails, its error counts only if the read set is valid, or if
// fn has ended the transaction itself (ErrDone).
func (m *Machine) runOnce(ctx context.Context, fn func(*Tx) error) error {
	t := m.txs.Get().(*Tx)
	t.state, t.kept = m.begin(t.kept), nil
	t.ctx = ctx
	defer m.giveBack(t)
	if err := fn(t); err != nil {
		if invalid := t.Validate(); invalid != nil && !errors.Is(invalid, ErrDone) {
			return invalid
		}
		return err
	}
	return t.Commit(ctx)
}

// giveBack ends a transaction of Run, and keeps its Tx for another transaction. In builds with checks
// it does not keep the Tx, so that code which still uses it gets ErrDone.
func (m *Machine) giveBack(t *Tx) {
	t.Abort()
	if !invariant.Enabled {
		m.txs.Put(t)
	}
}

// Written returns how many bytes of log the transaction's writes take so far, not counting changes of
// indexes. WriteBytesMax is the bound.
func (t *Tx) Written() int {
	if t.state == nil {
		return 0
	}
	return t.written
}

// WriteBytesMax is how many bytes of log the writes of one transaction can take.
func (m *Machine) WriteBytesMax() int { return m.writeBytesMax }
