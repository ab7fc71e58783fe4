package tcp

import (
	"net"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// pumpBytes is how much pump sends at a time. After each part, moved shows the progress.
const pumpBytes = 64 << 10

// An outbox is a connection whose writes never wait for the network: they are held until send, and
// what the socket does not take then is sent in the background. Before hold it is the plain
// connection. Reads go to the connection directly.
type outbox struct {
	*net.TCPConn
	raw syscall.RawConn
	mu  struct {
		lockrank.Mutex[lockrank.Leaf]
		holding   bool
		pumping   bool // pump runs: a goroutine that sends the bytes in held, and waits for the socket
		finishing bool // nothing more is sent
		held      []byte
		taken     int // how many bytes of held the last attempt has sent
		pumped    int // how many bytes pump is sending
	}
	attempt func(fd uintptr) bool // attemptLocked as a value, made once
	calls   *atomic.Uint64        // counts system calls that send
	// moved counts the bytes that the socket has taken or given.
	moved atomic.Uint64
}

func newOutbox(socket *net.TCPConn, calls *atomic.Uint64) (*outbox, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &outbox{TCPConn: socket, raw: raw, calls: calls}
	o.attempt = o.attemptLocked
	return o, nil
}

// hold makes writes wait for send from now on.
func (o *outbox) hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.holding = true
}

// Write implements net.Conn.
func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	if o.mu.finishing {
		o.mu.Unlock()
		return 0, net.ErrClosed
	}
	if o.mu.holding {
		o.mu.held = append(o.mu.held, b...)
		o.mu.Unlock()
		return len(b), nil
	}
	o.mu.Unlock()
	return o.TCPConn.Write(b)
}

// Read implements net.Conn.
func (o *outbox) Read(b []byte) (int, error) {
	n, err := o.TCPConn.Read(b)
	o.moved.Add(uint64(n))
	return n, err
}

// unsent returns how many bytes the socket has not taken.
func (o *outbox) unsent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.held) + o.mu.pumped
}

// send sends as much of held as the socket takes at once, and leaves the rest to a goroutine. It
// returns no error: the goroutine that reads from the connection finds that it has ended.
func (o *outbox) send() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.pumping || len(o.mu.held) == 0 {
		return
	}
	o.mu.taken = 0
	_ = o.raw.Write(o.attempt) // fails only if the connection has ended
	o.moved.Add(uint64(o.mu.taken))
	o.mu.held = o.mu.held[:copy(o.mu.held, o.mu.held[o.mu.taken:])]
	if len(o.mu.held) > 0 {
		o.mu.pumping = true
		go o.pump()
	}
}

// attemptLocked sends what the socket takes without waiting. With unix.Write in place of syscall.Write, the race
// detector would not know that the bytes are read after they were sent.
func (o *outbox) attemptLocked(fd uintptr) bool {
	o.calls.Add(1)
	n, _ := syscall.Write(int(fd), o.mu.held)
	o.mu.taken = max(n, 0)
	return true
}

// pump sends what is held until nothing is left. It waits while the socket takes nothing.
func (o *outbox) pump() {
	for {
		o.mu.Lock()
		b := o.mu.held
		o.mu.held, o.mu.pumped = nil, len(b)
		if len(b) == 0 {
			o.mu.pumping = false
			if o.mu.finishing {
				_ = o.TCPConn.CloseWrite() // fails only if the connection has ended
			}
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		for part := range slices.Chunk(b, pumpBytes) {
			o.calls.Add(1)
			if _, err := o.TCPConn.Write(part); err != nil {
				_ = o.TCPConn.Close() // the goroutine that reads from it finds that it has ended
				return
			}
			o.moved.Add(uint64(len(part)))
			o.mu.Lock()
			o.mu.pumped -= len(part) // there is room for more now
			o.mu.Unlock()
		}
	}
}

// abort ends the connection and drops what the socket has not sent.
func (o *outbox) abort() {
	_ = o.TCPConn.SetLinger(0) // fails only if the connection has ended
	_ = o.TCPConn.Close()
}

// finish drops what is held and tells the other side that nothing more comes.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.finishing = true
	o.mu.held = nil
	if !o.mu.pumping {
		_ = o.TCPConn.CloseWrite() // fails only if the connection has ended
	}
}
