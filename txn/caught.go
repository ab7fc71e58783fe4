package txn

import (
	"context"
	"errors"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn/commitstate"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
	"github.com/farmsql/farmsql/txn/worker"
)

// recovered waits for recovery's decision about the commit, and returns it as fate does. why is the
// error that made this necessary. If the decision does not come in time (wait.ErrUnavailable), the
// commit is detached and in doubt.
func (s *state) recovered(why error) error {
	w, c := s.w, &s.commit
	err := w.Strand(&c.Commit, why)
	if err != nil {
		return outcome.InDoubt(err)
	}
	// The caller of Commit cannot take it back any more: its context does not count.
	n := wait.Need{Lease: &s.m.Lease, Ctx: context.Background(), What: "the outcome of a commit, which recovery decides", More: c.allowance()}
	if err = w.AwaitWithin(&c.Resolved, &n); errors.Is(err, wait.ErrUnavailable) {
		c.detached = true
		return outcome.InDoubt(err)
	}
	return s.fate(err)
}

// fate returns the outcome that recovery has decided: nil for a commit, ReasonMoved for an abort. If err
// is not nil, this machine will not learn the decision, and the commit is in doubt.
func (s *state) fate(err error) error {
	w, c := s.w, &s.commit
	w.Lock()
	if err != nil {
		c.EnterLocked(commitstate.InDoubt)
	}
	state := c.State()
	w.Unlock()
	switch {
	case err != nil:
		return outcome.InDoubt(err)
	case state == commitstate.RecoveredCommitted:
		return nil
	}
	return abort(ReasonMoved, 0)
}

// aborted waits until recovery has aborted the commit, and returns nil then. The commit had not come far
// enough for recovery to decide otherwise.
func (s *state) aborted() error {
	err := s.recovered(worker.ErrCaught)
	if err == nil {
		invariant.Violated("a transaction commits only if all was locked and valid", s.commit.ID, "committed by recovery")
	}
	var u *wait.UnavailableError
	if s.commit.detached && errors.As(err, &u) {
		return u // recovery has not decided yet, but can only abort it
	}
	if errors.Is(err, outcome.ErrInDoubt) {
		return err
	}
	s.locked = false
	return nil
}

// reportable returns nil if the machine may report its commit as a success, which Confirm determines.
// If not, a transaction that has written is in doubt: its writes have been committed.
func (t *Tx) reportable() error {
	if sabotage.CommitConfirm.Skipped() {
		return nil
	}
	if t.commit.State().IsWithoutEffect() {
		return t.m.ConfirmWithin(t.ctx)
	}
	if err := t.m.Confirm(); err != nil {
		return outcome.InDoubt(err)
	}
	return nil
}
