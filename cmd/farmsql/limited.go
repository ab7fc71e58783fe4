package main

import (
	"net"
	"sync"
)

// A limited is a listener with at most a given number of open connections: Accept waits until one
// of them is closed.
type limited struct {
	net.Listener
	free   chan struct{} // a place for each further connection
	closed chan struct{}
	once   sync.Once // closes closed
}

func newLimited(l net.Listener, most int) *limited {
	x := &limited{Listener: l, free: make(chan struct{}, most), closed: make(chan struct{})}
	for range most {
		x.free <- struct{}{}
	}
	return x
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case <-l.free:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.free <- struct{}{}
		return nil, err
	}
	return &counted{Conn: c, end: sync.OnceFunc(func() { l.free <- struct{}{} })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A counted is a connection of a limited.
type counted struct {
	net.Conn
	end func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.end()
	return c.Conn.Close()
}
