package hosts

import (
	"errors"
	"net"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

const (
	// strangersMax is how many accepted connections may be without a greeting; further ones wait
	// to be accepted, so that a port scanner uses up no memory.
	strangersMax = 256
	// retryAfter is how long accepting pauses when the process has no descriptors left.
	retryAfter = 10 * time.Millisecond
)

// Accept accepts connections until the door is closed. For each it calls welcome, on a
// goroutine that run starts. welcome must call known once it has the greeting, or will get
// none.
func Accept(door net.Listener, run func(func()), welcome func(accepted net.Conn, known func())) {
	strangers := make(chan struct{}, strangersMax)
	for {
		strangers <- struct{}{}
		accepted, err := door.Accept()
		if err == nil {
			run(func() { welcome(accepted, func() { <-strangers }) })
			continue
		}
		<-strangers
		if errors.Is(err, net.ErrClosed) {
			return
		}
		time.Sleep(retryAfter)
	}
}

// Sockets are accepted connections that have not ended. The zero value is ready.
type Sockets struct {
	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		of     map[net.Conn]rdma.MachineID // the machine to which each belongs
		closed bool
	}
}

// Keep records that an accepted connection belongs to machine from. A caller that has not read the greeting
// yet passes its own machine. After Close, Keep records nothing and returns false.
func (s *Sockets) Keep(socket net.Conn, from rdma.MachineID) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false
	}
	if s.mu.of == nil {
		s.mu.of = make(map[net.Conn]rdma.MachineID)
	}
	s.mu.of[socket] = from
	return true
}

// Drop forgets a connection.
func (s *Sockets) Drop(socket net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.of, socket)
}

// End closes the connections of a machine, which wakes the goroutines that read from them.
func (s *Sockets) End(from rdma.MachineID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for socket, m := range s.mu.of {
		if m == from {
			_ = socket.Close()
		}
	}
}

// Close closes all connections. After that Keep refuses further ones.
func (s *Sockets) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for socket := range s.mu.of {
		_ = socket.Close()
	}
}
