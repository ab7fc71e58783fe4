package shm

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A peer is one life of another machine (or of this one), as this NIC sees it.
type peer struct {
	state   *state
	monitor net.Conn // ends when the peer's process does
	// attached holds the memory that this machine has mapped; the map is replaced, never changed.
	attached atomic.Pointer[map[rdma.Key]*attachment]
}

// An attachment is a registration of the peer, mapped here.
type attachment struct {
	memory     *nvram.Memory
	generation uint64
	current    *atomic.Uint64 // the slot's generation; the attachment is valid while it equals generation
}

// A conn joins two sibling workers, in the direction of from's operations.
type conn struct {
	from   *Queue
	peer   *peer
	open   *atomic.Uint64 // the sibling's open word
	opened uint64         // the value of open when the connection was made
	rung   *atomic.Uint64
	parked *atomic.Uint32
	broken atomic.Bool // this side has broken the connection; set once, under mu
}

// holds reports whether the connection still works: neither side has broken it, the peer is alive,
// and the sibling is still open.
func (c *conn) holds() bool {
	return !c.broken.Load() && c.peer.state.isAlive() && c.open.Load() == c.opened
}

// attachment returns the memory registered under k; nil if it is not mapped, or the registration has ended.
func (p *peer) attachment(k rdma.Key) *attachment {
	a := (*p.attached.Load())[k]
	if a == nil || a.current.Load() != a.generation {
		return nil
	}
	return a
}

// connect joins q to its sibling at another machine. It fails with ErrClosed if q is closed, and otherwise
// with ErrBroken.
func (nic *NIC) connect(q *Queue, to rdma.MachineID) (*conn, error) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case q.closed.Load():
		return nil, rdma.ErrClosed
	case nic.mu.cut[to]:
		return nil, rdma.ErrBroken
	}
	p, err := nic.peerLocked(to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", rdma.ErrBroken, err)
	}
	if p == nil {
		return nil, rdma.ErrBroken
	}
	s := p.state
	c := &conn{from: q, peer: p, open: s.open(q.worker), rung: s.rung(q.worker), parked: s.parked(q.worker)}
	if c.opened = c.open.Load(); c.opened%2 == 0 { // the worker has no open queue
		return nil, rdma.ErrBroken
	}
	nic.breakLocked(func(old *conn) bool { return old.from == q && old.peer.state.machine == to })
	nic.mu.conns[c] = struct{}{}
	return c, nil
}

// peerLocked returns the present life of a machine, or nil if that life is over. It fails if the machine
// cannot be found or reached.
func (nic *NIC) peerLocked(m rdma.MachineID) (*peer, error) {
	if p := nic.mu.peers[m]; p != nil && p.isAlive() {
		return p, nil
	}
	s, err := nic.stateOfLocked(m)
	if err != nil || !s.isAlive() {
		return nil, err
	}
	monitor, err := nic.folder.dial(m)
	if saysGone(err) {
		s.died()
	}
	if err != nil {
		return nil, err
	}
	// If the monitor reached a newer life, that life has marked s dead before it began to listen.
	if !s.isAlive() {
		return nil, monitor.Close()
	}
	nic.forgetLocked(m)
	p := &peer{state: s, monitor: monitor}
	p.attached.Store(&map[rdma.Key]*attachment{})
	nic.mu.peers[m] = p
	nic.running.Go(func() { nic.watch(p) })
	return p, nil
}

// isAlive reports whether the peer is alive. It returns false, too, if reading the peer's state
// faults.
func (p *peer) isAlive() (alive bool) {
	_ = guard(func() error {
		alive = p.state.isAlive()
		return nil
	})
	return alive
}

// forgetLocked drops the former life of a machine.
func (nic *NIC) forgetLocked(m rdma.MachineID) {
	nic.breakLocked(func(c *conn) bool { return c.peer.state.machine == m })
	if p := nic.mu.peers[m]; p != nil {
		_ = p.monitor.Close() // the peer's life has ended
	}
}

// watch waits for the end of the peer's process, and then marks the peer's life as over. It reports a death,
// unless the peer's NIC was closed first or the machine has joined again.
func (nic *NIC) watch(p *peer) {
	if _, err := p.monitor.Read(make([]byte, 1)); errors.Is(err, net.ErrClosed) {
		return
	}
	died := false
	_ = guard(func() error {
		died = p.state.died()
		return nil
	})
	if f := nic.deaths.Load(); f != nil && died && nic.Gone(p.state.machine) {
		(*f)(p.state.machine)
	}
}

// attach maps the memory registered under k, and unmaps registrations that are no longer
// valid.
func (nic *NIC) attach(p *peer, k rdma.Key) error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if p.attachment(k) != nil {
		return nil
	}
	r, ok := p.state.lookup(k)
	if !ok || r.bytes > 1<<62 { // no memory is that long: the state file holds garbage
		return rdma.ErrKey
	}
	memory, err := nvram.Attach(r.location, int64(r.bytes))
	if isShortage(err) {
		return fmt.Errorf("%w: %w", rdma.ErrBroken, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", rdma.ErrKey, err)
	}
	next := map[rdma.Key]*attachment{k: {memory, r.generation, p.state.word(r.slot + generationAt)}}
	for key := range *p.attached.Load() {
		if a := p.attachment(key); a != nil {
			next[key] = a
		}
	}
	p.attached.Store(&next)
	return nil
}
