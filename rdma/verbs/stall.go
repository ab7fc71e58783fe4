package verbs

import (
	"errors"
	"time"
)

// stallTime is how long a connection may make no progress while operations of it are pending. It is longer than a card
// needs to give up a request (about 2 s with the timeout and the retries of card.h, and by the standard up to four times that).
const stallTime = 10 * time.Second

// stallLooks is how often the timer of a connection looks for progress in stallTime.
const stallLooks = 10

var errStalled = errors.New("nothing pending has been done for too long: the card completes no request, or the peer answers no question about memory")

// A card reports each request that it cannot complete, and a peer answers each question. A connection whose card or
// peer fails to do so would keep its workers waiting for ever, with both machines' leases valid. So while something is
// pending, a timer looks for progress. If there was none since the last look, it nudges the card: it posts a request that
// does nothing. After stallTime without progress it breaks the connection.
//
// Soft-RoCE has needed both. Its fenced requests wait until the READs before them are done. If the last READ is done
// after the kernel has looked for that and before it has noted that a request waits (wait_fence in rxe_req.c), the kernel
// does not look at the request again until somebody posts another one. Whoever waits for the request, or for the answer
// to the message in it, may post none. Sometimes a further post did not help either. Soft-RoCE gets no fenced requests
// any more (isHeldBackLocked). Unsignalled requests may be forgotten, too, so they are pending until a completion shows
// that they are done.

// watchLocked starts the timer, unless it runs.
func (c *conn) watchLocked() {
	if c.mu.stall == nil && !c.mu.broken {
		c.mu.idleLooks = 0
		c.lookLaterLocked()
	}
}

// lookLaterLocked starts the timer.
func (c *conn) lookLaterLocked() {
	c.mu.seen = c.mu.progress
	c.mu.stall = time.AfterFunc(c.q.nic.cfg.stall/stallLooks, c.look)
}

// look looks for progress. Before it nudges the card, it takes completions: one may have come without an event.
func (c *conn) look() {
	if c.isIdle() {
		c.q.take()
	}
	c.q.mu.Lock()
	isNews := c.judgeLocked()
	c.q.mu.Unlock()
	if isNews {
		c.q.bell.Ring()
	}
}

// isIdle reports whether something is pending, and there was no progress since the last look.
func (c *conn) isIdle() bool {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	return c.isPendingLocked() && c.mu.seen == c.mu.progress
}

// judgeLocked ends the timer of a connection that has nothing pending, nudges the card of one that has made no progress
// since the last look, and breaks one that has made none for stallTime. It reports whether the bell has to ring.
func (c *conn) judgeLocked() (isNews bool) {
	c.mu.stall = nil
	switch {
	case c.mu.broken || !c.isPendingLocked():
		return false
	case c.mu.seen != c.mu.progress:
		c.mu.idleLooks = 0
		c.lookLaterLocked()
		return false
	case c.mu.idleLooks+1 >= stallLooks && c.isOwedLocked():
		c.breakLocked(errStalled)
		return false
	}
	c.mu.idleLooks++
	c.lookLaterLocked() // before the nudge, which would start the timer anew
	return c.nudgeLocked()
}

// isPendingLocked reports whether the card has requests that are not known to be done, or an operation waits.
func (c *conn) isPendingLocked() bool { return c.mu.flow.done < c.mu.given || len(c.mu.waiting) > 0 }

// isOwedLocked reports whether a completion or an answer has to come. After unsignalled requests none comes.
func (c *conn) isOwedLocked() bool { return c.mu.flow.done < c.mu.handed || len(c.mu.waiting) > 0 }

// nudgeLocked posts a WRITE of no bytes, whose completion shows that all requests before it are done. If operations have been posted
// and not flushed, the flush will be the nudge. nudgeLocked reports whether the bell has to ring.
func (c *conn) nudgeLocked() (isNews bool) {
	if c.mu.flow.done == c.mu.given || len(c.mu.batch) > 0 || c.mu.flow.room() < 1 {
		return false
	}
	c.q.mu.nudges++
	c.emptyWriteLocked(nudging)
	return c.q.exchangeLocked()
}
