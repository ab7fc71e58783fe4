package wire

import (
	"context"
	"time"
)

// Clients that have not logged in are counted apart from those that have, so that a flood of
// connections that never log in takes nobody's place. UnauthenticatedMax of them may be connected.
// A further one waits until another has logged in or left, but for at most enterGrace. Then the
// server closes the oldest connection of the address with the most connections. So the next client
// soon gets its turn, and an address with few connections keeps them, whatever another address
// does.

// enterGrace is the time that a client has to log in while others wait for its place.
const enterGrace = time.Second

// register adds a connection, and waits until there is room for it.
func (m *mux) register(ctx context.Context, c *conn) error {
	for {
		out, wait, err := m.tryRegister(c)
		if out != nil {
			_ = out.Conn.Close() // the goroutine that serves the closed connection sees the error
		}
		if err != nil || wait <= 0 {
			return err
		}
		timer := m.cfg.Clock.AfterFunc(wait, m.leaveRoom)
		select {
		case <-m.room:
		case <-m.done:
			err = ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// tryRegister adds a connection, or returns how long to wait before the next attempt. out, if
// not nil, is a connection to close to make room.
func (m *mux) tryRegister(c *conn) (out *conn, wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return nil, 0, ErrClosed
	}
	if c.source != nil {
		if len(m.mu.entering) >= UnauthenticatedMax(m.cfg.MaxConnections) {
			out = m.slowestLocked()
			now := m.cfg.Clock.Now()
			if wait := out.since.Add(enterGrace).Sub(now); wait > 0 {
				return nil, wait, nil
			}
			delete(m.mu.entering, out)
		}
		c.since = m.cfg.Clock.Now()
		m.mu.entering[c] = struct{}{}
	}
	m.mu.open[c] = struct{}{}
	m.mu.most = max(m.mu.most, len(m.mu.open))
	return out, 0, nil
}

// slowestLocked returns the oldest connection of the address with the most connections.
func (m *mux) slowestLocked() *conn {
	type address struct {
		count int
		first *conn
	}
	addresses := make(map[string]address)
	var worst address
	for c := range m.mu.entering {
		a := addresses[c.host]
		a.count++
		if a.first == nil || c.since.Before(a.first.since) {
			a.first = c
		}
		addresses[c.host] = a
	}
	for _, a := range addresses {
		if a.count > worst.count || (a.count == worst.count && a.first.since.Before(worst.first.since)) {
			worst = a
		}
	}
	return worst.first
}

// admit accepts a connection that has logged in, and reports whether there was room. It keeps one
// more place for an administrator.
func (m *mux) admit(c *conn, isAdministrator func() bool) bool {
	if c.source != nil {
		limit := m.cfg.MaxConnections
		if m.isFull(limit) && isAdministrator() {
			limit++
		}
		if !m.enter(c, limit) {
			return false
		}
	}
	c.isIn = true
	c.meter.limit = m.cfg.MaxPacketBytes
	return true
}

func (m *mux) isFull(limit int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.inside >= limit
}

// enter counts a connection among those that have logged in. It returns false if limit connections
// have logged in already, or this one is closed.
func (m *mux) enter(c *conn, limit int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.mu.open[c]; !open || m.mu.inside >= limit {
		return false
	}
	delete(m.mu.entering, c)
	m.mu.inside++
	c.isInside = true
	m.leaveRoom()
	return true
}

// leaveRoom wakes the first of the clients that wait for room. The client itself checks whether
// there is room now.
func (m *mux) leaveRoom() {
	select {
	case m.room <- struct{}{}:
	default: // the client will check anyway
	}
}

// forget removes a closed connection.
func (m *mux) forget(c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.mu.open[c]; !open {
		return
	}
	delete(m.mu.open, c)
	c.counts.addTo(&m.mu.ended)
	delete(m.mu.entering, c)
	if c.isInside {
		m.mu.inside--
	}
	m.leaveRoom()
	close(c.gone)
}

// count returns the number of connections.
func (m *mux) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.open)
}
