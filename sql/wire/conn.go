package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/myerr"
)

// A conn is a client's connection as the protocol library sees it: without TLS, which is
// below the conn. So the conn sees all that a client sends as plain text: it refuses requests
// above the limit before memory is allocated for them, and answers requests that the library
// cannot.
type conn struct {
	net.Conn
	mux    *mux
	source net.Listener // nil for a connection within the process
	id     uint32
	host   string        // the client's address without its port
	since  time.Time     // when it was accepted
	gone   chan struct{} // closed by mux.forget
	secure atomic.Pointer[tls.Conn]
	// isInside is set while the connection counts among those that have logged in; guarded by
	// mux.mu.
	isInside bool

	// Used by the goroutine that serves the connection.
	opened bool        // the client has answered the greeting
	ahead  []byte      // bytes read from the client and not yet returned by Read
	meter  packetMeter // measures the requests
	sent   framing     // the writing side while sequence numbers are shifted
	rows   rowStream   // the rows that are sent beside the library's packets
	isIn   bool        // authenticated, and admitted
	counts counts
	// sendsFile is set while the client sends the contents of a file: they are not requests.
	sendsFile bool
	// preparing is the statement that the client prepares; nil once the handler has taken it.
	// The library has a stand-in in its place.
	preparing *string
	// command answers a request of one byte in place of the library; nil leaves the request
	// to the library. It is set once the client has logged in.
	command func(request byte) *reply
	// began is the watch's tick at which the running statement began; 0 if none runs.
	began atomic.Uint32

	deadline struct {
		lockrank.Mutex[lockrank.Leaf]
		stopped bool // set by stopReading: its deadline must not be replaced
		leaving bool // set by leave: a request that is on its way gets an answer
	}
}

// handshakeBytesMax bounds a packet of a client that has not logged in, as in MySQL: the
// longest has a name, a database, a scrambled password and 64 KB of attributes.
const handshakeBytesMax = 1<<16 + 1<<12

func newConn(c net.Conn, m *mux, source net.Listener) *conn {
	id := m.lastID.Add(1)
	made := &conn{
		Conn: newSocket(c, id, &m.latest), mux: m, source: source, id: id, since: m.cfg.Clock.Now(),
		gone:  make(chan struct{}),
		meter: packetMeter{limit: min(handshakeBytesMax, m.cfg.MaxPacketBytes)},
	}
	made.host, _, _ = net.SplitHostPort(made.RemoteAddr().String()) // empty for a connection within the process
	return made
}

// stream returns the connection on the network: TLS, if the client has asked for it.
func (c *conn) stream() net.Conn {
	if s := c.secure.Load(); s != nil {
		return s
	}
	return c.Conn
}

// Read implements net.Conn for the protocol library.
func (c *conn) Read(p []byte) (int, error) {
	if !c.opened {
		c.opened = true
		if err := c.open(); err != nil {
			return 0, err
		}
	}
	c.rows.shift = 0 // the library has finished its answer, and counts from 0 again
	n, err := c.read(p)
	for again := true; err == nil && again; {
		again, err = c.intercept(p[:n])
		if again {
			n, err = c.read(p)
		}
	}
	if c.isLeaving(err) {
		c.answerLast(p[:n])
		return 0, err
	}
	if c.sendsFile && c.meter.isBetween() && n == packetHeaderBytes && packetLength(p) == 0 {
		c.sendsFile = false // an empty packet ends the file
	}
	c.counts.add(bytesReceived, uint64(n))
	before := c.meter.ended
	if !c.meter.add(p[:n]) {
		c.refuseLong()
		return 0, fmt.Errorf("wire: a packet, or long data, over %d bytes (max_allowed_packet)", c.meter.limit)
	}
	if err == nil && !c.isIn && c.source != nil && c.mux.refresh != nil && c.meter.ended > before {
		err = c.refresh() // before the library reads the accounts to check a password
	}
	return n, err
}

// read reads the next bytes: at least the first byte of a request, and nothing of the
// following request.
func (c *conn) read(p []byte) (n int, err error) {
	isRequest := c.isIn && c.meter.isBetween()
	n = copy(p, c.ahead)
	c.ahead = c.ahead[n:]
	// Read a request at least up to its command, the first byte after the header.
	for n == 0 || (isRequest && n < len(p) && (n < packetHeaderBytes || (n == packetHeaderBytes && packetLength(p) > 0))) {
		var more int
		more, err = c.stream().Read(p[n:])
		n += more
		if err != nil {
			return n, err
		}
	}
	if c.isIn {
		n = c.cut(p[:n])
	}
	return n, nil
}

// cut returns how many bytes of p belong to its first packet, and puts the rest back. It takes all of p for one packet
// while the packet's header is not complete.
func (c *conn) cut(p []byte) int {
	end := c.meter.left
	if c.meter.isBetween() && len(p) >= packetHeaderBytes {
		end = packetHeaderBytes + packetLength(p)
	}
	if end == 0 || end >= len(p) {
		return len(p)
	}
	c.ahead = append(append([]byte(nil), p[end:]...), c.ahead...)
	return end
}

// localInfile begins the answer to LOAD DATA LOCAL that asks for the file.
const localInfile = 0xfb

// Write implements net.Conn for the protocol library. It notes that the client will send a file
// next, and renumbers the packets after the handshake of TLS.
func (c *conn) Write(p []byte) (int, error) {
	if c.isIn && len(p) > packetHeaderBytes && p[3] == 1 && p[packetHeaderBytes] == localInfile {
		c.sendsFile = true
	}
	if c.rows.state == holding {
		c.rows.held = append(c.rows.held, p...)
		return len(p), nil
	}
	all := p
	if shift := c.meter.shift + c.rows.shift; shift != 0 {
		all = append([]byte(nil), p...)
		c.sent.renumber(all, shift)
	}
	if c.rows.state == waiting {
		all = c.rows.before(all)
	}
	n, err := c.stream().Write(all)
	c.counts.add(bytesSent, uint64(max(n, 0)))
	return max(0, n-len(all)+len(p)), err
}

// refresh reads the accounts again if they have changed, so that the client is authenticated
// by the present ones. If it fails, it tells the client why.
func (c *conn) refresh() error {
	// Ask this first: it fails after the time for which a statement waits for other machines.
	refused := c.mux.cfg.available()
	if refused == nil {
		refused = myerr.Of(c.mux.refresh(context.Background()))
	}
	if refused == nil {
		return nil
	}
	c.tell(refused)
	return refused
}

// tell answers the latest packet with an error.
func (c *conn) tell(e *mysql.SQLError) {
	c.answer(c.meter.header[:], e)
}

// answer answers a packet, whose header is given, with an error.
func (c *conn) answer(header []byte, e *mysql.SQLError) {
	c.send(errorPacket(header[3]+1, uint16(e.Num), e.State, e.Message))
}

// send writes a packet of this package's. The next read shows if it fails.
func (c *conn) send(packet []byte) {
	_ = c.Conn.SetWriteDeadline(c.mux.cfg.Clock.Now().Add(time.Second))
	_, _ = c.stream().Write(packet)
	_ = c.Conn.SetWriteDeadline(time.Time{})
}

// lingerTime bounds how long the server reads and drops the rest of a refused request.
const lingerTime = 10 * time.Second

// refuseLong tells a client that its request is too long. If the connection were closed with
// unread bytes, the client would not get the error, so refuseLong first reads and drops them,
// except from a client that has not logged in.
func (c *conn) refuseLong() {
	c.deadline.Lock()
	if !c.deadline.stopped {
		_ = c.Conn.SetReadDeadline(c.mux.cfg.Clock.Now().Add(lingerTime))
	}
	c.deadline.Unlock()
	if c.isIn {
		c.skipRequest()
	}
	c.tell(myerr.PacketTooLarge.New())
	if secure := c.secure.Load(); secure != nil {
		_ = secure.CloseWrite()
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.isIn && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, onlyReader{c.stream()}) // wait until the client has read the error
	}
}

// skipRequest reads the rest of a request.
func (c *conn) skipRequest() {
	b := make([]byte, 8<<10)
	for c.meter.request > 0 {
		n, err := c.stream().Read(b)
		c.meter.add(b[:n])
		if err != nil {
			return
		}
	}
}

// onlyReader hides all methods but Read from io.Copy.
type onlyReader struct{ io.Reader }

// connOf returns the connection that the server has accepted.
func connOf(c *mysql.Conn) *conn {
	accepted, _ := c.Conn.(*conn)
	return accepted
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.stream().Close()
	c.mux.forget(c)
	if errors.Is(err, net.ErrClosed) {
		return nil // register has closed the connection
	}
	return err
}

// SetDeadline implements net.Conn; the protocol library calls it around the handshake. It keeps
// the read deadline that stopReading has set.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if c.deadline.stopped {
		return c.Conn.SetWriteDeadline(t)
	}
	return c.Conn.SetDeadline(t)
}

// stopReading makes the connection end when it waits for its next request. A running
// statement still sends its answer.
func (c *conn) stopReading() {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.deadline.stopped = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// RemoteAddr of an in-process connection is the loopback, which is where
// accounts at localhost may come from.
func (c *conn) RemoteAddr() net.Addr {
	if c.source == nil {
		return localAddr{}
	}
	return c.Conn.RemoteAddr()
}

type localAddr struct{}

func (localAddr) Network() string { return "pipe" }
func (localAddr) String() string  { return "localhost" }
