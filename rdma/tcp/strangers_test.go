package tcp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// A guarded machine remembers why it has refused connections.
type guarded struct {
	*NIC
	mu      sync.Mutex
	reasons []string
}

func guard(t *testing.T, f *fabric, change func(*Config)) *guarded {
	t.Helper()
	g := new(guarded)
	cfg := f.config(1)
	cfg.Refused = func(_ net.Addr, reason error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reasons = append(g.reasons, reason.Error())
	}
	if change != nil {
		change(&cfg)
	}
	nic, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, nic) })
	if _, err := nic.Open(0, nil); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.at[1] = nic.Address()
	f.mu.Unlock()
	g.NIC = nic
	return g
}

func (g *guarded) hasRefused(t *testing.T, reason string) {
	t.Helper()
	until(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, r := range g.reasons {
			if strings.Contains(r, reason) {
				return true
			}
		}
		return false
	}, func() any { g.mu.Lock(); defer g.mu.Unlock(); return g.reasons })
}

func until(t *testing.T, condition func() bool, state func() any) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after 20 s: %v", state())
		}
	}
}

func closeAll(t *testing.T, nics ...*NIC) {
	t.Helper()
	for _, nic := range nics {
		if err := nic.Close(); err != nil {
			t.Error(err)
		}
	}
}

// write posts a write to machine 1 and returns how it ends.
func write(t *testing.T, q rdma.Queue) error {
	t.Helper()
	_, err := q.Write(1, 5, 0, make([]byte, 8), 1)
	if err != nil {
		return err
	}
	q.Flush()
	var cs [1]rdma.Completion
	until(t, func() bool { return q.Poll(cs[:]) == 1 }, func() any { return "no completion" })
	return cs[0].Err
}

func TestStrangersAreRefused(t *testing.T) {
	ours := certificates(t)
	theirs := certificates(t)
	without := ours.Clone()
	without.Certificates = nil
	for name, c := range map[string]struct {
		server, client *tls.Config
		authorize      func(rdma.MachineID, tls.ConnectionState) error
		change         func(*Config)
		worker         int
		want           string
	}{
		"another cluster": {change: func(c *Config) { c.Cluster[0]++ }, want: "another cluster"},
		"another machine's place": {change: func(c *Config) {
			at, _ := c.Resolve(1)
			c.Resolve = func(rdma.MachineID) (string, bool) { return at, true }
		}, want: "another machine has the address"},
		"another worker":        {worker: 3, want: "no such worker"},
		"without a certificate": {server: ours, client: without, want: "certificate"},
		"another authority":     {server: ours, client: theirs, want: "certificate"},
		"without TLS":           {server: ours, want: "tls"},
		"not authorized": {server: ours, client: ours, want: "not authorize", authorize: func(m rdma.MachineID, _ tls.ConnectionState) error {
			if m == 2 {
				return errors.New("not this one")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(c.server)
			g := guard(t, f, func(cfg *Config) { cfg.Authorize = c.authorize })
			cfg := f.config(2)
			cfg.TLS = c.client
			if c.change != nil {
				c.change(&cfg)
			}
			stranger, err := Join(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(t, stranger)
			memory := nvram.NewMemory(64)
			if err := g.Register(5, memory); err != nil {
				t.Fatal(err)
			}
			q, err := stranger.Open(c.worker, nil)
			if err != nil {
				t.Fatal(err)
			}
			to := rdma.MachineID(1)
			if name == "another machine's place" {
				to = 7
			}
			if _, err := q.Write(to, 5, 0, bytes.Repeat([]byte{1}, 8), 1); err != nil {
				t.Fatal(err)
			}
			q.Flush()
			var cs [1]rdma.Completion
			until(t, func() bool { return q.Poll(cs[:]) == 1 }, func() any { return "no completion" })
			if !errors.Is(cs[0].Err, rdma.ErrBroken) {
				t.Errorf("%v, want ErrBroken", cs[0].Err)
			}
			g.hasRefused(t, c.want)
			if memory.Load(0) != 0 {
				t.Error("a stranger has written")
			}
		})
	}
}

// Whatever is sent to the port is refused, and neither memory nor the machine suffers.
func TestGarbage(t *testing.T) {
	f := newFabric(nil)
	g := guard(t, f, nil)
	greet := func(change func(b []byte)) []byte {
		b := protocol.EncodeGreeting(hosts.Greeting{From: 2, To: 1, Cluster: [16]byte{7}})
		change(b)
		return b
	}
	good := greet(func([]byte) {})
	for name, c := range map[string]struct {
		sent []byte
		want string
	}{
		"nothing":             {nil, "EOF"},
		"HTTP":                {[]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n0123456789"), "not a connection of a farmsql machine"},
		"half a greeting":     {good[:20], "unexpected EOF"},
		"a later format":      {greet(func(b []byte) { b[4]++ }), "another format"},
		"a later purpose":     {greet(func(b []byte) { b[5] = 9 }), "purpose"},
		"a later operation":   {append(bytes.Clone(good), (&frame{op: 77}).append(nil)...), "operation 77"},
		"an operation's half": {append(bytes.Clone(good), make([]byte, frameBytes/2)...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			socket, err := net.Dial("tcp", g.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			if _, err := socket.Write(c.sent); err != nil {
				t.Fatal(err)
			}
			_ = socket.(*net.TCPConn).CloseWrite()
			if _, err := io.Copy(io.Discard, socket); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection does not end: %v", err)
			}
			if c.want != "" {
				g.hasRefused(t, c.want)
			}
		})
	}
}

// Replies and answers that no machine sends break the connection, and nothing else.
func TestGarbageOfAServer(t *testing.T) {
	reply := func(change func(b []byte)) []byte {
		b := protocol.EncodeReply(hosts.Reply{Life: 1})
		change(b)
		return b
	}
	good := reply(func([]byte) {})
	for name, sent := range map[string][]byte{
		"nothing":           nil,
		"HTTP":              []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"a later format":    reply(func(b []byte) { b[4]++ }),
		"a later refusal":   reply(func(b []byte) { b[5] = 99 }),
		"another operation": append(bytes.Clone(good), (&answer{number: 7}).append(nil)...),
		"a later outcome":   append(bytes.Clone(good), (&answer{outcome: 9}).append(nil)...),
		"bytes for a write": append(bytes.Clone(good), (&answer{bytes: 8}).append(nil)...),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(nil)
			fake(t, f, 1, func(socket *net.TCPConn) {
				_, _ = socket.Write(sent)
				_ = socket.CloseWrite()
				_, _ = io.Copy(io.Discard, socket)
			})
			nic, err := Join(f.config(2))
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(t, nic)
			q, err := nic.Open(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(t, q); !errors.Is(err, rdma.ErrBroken) {
				t.Errorf("%v, want ErrBroken", err)
			}
		})
	}
}

// Packets that are not datagrams of a machine, or have been received before, are dropped.
func TestForgedDatagrams(t *testing.T) {
	f := newFabric(nil)
	var nics [3]*NIC
	for i := range nics[1:] {
		nic, err := f.Join(rdma.MachineID(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		nics[i+1] = nic.(*NIC)
		defer closeAll(t, nics[i+1])
	}
	var mu sync.Mutex
	got := map[string]int{}
	nics[1].Datagrams(func(_ rdma.MachineID, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		got[string(b)]++
	})
	count := func(s string) int {
		mu.Lock()
		defer mu.Unlock()
		return got[s]
	}
	send := func(s string) {
		until(t, func() bool {
			if err := nics[2].Datagram(1, []byte(s)); err != nil {
				t.Fatal(err)
			}
			return count(s) > 0
		}, func() any { return s })
	}
	send("hello")

	m := nics[2].mail
	m.mu.Lock()
	s := *m.mu.sealers[1]
	m.mu.Unlock()
	socket, err := net.Dial("udp", nics[1].Address())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	header := encodeMail(sealed, 2, s.number, s.sent+10)
	packet := s.aead.Seal(header, nonceOf(header), []byte("once"), header)
	for i := range packet {
		forged := bytes.Clone(packet)
		forged[i] ^= 1
		for _, p := range [][]byte{forged, packet[:i]} {
			if _, err := socket.Write(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 { // the first is genuine
		if _, err := socket.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return count("once") > 0 }, func() any { return "the genuine one is lost" })
	m.mu.Lock()
	m.mu.sealers[1].sent += 100
	m.mu.Unlock()
	send("bye")
	mu.Lock()
	defer mu.Unlock()
	if got["once"] != 1 || len(got) != 3 {
		t.Errorf("received %v", got)
	}
}

func TestWindow(t *testing.T) {
	var w window
	for i, c := range []struct {
		n   uint64
		new bool
	}{{0, true}, {0, false}, {3, true}, {1, true}, {1, false}, {3, false}, {2, true}, {66, true}, {2, false}, {3, false}, {4, true}, {66, false}, {1 << 40, true}, {67, false}, {1<<40 - 1, true}, {1<<64 - 2, true}, {1<<64 - 2, false}, {1<<64 - 1, false}, {0, false}} {
		if w.admit(c.n) != c.new {
			t.Errorf("step %d: number %d: %v", i, c.n, !c.new)
		}
	}
}

// Datagrams follow a machine that comes back at another address.
func TestDatagramsToAnotherAddress(t *testing.T) {
	f := newFabric(nil)
	a, err := f.Join(1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, a.(*NIC))
	for life := range 2 {
		f.mu.Lock()
		delete(f.at, 2)
		f.mu.Unlock()
		b, err := f.Join(2)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan struct{}, 1000)
		b.Datagrams(func(rdma.MachineID, []byte) { got <- struct{}{} })
		until(t, func() bool {
			if err := a.Datagram(2, []byte("hello")); err != nil {
				t.Fatal(err)
			}
			return len(got) > 0
		}, func() any { return life })
		closeAll(t, b.(*NIC))
	}
}
