package wire

import (
	"errors"
	"os"
	"time"

	"github.com/farmsql/farmsql/sql/myerr"
)

// lastRequestTime is how long a connection waits, when the server closes, for a request that was on its way. A client
// that sends requests one after the other learns from the answer that its last request was not executed. Other clients
// find the connection closed before they send their next request.
const lastRequestTime = 100 * time.Millisecond

// leave is stopReading for a server that closes. Both Close and the Serve that Close ends call it. The second call does
// nothing, because the connection may be waiting for its last request by then.
func (c *conn) leave() {
	c.deadline.Lock()
	wasLeaving := c.deadline.leaving
	c.deadline.leaving = true
	c.deadline.Unlock()
	if !wasLeaving {
		c.stopReading()
	}
}

// isLeaving reports whether a read of requests has ended because the server closes.
// Connections within the process are closed by the process itself, in good order.
func (c *conn) isLeaving(err error) bool {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	return c.deadline.leaving && errors.Is(err, os.ErrDeadlineExceeded) && c.isIn && c.source != nil && !c.sendsFile
}

// answerLast waits for a request that was on its way, and answers it with error 1053. begun is the part of the request
// that has been read. answerLast reads the rest before it answers: closing a connection with unread bytes takes the
// answer away from the client. It skips requests that have no answer, because the client sends another one after these
// without waiting.
func (c *conn) answerLast(begun []byte) {
	c.deadline.Lock()
	_ = c.Conn.SetReadDeadline(c.mux.cfg.Clock.Now().Add(c.mux.cfg.lastRequestTime))
	c.deadline.Unlock()
	c.meter.add(begun)
	for isAnswered := false; !isAnswered; isAnswered = c.meter.isAnswered() {
		if err := c.endRequest(); err != nil {
			return
		}
	}
	c.tell(myerr.Shutdown.New())
}

// endRequest reads a request, or the rest of one, and nothing of the next.
func (c *conn) endRequest() error {
	header, body := make([]byte, packetHeaderBytes), []byte(nil)
	for before := c.meter.ended; c.meter.ended == before || c.meter.request > 0; {
		b := header[c.meter.have:]
		if left := c.meter.left; left > 0 {
			if body == nil {
				body = make([]byte, min(left, 8<<10))
			}
			b = body[:min(left, len(body))]
		}
		n, err := c.read(b)
		c.meter.add(b[:n])
		if err != nil {
			return err
		}
	}
	return nil
}
