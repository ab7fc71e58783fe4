package wire

import (
	"net"
	"testing"
	"time"
)

// A connection is known to be closed by the other side, over a network and within the process,
// before anybody reads from it; one that only has bytes to be read is not.
func TestIsGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if isGone(server) {
		t.Error("a connection is gone that is open")
	}
	near, far := net.Pipe()
	defer far.Close()
	theirs := &pipe{Conn: far}
	end := &pipeEnd{Conn: near, other: theirs}
	if isGone(theirs) {
		t.Error("a pipe is gone that is open")
	}
	_, _ = client.Write([]byte{1})
	time.Sleep(20 * time.Millisecond)
	if isGone(server) {
		t.Error("a connection is gone on which something has come")
	}
	_ = client.Close() // and nobody has read it
	_ = end.Close()
	for begin := time.Now(); !isGone(server); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("a closed connection is not gone")
		}
	}
	if !isGone(theirs) {
		t.Error("a closed pipe is not gone")
	}
}
