package raftstore

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// idleMax is how many connections a client keeps for calls to come.
const idleMax = 4

// A clientConn is a connection of a client to a machine. It serves one call at a time.
type clientConn struct {
	machine rdma.MachineID
	socket  net.Conn
	stream  net.Conn  // the socket, or TLS over it
	used    time.Time // when it was used last
}

// close closes the socket. To close TLS first would send a message, to a machine that may not
// be there.
func (c clientConn) close() { _ = c.socket.Close() }

// connect opens a connection to a machine.
func (c *Client) connect(ctx context.Context, m rdma.MachineID) (clientConn, error) {
	address := c.address(m)
	socket, err := c.cfg.Dial(ctx, address)
	if err != nil {
		return clientConn{}, err
	}
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	stream, err := c.greet(ctx, m, address, socket)
	if isOpen := stop(); err == nil && !isOpen {
		err = ctx.Err()
	}
	if err != nil {
		socket.Close()
		return clientConn{}, err
	}
	return clientConn{machine: m, socket: socket, stream: stream}, nil
}

// greet makes the handshakes of a new connection.
func (c *Client) greet(ctx context.Context, m rdma.MachineID, address string, socket net.Conn) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	if err := socket.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stream, err := dialTLS(ctx, c.cfg.TLS, socket, address)
	if err != nil {
		return nil, err
	}
	g := c.founding.greeting(m)
	g.kind, g.from = ofClient, 0
	if _, err := stream.Write(g.encode()); err != nil {
		return nil, err
	}
	_, err = readReply(stream)
	return stream, err
}

// takeIdle returns an idle connection to a machine, which is the caller's now. A machine closes
// connections that have been idle for idleTicks; takeIdle drops them after half that time.
func (c *Client) takeIdle(m rdma.MachineID) (conn clientConn, ok bool) {
	oldest := time.Now().Add(-c.cfg.tick * idleTicks / 2)
	c.closeIdle(func(conn clientConn) bool { return conn.used.Before(oldest) })
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.mu.idle) - 1; i >= 0; i-- {
		if conn = c.mu.idle[i]; conn.machine == m {
			c.mu.idle = slices.Delete(c.mu.idle, i, i+1)
			return conn, true
		}
	}
	return clientConn{}, false
}

// keep makes a connection idle, unless there are enough or the client is closed.
func (c *Client) keep(conn clientConn) {
	conn.used = time.Now()
	if !c.addIdle(conn) {
		conn.close()
	}
}

// addIdle adds a connection to the idle ones. It returns false if there are enough, or the client is closed.
func (c *Client) addIdle(conn clientConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil || len(c.mu.idle) >= idleMax { // Close cancels ctx before it closes what is idle
		return false
	}
	c.mu.idle = append(c.mu.idle, conn)
	return true
}

// closeIdle closes the idle connections that match.
func (c *Client) closeIdle(match func(conn clientConn) bool) {
	for _, conn := range c.removeIdle(match) {
		conn.close()
	}
}

func (c *Client) removeIdle(match func(conn clientConn) bool) (removed []clientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.idle = slices.DeleteFunc(c.mu.idle, func(conn clientConn) bool {
		isMatch := match(conn)
		if isMatch {
			removed = append(removed, conn)
		}
		return isMatch
	})
	return removed
}
