package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql"
)

// A conn is a client's connection as the protocol server sees it. It refuses
// requests above Config.MaxPacketBytes before anyone allocates memory for them.
type conn struct {
	net.Conn
	mux    *mux
	source net.Listener // nil within the process
	id     uint32
	gone   chan struct{} // closed by mux.forget
	meter  packetMeter   // used by the reading goroutine
	isIn   bool          // authenticated; set by the reading goroutine
	counts counts

	deadline struct {
		sync.Mutex
		stopped bool // no later deadline may undo stopReading
	}
}

func newConn(c net.Conn, m *mux, source net.Listener) *conn {
	return &conn{
		Conn: c, mux: m, source: source, id: m.lastID.Add(1),
		gone:  make(chan struct{}),
		meter: packetMeter{limit: m.cfg.MaxPacketBytes},
	}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for err == nil && c.answersPing(p[:n], c.meter.isBetween()) {
		n, err = c.Conn.Read(p)
	}
	c.counts.add(bytesReceived, uint64(n))
	before := c.meter.ended
	if !c.meter.add(p[:n]) {
		_ = c.Conn.SetWriteDeadline(c.mux.cfg.Clock.Now().Add(time.Second))
		_, _ = c.Conn.Write(errorPacket(c.meter.header[3]+1, errPacketTooLarge, "08S01",
			"Got a packet bigger than 'max_allowed_packet' bytes"))
		return 0, fmt.Errorf("wire: a packet over %d bytes (max_allowed_packet)", c.meter.limit)
	}
	if err == nil && !c.isIn && c.source != nil && c.mux.refresh != nil && (c.meter.opaque || c.meter.ended > before) {
		err = c.refresh() // before anybody looks whether what was read is a password
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.add(bytesSent, uint64(max(n, 0)))
	return n, err
}

// refresh sees to it that the client is authenticated by the accounts that there are now,
// or says why not, which through TLS cannot be said here.
func (c *conn) refresh() error {
	said := c.mux.cfg.available() // which waits no longer than statements do
	if said == nil {
		said = sql.SQLError(c.mux.refresh(context.Background()))
	}
	if said == nil {
		return nil
	}
	if c.meter.opaque {
		return said
	}
	_ = c.Conn.SetWriteDeadline(c.mux.cfg.Clock.Now().Add(time.Second))
	_, _ = c.Conn.Write(errorPacket(c.meter.header[3]+1, uint16(said.Num), said.State, said.Message))
	return said
}

// connOf returns the connection that the server has accepted, below TLS if there is any.
func connOf(c *mysql.Conn) *conn {
	switch accepted := c.Conn.(type) {
	case *conn:
		return accepted
	case *tls.Conn:
		below, _ := accepted.NetConn().(*conn)
		return below
	}
	return nil
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.mux.forget(c)
	return err
}

// SetDeadline is used around the handshake.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if c.deadline.stopped {
		return c.Conn.SetWriteDeadline(t)
	}
	return c.Conn.SetDeadline(t)
}

// stopReading makes the connection end once it waits for its next request. A
// statement that runs still gets its answer out.
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

// A packetMeter follows the packet headers in what a client sends. A request
// of 2^24-1 bytes or more comes as several packets, which count as one.
type packetMeter struct {
	limit   int64
	request int64 // payload bytes of the request so far
	left    int   // payload bytes missing from the current packet
	header  [4]byte
	have    int // header bytes seen
	packets int
	ended   int  // packets that have come whole
	opaque  bool // TLS from here on
}

const (
	packetBytesMax = 1<<24 - 1
	// The packet that asks for TLS is the handshake response cut off before
	// the user name: 32 bytes, which no full response is.
	tlsRequestBytes = 32
)

// add follows the bytes of p and reports whether the request is within limits.
func (m *packetMeter) add(p []byte) bool {
	for len(p) > 0 && !m.opaque {
		if m.left > 0 {
			n := min(m.left, len(p))
			m.left -= n
			p = p[n:]
			if m.left == 0 {
				m.ended++
			}
			m.opaque = m.left == 0 && m.packets == 1 && m.length() == tlsRequestBytes
			continue
		}
		n := copy(m.header[m.have:], p)
		m.have += n
		p = p[n:]
		if m.have == len(m.header) && !m.begin() {
			return false
		}
	}
	return true
}

// isBetween says whether the next byte is the first of a packet that can be read.
func (m *packetMeter) isBetween() bool { return m.left == 0 && m.have == 0 && !m.opaque }

// begin starts the packet whose header is complete.
func (m *packetMeter) begin() bool {
	m.have = 0
	m.packets++
	m.left = m.length()
	if m.left == 0 {
		m.ended++
	}
	m.request += int64(m.left)
	if m.request > m.limit {
		return false
	}
	if m.left < packetBytesMax {
		m.request = 0 // the last packet of its request
	}
	return true
}

func (m *packetMeter) length() int {
	return int(m.header[0]) | int(m.header[1])<<8 | int(m.header[2])<<16
}
