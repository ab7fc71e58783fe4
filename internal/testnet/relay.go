package testnet

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// relayDelay is the longest time for which a relay holds bytes or a datagram back.
	relayDelay = 2 * time.Millisecond
	// relayPiece is the largest piece of a connection's bytes that a relay passes on at a time.
	relayPiece = 1500
	// relayLoss and relayTwice are the parts of the datagrams that a relay loses, and passes on twice.
	relayLoss, relayTwice = 0.05, 0.05
)

// A relay forwards to a machine what the others send to it, as a slow and faulty network does:
// bytes of connections late and in pieces, and datagrams late, out of order, twice or not at all.
type relay struct {
	tcp     net.Listener
	udp     *net.UDPConn
	running sync.WaitGroup

	mu      sync.Mutex
	to      string // the machine's address; "" before it has joined
	closed  bool
	sockets map[net.Conn]bool
}

// Relay forwards all traffic from the address listen to the address to, as a bad network does, until the test ends.
func Relay(t testing.TB, listen, to string) {
	t.Helper()
	newRelay(t, listen).aim(to)
}

func newRelay(t testing.TB, listen string) *relay {
	t.Helper()
	r := &relay{sockets: make(map[net.Conn]bool)}
	if err := tries(listen, func() error { return r.listen(listen) }); err != nil {
		t.Fatal(err)
	}
	r.running.Go(r.accept)
	r.running.Go(r.forward)
	t.Cleanup(r.close)
	return r
}

// listen opens the relay's sockets, of TCP and UDP, at one address.
func (r *relay) listen(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	own := l.Addr().(*net.TCPAddr)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: own.IP, Port: own.Port})
	if err != nil {
		l.Close()
		return err
	}
	r.tcp, r.udp = l, udp
	return nil
}

// tries calls f, which opens a TCP and a UDP socket at one port. If f chose a port that is free for
// TCP only, tries calls it again.
func tries(address string, f func() error) (err error) {
	for range 16 {
		err = f()
		if _, port, _ := net.SplitHostPort(address); port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return err
}

// aim sets the address that the relay forwards to.
func (r *relay) aim(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// target returns the address that the relay forwards to; "" if the machine has not joined yet.
func (r *relay) target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}

func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	for s := range r.sockets {
		s.Close()
	}
	r.mu.Unlock()
	r.tcp.Close()
	r.udp.Close()
	r.running.Wait()
}

// keep records a connection, so that the relay's close closes it, and returns the
// address that the relay forwards to. ok is false if the relay is closed, or has no such address yet.
func (r *relay) keep(c net.Conn) (to string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.to == "" {
		return "", false
	}
	r.sockets[c] = true
	return r.to, true
}

func (r *relay) drop(c net.Conn) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sockets, c)
}

func (r *relay) accept() {
	for {
		from, err := r.tcp.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.pass(from) })
	}
}

// pass passes on the bytes of a connection in both directions until one side ends it.
func (r *relay) pass(from net.Conn) {
	defer r.drop(from)
	address, ok := r.keep(from)
	if !ok {
		return
	}
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer r.drop(to)
	if _, ok := r.keep(to); !ok {
		return
	}
	ended := make(chan struct{})
	r.running.Go(func() {
		trickle(from, to)
		close(ended)
	})
	trickle(to, from)
	<-ended
}

// trickle copies bytes from source to target, late and in pieces, until source ends. Then it ends target in this
// direction only.
func trickle(target, source net.Conn) {
	defer func() { _ = target.(*net.TCPConn).CloseWrite() }()
	b := make([]byte, relayPiece)
	for {
		n, err := source.Read(b[:1+rand.IntN(len(b))])
		if err != nil {
			return
		}
		if rand.IntN(8) == 0 {
			time.Sleep(rand.N(relayDelay))
		}
		if _, err := target.Write(b[:n]); err != nil {
			return
		}
	}
}

// forward passes datagrams on to the machine. Each sender gets a socket of its own, so that the
// machine's answer to that socket leads back to the sender.
func (r *relay) forward() {
	paths := make(map[netip.AddrPort]*net.UDPConn)
	defer func() {
		for _, socket := range paths {
			socket.Close()
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, sender, err := r.udp.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		machine, err := netip.ParseAddrPort(r.target())
		if err != nil {
			continue // it has not joined yet
		}
		path := paths[sender]
		if path == nil {
			if path, err = net.ListenUDP("udp", nil); err != nil {
				continue // the datagram is lost
			}
			paths[sender] = path
			r.running.Go(func() { r.answer(path, sender) })
		}
		r.mangle(path, b[:n], machine)
	}
}

// answer passes the machine's answers on to a sender, until path is closed.
func (r *relay) answer(path *net.UDPConn, sender netip.AddrPort) {
	b := make([]byte, 64<<10)
	for {
		n, _, err := path.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		r.mangle(r.udp, b[:n], sender)
	}
}

// mangle drops a datagram, or sends it late, once or twice. A goroutine sends each copy, so that
// datagrams overtake each other.
func (r *relay) mangle(from *net.UDPConn, datagram []byte, to netip.AddrPort) {
	if rand.Float64() < relayLoss {
		return
	}
	times := 1
	if rand.Float64() < relayTwice {
		times = 2
	}
	for datagram := bytes.Clone(datagram); times > 0; times-- {
		r.running.Go(func() {
			time.Sleep(rand.N(relayDelay))
			_, _ = from.WriteToUDPAddrPort(datagram, to) // fails as the relay ends
		})
	}
}
