package tcp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A datagram on the wire. The text is encrypted; the tag seals both the header and the text:
//
//	| magic 4 | format 1 | kind 1 | from 2 | key's number 8 | datagram's number 8 | text, tag 16 |
//
// A machine that receives a datagram with a key that it does not know sends the header back, with
// kind unknown: the sender then asks for a key.
const (
	mailHeaderBytes = 24
	tagBytes        = 16
	mailBytesMax    = mailHeaderBytes + rdma.DatagramBytesMax + tagBytes
	// windowBits is how many datagrams may overtake one before it counts as lost.
	windowBits = 64
	// askAgainAfter is the least time between two requests for a key of one machine.
	askAgainAfter = 50 * time.Millisecond
	// keyAge is how long a sender uses a key. When it asks for the next one, it also finds the other
	// machine's present address.
	keyAge = 10 * time.Second
	// silentAfter is how long datagrams to a machine may go without an answer before the sender
	// asks it for a key once more. If it answers that, over TCP, only datagrams do not get
	// through. A single notice, which has no answer, proves nothing: so silentLeast datagrams
	// must have been sent. A call is sent again every 50 ms, so it has sent far more by then.
	silentAfter = 5 * time.Second
	silentLeast = 20
	mailBuffer  = 1 << 20 // the size of the socket's buffer, each way
)

const (
	sealed byte = iota
	unknown
)

// A mail sends and receives a machine's datagrams.
type mail struct {
	nic    *NIC
	socket *net.UDPConn
	raw    syscall.RawConn
	inbox  hosts.Inbox
	mu     struct {
		lockrank.Mutex[lockrank.Leaf]
		closed  bool
		sealers map[rdma.MachineID]*sealer
		openers map[uint64]*opener                // indexed by the number of the key
		heard   map[rdma.MachineID]*atomic.Uint64 // datagrams that have been delivered, by sender
		keys    map[rdma.MachineID]handedOut
		asked   map[rdma.MachineID]time.Time // when a machine was last asked for a key
		asking  map[rdma.MachineID]bool      // the machines that are being asked for a key
	}
}

// handedOut has the numbers of the latest two keys handed out to one machine. The former key stays valid
// until another one is handed out: datagrams sealed with it may be on their way.
type handedOut struct{ former, latest uint64 }

// A sealer is the key for datagrams to one machine.
type sealer struct {
	number  uint64
	aead    cipher.AEAD
	sent    uint64
	name    string // the address as hosts.Addresses has returned it
	address netip.AddrPort
	since   time.Time // when the machine handed out the key
	heard   uint64    // datagrams that had come from the machine by then
}

// An opener is the key for datagrams from one machine.
type opener struct {
	from   rdma.MachineID
	aead   cipher.AEAD
	window window
	heard  *atomic.Uint64 // counts the datagrams of the sender
}

func openMail(nic *NIC, at *net.TCPAddr) (*mail, error) {
	socket, err := listenUDP(at, nic.cfg.Line)
	if err != nil {
		return nil, err
	}
	// Smaller buffers lose more datagrams, and that is allowed.
	_, _ = socket.SetReadBuffer(mailBuffer), socket.SetWriteBuffer(mailBuffer)
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	m := &mail{nic: nic, socket: socket, raw: raw}
	m.mu.sealers = make(map[rdma.MachineID]*sealer)
	m.mu.openers = make(map[uint64]*opener)
	m.mu.heard = make(map[rdma.MachineID]*atomic.Uint64)
	m.mu.keys = make(map[rdma.MachineID]handedOut)
	m.mu.asked = make(map[rdma.MachineID]time.Time)
	m.mu.asking = make(map[rdma.MachineID]bool)
	return m, nil
}

func (m *mail) close() error {
	m.mu.Lock()
	m.mu.closed = true
	m.inbox.Receive(nil)
	m.mu.Unlock()
	return m.socket.Close()
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
	isCut := nic.isCut(to)
	name, _ := nic.addresses.Of(to)
	m.mu.Lock()
	if m.mu.closed {
		m.mu.Unlock()
		return fail(rdma.ErrClosed)
	}
	if to == nic.cfg.Machine {
		m.inbox.DeliverHere(nic.running.Go, to, b)
		m.mu.Unlock()
		return nil
	}
	s := m.mu.sealers[to]
	if !isCut && (s == nil || s.name != name || time.Since(s.since) > keyAge || m.isSilentLocked(to, s)) {
		m.askLocked(to)
	}
	if isCut || s == nil {
		m.mu.Unlock()
		return nil
	}
	header := encodeMail(sealed, nic.cfg.Machine, s.number, s.sent)
	s.sent++
	m.mu.Unlock()
	packet := s.aead.Seal(header, nonceOf(header), b, header)
	m.send(packet, s.address)
	return nil
}

func encodeMail(kind byte, from rdma.MachineID, key, number uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, mailHeaderBytes), magic)
	b = append(b, format, kind)
	b = le.AppendUint16(b, uint16(from))
	b = le.AppendUint64(b, key)
	return le.AppendUint64(b, number)
}

// nonceOf returns the nonce of a datagram: its number, which no other one sealed with the key has.
func nonceOf(header []byte) []byte {
	nonce := make([]byte, 12)
	copy(nonce, header[16:mailHeaderBytes])
	return nonce
}

// send sends a packet if the socket takes it at once; otherwise it is lost.
func (m *mail) send(packet []byte, to netip.AddrPort) {
	address := sockaddr(m.socket.LocalAddr().(*net.UDPAddr), to)
	_ = m.raw.Write(func(fd uintptr) bool {
		sent()
		_ = unix.Sendto(int(fd), packet, unix.MSG_DONTWAIT, address)
		return true
	})
}

// sockaddr returns an address in the family of the socket. A socket that is not bound to an IPv4
// address is an IPv6 socket, and sends to IPv4 hosts by mapped addresses.
func sockaddr(own *net.UDPAddr, to netip.AddrPort) unix.Sockaddr {
	if own.IP.To4() != nil && to.Addr().Unmap().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
	}
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}

// receive delivers datagrams until the socket is closed.
func (m *mail) receive() {
	buf := make([]byte, mailBytesMax+1)
	for {
		n, from, err := m.socket.ReadFromUDPAddrPort(buf)
		received()
		switch {
		case err == nil:
			m.take(buf[:n], from)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(retryAfter)
		}
	}
}

// take delivers a packet, or drops it: anybody can send one.
func (m *mail) take(b []byte, sender netip.AddrPort) {
	le := binary.LittleEndian
	if len(b) < mailHeaderBytes || len(b) > mailBytesMax || le.Uint32(b) != magic || b[4] != format {
		return
	}
	from, key := rdma.MachineID(le.Uint16(b[6:])), le.Uint64(b[8:])
	isCut := m.nic.isCut(from)
	m.mu.Lock()
	if b[5] == unknown {
		if s := m.mu.sealers[from]; s != nil && s.number == key {
			m.askLocked(from)
		}
		m.mu.Unlock()
		return
	}
	o := m.mu.openers[key]
	m.mu.Unlock()
	switch {
	case isCut || b[5] != sealed || len(b) < mailHeaderBytes+tagBytes:
	case o == nil:
		m.send(encodeMail(unknown, m.nic.cfg.Machine, key, 0), sender)
	case o.from == from:
		m.open(o, b)
	}
}

// open delivers a packet that is sealed with the key.
func (m *mail) open(o *opener, b []byte) {
	header := b[:mailHeaderBytes]
	text, err := o.aead.Open(b[mailHeaderBytes:mailHeaderBytes], nonceOf(header), b[mailHeaderBytes:], header)
	if err != nil || !o.window.admit(binary.LittleEndian.Uint64(header[16:])) {
		return
	}
	o.heard.Add(1)
	m.inbox.Deliver(o.from, text)
}

// heardLocked returns the count of datagrams that a machine has sent.
func (m *mail) heardLocked(from rdma.MachineID) *atomic.Uint64 {
	n := m.mu.heard[from]
	if n == nil {
		n = new(atomic.Uint64)
		m.mu.heard[from] = n
	}
	return n
}

// isSilentLocked reports whether many datagrams have been sent to a machine with a key, and
// none has come from it since.
func (m *mail) isSilentLocked(to rdma.MachineID, s *sealer) bool {
	return s.sent >= silentLeast && time.Since(s.since) > m.nic.cfg.silent && m.heardLocked(to).Load() == s.heard
}

// A window remembers which of the newest datagrams have been received. Only the goroutine that
// receives uses it.
type window struct {
	next uint64 // one more than the highest number received
	seen uint64 // bit i: number next-1-i
}

// admit reports whether a number is new, and notes it. A number too far back to tell counts as one that has come.
func (w *window) admit(n uint64) bool {
	if n == math.MaxUint64 { // its successor has no number
		return false
	}
	if n >= w.next {
		w.seen = w.seen<<(n-w.next+1) | 1
		w.next = n + 1
		return true
	}
	late := w.next - 1 - n
	if late >= windowBits || (w.seen>>late)&1 != 0 {
		return false
	}
	w.seen |= 1 << late
	return true
}

// handOut makes a key for the datagrams of a machine, and returns its number and the key. The key
// before the last is dropped.
func (m *mail) handOut(from rdma.MachineID) []byte {
	b := make([]byte, 8+keyBytes)
	_, _ = rand.Read(b) // never fails
	number := binary.LittleEndian.Uint64(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := m.mu.keys[from]
	delete(m.mu.openers, keys.former)
	m.mu.keys[from] = handedOut{former: keys.latest, latest: number}
	m.mu.openers[number] = &opener{from: from, aead: newAEAD(b[8:]), heard: m.heardLocked(from)}
	return b
}

func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block
	}
	return aead
}

// askLocked asks a machine for a key, in the background, unless it is being asked or has been just now.
func (m *mail) askLocked(to rdma.MachineID) {
	if now := time.Now(); now.Sub(m.mu.asked[to]) > askAgainAfter && !m.mu.asking[to] && !m.mu.closed {
		m.mu.asked[to], m.mu.asking[to] = now, true
		m.nic.running.Go(func() { m.ask(to) })
	}
}

// ask asks a machine for a key. If the machine answers, although no datagram has come from it in the time of
// the former key (isSilentLocked), ask calls Config.Silent.
func (m *mail) ask(to rdma.MachineID) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.mu.asking, to)
	}()
	name, _ := m.nic.addresses.Of(to)
	b := make([]byte, 8+keyBytes)
	ctx, cancel := context.WithTimeout(m.nic.ctx, connectMax)
	defer cancel()
	l, err := m.nic.dial(ctx, hosts.Greeting{Purpose: keysOfDatagrams, To: to}, b)
	if err != nil {
		return // the next datagram asks again
	}
	address := l.outbox.RemoteAddr().(*net.TCPAddr).AddrPort()
	_ = l.outbox.Close()
	m.mu.Lock()
	former := m.mu.sealers[to]
	isSilent := former != nil && m.isSilentLocked(to, former)
	m.mu.sealers[to] = &sealer{
		number: binary.LittleEndian.Uint64(b), aead: newAEAD(b[8:]), name: name, address: address, since: time.Now(), heard: m.heardLocked(to).Load(),
	}
	m.mu.Unlock()
	if isSilent && m.nic.cfg.Silent != nil {
		m.nic.cfg.Silent(to, address)
	}
}
