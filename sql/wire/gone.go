package wire

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// While a statement runs, nothing reads from its connection, so that nothing notices when
// the client closes it. A watch checks the connections of long statements, and kills the
// statements whose clients are gone. While no statement runs it has no timer, which would wake up
// several threads of an idle process.
type watch struct {
	clock       clock.Clock
	connections func(accepts func(*conn) bool) []*conn
	kill        func(connection uint32)
	// tick counts the checks, from 1.
	tick atomic.Uint32
	// rings says that the timer is set, or is about to be.
	rings atomic.Bool

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		timer   clock.Timer
		stopped bool
	}
}

// watchInterval is the time between two checks. The first check after a statement has begun skips
// the statement.
const watchInterval = 250 * time.Millisecond

// begin has the watch look at the statement that a connection begins, until end.
func (w *watch) begin(c *conn) {
	c.began.Store(w.tick.Load())
	if !w.rings.Load() {
		w.start()
	}
}

func (w *watch) end(c *conn) { c.began.Store(0) }

// start sets the timer, unless it is set.
func (w *watch) start() {
	if !w.rings.CompareAndSwap(false, true) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.stopped {
		w.mu.timer = w.clock.AfterFunc(watchInterval, w.ring)
	}
}

// ring checks the connections, and sets the timer again while statements run. If a statement begins too late for
// ring to see it, rings is already false, and the statement sets the timer itself.
func (w *watch) ring() {
	w.rings.Store(false)
	if w.killGone() {
		w.start()
	}
}

// stop ends the checks.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.stopped = true
	if w.mu.timer != nil {
		w.mu.timer.Stop()
	}
}

// killGone kills the statements whose clients are gone, and reports whether any statement runs.
func (w *watch) killGone() (isRunning bool) {
	tick := w.tick.Add(1)
	if tick == 0 { // 0 stands for no statement
		tick = w.tick.Add(1)
	}
	long := w.connections(func(c *conn) bool {
		began := c.began.Load()
		isRunning = isRunning || began != 0
		return began != 0 && tick-began > 1
	})
	for _, c := range long {
		if isGone(c.Conn) {
			w.kill(c.id)
		}
	}
	return isRunning
}

// isGone reports whether the client is known to have closed the connection. It does not read the
// bytes that the client has sent.
func isGone(c net.Conn) bool {
	if p, ok := c.(*pipe); ok {
		return p.left.Load()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		// POLLRDHUP is reported even if bytes are unread: a client that leaves sends COM_QUIT
		// first, and TLS sends an alert.
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 // closed, reset, or timed out
	})
	return gone || err != nil
}

// A pipe is the server's end of a connection within the process.
type pipe struct {
	net.Conn
	left atomic.Bool // the client has closed its end
}

// A pipeEnd is the client's end.
type pipeEnd struct {
	net.Conn
	other *pipe
}

// Close closes the connection.
func (p *pipeEnd) Close() error {
	p.other.left.Store(true)
	return p.Conn.Close()
}
