package verbs

import (
	"errors"
	"time"
)

// stallTime is how long a connection may make no progress while operations of it are pending. It is longer than a card
// needs to give up a request (about 2 s with the timeout and the retries of card.h, and by the standard up to four times that).
const stallTime = 10 * time.Second

var errStalled = errors.New("nothing pending has been done for too long: the card completes no request, or the peer answers no question about memory")

// A card reports each request that it cannot complete, and a peer answers each question. A connection whose card or
// peer fails to do so would keep its workers waiting for ever, with both machines' leases valid. So while operations are
// pending, a timer looks for progress, and breaks a connection that has made none.

// watchLocked starts the timer, unless it runs.
func (c *conn) watchLocked() {
	if c.mu.stall == nil && !c.mu.broken {
		c.mu.seen = c.mu.progress
		c.mu.stall = time.AfterFunc(c.q.nic.cfg.stall, c.checkProgress)
	}
}

// checkProgress ends the timer of a connection that has nothing pending, and breaks one that has made no progress
// since the timer started. Before it breaks the connection it takes completions: one may have come without an event.
func (c *conn) checkProgress() {
	c.q.mu.Lock()
	isStalled := c.isPendingLocked() && c.mu.seen == c.mu.progress
	c.q.mu.Unlock()
	if isStalled {
		c.q.take()
	}
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.mu.stall = nil
	switch {
	case c.mu.over || !c.isPendingLocked():
	case c.mu.seen == c.mu.progress:
		c.breakLocked(errStalled)
	default:
		c.watchLocked()
	}
}

// isPendingLocked reports whether the card has to complete a request, or an operation waits. The last requests that
// the card has may be unsignalled: nobody waits for them, and no completion comes.
func (c *conn) isPendingLocked() bool {
	return c.mu.flow.done < c.mu.handed || len(c.mu.waiting) > 0
}
