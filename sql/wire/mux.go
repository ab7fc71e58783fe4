package wire

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/myerr"
)

// A mux merges many net.Listeners, and the in-process connections, into one. The
// protocol servers of all engines accept from it in turn, so that clients are
// spread over them.
type mux struct {
	cfg Config
	// refresh is Engine.Refresh.
	refresh func(context.Context) error
	ready   chan *conn // accepted, waiting for a protocol server
	done    chan struct{}
	room    chan struct{} // signals that fewer clients wait to log in
	lastID  atomic.Uint32
	watch   watch
	// latest is the id of the connection that has read a request last.
	latest atomic.Uint32

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		closed    bool
		listeners map[net.Listener]struct{}
		open      map[*conn]struct{}
		most      int                  // the largest number open at one time
		ended     [countedKinds]uint64 // the counters of closed connections, summed up
		// entering are the connections from listeners that have not logged in; inside is the
		// number of those that have.
		entering map[*conn]struct{}
		inside   int
	}
}

var _ net.Listener = (*mux)(nil)

func newMux(cfg Config) *mux {
	m := &mux{cfg: cfg, ready: make(chan *conn), done: make(chan struct{}), room: make(chan struct{}, 1)}
	m.mu.listeners = make(map[net.Listener]struct{})
	m.mu.open = make(map[*conn]struct{})
	m.mu.entering = make(map[*conn]struct{})
	m.watch.clock, m.watch.connections = cfg.Clock, m.connections
	m.watch.tick.Store(1)
	return m
}

// Accept hands the next connection to a protocol server.
func (m *mux) Accept() (net.Conn, error) {
	select {
	case c := <-m.ready:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener; it stands for all listeners.
func (m *mux) Addr() net.Addr { return localAddr{} }

// Close implements net.Listener: a protocol server calls it to stop.
func (m *mux) Close() error {
	m.close()
	return nil
}

// close stops all listeners. Connections stay open.
func (m *mux) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return
	}
	m.mu.closed = true
	close(m.done)
	for l := range m.mu.listeners {
		_ = l.Close()
	}
}

// accept takes connections from l until it fails or the mux closes.
func (m *mux) accept(l net.Listener) error {
	m.mu.Lock()
	if m.mu.closed {
		m.mu.Unlock()
		_ = l.Close()
		return ErrClosed
	}
	m.mu.listeners[l] = struct{}{}
	m.mu.Unlock()
	defer func() {
		_ = l.Close()
		m.mu.Lock()
		delete(m.mu.listeners, l)
		m.mu.Unlock()
	}()
	var last spare
	defer last.release()
	for isFailing := false; ; {
		last.keep()
		c, err := l.Accept()
		if isTemporary(err) {
			if !isFailing {
				m.cfg.Logger.Error("clients are refused: no connection can be accepted; raise the limit of open files (ulimit -n)", "error", err)
			}
			isFailing = true
			if !isExhausted(err) || !m.turnAway(l, &last) {
				m.cfg.Clock.Sleep(acceptRetry)
			}
			continue
		}
		if isFailing && err == nil {
			m.cfg.Logger.Info("connections can be accepted again")
			isFailing = false
		}
		if err != nil {
			return err
		}
		if err := m.push(context.Background(), c, l); err != nil {
			_ = c.Close()
			return err
		}
	}
}

// acceptRetry is the pause after the process ran out of file descriptors.
const acceptRetry = 50 * time.Millisecond

func isTemporary(err error) bool {
	var ne interface{ Temporary() bool }
	return errors.As(err, &ne) && ne.Temporary()
}

// push registers a connection, and waits until a protocol server takes it. source
// is nil for an in-process connection.
func (m *mux) push(ctx context.Context, raw net.Conn, source net.Listener) error {
	c := newConn(raw, m, source)
	if err := m.register(ctx, c); err != nil {
		return err
	}
	select {
	case m.ready <- c:
		return nil
	case <-m.done:
		m.forget(c)
		return ErrClosed
	case <-ctx.Done():
		m.forget(c)
		return ctx.Err()
	}
}

// connections returns the open connections for which accepts returns true.
func (m *mux) connections(accepts func(*conn) bool) []*conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	var cs []*conn
	for c := range m.mu.open {
		if accepts(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// stop ends the connection with this id: at once if it is idle, otherwise after its
// statement, which the engine has already cancelled.
func (m *mux) stop(id uint32) {
	for _, c := range m.connections(func(c *conn) bool { return c.id == id }) {
		c.stopReading()
	}
}

// waitClosed waits up to DrainTimeout and reports whether all conns are gone.
func waitClosed(cfg Config, conns []*conn) bool {
	expired := make(chan struct{})
	timer := cfg.Clock.AfterFunc(cfg.DrainTimeout, func() { close(expired) })
	defer timer.Stop()
	for _, c := range conns {
		select {
		case <-c.gone:
		case <-expired:
			return false
		}
	}
	return true
}

// refuse sends error 1040 in place of the greeting.
func refuse(c net.Conn, cfg Config) {
	_ = c.SetWriteDeadline(cfg.Clock.Now().Add(time.Second))
	e := myerr.TooManyConnections.New()
	_, _ = c.Write(errorPacket(0, uint16(e.Num), "", e.Message))
}

// errorPacket builds an ERR packet. Before the handshake there is no SQLSTATE.
func errorPacket(sequence byte, number uint16, state, message string) []byte {
	body := []byte{0xff, byte(number), byte(number >> 8)}
	if state != "" {
		body = append(append(body, '#'), state...)
	}
	return packet(sequence, append(body, message...))
}
