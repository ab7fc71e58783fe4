package verbs

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
	"unsafe"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	// mailReceives and mailSends are how many packets may arrive, and be sent, before somebody
	// takes their completions.
	mailReceives = 512
	mailSends    = 256
	// askAgainAfter is the least time between two requests for one machine's address.
	askAgainAfter = 50 * time.Millisecond
)

// A mail sends and receives a machine's datagrams, over a queue pair of the unreliable kind: a packet carries at most an MTU, so a longer
// datagram is several. A machine that may send learns the queue pair's key over a TCP connection, which
// stays open: when it ends, the other machine's queue pair may have ended, too, and its key is asked for anew.
type mail struct {
	nic    *NIC
	post   post
	memory *nvram.Memory // buffers: of receives, then of sends
	region region
	key    uint32
	packet int // the length of a packet
	inbox  hosts.Inbox
	parts  assembly // only the receiving goroutine uses it
	ended  chan struct{}
	mu     struct {
		lockrank.Mutex[lockrank.Later]
		closed bool
		free   []uint64             // buffers of sends that are not under way
		to     [mailSends]*mailPeer // the machines that the pending sends go to
		number uint64               // the number of the latest datagram
		peers  map[rdma.MachineID]*mailPeer
		asked  map[rdma.MachineID]time.Time
		asking map[rdma.MachineID]bool
	}
}

// A mailPeer is where datagrams to a machine go.
type mailPeer struct {
	route   route
	address address
	stream  net.Conn // the connection that tells when it ends
	sends   int      // how many sends are pending
	isLeft  bool     // there will be no further sends
}

// sentLocked notes that a send to a machine is no longer pending; p may be nil.
func (m *mail) sentLocked(p *mailPeer) {
	if p == nil {
		return
	}
	if p.sends--; p.isLeft && p.sends == 0 {
		m.nic.leaked(p.route.close())
	}
}

// leaveLocked is called after the last send to a machine. It frees the machine's route once no send is under way: until
// then the card may look at the route.
func (m *mail) leaveLocked(p *mailPeer) {
	p.isLeft = true
	if p.sends == 0 {
		m.nic.leaked(p.route.close())
	}
}

// receiveBytes is the length of the buffer of a receive. It is rounded up to whole words, so
// that the bytes after the header are whole words, too.
func (m *mail) receiveBytes() int { return (grhBytes + m.packet + 7) &^ 7 }

// receiveAt and sendAt return where a buffer is. Those of receives are numbered from 0, those of sends from
// mailReceives.
func (m *mail) receiveAt(id uint64) uint64 { return id * uint64(m.receiveBytes()) }
func (m *mail) sendAt(id uint64) uint64 {
	return m.receiveAt(mailReceives) + (id-mailReceives)*uint64(m.packet)
}

// openMail makes the memory and the queue pair for datagrams, and posts all receives.
func openMail(nic *NIC) (_ *mail, err error) {
	m := &mail{nic: nic, packet: mtuBytes(nic.limits.self.mtu), parts: newAssembly(), ended: make(chan struct{})}
	m.mu.peers = make(map[rdma.MachineID]*mailPeer)
	m.mu.asked = make(map[rdma.MachineID]time.Time)
	m.mu.asking = make(map[rdma.MachineID]bool)
	if m.memory, err = nvram.NewShared(int64(m.sendAt(mailReceives + mailSends))); err != nil {
		return nil, err
	}
	if m.region, err = nic.registerMemory(m.memory); err != nil {
		return nil, err
	}
	m.key, _ = m.region.keys()
	if m.post, err = nic.card.post(mailReceives, mailSends); err != nil {
		return nil, errors.Join(err, m.region.close())
	}
	for id := range uint64(mailReceives) {
		if err := m.receiveInto(id); err != nil {
			return nil, errors.Join(err, m.post.close(), m.region.close())
		}
	}
	for id := range uint64(mailSends) {
		m.mu.free = append(m.mu.free, mailReceives+id)
	}
	return m, nil
}

func (m *mail) receiveInto(id uint64) error {
	return m.post.receive(id, m.memory.Pointer(m.receiveAt(id), 8), grhBytes+m.packet, m.key)
}

// close ends the receiving goroutine, and frees the queue pair.
func (m *mail) close() error {
	m.mu.Lock()
	m.mu.closed = true
	m.inbox.Receive(nil)
	peers := m.mu.peers
	m.mu.peers = nil
	m.mu.Unlock()
	for _, p := range peers {
		_ = p.stream.Close() // ends the goroutine of the connection
	}
	m.post.interrupt()
	<-m.ended
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nic.leaked(m.post.close())
	for _, p := range m.mu.to { // the sends whose completions will not come
		m.sentLocked(p)
	}
	for _, p := range peers {
		m.leaveLocked(p)
	}
	m.nic.leaked(m.region.close())
	return nil
}

// Datagrams implements rdma.NIC. The receiver is called by one goroutine.
func (nic *NIC) Datagrams(f func(from rdma.MachineID, b []byte)) {
	m := nic.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if f == nil || !m.mu.closed {
		m.inbox.Receive(f)
	}
}

// Datagram implements rdma.NIC.
func (nic *NIC) Datagram(to rdma.MachineID, b []byte) error {
	m := nic.mail
	fail := func(err error) error {
		return &rdma.Error{Op: rdma.OpDatagram, To: to, Bytes: len(b), Err: err}
	}
	if len(b) > rdma.DatagramBytesMax {
		return fail(rdma.ErrRange)
	}
	isUnreachable := nic.mayConnect(to) != nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return fail(rdma.ErrClosed)
	}
	if to == nic.cfg.Machine {
		m.inbox.DeliverHere(nic.running.Go, to, b)
		return nil
	}
	if isUnreachable {
		return nil
	}
	if p := m.mu.peers[to]; p != nil {
		m.sendLocked(p, b)
		return nil
	}
	m.askLocked(to)
	return nil
}

// sendLocked sends a datagram if there are buffers for all of it; otherwise it is lost.
func (m *mail) sendLocked(p *mailPeer, b []byte) {
	packet := min(m.packet, mtuBytes(p.address.mtu))
	parts := partsOf(len(b), packet)
	if len(m.mu.free) < parts {
		return
	}
	m.mu.number++
	for i := range parts {
		id := m.mu.free[len(m.mu.free)-1]
		buffer := asBytes(m.memory.Pointer(m.sendAt(id), uint64(m.packet)), m.packet)
		n := encodePart(buffer[:packet], m.nic.cfg.Machine, m.mu.number, i, b)
		if m.post.send(p.route, p.address, id, unsafe.Pointer(&buffer[0]), n, m.key) != nil {
			return // the datagram is lost
		}
		m.mu.free = m.mu.free[:len(m.mu.free)-1]
		m.mu.to[id-mailReceives] = p
		p.sends++
	}
}

// asBytes makes a slice of mapped memory.
func asBytes(at unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(at), n) }

// receive takes what has come, and gives back the buffers of what was sent, until the NIC is closed.
func (m *mail) receive() {
	defer close(m.ended)
	var done [64]completion
	for {
		err := m.post.arm()
		for more := true; more && err == nil; {
			var n int
			n, err = m.post.take(done[:])
			for _, d := range done[:n] {
				m.done(d)
			}
			more = n > 0
		}
		if err == nil {
			err = m.post.wait()
		}
		if err != nil {
			return // closed, or the card has failed: datagrams are lost
		}
	}
}

// done handles one completion.
func (m *mail) done(d completion) {
	if d.isReceive == 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.free = append(m.mu.free, d.id)
		p := m.mu.to[d.id-mailReceives]
		m.mu.to[d.id-mailReceives] = nil
		m.sentLocked(p)
		return
	}
	if d.status != statusSuccess {
		return // the queue pair has failed, or is being closed
	}
	if n := int(d.bytes); n >= grhBytes && n <= grhBytes+m.packet {
		from, b, ok := m.parts.add(asBytes(m.memory.Pointer(m.receiveAt(d.id), uint64(m.receiveBytes())), n)[grhBytes:])
		if ok && m.nic.mayConnect(from) == nil {
			m.inbox.Deliver(from, b)
		}
	}
	_ = m.receiveInto(d.id) // fails only if the queue pair has failed: then datagrams are lost
}

// askLocked asks a machine for the address of its queue pair, in the background, unless it is being asked or has been just now.
func (m *mail) askLocked(to rdma.MachineID) {
	if now := time.Now(); now.Sub(m.mu.asked[to]) > askAgainAfter && !m.mu.asking[to] {
		m.mu.asked[to], m.mu.asking[to] = now, true
		m.nic.running.Go(func() { m.keepPeer(to) })
	}
}

// keepPeer connects to a machine, and keeps the address of its queue pair until the connection ends.
func (m *mail) keepPeer(to rdma.MachineID) {
	p, err := m.connect(to)
	isKept := err == nil && m.add(to, p)
	if isKept {
		_, _ = io.Copy(io.Discard, p.stream) // until either side ends
	}
	m.mu.Lock()
	delete(m.mu.asking, to)
	m.mu.Unlock()
	if isKept {
		m.remove(to, p)
	}
}

// connect asks a machine for the address of its queue pair, and makes the way there.
func (m *mail) connect(to rdma.MachineID) (*mailPeer, error) {
	ctx, cancel := context.WithTimeout(m.nic.ctx, hosts.GreetingMax)
	defer cancel()
	stream, address, err := m.nic.dial(ctx, greeting{Greeting: hosts.Greeting{Purpose: datagrams, To: to}, at: m.post.address()})
	if err != nil {
		return nil, err // the next datagram asks again
	}
	r, err := m.post.route(address, m.nic.cfg.TrafficClass)
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return &mailPeer{route: r, address: address, stream: stream}, nil
}

// add notes where datagrams to a machine go. It returns false if none may be sent there any
// more.
func (m *mail) add(to rdma.MachineID, p *mailPeer) bool {
	isAllowed := m.nic.mayConnect(to) == nil
	m.mu.Lock()
	isAllowed = isAllowed && !m.mu.closed
	if isAllowed {
		m.mu.peers[to] = p
	}
	m.mu.Unlock()
	if !isAllowed {
		_ = p.stream.Close()
		m.nic.leaked(p.route.close())
	}
	return isAllowed
}

// remove forgets where datagrams to a machine go, unless that has been done.
func (m *mail) remove(to rdma.MachineID, p *mailPeer) {
	m.mu.Lock()
	isPresent := m.mu.peers[to] == p
	if isPresent {
		delete(m.mu.peers, to)
		m.leaveLocked(p)
	}
	m.mu.Unlock()
	_ = p.stream.Close()
}

// forget ends the connection to a machine, if there is one.
func (m *mail) forget(to rdma.MachineID) {
	m.mu.Lock()
	p := m.mu.peers[to]
	m.mu.Unlock()
	if p != nil {
		m.remove(to, p)
	}
}
