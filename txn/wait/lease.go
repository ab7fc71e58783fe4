package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/region"
)

// A Lease watches whether the machine has its lease: without one, nothing that the machine waits for
// will come. It also has the bound of all waits of the machine's operations.
type Lease struct {
	cfg   Config
	bound atomic.Int64              // how long operations wait
	lapse atomic.Pointer[time.Time] // since when there has been no lease; nil if there is one
}

// Config holds the parts of a machine that waits need. Alive, Missing, Unavailable and Available
// are those of worker.Config, and may be nil.
type Config struct {
	Clock clock.Clock
	// Patience is how long operations wait; patienceDefault if 0.
	Patience time.Duration
	Alive    func() bool
	Missing  func(region.ID) string
	// Gone returns the reason why the machine can do nothing any more, or nil.
	Gone func() error
	// Background runs a function on a new goroutine, unless the machine is closed.
	Background  func(func())
	Unavailable func(reason error)
	Available   func(after time.Duration)
}

const patienceDefault = 30 * time.Second

// Start sets up l.
func Start(l *Lease, cfg Config) {
	l.cfg = cfg
	l.bound.Store(int64(cmp.Or(cfg.Patience, patienceDefault)))
}

// WaitAtMost lowers the patience: from now on operations wait for no longer than the given time, for
// instance because the machine is about to be closed.
func (l *Lease) WaitAtMost(patience time.Duration) {
	if int64(patience) < l.bound.Load() {
		l.bound.Store(int64(patience))
	}
}

// Patience returns how long operations wait.
func (l *Lease) Patience() time.Duration { return time.Duration(l.bound.Load()) }

// Missed returns the error for a caller that has waited since the given time for something that did
// not come; what names it in the text.
func (l *Lease) Missed(what string, since time.Time) error {
	return l.unavailable(&Need{What: what}, l.cfg.Clock.Now().Sub(since))
}

// Confirm waits until the machine has a lease. Then it was a member at some moment after the call, so
// the caller may show the results of reads made before. Confirm fails if the machine is gone, or with
// ErrUnavailable.
func (l *Lease) Confirm() error { return l.ConfirmWithin(context.Background()) }

// Held reports whether this machine holds its lease now. A machine that is never replaced always
// does.
func (l *Lease) Held() bool { return l.cfg.Alive == nil || l.cfg.Alive() }

// ConfirmWithin is Confirm, but ends its wait when ctx ends.
func (l *Lease) ConfirmWithin(ctx context.Context) error {
	if l.Held() {
		return nil
	}
	n := Need{Lease: l, Ctx: ctx, What: noLease, Since: l.lapsed()}
	for {
		if err := n.Pause(); err != nil {
			return err
		}
		if l.cfg.Alive() {
			return nil
		}
	}
}

// lapsed is called when the lease is missing. It returns the time of the first such call, which also
// starts watch; watch runs until there is a lease again.
func (l *Lease) lapsed() time.Time {
	now := l.cfg.Clock.Now()
	for {
		if since := l.lapse.Load(); since != nil {
			return *since
		}
		if l.lapse.CompareAndSwap(nil, &now) {
			l.cfg.Background(l.watch)
			return now
		}
	}
}

// LapsePoll is the interval at which a machine that has lost its lease checks whether it has one
// again.
const LapsePoll = 2 * time.Millisecond

// watch waits until the lease is back and ends the lapse. It reports a lapse that lasts longer
// than operations wait.
func (l *Lease) watch() {
	n := Need{Lease: l, Ctx: context.Background(), What: noLease, Since: *l.lapse.Load()}
	hasReported := false
	for l.cfg.Gone() == nil {
		if l.cfg.Alive() {
			l.lapse.Store(nil)
			if f := l.cfg.Available; hasReported && f != nil {
				f(l.cfg.Clock.Now().Sub(n.Since))
			}
			return
		}
		if err := n.Over(); !hasReported && errors.Is(err, ErrUnavailable) {
			hasReported = true
			if f := l.cfg.Unavailable; f != nil {
				f(err)
			}
		}
		l.cfg.Clock.Sleep(LapsePoll)
	}
}

func (l *Lease) unavailable(n *Need, missing time.Duration) error {
	e := &UnavailableError{Needs: n.What, For: missing}
	if n.Region != 0 {
		e.Needs = fmt.Sprintf("%s %d", n.What, n.Region)
	}
	if l.cfg.Missing != nil {
		e.Why = l.cfg.Missing(n.Region)
	}
	return e
}

// Servable returns an error if this machine has no lease and either has had none for longer than
// operations wait, or is gone, or ctx has ended.
func (l *Lease) Servable(ctx context.Context) error {
	if l.Held() {
		return nil
	}
	n := Need{Lease: l, Ctx: ctx, What: noLease, Since: l.lapsed()}
	return n.Over()
}
