package hosts

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// TestAddresses: what a machine tells counts before what the caller knows, unless it is of a former life, or nobody is there.
func TestAddresses(t *testing.T) {
	a := NewAddresses(func(m rdma.MachineID) (string, bool) { return "known", m == 1 })
	is := func(what, want string) {
		t.Helper()
		if got, ok := a.Of(1); got != want || !ok {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	is("at first", "known")
	a.Learn(Greeting{From: 1, Life: 5, Address: "told"})
	is("when it has told", "told")
	a.Learn(Greeting{From: 1, Life: 4, Address: "former"})
	is("when a former life has told", "told")
	a.Forget(1, "another")
	is("when nobody is elsewhere", "told")
	a.Forget(1, "told")
	is("when nobody is there", "known")
	a.Learn(Greeting{From: 1, Life: 4, Address: "former"})
	is("when a former life has told again", "known")
	if _, ok := a.Of(2); ok {
		t.Error("a machine that nobody knows has an address")
	}
}

// TestBell: rings before a call are one call, and none comes when the bell is closed.
func TestBell(t *testing.T) {
	closed, calls, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b := NewBell(func() { calls <- struct{}{}; <-goOn }, closed)
	b.Ring()
	<-calls
	b.Ring()
	b.Ring()
	goOn <- struct{}{}
	<-calls // the two
	b.Ring()
	close(closed)
	goOn <- struct{}{}
	select {
	case <-calls:
		t.Error("the bell rings after it was closed")
	case <-time.After(10 * time.Millisecond):
	}
	NewBell(nil, closed).Ring() // nobody hears it
}

// TestInbox: datagrams go to the latest receiver, those of the machine to itself as copies, and not more than hereMax at once.
func TestInbox(t *testing.T) {
	var i Inbox
	i.Deliver(1, nil) // lost
	var got atomic.Int32
	var first atomic.Uint32
	i.Receive(func(from rdma.MachineID, b []byte) { got.Add(1); first.Store(uint32(b[0])) })
	i.Deliver(1, []byte{3})
	if got.Load() != 1 || first.Load() != 3 {
		t.Errorf("%d datagrams, the last %d", got.Load(), first.Load())
	}
	var waiting []func()
	b := []byte{5}
	for range hereMax + 1 {
		i.DeliverHere(func(f func()) { waiting = append(waiting, f) }, 1, b)
	}
	b[0] = 6
	if len(waiting) != hereMax {
		t.Errorf("%d datagrams are on their way, want %d", len(waiting), hereMax)
	}
	for _, f := range waiting {
		f()
	}
	if got.Load() != 1+hereMax || first.Load() != 5 {
		t.Errorf("%d datagrams, the last %d", got.Load(), first.Load())
	}
	i.Receive(nil)
	i.Deliver(1, b)
	if got.Load() != 1+hereMax {
		t.Error("a datagram has come without a receiver")
	}
}

// TestAccept: only so many strangers are accepted, and one who is known makes room.
func TestAccept(t *testing.T) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var sockets Sockets
	arrived := make(chan func(), strangersMax+1)
	running.Go(func() {
		Accept(door, running.Go, func(accepted net.Conn, known func()) {
			if !sockets.Keep(accepted, 7) {
				t.Error("a connection is refused")
			}
			arrived <- known
			_, _ = accepted.Read(make([]byte, 1)) // until it is ended
			sockets.Drop(accepted)
		})
	})
	var dialled []net.Conn
	for range strangersMax + 1 {
		c, err := net.Dial("tcp", door.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		dialled = append(dialled, c)
	}
	var known []func()
	for range strangersMax {
		known = append(known, <-arrived)
	}
	select {
	case <-arrived:
		t.Error("one stranger too many is accepted")
	case <-time.After(10 * time.Millisecond):
	}
	known[0]()
	<-arrived
	known[1]()     // there is room for the door to be seen closed
	sockets.End(8) // nobody
	sockets.End(7)
	if err := door.Close(); err != nil {
		t.Error(err)
	}
	running.Wait()
	sockets.Close()
	if sockets.Keep(dialled[0], 7) {
		t.Error("a connection is kept after Close")
	}
	for _, c := range dialled {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSecurityCheck: a configuration that would let in strangers is refused.
func TestSecurityCheck(t *testing.T) {
	if err := (&Security{}).Check(); err != nil {
		t.Errorf("without TLS: %v", err)
	}
	if err := (&Security{TLS: new(tls.Config)}).Check(); !errors.Is(err, ErrTLS) {
		t.Errorf("without authorities: %v", err)
	}
}
