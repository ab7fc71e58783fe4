package wait

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
	// Needs names the missing thing.
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

// A Need is one operation's wait for something that only other machines can provide. Every such wait
// uses a Need, so that it ends: when the machine is gone, when the context ends, or with an
// UnavailableError after Config.Patience.
type Need struct {
	Lease *Lease
	// Ctx ends the wait.
	Ctx context.Context
	// What describes the missing thing in words; Region is the region, if a region is missing.
	What   string
	Region region.ID
	// Since is the time at which the thing was first found missing. If zero, the first call of Over
	// sets it.
	Since time.Time
	// More is added to the patience of this wait.
	More time.Duration
}

// Over returns the reason why the wait has to end now, or nil.
func (n *Need) Over() error {
	if err := n.Lease.cfg.Gone(); err != nil {
		return err
	}
	if err := n.Ctx.Err(); err != nil {
		return err
	}
	now := n.Lease.cfg.Clock.Now()
	if n.Since.IsZero() {
		n.Since = now
	}
	if missing := now.Sub(n.Since); missing >= n.Lease.Patience()+n.More {
		return n.Lease.unavailable(n, missing)
	}
	// Without a lease, nothing else that the operation waits for will come.
	if n.Lease.cfg.Alive != nil && !n.Lease.cfg.Alive() {
		if missing := now.Sub(n.Lease.lapsed()); missing >= n.Lease.Patience() {
			return n.Lease.unavailable(&Need{What: noLease}, missing)
		}
	}
	return nil
}

// noLease is the need of a machine that cannot renew its lease, such as one in a minority.
const noLease = "a lease"

// IsOver reports whether err says that n's patience or context is over: it is an ErrUnavailable, or
// the error of the context. The missing thing may then still come. IsOver does not match the error
// of a machine that is gone, although Over returns that, too: the machine ends its pending operations
// itself.
func (n *Need) IsOver(err error) bool {
	return errors.Is(err, ErrUnavailable) || (n.Ctx.Err() != nil && errors.Is(err, n.Ctx.Err()))
}

// Pause sleeps for a moment, unless the wait has to end.
func (n *Need) Pause() error {
	err := n.Over()
	if err == nil {
		n.Lease.cfg.Clock.Sleep(RetryPoll)
	}
	return err
}

// Left returns how long a waiting operation may sleep before it has to call Over again.
func (n *Need) Left() time.Duration {
	left := n.Since.Add(n.Lease.Patience() + n.More).Sub(n.Lease.cfg.Clock.Now())
	if n.Ctx.Done() != nil {
		left = min(left, contextPoll)
	}
	return max(min(left, hurryPoll), RetryPoll)
}

const (
	// RetryPoll is the interval at which a waiting operation tries again.
	RetryPoll = 200 * time.Microsecond
	// contextPoll is the interval at which a waiting operation checks whether its context has
	// ended.
	contextPoll = 20 * time.Millisecond
	// hurryPoll is the interval at which a waiting operation checks whether WaitAtMost was called.
	hurryPoll = 200 * time.Millisecond
)
