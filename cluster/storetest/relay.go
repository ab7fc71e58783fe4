package storetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A Relay passes TCP connections on to an address, and can be cut.
type Relay struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	to       string
	isClosed bool
	isCut    bool
	drops    Direction
	sockets  map[net.Conn]bool
}

// A Direction is a direction in which bytes flow over a connection.
type Direction int

// The directions. Answers flow against the direction in which a connection was opened.
const (
	None Direction = iota
	Requests
	Answers
)

// NewRelay starts a relay on the loopback interface that ends with the test.
func NewRelay(t testing.TB, to string) *Relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, to: to, sockets: make(map[net.Conn]bool)}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		r.listener.Close()
		r.mu.Lock()
		r.isClosed = true
		r.breakLocked()
		r.mu.Unlock()
		r.running.Wait()
	})
	return r
}

// Address returns where the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Retarget passes connections that are opened from now on to another address.
func (r *Relay) Retarget(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// Cut breaks all connections, and all that are opened until Heal.
func (r *Relay) Cut() { r.change(true, None) }

// Drop swallows all bytes of a direction until Heal.
func (r *Relay) Drop(d Direction) { r.change(false, d) }

// Heal passes connections on again. It breaks those whose bytes were dropped.
func (r *Relay) Heal() { r.change(false, None) }

// change sets what becomes of bytes from now on. It breaks the open connections if all are cut, or if bytes of
// theirs were dropped.
func (r *Relay) change(isCut bool, drops Direction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isCut || r.drops != None {
		r.breakLocked()
	}
	r.isCut, r.drops = isCut, drops
}

func (r *Relay) breakLocked() {
	for s := range r.sockets {
		s.Close()
	}
}

func (r *Relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.pass(from) })
	}
}

// pass passes one connection on.
func (r *Relay) pass(from net.Conn) {
	defer from.Close()
	address, ok := r.keep(from)
	if !ok {
		return
	}
	defer r.forget(from)
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	if _, ok := r.keep(to); !ok {
		return
	}
	defer r.forget(to)
	var answers sync.WaitGroup
	answers.Go(func() {
		r.copy(from, to, Answers)
		from.Close()
	})
	r.copy(to, from, Requests)
	to.Close()
	answers.Wait()
}

// keep notes a connection, unless the relay is cut, and returns where it goes.
func (r *Relay) keep(c net.Conn) (address string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut || r.isClosed {
		return "", false
	}
	r.sockets[c] = true
	return r.to, true
}

func (r *Relay) forget(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sockets, c)
}

// copy passes bytes on while their direction is not dropped. The lock is held during the write, so that no
// byte passes after Drop has returned.
func (r *Relay) copy(to io.Writer, from io.Reader, d Direction) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if err := r.write(to, b[:n], d); err != nil {
			return
		}
	}
}

func (r *Relay) write(to io.Writer, b []byte, d Direction) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut || r.drops == d {
		return nil
	}
	_, err := to.Write(b)
	return err
}
