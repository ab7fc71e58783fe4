package wire

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// A socket is the server's end of a client's connection. It waits for the client's requests in one of
// two ways:
//
//   - Shared: by Go's poller. When a request comes, the poller's thread wakes up and looks for a thread
//     for the goroutine. That is cheap if there are many clients, because a thread that is awake
//     finds the next request without a system call.
//   - Alone: a thread sleeps in read, and the request wakes up just this thread. It takes a third less
//     processor time, and less time, if no other client sends requests meanwhile. But the
//     thread keeps one of the few places to run goroutines (GOMAXPROCS) until Go's monitor takes it
//     away, which is no good if other clients have use for it.
//
// A socket begins to wait alone once its client has sent aloneAfter requests while no other client has sent any. It
// waits in the shared way again as soon as another client sends a request, its own client pauses, or a deadline is set.
//
// Read, Write and CloseWrite are for the goroutine that serves the connection; the other methods are
// for all.
type socket struct {
	id uint32
	// latest is the id of the server's socket that has read a request last.
	latest        *atomic.Uint32
	local, remote net.Addr

	shared atomic.Pointer[streamConn] // nil while the socket waits alone
	alone  atomic.Pointer[os.File]    // the descriptor, in blocking mode; nil while the socket is shared
	// isDisturbed asks the serving goroutine to wait in the shared way, because of a deadline.
	isDisturbed atomic.Bool

	// Used by the serving goroutine.
	sequence int // reads since another socket read a request
	needed   int // the number of such reads after which the socket waits alone

	mu struct {
		lockrank.Mutex[lockrank.Socket] // held while shared and alone change
		read, write                     time.Time
		isClosed                        bool
	}
}

// A streamConn is a *net.TCPConn or a *net.UnixConn.
type streamConn interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

const (
	// aloneAfter is the least number of requests before a socket waits alone. Changing the way and back takes as long
	// as a few requests, which is little beside that many.
	aloneAfter = 16
	// After a pause, a client has to send twice as many requests as before until its socket waits alone again, up to
	// aloneAfterMost. But if it has sent aloneWorth times as many as it had to, it has to send only aloneAfter.
	aloneAfterMost = 1 << 16
	aloneWorth     = 1
	// alonePatience is how long a socket waits alone for one request. A client on the same computer, or
	// in the same rack, sends its next request sooner. A deadline that is set during the wait has no effect
	// before the wait ends.
	alonePatience = 2 * time.Millisecond
	// yieldAfter is after how many reads a goroutine that waits alone lets others run. If a goroutine
	// is never scheduled for 10 ms, Go's monitor interrupts it, and is awake every 20 us from then on.
	yieldAfter = 64
)

// newSocket makes a socket of a connection over a network; other connections are returned as they are.
func newSocket(c net.Conn, id uint32, latest *atomic.Uint32) net.Conn {
	stream, ok := c.(streamConn)
	if !ok {
		return c
	}
	s := &socket{id: id, latest: latest, local: c.LocalAddr(), remote: c.RemoteAddr(), needed: aloneAfter}
	s.shared.Store(&stream)
	return s
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if s.sequence >= s.needed && s.alone.Load() == nil {
		s.enter()
	}
	if file := s.alone.Load(); file != nil {
		n, err := s.readAlone(file, p)
		if n > 0 || err != nil {
			return n, err
		}
	}
	n, err := (*s.shared.Load()).Read(p)
	if s.latest.Load() == s.id {
		s.sequence++
	} else {
		s.latest.Store(s.id)
		s.sequence = 0
	}
	return n, err
}

// readAlone reads from a socket that waits alone. It returns 0 and no error if the socket is shared
// from now on.
func (s *socket) readAlone(file *os.File, p []byte) (int, error) {
	if s.latest.Load() != s.id || s.isDisturbed.Load() {
		return 0, s.leave()
	}
	n, err := file.Read(p)
	if errors.Is(err, unix.EAGAIN) { // alonePatience is over
		s.needed = nextNeeded(s.needed, s.sequence)
		return 0, s.leave()
	}
	s.sequence++
	if s.sequence%yieldAfter == 0 {
		runtime.Gosched()
	}
	return n, closedError(err)
}

// nextNeeded returns the number of requests after which a socket waits alone again once its client has paused. needed
// was that number before the pause, and sent is how many requests the client has sent.
func nextNeeded(needed, sent int) int {
	if sent >= aloneWorth*needed {
		return aloneAfter
	}
	return min(2*needed, aloneAfterMost)
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	file := s.alone.Load()
	if file != nil && s.isDisturbed.Load() {
		if err := s.leave(); err != nil {
			return 0, err
		}
		file = nil
	}
	if file == nil {
		return (*s.shared.Load()).Write(p)
	}
	n, err := file.Write(p)
	return n, closedError(err)
}

// enter takes the descriptor away from Go's poller, if it can. A connection that has a deadline stays
// shared.
func (s *socket) enter() {
	s.sequence = 0 // try again after as many requests
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.isClosed || runtime.GOMAXPROCS(0) < 2 || !s.mu.read.IsZero() || !s.mu.write.IsZero() {
		return
	}
	stream := *s.shared.Load()
	file, err := blockingFile(stream)
	if err != nil {
		return
	}
	_ = stream.Close()
	s.isDisturbed.Store(false)
	s.alone.Store(file)
	s.shared.Store(nil)
}

// blockingFile returns another descriptor of a connection. From then on both are in blocking mode. The caller must
// close the connection, which takes it away from the poller.
func blockingFile(c syscall.Conn) (*os.File, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var file *os.File
	var failed error
	err = raw.Control(func(fd uintptr) {
		patience := unix.NsecToTimeval(int64(alonePatience))
		if failed = unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); failed != nil {
			return
		}
		var other int
		if other, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); failed != nil {
			return
		}
		if failed = unix.SetNonblock(other, false); failed != nil {
			_ = unix.Close(other)
			return
		}
		file = os.NewFile(uintptr(other), "client")
	})
	return file, errors.Join(err, failed)
}

// leave gives the descriptor to Go's poller. An error ends the connection: it is closed, or the
// process has no descriptors left.
func (s *socket) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.isClosed {
		return net.ErrClosed
	}
	file := s.alone.Load()
	c, err := net.FileConn(file)
	if err != nil {
		return err
	}
	_ = file.Close()
	stream := c.(streamConn)
	_ = stream.SetReadDeadline(s.mu.read)
	_ = stream.SetWriteDeadline(s.mu.write)
	s.shared.Store(&stream)
	s.alone.Store(nil)
	s.sequence = 0
	return nil
}

// closedError returns net.ErrClosed for the error of a closed file.
func closedError(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// Close implements net.Conn. The descriptor of a socket that waits alone is closed after
// alonePatience, at the latest.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.isClosed {
		return net.ErrClosed
	}
	s.mu.isClosed = true
	if file := s.alone.Load(); file != nil {
		return file.Close()
	}
	return (*s.shared.Load()).Close()
}

// CloseWrite tells the client that nothing follows.
func (s *socket) CloseWrite() error {
	if s.alone.Load() != nil {
		if err := s.leave(); err != nil {
			return err
		}
	}
	return (*s.shared.Load()).CloseWrite()
}

// LocalAddr implements net.Conn.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr implements net.Conn.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(t time.Time) error {
	return s.setDeadline(&s.mu.read, t, net.Conn.SetReadDeadline)
}

// SetWriteDeadline implements net.Conn.
func (s *socket) SetWriteDeadline(t time.Time) error {
	return s.setDeadline(&s.mu.write, t, net.Conn.SetWriteDeadline)
}

func (s *socket) setDeadline(kept *time.Time, t time.Time, set func(net.Conn, time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*kept = t
	if shared := s.shared.Load(); shared != nil {
		return set(*shared, t)
	}
	s.isDisturbed.Store(true)
	return nil
}

// SyscallConn implements syscall.Conn, for questions about the descriptor.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file := s.alone.Load(); file != nil {
		return file.SyscallConn()
	}
	return (*s.shared.Load()).SyscallConn()
}
