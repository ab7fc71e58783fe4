package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A pair is a client's connection and the server's socket.
type pair struct {
	client *net.TCPConn
	server *socket
}

// newPairs makes sockets of one server. They wait alone after one request.
func newPairs(t *testing.T, n int) []pair {
	t.Helper()
	places := runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	t.Cleanup(func() { runtime.GOMAXPROCS(places) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	latest := new(atomic.Uint32)
	pairs := make([]pair, n)
	for i := range pairs {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s := newSocket(accepted, uint32(i+1), latest).(*socket)
		s.needed = 1
		pairs[i] = pair{client.(*net.TCPConn), s}
		t.Cleanup(func() { _, _ = client.Close(), s.Close() })
	}
	return pairs
}

// send has the client send a request, and the server read and answer it.
func (p pair) send(t *testing.T, request string) {
	t.Helper()
	if _, err := p.client.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(request))
	if _, err := io.ReadFull(p.server, b); err != nil || string(b) != request {
		t.Fatalf("the server read %q, %v; want %q", b, err, request)
	}
	if _, err := p.server.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.client, b); err != nil || string(b) != request {
		t.Fatalf("the client read %q, %v; want %q", b, err, request)
	}
}

// waitAlone sends requests until the socket waits alone.
func (p pair) waitAlone(t *testing.T) {
	t.Helper()
	for i := 0; p.server.alone.Load() == nil; i++ {
		if i == 1000 {
			t.Fatal("the socket does not wait alone after 1000 requests of one client")
		}
		p.server.needed = 1
		p.send(t, "request")
	}
}

// A socket waits alone while its client is the only one, and as all others once another client
// sends something.
func TestSocketWaitsAlone(t *testing.T) {
	pairs := newPairs(t, 2)
	pairs[0].waitAlone(t)
	pairs[1].send(t, "other")
	pairs[0].send(t, "one")
	if pairs[0].server.alone.Load() != nil {
		t.Error("the socket waits alone after another client's request")
	}
	pairs[0].waitAlone(t)
	long := string(bytes.Repeat([]byte("long "), 200_000))
	go func() { // neither end has room for all of it
		_, _ = pairs[0].client.Write([]byte(long))
	}()
	b := make([]byte, len(long))
	if _, err := io.ReadFull(pairs[0].server, b); err != nil || string(b) != long {
		t.Error("a long request differs", err)
	}
}

// A client that pauses finds the socket in the poller's care, and has to send more requests before the
// next change.
func TestSocketOfAPausingClient(t *testing.T) {
	p := newPairs(t, 1)[0]
	p.waitAlone(t)
	p.server.needed = 10
	read := make(chan error, 1)
	go func() {
		_, err := p.server.Read(make([]byte, 10))
		read <- err
	}()
	eventually(t, "the socket to be shared", func() bool { return p.server.alone.Load() == nil })
	if _, err := p.client.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	if p.server.needed != 20 {
		t.Errorf("the socket waits alone after %d requests, want 20", p.server.needed)
	}
}

// Clients that pause after every few requests are not worth the changes; those that pause after many are.
func TestNextNeeded(t *testing.T) {
	for _, c := range []struct{ needed, sent, want int }{
		{aloneAfter, 0, 2 * aloneAfter},
		{aloneAfter, aloneWorth*aloneAfter - 1, 2 * aloneAfter},
		{aloneAfter, aloneWorth * aloneAfter, aloneAfter},
		{8 * aloneAfter, aloneWorth * 8 * aloneAfter, aloneAfter},
		{aloneAfterMost, 3, aloneAfterMost},
	} {
		if got := nextNeeded(c.needed, c.sent); got != c.want {
			t.Errorf("%d needed, %d sent: next %d, want %d", c.needed, c.sent, got, c.want)
		}
	}
}

// A deadline that is set while the socket waits alone has its effect, and so have those after it.
func TestSocketDeadlines(t *testing.T) {
	p := newPairs(t, 1)[0]
	for range 3 {
		p.waitAlone(t)
		read := make(chan error, 1)
		go func() {
			_, err := p.server.Read(make([]byte, 10))
			read <- err
		}()
		if err := p.server.SetDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read: %v, want that the deadline is exceeded", err)
		}
		if _, err := p.server.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write: %v, want that the deadline is exceeded", err)
		}
		p.server.sequence = 1
		if p.server.enter(); p.server.alone.Load() != nil {
			t.Error("a socket with a deadline waits alone")
		}
		if err := p.server.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	p.waitAlone(t)
	if _, err := p.client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	if err := p.server.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.server.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read of what has come: %d bytes, %v, want that the deadline is exceeded", n, err)
	}
	p = newPairs(t, 1)[0]
	p.waitAlone(t)
	if err := p.server.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.server.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first Write: %v, want that the deadline is exceeded", err)
	}
}

// The client, or another goroutine, closes a connection that waits alone.
func TestSocketClosed(t *testing.T) {
	pairs := newPairs(t, 4)
	for _, p := range pairs {
		p.waitAlone(t)
	}
	if isGone(pairs[3].server) {
		t.Error("a client is gone that is there")
	}
	_ = pairs[0].client.Close()
	if n, err := pairs[0].server.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("after the client has closed: %d bytes, %v", n, err)
	}
	_ = pairs[3].client.Close()
	eventually(t, "the client to be gone", func() bool { return isGone(pairs[3].server) })

	read := make(chan error, 1)
	pairs[1].server.latest.Store(pairs[1].server.id)
	go func() {
		_, err := pairs[1].server.Read(make([]byte, 10))
		read <- err
	}()
	time.Sleep(time.Millisecond / 2) // in most runs the goroutine reads
	if err := pairs[1].server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, net.ErrClosed) && err != io.EOF {
		t.Errorf("after the server has closed: %v", err)
	}
	if _, err := pairs[1].client.Read(make([]byte, 10)); err == nil {
		t.Error("the client's connection is open after the server has closed it")
	}
	if err := pairs[1].server.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}

	if err := pairs[2].server.CloseWrite(); err != nil {
		t.Error(err)
	}
	if n, err := pairs[2].client.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("after CloseWrite: %d bytes, %v", n, err)
	}
}

// Without a second place to run goroutines, a thread that sleeps in read would stop all others.
func TestSocketOfOneProcessor(t *testing.T) {
	p := newPairs(t, 1)[0]
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 10 {
		p.send(t, "request")
		p.server.needed = 1
		if p.server.alone.Load() != nil {
			t.Fatal("the socket waits alone")
		}
	}
}

// Changes of the way to wait leave no descriptor behind.
func TestSocketDescriptors(t *testing.T) {
	pairs := newPairs(t, 2)
	count := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := count()
	for range 50 {
		pairs[0].waitAlone(t)
		pairs[1].waitAlone(t)
		pairs[0].send(t, "request")
		pairs[1].send(t, "request")
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}
