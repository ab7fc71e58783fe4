//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
)

// lines are machines of this process whose lease messages go through UDP sockets, and whose calls go
// through a fabric.
type lines struct {
	*testing.T
	network *local.Network
	leaving map[rdma.MachineID]func()
	mu      sync.Mutex
	at      map[rdma.MachineID]*testLine
}

func newLines(t *testing.T) *lines {
	return &lines{T: t, network: local.NewNetwork(local.Options{}), leaving: map[rdma.MachineID]func(){}, at: map[rdma.MachineID]*testLine{}}
}

// A testLine is a Line of which the keys go from function to function.
type testLine struct {
	lines   *lines
	self    rdma.MachineID
	socket  *os.File
	address netip.AddrPort
	// behind, if it is valid, is the address that others are told.
	behind netip.AddrPort
	isOld  bool // hands out no keys
	later  int  // so many times it cannot be asked yet

	handOut func(rdma.MachineID, [LineKeyBytes]byte)
}

func (l *lines) line(m rdma.MachineID) *testLine {
	l.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		l.Fatal(err)
	}
	defer c.Close()
	f, err := c.File()
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { f.Close() })
	x := &testLine{lines: l, self: m, socket: f, address: c.LocalAddr().(*net.UDPAddr).AddrPort()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[m] = x
	return x
}

func (x *testLine) Socket() int { return int(x.socket.Fd()) }

func (x *testLine) HandOut(f func(rdma.MachineID, [LineKeyBytes]byte)) {
	x.lines.mu.Lock()
	defer x.lines.mu.Unlock()
	x.handOut = f
}

func (x *testLine) Ask(_ context.Context, m rdma.MachineID) (key [LineKeyBytes]byte, at netip.AddrPort, err error) {
	x.lines.mu.Lock()
	defer x.lines.mu.Unlock()
	y := x.lines.at[m]
	switch {
	case y == nil:
		return key, at, errors.New("nobody is there")
	case y.isOld:
		return key, at, errors.ErrUnsupported
	case y.handOut == nil || y.later > 0:
		y.later--
		return key, at, errors.New("not yet")
	}
	_, _ = rand.Read(key[:])
	y.handOut(x.self, key)
	if y.behind.IsValid() {
		return key, y.behind, nil
	}
	return key, y.address, nil
}

// join puts a life of a machine on the network.
func (l *lines) join(p call.Peer) *call.Endpoint {
	l.Helper()
	nic, err := l.network.Join(p.Machine)
	if err != nil {
		l.Fatal(err)
	}
	e := call.New(nic, clock.System{}, p.Incarnation)
	leave := sync.OnceFunc(func() { e.Close(); nic.Close() })
	l.Cleanup(leave)
	l.leaving[p.Machine] = leave
	return e
}

func (l *lines) leave(m rdma.MachineID) { l.leaving[m]() }

// A logbook is where a keeper logs.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logbook) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), s)
}

func (l *lines) keeper(x *testLine, change func(*Config)) (*hosts, *noticed, *logbook) {
	l.Helper()
	n, log := new(noticed), new(logbook)
	cfg := Config{Length: time.Second, Clock: clock.System{}, Expired: n.add, Log: slog.New(slog.NewTextHandler(log, nil))}
	if change != nil {
		change(&cfg)
	}
	k, err := NewLine(l.join(peer(x.self)), 1, x, cfg)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { k.Close() })
	return k.(*hosts), n, log
}

// Keepers of machines of several hosts have leases with each other, over datagrams.
func TestLine(t *testing.T) {
	l := newLines(t)
	cm, atCM, _ := l.keeper(l.line(0), nil)
	m1, at1, _ := l.keeper(l.line(1), func(c *Config) { c.NormalPriority = true })
	m2, _, _ := l.keeper(l.line(2), nil)
	for _, k := range []Keeper{cm, m1, m2} {
		k.Configure(0, peers(0, 1, 2))
	}
	for _, k := range []*hosts{cm, m1, m2} {
		eventually(t, "a lease", k.Valid)
	}
	eventually(t, "datagrams of all members", func() bool { return cm.heard(1) > 0 && cm.heard(2) > 0 && m1.heard(0) > 0 && m2.heard(0) > 0 })
	if cm.Length() != time.Second || len(cm.Leases()) != 2 || !strings.Contains(m1.Variant(), "normal priority") {
		t.Errorf("%v, %v, %s", cm.Length(), cm.Leases(), m1.Variant())
	}
	m2.Close()
	m2.Close()
	if m2.Configure(0, peers(0, 1, 2)); m2.Valid() {
		t.Error("a closed keeper has a lease")
	}
	eventually(t, "the CM suspects machine 2", func() bool { return atCM.has(2) })
	cm.Configure(0, peers(0, 1))
	m1.Configure(0, peers(0, 1))
	cm.Close()
	eventually(t, "machine 1 suspects the CM", func() bool { return at1.has(0) })
}

// A machine of the version before knows of no keys: it exchanges notices, as CM and as another machine, and
// leases last as long as there for everybody. When it has been replaced, they are short.
func TestLineWithTheVersionBefore(t *testing.T) {
	for _, old := range []rdma.MachineID{0, 1} {
		l := newLines(t)
		l.line(old).isOld = true
		e := l.join(peer(old))
		before := NewCalls(e, 1, Config{Clock: clock.System{}, Expired: func(rdma.MachineID) {}})
		byDefault := func(c *Config) { c.Length = 0 }
		others := slices.DeleteFunc([]rdma.MachineID{0, 1, 2}, func(m rdma.MachineID) bool { return m == old })
		x, _, log := l.keeper(l.line(others[0]), byDefault)
		y, _, _ := l.keeper(l.line(others[1]), byDefault)
		for _, k := range []Keeper{before, x, y} {
			k.Configure(0, peers(0, 1, 2))
		}
		for _, k := range []Keeper{before, x, y} {
			eventually(t, "a lease beside the version before", k.Valid)
		}
		eventually(t, "leases last as long as those of the version before", func() bool {
			return x.Length() == LengthCalls && y.Length() == LengthCalls && x.Shortest() == LengthLine // by which it beats
		})
		eventually(t, "the log says so", func() bool { return log.has("version before") })

		before.Close()
		next := call.Peer{Machine: old, Incarnation: 999}
		upgraded := l.line(old)
		l.leave(old)
		e = l.join(next)
		k, err := NewLine(e, 1, upgraded, Config{Clock: clock.System{}, Expired: func(rdma.MachineID) {}})
		if err != nil {
			t.Fatal(err)
		}
		members := peers(0, 1, 2)
		members[old] = next
		for _, k := range []Keeper{k, x, y} {
			k.Configure(0, members)
		}
		for _, k := range []*hosts{k.(*hosts), x, y} {
			eventually(t, "a short lease without the version before", func() bool { return k.Valid() && k.Length() == LengthLine })
		}
		k.Close()
	}
}

// A member has the key of the CM, which has none of the member's: the CM's notices come through Go, and both
// go by the longer lease time.
func TestLineOfWhichOnlyOneHasAKey(t *testing.T) {
	l := newLines(t)
	a, b := l.line(0), l.line(1)
	b.isOld = true
	standard := func(c *Config) { c.Length = 0 }
	cm, _, _ := l.keeper(a, standard)
	m1, _, _ := l.keeper(b, standard)
	for _, k := range []Keeper{cm, m1} {
		k.Configure(0, peers(0, 1))
	}
	// That nobody is suspected follows from the times, unless the computer is too busy for them.
	eventually(t, "leases of the longer time at both", func() bool {
		return cm.Valid() && m1.Valid() && cm.Length() == LengthCalls && m1.Length() == LengthCalls
	})
}

// Machines that are about to exchange keys do not lengthen the leases meanwhile: when one of them failed soon after it
// has become a member, the others would wait for a longer one. On a slow computer the time for that may be over: then it
// is tried again.
func TestLineIsShortFromTheBeginning(t *testing.T) {
	shortest := time.Hour
	for range 20 {
		l := newLines(t)
		a, b := l.line(0), l.line(1)
		a.later, b.later = 1, 1
		standard := func(c *Config) { c.Length = 0 }
		cm, _, _ := l.keeper(a, standard)
		m1, _, _ := l.keeper(b, standard)
		for _, k := range []Keeper{cm, m1} {
			k.Configure(0, peers(0, 1))
		}
		eventually(t, "leases by notices", func() bool { return cm.Valid() && m1.Valid() })
		cm.Configure(0, peers(0))
		m1.Configure(1, peers(1))
		if shortest = min(shortest, max(cm.Outstanding(), m1.Outstanding())); shortest < 2*LengthLine {
			return
		}
	}
	t.Errorf("leases were granted for %v", shortest)
}

// When a new member takes longer for the exchange of keys, leases become longer, and renewals rarer. The others keep their
// leases meanwhile, though those granted before end sooner than the next ones are due. That shows when it is so three
// times in a row, because it depends on the moment; a slow computer gets more attempts.
func TestLineBecomesLonger(t *testing.T) {
	row := 0
	for range 15 {
		l := newLines(t)
		standard := func(c *Config) { c.Length = 0 }
		cm, _, _ := l.keeper(l.line(0), standard)
		m1, _, _ := l.keeper(l.line(1), standard)
		for _, k := range []Keeper{cm, m1} {
			k.Configure(0, peers(0, 1))
		}
		eventually(t, "short leases", func() bool { return m1.Valid() && cm.Length() == LengthLine && cm.heard(1) > 0 && m1.heard(0) > 0 })
		slow := l.line(2)
		slow.later = 1 << 20
		m2, _, _ := l.keeper(slow, standard)
		for _, k := range []Keeper{cm, m1, m2} {
			k.Configure(0, peers(0, 1, 2))
		}
		eventually(t, "longer leases", func() bool { return cm.Length() == LengthCalls })
		without := 0
		for range 200 {
			if time.Sleep(time.Millisecond); !m1.Valid() {
				without++
			}
		}
		for _, k := range []Keeper{cm, m1, m2} {
			k.Close()
		}
		if row++; without > 10 {
			row = 0
		}
		if row == 3 {
			return
		}
	}
	t.Error("a member has no lease while leases become longer")
}

// A machine that has not been heard gets the time of two longer leases, and one that has been heard no more than any
// other. On a slow computer the latter is tried again.
func TestLineIsPatientAtFirst(t *testing.T) {
	const most = grace * LengthCalls
	standard := func(c *Config) { c.Length = 0 }
	l := newLines(t)
	cm, atCM, _ := l.keeper(l.line(0), standard)
	begin := time.Now()
	cm.Configure(0, peers(0, 1))
	eventually(t, "a machine that is not there is suspected", func() bool { return atCM.has(1) })
	if after := time.Since(begin); after < most {
		t.Errorf("it is suspected after %v", after)
	}
	shortest := time.Hour
	for range 10 {
		l := newLines(t)
		cm, atCM, _ := l.keeper(l.line(0), standard)
		m1, _, _ := l.keeper(l.line(1), standard)
		m1.Configure(0, peers(0, 1))
		begin := time.Now()
		cm.Configure(0, peers(0, 1))
		eventually(t, "the first datagram", func() bool { return cm.heard(1) > 0 })
		m1.Close()
		eventually(t, "a machine that was heard is suspected", func() bool { return atCM.has(1) })
		if shortest = min(shortest, time.Since(begin)); shortest < most {
			return
		}
	}
	t.Errorf("a machine that was heard is suspected after %v", shortest)
}

// A machine that says that it hands out no key gets the longer leases at once. On a slow computer it is tried again.
func TestLineIsLongForWhoHasNoKey(t *testing.T) {
	shortest := time.Hour
	for range 20 {
		l := newLines(t)
		cm, _, _ := l.keeper(l.line(0), func(c *Config) { c.Length = 0 })
		l.line(1).isOld = true
		begin := time.Now()
		cm.Configure(0, peers(0, 1))
		eventually(t, "longer leases", func() bool { return cm.Length() == LengthCalls })
		if shortest = min(shortest, time.Since(begin)); shortest < LengthLine {
			return
		}
	}
	t.Errorf("leases become longer after %v", shortest)
}

// TestStrangersOfALine: garbage, recorded datagrams and those of another cluster's keys are dropped, counted and
// logged, and cost no lease.
func TestStrangersOfALine(t *testing.T) {
	l := newLines(t)
	a, b := l.line(0), l.line(1)
	recorder, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	b.behind = recorder.LocalAddr().(*net.UDPAddr).AddrPort() // what machine 0 sends to machine 1 goes through it
	first := make(chan []byte, 1)
	var relaying sync.WaitGroup
	relaying.Go(func() {
		for buf := make([]byte, 2000); ; {
			n, from, err := recorder.ReadFromUDPAddrPort(buf)
			switch {
			case err != nil:
				return
			case from == b.address:
				_, _ = recorder.WriteToUDPAddrPort(buf[:n], a.address)
			case from == a.address:
				select {
				case first <- slices.Clone(buf[:n]):
				default:
				}
				_, _ = recorder.WriteToUDPAddrPort(buf[:n], b.address)
			}
		}
	})
	defer relaying.Wait()
	defer recorder.Close()
	cm, atCM, _ := l.keeper(a, func(c *Config) { c.Length = 10 * time.Second })
	m1, _, log := l.keeper(b, func(c *Config) { c.Length = 10 * time.Second })
	cm.Configure(0, peers(0, 1))
	m1.Configure(0, peers(0, 1))
	recorded := <-first
	foreign, forged := slices.Clone(recorded), slices.Clone(recorded)
	binary.LittleEndian.PutUint64(foreign[64:], 12345) // the key's number
	forged[40]++
	eventually(t, "each is counted", func() bool {
		for _, p := range [][]byte{[]byte("GET / HTTP/1.0\r\n\r\n"), recorded[:50], recorded, foreign, forged} {
			for range 20 { // more than a batch
				if _, err := recorder.WriteToUDPAddrPort(p, b.address); err != nil {
					t.Error(err)
				}
			}
		}
		v := m1.verdicts()
		return v.Garbage > 0 && v.Replayed > 0 && v.UnknownKey > 0 && v.Forged > 0
	})
	eventually(t, "they are logged", func() bool { return log.has("lease messages are refused") })
	eventually(t, "leases all the same", func() bool { return cm.Valid() && m1.Valid() })
	if atCM.has(1) {
		t.Error("strangers end a lease")
	}
}

// Datagrams that are lost, doubled or out of order cost no lease.
func TestLineOverABadNetwork(t *testing.T) {
	l := newLines(t)
	a, b := l.line(0), l.line(1)
	a.behind, b.behind = l.relay(b.address, a.address)
	cm, atCM, _ := l.keeper(a, nil)
	m1, at1, _ := l.keeper(b, nil)
	cm.Configure(0, peers(0, 1))
	m1.Configure(0, peers(0, 1))
	eventually(t, "copies are refused", func() bool { return cm.verdicts().Replayed > 2 && m1.verdicts().Replayed > 2 })
	eventually(t, "leases", func() bool { return cm.Valid() && m1.Valid() })
	if v := cm.verdicts(); v.Forged+v.Garbage+v.UnknownKey > 0 || atCM.has(1) || at1.has(0) {
		t.Errorf("%+v", v)
	}
}

// relay returns two addresses: what a sends to the second goes to b, and what b sends to the first goes to
// a. A fifth is lost, some are doubled, and pairs are exchanged.
func (l *lines) relay(b, a netip.AddrPort) (forA, forB netip.AddrPort) {
	l.Helper()
	var ends [2]*net.UDPConn
	for i := range ends {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			l.Fatal(err)
		}
		ends[i] = c
	}
	var running sync.WaitGroup
	pass := func(in, out *net.UDPConn, to netip.AddrPort) {
		var held []byte
		buf := make([]byte, 2000)
		for i := 0; ; i++ {
			n, _, err := in.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			switch i % 5 {
			case 0: // lost
			case 1:
				held = slices.Clone(buf[:n])
			case 2:
				_, _ = out.WriteToUDPAddrPort(buf[:n], to)
				_, _ = out.WriteToUDPAddrPort(held, to)
			default:
				_, _ = out.WriteToUDPAddrPort(buf[:n], to)
				_, _ = out.WriteToUDPAddrPort(buf[:n], to)
			}
		}
	}
	// ends[0] stands for a, at b's side, and ends[1] for b.
	running.Go(func() { pass(ends[0], ends[1], a) })
	running.Go(func() { pass(ends[1], ends[0], b) })
	l.Cleanup(func() { ends[0].Close(); ends[1].Close(); running.Wait() })
	at := func(i int) netip.AddrPort { return ends[i].LocalAddr().(*net.UDPAddr).AddrPort() }
	return at(0), at(1)
}

// If datagrams do not get through though the machine hands out keys, the log says whose, and what to do.
func TestLineBlocked(t *testing.T) {
	l := newLines(t)
	a, b := l.line(0), l.line(1)
	a.behind, b.behind = l.line(7).address, l.line(8).address // nobody reads there
	cm, atCM, log := l.keeper(a, nil)
	m1, _, _ := l.keeper(b, nil)
	cm.Configure(0, peers(0, 1))
	m1.Configure(0, peers(0, 1))
	eventually(t, "the CM suspects machine 1", func() bool { return atCM.has(1) })
	cm.checkHeard(peer(1)) // in place of waiting for blockedAfter
	if !log.has("no datagram of a machine arrives, though it answers over TCP") || !log.has("machine=1 address="+b.behind.String()) {
		t.Error("the log does not say whose datagrams are blocked")
	}
	cm.checkHeard(call.Peer{Machine: 1, Incarnation: 5}) // a life that is no member
	m1.Close()
	m1.checkHeard(peer(0))
}

// A machine that does not answer is asked again, and its keeper needs nobody to be closed.
func TestLineAsksAgain(t *testing.T) {
	l := newLines(t)
	cm, _, _ := l.keeper(l.line(0), nil)
	cm.Configure(0, peers(0, 1))
	time.Sleep(2 * askAgainMin) // nothing depends on it: the first attempts fail
	m1, _, _ := l.keeper(l.line(1), nil)
	m1.Configure(0, peers(0, 1))
	eventually(t, "leases", func() bool { return cm.Valid() && m1.Valid() && cm.heard(1) > 0 })
	if _, err := NewLine(l.join(peer(5)), 1, noLine{}, Config{Length: time.Second, Clock: clock.System{}}); err == nil {
		t.Error("a keeper without a socket")
	}
}

type noLine struct{ Line }

func (noLine) Socket() int { return -1 }

func TestScopes(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	if scopeOf("") != 0 || scopeOf("lo") != uint32(lo.Index) || scopeOf("77") != 77 {
		t.Error("wrong number of a zone")
	}
}
