package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/region"
)

// ErrUnavailable matches every *UnavailableError.
var ErrUnavailable = errors.New("txn: unavailable")

// An UnavailableError reports that something an operation needs has been missing for longer than
// Config.Patience: the machine's lease, a region that may be used, another machine's answer, the
// next configuration. The operation has changed nothing, unless the error is an ErrInDoubt, too.
// The same operation may succeed later, on the same machine.
type UnavailableError struct {
	// Needs names what is missing.
	Needs string
	// For is how long it has been missing.
	For time.Duration
	// Why is the text that Config.Missing returned; it may be empty.
	Why string
}

func (e *UnavailableError) Error() string {
	text := fmt.Sprintf("txn: unavailable: without %s for %v", e.Needs, e.For.Round(time.Millisecond))
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Is makes every UnavailableError match ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// A need is one operation's wait for something that only the rest of the instance can provide.
// Every such wait uses a need, so that it ends: when the machine is gone, when the context ends, or
// with an UnavailableError after Config.Patience.
type need struct {
	m *Machine
	// ctx ends the wait.
	ctx context.Context
	// what describes the missing thing in words; region is the region, if a region is missing.
	what   string
	region region.ID
	// since is the time since which the thing is known to be missing; if zero, it is the beginning
	// of the wait.
	since time.Time
	// more is added to the patience of this wait.
	more time.Duration
}

// over returns the reason why the wait has to end now, or nil.
func (n *need) over() error {
	if err := n.m.gone(); err != nil {
		return err
	}
	if err := n.ctx.Err(); err != nil {
		return err
	}
	now := n.m.cfg.Clock.Now()
	if n.since.IsZero() {
		n.since = now
	}
	if missing := now.Sub(n.since); missing >= n.m.patience()+n.more {
		return n.m.unavailable(n, missing)
	}
	// Without a lease, nothing else that the operation waits for will come.
	if n.m.cfg.Alive != nil && !n.m.cfg.Alive() {
		if missing := now.Sub(n.m.lapsed()); missing >= n.m.patience() {
			return n.m.unavailable(&need{what: noLease}, missing)
		}
	}
	return nil
}

// noLease is the need of a machine that cannot renew its lease, such as one in a minority.
const noLease = "a lease"

// isOver reports whether err is an error with which n ends a wait.
func (n *need) isOver(err error) bool {
	return errors.Is(err, ErrUnavailable) || n.ctx.Err() != nil && errors.Is(err, n.ctx.Err())
}

// pause sleeps for a moment, unless the wait has to end.
func (n *need) pause() error {
	err := n.over()
	if err == nil {
		n.m.cfg.Clock.Sleep(replacementPoll)
	}
	return err
}

// left returns how long to sleep before over can return something new.
func (n *need) left() time.Duration {
	left := n.since.Add(n.m.patience() + n.more).Sub(n.m.cfg.Clock.Now())
	if n.ctx.Done() != nil {
		left = min(left, contextPoll)
	}
	return max(min(left, hurryPoll), replacementPoll)
}

const (
	// contextPoll is how often a waiting operation checks whether its context has ended.
	contextPoll = 20 * time.Millisecond
	// hurryPoll is how often a waiting operation checks whether WaitAtMost was called.
	hurryPoll = 200 * time.Millisecond
)

func (m *Machine) unavailable(n *need, missing time.Duration) error {
	e := &UnavailableError{Needs: n.what, For: missing}
	if n.region != 0 {
		e.Needs = fmt.Sprintf("%s %d", n.what, n.region)
	}
	if m.cfg.Missing != nil {
		e.Why = m.cfg.Missing(n.region)
	}
	return e
}

// patience returns how long operations wait at present.
func (m *Machine) patience() time.Duration { return time.Duration(m.bound.Load()) }

// WaitAtMost replaces Config.Patience: operations wait for no longer than patience from now on, for
// instance because the machine is about to be closed.
func (m *Machine) WaitAtMost(patience time.Duration) {
	if int64(patience) < m.bound.Load() {
		m.bound.Store(int64(patience))
	}
}

// Available returns nil once this machine holds its lease and may read the region of the given
// address. It waits for at most Config.Patience, counted from when the lease or the region was
// first missing: if that is longer ago already, it fails at once.
func (m *Machine) Available(ctx context.Context, a region.Addr) error {
	if err := m.gone(); err != nil {
		return err
	}
	if err := m.ConfirmWithin(ctx); err != nil {
		return err
	}
	_, err := m.readable(ctx, a)
	return err
}

// Patience returns how long operations wait.
func (m *Machine) Patience() time.Duration { return m.patience() }

// Missed returns the error for a caller that has waited in vain since the given time. The text of
// the error names the thing that was waited for, as described by the first argument.
func (m *Machine) Missed(what string, since time.Time) error {
	return m.unavailable(&need{what: what}, m.cfg.Clock.Now().Sub(since))
}

// Confirm waits until it is known that this machine was a member at some moment after the call, and
// then returns nil: the caller may show what it has read before the call. Otherwise Confirm returns
// why the machine is gone, or ErrUnavailable.
func (m *Machine) Confirm() error { return m.ConfirmWithin(context.Background()) }

// ConfirmWithin is Confirm, but ends its wait when ctx ends.
func (m *Machine) ConfirmWithin(ctx context.Context) error {
	if m.cfg.Alive == nil || m.cfg.Alive() {
		return nil
	}
	n := need{m: m, ctx: ctx, what: noLease, since: m.lapsed()}
	for {
		if err := n.pause(); err != nil {
			return err
		}
		if m.cfg.Alive() {
			return nil
		}
	}
}

// servable returns an error if this machine has had no lease for longer than operations wait.
func (m *Machine) servable(ctx context.Context) error {
	if m.cfg.Alive == nil || m.cfg.Alive() {
		return nil
	}
	n := need{m: m, ctx: ctx, what: noLease, since: m.lapsed()}
	return n.over()
}

// lapsed returns the time at which this machine was first found to have no lease. The first call
// that finds the lease missing starts watchLease, which runs until there is a lease again.
func (m *Machine) lapsed() time.Time {
	now := m.cfg.Clock.Now()
	for {
		if since := m.lapse.Load(); since != nil {
			return *since
		}
		if m.lapse.CompareAndSwap(nil, &now) {
			m.serving.Add(1)
			m.cfg.Clock.Go(m.watchLease)
			return now
		}
	}
}

// lapsePoll is how often a machine that has lost its lease checks whether it has one again.
const lapsePoll = 2 * time.Millisecond

// watchLease waits until the lease is back and ends the lapse. It reports a lapse that lasts longer
// than operations wait to Events.
func (m *Machine) watchLease() {
	defer m.serving.Add(-1)
	n := need{m: m, ctx: context.Background(), what: noLease, since: *m.lapse.Load()}
	isTold := false
	for m.gone() == nil {
		if m.cfg.Alive() {
			m.lapse.Store(nil)
			if f := m.cfg.Events.Available; isTold && f != nil {
				f(m.cfg.Clock.Now().Sub(n.since))
			}
			return
		}
		if err := n.over(); !isTold && errors.Is(err, ErrUnavailable) {
			isTold = true
			if f := m.cfg.Events.Unavailable; f != nil {
				f(err)
			}
		}
		m.cfg.Clock.Sleep(lapsePoll)
	}
}
