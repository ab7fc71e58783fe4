package wire

import (
	"context"
	"time"
)

// Clients that have not logged in are counted apart from those that have, so that a flood of
// connections that never log in takes nobody's place. There may be UnauthenticatedMax of
// them. One more waits until another has logged in or gone, but for no longer than enterGrace:
// then the client is thrown out that has taken longest, of the address that has most of them.
// So the next in line gets its turn soon, whoever it is, and an address with few connections
// keeps them whatever another does.

// enterGrace is how long a client may take to log in while others wait for it.
const enterGrace = time.Second

// register adds a connection, once there is room for it.
func (m *mux) register(ctx context.Context, c *conn) error {
	for {
		out, wait, err := m.tryRegister(c)
		if out != nil {
			_ = out.Conn.Close() // whoever serves it finds out
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

// tryRegister adds a connection, or says for how long to wait before the next attempt. out,
// if not nil, has to make room for it.
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

// slowestLocked is the connection that has taken longest, of the address with most.
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
		if a.count > worst.count || a.count == worst.count && a.first.since.Before(worst.first.since) {
			worst = a
		}
	}
	return worst.first
}

// admit takes in a connection that has logged in, and reports whether there is room for it:
// for an administrator there is when it has just run out for others.
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

// enter counts a connection among those that have logged in.
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

// leaveRoom wakes the first waiting client, which then checks whether there is room.
func (m *mux) leaveRoom() {
	select {
	case m.room <- struct{}{}:
	default: // it will look anyway
	}
}

// forget takes out a connection that is closed.
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

// count is how many connections there are.
func (m *mux) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.open)
}
