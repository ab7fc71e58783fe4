package raftstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/farmsql/farmsql/rdma"
)

// dialStore connects to a machine as another one would, and returns its reply to a greeting.
func dialStore(t *testing.T, s *Store, g []byte) (net.Conn, error) {
	t.Helper()
	c, err := net.Dial("tcp", s.cfg.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(g); err != nil {
		t.Fatal(err)
	}
	_, err = readReply(c)
	return c, err
}

// greets returns the greeting of one of three machines to another, changed.
func greets(from, to rdma.MachineID, change func(g *greeting)) []byte {
	f := founding(3, 0)
	f.Machine = from
	g := f.greeting(to)
	if change != nil {
		change(&g)
	}
	return g.encode()
}

// A machine lets in only the machines of its store, and tells others, and its owner, why not.
func TestStrangers(t *testing.T) {
	refused := make(chan error, 1)
	s := single(t, 3, Config{Refused: func(_ net.Addr, reason error) { refused <- reason }}, func(*logFile) {})
	other := greets(1, 0, nil)
	other[4]++
	for name, c := range map[string]struct {
		greeting []byte
		want     error
	}{
		"a machine":       {greets(1, 0, nil), nil},
		"other format":    {other, refusals[otherFormat]},
		"other cluster":   {greets(1, 0, func(g *greeting) { g.cluster++ }), refusals[otherCluster]},
		"other founding":  {greets(1, 0, func(g *greeting) { g.founding++ }), refusals[otherFounding]},
		"other machine":   {greets(1, 2, nil), refusals[otherMachine]},
		"unknown machine": {greets(7, 0, nil), refusals[stranger]},
		"unknown kind":    {greets(1, 0, func(g *greeting) { g.kind = 9 }), refusals[otherKind]},
		"itself":          {greets(0, 0, nil), refusals[stranger]},
	} {
		if _, err := dialStore(t, s, c.greeting); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.want == nil {
			continue
		}
		if reason := <-refused; !errors.Is(reason, c.want) {
			t.Errorf("%s: refused for %v, want %v", name, reason, c.want)
		}
	}
	if _, err := dialStore(t, s, []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err == nil {
		t.Error("a browser has a reply")
	}
	if reason := <-refused; !errors.Is(reason, errGarbage) {
		t.Errorf("a browser is refused for %v", reason)
	}
}

// Only the same store has the same digest.
func TestDigest(t *testing.T) {
	digests := make(map[uint64]string)
	for name, f := range map[string]Founding{
		"one":             {Cluster: 1, Machines: addresses("a:1", "b:1", "c:1")},
		"another cluster": {Cluster: 2, Machines: addresses("a:1", "b:1", "c:1")},
		"fewer machines":  {Cluster: 1, Machines: addresses("a:1")},
		"another machine": {Cluster: 1, Machines: map[rdma.MachineID]string{0: "a:1", 1: "b:1", 3: "c:1"}},
		"another address": {Cluster: 1, Machines: addresses("a:1", "b:1", "c:2")},
		"another order":   {Cluster: 1, Machines: addresses("b:1", "a:1", "c:1")},
	} {
		if other, isKnown := digests[f.digest()]; isKnown {
			t.Errorf("%s has the digest of %s", name, other)
		}
		digests[f.digest()] = name
	}
	mine, its := founding(3, 0), founding(3, 1)
	if mine.digest() != its.digest() {
		t.Error("two machines of one store have two digests")
	}
}

// A machine answers asks, and ends a connection with a message that cannot be from there.
func TestConnection(t *testing.T) {
	s := single(t, 3, Config{}, func(*logFile) {})
	beat := func(from, to uint64) []byte {
		b, err := messageFrame(frameMessage, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: &from, To: &to, Term: new(uint64(1)), Commit: new(uint64(1))})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	altered := beat(2, 1)
	altered[len(altered)-1] ^= 1
	garbage := appendHeader(nil, frameMessage, []byte{0xff})
	for name, frame := range map[string][]byte{
		"from another": beat(3, 1), "to another": beat(2, 3), "altered": altered,
		"no message": append(garbage, 0xff), "unknown kind": appendHeader(nil, 9, nil),
		"too long": {frameMessage, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
	} {
		c, err := dialStore(t, s, greets(1, 0, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(append(beat(2, 1), askFrame...)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Errorf("no answer: %v", err)
		}
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A newer connection of a machine replaces the one before, which may only look alive.
func TestConnectionReplaced(t *testing.T) {
	s := single(t, 3, Config{}, func(*logFile) {})
	first, err := dialStore(t, s, greets(1, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialStore(t, s, greets(1, 0, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first connection: %v", err)
	}
}

// Handshakes of two connections end in any order: the one that was accepted later stays.
func TestOlderConnectionComesLast(t *testing.T) {
	s := single(t, 3, Config{}, func(*logFile) {})
	ends := make([]net.Conn, 3)
	open := func(nth uint64) (c connection) {
		c.nth = nth
		c.Conn, ends[nth] = net.Pipe()
		t.Cleanup(func() { c.Close() })
		return c
	}
	isClosed := func(nth uint64) bool {
		_ = ends[nth].SetReadDeadline(time.Now().Add(-time.Second))
		_, err := ends[nth].Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	older, newer, newest := open(0), open(1), open(2)
	if !s.replace(1, newer) || s.replace(1, older) || isClosed(1) {
		t.Error("an older connection has replaced a newer one")
	}
	s.dismiss(1, older)
	if !s.hasAccepted(1) || !s.replace(1, newest) || !isClosed(1) || isClosed(2) {
		t.Error("the newest connection has not replaced the one before")
	}
	if s.dismiss(1, newest); s.hasAccepted(1) {
		t.Error("a connection that is dismissed is kept")
	}
}

// A machine that has stopped being the leader passes on what another has sent it.
func TestPassedOn(t *testing.T) {
	s := unopened(founding(3, 0))
	message := func(kind raftpb.MessageType, from uint64) *raftpb.Message {
		return &raftpb.Message{Type: &kind, From: &from, To: new(uint64(1))}
	}
	for name, c := range map[string]struct {
		m    *raftpb.Message
		want bool
	}{
		"own proposal":       {message(raftpb.MsgProp, 2), true},
		"another's proposal": {message(raftpb.MsgProp, 3), true},
		"another's read":     {message(raftpb.MsgReadIndex, 3), true},
		"a stranger's":       {message(raftpb.MsgProp, 9), false},
		"another's entries":  {message(raftpb.MsgApp, 3), false},
		"nobody's":           {message(raftpb.MsgProp, 0), false},
	} {
		if got := s.isPlausible(c.m, 1); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// fakePeer accepts connections for a link, and serves each with f. The link is patient for 50 ticks.
func fakePeer(t *testing.T, config *tls.Config, tick time.Duration, f func(c net.Conn)) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Listener: l, TLS: config, tick: tick, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}}
	founding := founding(3, 0)
	made := newLink(cfg, &founding, 1, founding.Machines[1])
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { made.run(ctx); done <- struct{}{} }()
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		cancel()
		l.Close()
		<-done
		<-done
	})
	return made
}

// reasonOf waits until a link has a reason with this text.
func reasonOf(t *testing.T, l *link, want string) {
	t.Helper()
	var reason error
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(time.Millisecond) {
		if _, reason = l.answeredSince(time.Now()); strings.Contains(reason.Error(), want) {
			return
		}
	}
	t.Errorf("%v, want %s", reason, want)
}

// A link asks over each connection, gives up one over which no answer comes, and opens another.
func TestSilentPeer(t *testing.T) {
	connections := make(chan int, 100)
	l := fakePeer(t, nil, time.Millisecond, func(c net.Conn) {
		if _, err := readGreeting(c); err == nil {
			_, _ = c.Write(accepted.encode())
			select {
			case connections <- 1:
			default:
			}
			_, _ = io.Copy(io.Discard, c) // until the link closes it
		}
	})
	for range 2 {
		<-connections
	}
	reasonOf(t, l, errSilent.Error())
}

// A link says why its machine has refused it, or that it is something else.
func TestRefused(t *testing.T) {
	for want, reply := range map[string][]byte{
		"belongs to another cluster":            otherCluster.encode(),
		"refuses for reason 99":                 refusal(99).encode(),
		"speaks another format":                 {0x72, 0x66, 0x63, 0x73, wireFormat + 1, 0, 0, 0},
		"not a connection of the configuration": []byte("HTTP/1.1 400"),
		io.ErrUnexpectedEOF.Error():             []byte("HTTP"),
		"has closed the connection":             accepted.encode(),
	} {
		l := fakePeer(t, nil, testTick, func(c net.Conn) {
			if _, err := readGreeting(c); err == nil {
				_, _ = c.Write(reply)
			}
		})
		reasonOf(t, l, want)
	}
}

func FuzzFrame(f *testing.F) {
	b, err := messageFrame(frameMessage, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Entries: []*raftpb.Entry{entry(2, 1, "x")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(askFrame)
	f.Add(stirFrame)
	f.Add(greets(1, 2, nil))
	f.Add((&call{operation: operationSwap, patience: time.Second, swap: swap{1, 2, requestID{3}, []byte("x")}}).encode())
	f.Add((&result{requestID{3}, outcomeFailed, []byte("x")}).encode())
	f.Add(stranger.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, _, err := readArrival(bytes.NewReader(b)); err == nil && a.message != nil {
			kind := byte(frameMessage)
			if a.calm {
				kind = frameCalm
			}
			again, err := messageFrame(kind, a.message)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := readArrival(bytes.NewReader(again)); err != nil || got.calm != a.calm || !proto.Equal(got.message, a.message) {
				t.Errorf("%v, then %v, %v", a, got, err)
			}
		}
		if g, err := readGreeting(bytes.NewReader(b)); err == nil {
			if again, err := readGreeting(bytes.NewReader(g.encode())); err != nil || !reflect.DeepEqual(again, g) {
				t.Errorf("%v, then %v, %v", g, again, err)
			}
		}
		if c, err := readCall(bytes.NewReader(b)); err == nil {
			if again, err := readCall(bytes.NewReader(c.encode())); err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("%+v, then %+v, %v", c, again, err)
			}
		}
		if r, err := readResult(bytes.NewReader(b)); err == nil {
			if again, err := readResult(bytes.NewReader(r.encode())); err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("%+v, then %+v, %v", r, again, err)
			}
		}
		_, _ = readReply(bytes.NewReader(b))
	})
}
