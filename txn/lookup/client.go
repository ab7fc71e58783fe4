package lookup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// ErrUndecided means that reads did not decide a search, and that it did not know where to read
// next.
var ErrUndecided = errors.New("lookup: undecided")

// ownersMax bounds how often a lookup asks again because the owner was lost. Each time the machines have moved to
// another configuration.
const ownersMax = 64

// A Client looks up keys of one structure from one machine. It is safe for concurrent use.
type Client struct {
	m       *txn.Machine
	handler worker.HandlerID
	reads   int
	asked   atomic.Uint64
}

// NewClient returns a client of the structure that h names (Serve).
func NewClient(m *txn.Machine, h worker.HandlerID, w Way) *Client {
	return &Client{m: m, handler: h, reads: w.reads(m.Costs())}
}

// Asked returns how many messages the client has sent.
func (c *Client) Asked() uint64 { return c.asked.Load() }

// Find decides s by READs through r, then by the owner's answer, or by more READs if the owner
// refuses. r, a transaction or an operation, must stay open until Find returns.
func (c *Client) Find(ctx context.Context, r Reader, s Search) error { return c.GoOn(ctx, r, s, 0) }

// GoOn is Find for a caller that has done READs itself, as many as reads says, and has given s
// their results.
func (c *Client) GoOn(ctx context.Context, r Reader, s Search, reads int) error {
	readsMax := c.reads
	if c.m.IsPrimary(s.Owner()) {
		readsMax = unbounded
	}
	decided, err := follow(r, s, max(readsMax-reads, 0), readsMax == unbounded)
	if decided || err != nil {
		return err
	}
	err = c.ask(ctx, s)
	if !isRefusal(err) {
		return err
	}
	if decided, failed := follow(r, s, unbounded, true); decided || failed != nil {
		return failed
	}
	return fmt.Errorf("%w: %w", ErrUndecided, err)
}

// Walk decides s by reads through r alone.
func Walk(r Reader, s Search) error {
	decided, err := follow(r, s, unbounded, true)
	if err == nil && !decided {
		err = ErrUndecided
	}
	return err
}

// rooms keeps memory for the objects read at a place, so that a lookup allocates nothing.
var rooms = sync.Pool{New: func() any { return new([2]Object) }}

// follow reads one place after the other, at most readsMax, until one decides s or s knows no further
// place. walk is the argument of Search.Start.
func follow(r Reader, s Search, readsMax int, walk bool) (decided bool, err error) {
	room := rooms.Get().(*[2]Object)
	defer rooms.Put(room)
	defer clear(room[:])
	for range readsMax {
		at, known := s.Start(walk)
		if !known {
			return false, nil
		}
		got, failed := read(r, at, room[:0])
		if decided, err = s.End(got, failed); decided || err != nil {
			return decided, err
		}
	}
	return false, nil
}

// ask asks the owner.
func (c *Client) ask(ctx context.Context, s Search) error {
	request := s.Request(nil)
	for n := 1; ; n++ {
		c.asked.Add(1)
		reply, err := c.m.Ship(ctx, s.Owner(), c.handler, request)
		if errors.Is(err, outcome.ErrInDoubt) && n < ownersMax {
			continue // the owner has failed: another machine is the primary now
		}
		if err != nil {
			return err
		}
		a, err := decodeAnswer(reply)
		if err != nil {
			return err
		}
		return s.Learn(a)
	}
}

// isRefusal reports whether err, the error of a message to the owner, is a reason to go on by
// READs: the message or its answer was too long; the owner is leaving, and READs wait for its
// successor; or the owner met an error of which only the text has come (Unwrap returns nil): this machine
// will meet the error itself, and can then tell what it is.
func isRefusal(err error) bool {
	if errors.Is(err, outcome.ErrTooLarge) {
		return true
	}
	var shipped *outcome.ShippedError
	if !errors.As(err, &shipped) {
		return false
	}
	return shipped.Unwrap() == nil || errors.Is(err, outcome.ErrClosed) || errors.Is(err, outcome.ErrEvicted)
}
