package main

import (
	"errors"
	"net"
	"testing"
)

// One more connection than may be there is accepted when another one is closed.
func TestLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(inner, 2)
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	defer (<-accepted).Close()
	if n := len(l.free); n != 0 {
		t.Errorf("%d places are free", n)
	}
	for range 2 { // closing again frees nothing
		_ = first.Close()
	}
	third := <-accepted
	if n := len(l.free); n != 0 {
		t.Errorf("%d places are free", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	_ = third.Close()
}
