package wire

import (
	"errors"
	"os"
	"time"

	"github.com/farmsql/farmsql/sql/myerr"
)

// lastRequestTime is how long a connection that ends with the server waits for a request that was on its
// way. Clients that send one after the other are told then that the last one was not executed; without an answer
// they could not know. Others find the connection closed before they send the next one.
const lastRequestTime = 100 * time.Millisecond

// leave is stopReading for a server that closes. Called again it does nothing, because the connection may be
// waiting for a request then: Close drains connections, and so does Serve, which it ends.
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

// answerLast waits for a request that was on its way, or the rest of one, of which begun has been read, and answers it with
// error 1053. All of it is read first, because closing a connection with bytes that were not read takes the answer away from
// the client. Requests that have no answer may come before it: the client sends the next one without waiting.
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
