package raftstore

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// fakeMember is the only machine of a store, which does with the calls of its clients what serve says: it
// returns nil to close the connection instead of an answer.
type fakeMember struct {
	listener    net.Listener
	connections atomic.Int32
	serve       func(c call) *result
}

func newFakeMember(t *testing.T, serve func(c call) *result) *fakeMember {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeMember{listener: l, serve: serve}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { f.attend(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return f
}

func (f *fakeMember) attend(c net.Conn) {
	defer c.Close()
	f.connections.Add(1)
	if g, err := readGreeting(c); err != nil || g.kind != ofClient {
		return
	}
	_, _ = c.Write(accepted.encode())
	for {
		k, err := readCall(c)
		if err != nil {
			return
		}
		r := f.serve(k)
		if r == nil {
			return
		}
		_, _ = c.Write(r.encode())
	}
}

// client returns a client of the fake machine.
func (f *fakeMember) client(t *testing.T, patience, tick time.Duration) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{
		Cluster: testCluster, Machines: addresses("h:1"), Patience: patience, tick: tick,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", f.listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The answer to a swap is lost, and then a copy of it is answered. The copy has the same identifier.
func TestLostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		lost    int
		outcome outcome
		want    error
	}{
		"done":                {1, outcomeDone, nil},
		"moved":               {1, outcomeMoved, cluster.ErrMoved},
		"moved on":            {1, outcomeMovedOn, errMovedUncertain},
		"moved on, none lost": {0, outcomeMovedOn, cluster.ErrMoved},
	} {
		var mu sync.Mutex
		var ids []requestID
		f := newFakeMember(t, func(k call) *result {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, k.swap.id)
			if len(ids) <= c.lost {
				return nil
			}
			return &result{k.swap.id, c.outcome, nil}
		})
		if err := f.client(t, 2*time.Minute, time.Millisecond).CompareAndSwap(1, configuration(2, 0)); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		mu.Lock()
		if len(ids) != c.lost+1 || ids[0] != ids[c.lost] {
			t.Errorf("%s: the identifiers are %v", name, ids)
		}
		mu.Unlock()
	}
	if !errors.Is(errMovedUncertain, cluster.ErrUnreachable) || errors.Is(errMovedUncertain, cluster.ErrMoved) {
		t.Error(errMovedUncertain)
	}
}

// A client says of each machine why it has not done what was asked, and whether a swap may be done.
func TestClientErrors(t *testing.T) {
	eventually := func(name string, c *Client, parts ...string) {
		t.Helper()
		for begin := time.Now(); ; {
			err := c.CompareAndSwap(1, configuration(2, 0))
			isRight := errors.Is(err, cluster.ErrUnreachable)
			for _, part := range parts {
				isRight = isRight && strings.Contains(err.Error(), part)
			}
			if isRight {
				return
			}
			if time.Since(begin) > 2*time.Minute {
				t.Fatalf("%s: %v, want %q", name, err, parts)
			}
		}
	}
	const mayBe = "; the change may have been carried out nevertheless"
	for name, c := range map[string]struct {
		serve func(k call) *result
		want  string
	}{
		"lost":    {func(call) *result { return nil }, "machine 0 at h:1 cannot be reached: EOF"},
		"strange": {func(call) *result { return &result{} }, "the result of another call"},
		"failing": {func(k call) *result { return &result{k.swap.id, outcomeFailed, []byte("no disk")} }, "machine 0 at h:1 answers: no disk"},
	} {
		eventually(name, newFakeMember(t, c.serve).client(t, 100*time.Millisecond, time.Millisecond), c.want+mayBe)
	}
	isOver := make(chan struct{})
	silent := newFakeMember(t, func(call) *result { <-isOver; return nil })
	eventually("silent", silent.client(t, 100*time.Millisecond, time.Millisecond), "cluster: no machine of the configuration store has done what was asked within 100ms: machine 0 at h:1 does not answer"+mayBe)
	close(isOver)

	alone := single(t, 3, Config{}, func(*logFile) {})
	client := func(id uint64) *Client {
		c, err := NewClient(ClientConfig{
			Cluster: id, Machines: founding(3, 0).Machines, Patience: 300 * time.Millisecond, tick: time.Millisecond,
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				if address != addressOf(0) {
					return nil, errors.New("no network")
				}
				return new(net.Dialer).DialContext(ctx, "tcp", alone.cfg.Listener.Addr().String())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	others := "; machine 1 at 127.0.0.1:2 cannot be reached: no network; machine 2 at 127.0.0.1:3 cannot be reached: no network"
	eventually("no majority", client(testCluster), "machine 0 at 127.0.0.1:1 answers: cluster: 1 of 3 machines of the configuration store answers, and it needs 2: machine 1", others)
	eventually("other cluster", client(testCluster+1), "machine 0 at 127.0.0.1:1 cannot be reached: "+refusals[otherCluster].Error()+others)
}

// A client keeps a connection from call to call, but not one that is old.
func TestClientConnections(t *testing.T) {
	for want, tick := range map[int32]time.Duration{1: time.Hour, 3: time.Nanosecond} {
		f := newFakeMember(t, func(k call) *result { return &result{k.swap.id, outcomeDone, configuration(1, 0).Encode()} })
		c := f.client(t, 2*time.Minute, tick)
		for range 3 {
			if got, err := c.Load(); err != nil || !reflect.DeepEqual(got, configuration(1, 0)) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if got := f.connections.Load(); got != want {
			t.Errorf("%d connections, want %d", got, want)
		}
		for range 2 * idleMax {
			there, here := net.Pipe()
			defer there.Close()
			c.keep(clientConn{machine: 0, socket: here, stream: here})
		}
		if len(c.mu.idle) != idleMax {
			t.Errorf("%d idle connections", len(c.mu.idle))
		}
	}
}

// A connection that has ended while it was idle is replaced at once: its machine has not failed. A machine that ends the next
// one, too, has.
func TestClientFindsAConnectionEnded(t *testing.T) {
	for _, ends := range []int{1, 2} {
		var calls atomic.Int32
		f := newFakeMember(t, func(k call) *result {
			if n := int(calls.Add(1)); n > 1 && n <= 1+ends {
				return nil // ends the connection
			}
			return &result{k.swap.id, outcomeDone, configuration(1, 0).Encode()}
		})
		c := f.client(t, 2*time.Minute, time.Hour)
		if _, err := c.Load(); err != nil {
			t.Fatal(err)
		}
		s, err := newSwap(c.newID(), 1, configuration(2, 0))
		if err != nil {
			t.Fatal(err)
		}
		r := c.try(t.Context(), 0, call{operation: operationSwap, swap: *s})
		if (r.err == nil) != (ends == 1) || !r.isLost {
			t.Errorf("%d connections end: %+v", ends, r)
		}
		if got := f.connections.Load(); got != 2 {
			t.Errorf("%d connections end: %d connections", ends, got)
		}
	}
}

// A closed client does nothing, and keeps nothing.
func TestClientClosed(t *testing.T) {
	called, isOver := make(chan struct{}), make(chan struct{})
	f := newFakeMember(t, func(call) *result {
		close(called)
		<-isOver
		return nil
	})
	c := f.client(t, 2*time.Minute, time.Hour)
	failed := make(chan error)
	go func() {
		_, err := c.Load()
		failed <- err
	}()
	<-called
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("under way: %v", err)
	}
	close(isOver)
	if err := c.CompareAndSwap(1, configuration(2, 0)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	there, here := net.Pipe()
	defer there.Close()
	c.keep(clientConn{machine: 0, socket: here, stream: here})
	if len(c.mu.idle) != 0 {
		t.Error("a closed client has kept a connection")
	}
}

func TestBadClients(t *testing.T) {
	dial := func(context.Context, string) (net.Conn, error) { return nil, errors.New("no network") }
	strangers := certificates(t)
	strangers.RootCAs = nil
	for name, c := range map[string]struct {
		cfg  ClientConfig
		want string
	}{
		"no dialer":         {ClientConfig{Cluster: 1, Machines: addresses("h:1")}, "dialer"},
		"negative patience": {ClientConfig{Cluster: 1, Machines: addresses("h:1"), Dial: dial, Patience: -1}, "patience"},
		"no authorities":    {ClientConfig{Cluster: 1, Machines: addresses("h:1"), Dial: dial, TLS: strangers}, "RootCAs"},
		"no cluster":        {ClientConfig{Machines: addresses("h:1"), Dial: dial}, "identity"},
		"no machines":       {ClientConfig{Cluster: 1, Dial: dial}, "0 machines"},
		"no address":        {ClientConfig{Cluster: 1, Machines: addresses("h:1", "", "h:2"), Dial: dial}, "machine 1"},
	} {
		if client, err := NewClient(c.cfg); err == nil || client != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := NewClient(ClientConfig{Cluster: 1, Machines: addresses("h:1"), Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.cfg.Patience != patienceDefault || c.cfg.tick != tickDefault {
		t.Error(c.cfg)
	}
	if err := c.CompareAndSwap(2, configuration(2, 0)); err == nil || errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("a revision that does not grow: %v", err)
	}
	if err := c.CompareAndSwap(1, configuration(2, configurationBytesMax/8)); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// A machine checks what a client asks for, and gives up a connection over which something else comes, or
// nothing.
func TestServe(t *testing.T) {
	s := single(t, 1, Config{}, func(*logFile) {})
	asClient := greets(0, 0, func(g *greeting) { f := founding(1, 0); g.kind, g.founding = ofClient, f.digest() })
	c, err := dialStore(t, s, asClient)
	if err != nil {
		t.Fatal(err)
	}
	for want, swap := range map[string]swap{
		"revision 1, and is to replace": {1, 1, requestID{1}, []byte("{}")},
		ErrTooLarge.Error():             {1, 2, requestID{2}, make([]byte, configurationBytesMax+1)},
	} {
		if _, err := c.Write((&call{operation: operationSwap, patience: time.Minute, swap: swap}).encode()); err != nil {
			t.Fatal(err)
		}
		if r, err := readResult(c); err != nil || r.id != swap.id || r.outcome != outcomeFailed || !strings.Contains(string(r.content), want) {
			t.Errorf("%s: %v, %s, %v", want, r.outcome, r.content, err)
		}
	}
	ofLoad := payloadFrame(frameCall, append([]byte{operationLoad, 0, 0, 0, 0, 0, 0, 0}, (&swap{}).encode()...))
	unknown := payloadFrame(frameCall, append([]byte{9, 0, 0, 0, 0, 0, 0, 0}, (&swap{}).encode()...))
	if _, err := c.Write(ofLoad); err != nil {
		t.Fatal(err)
	}
	if r, err := readResult(c); err != nil || r.outcome != outcomeFailed && r.outcome != outcomeDone {
		t.Errorf("a client without patience: %v, %v", r, err)
	}
	for name, frame := range map[string][]byte{
		"unknown operation": unknown, "no swap": payloadFrame(frameCall, []byte{operationSwap, 0, 0, 0, 0, 0, 0, 0, 1}),
		"short": payloadFrame(frameCall, []byte{operationSwap}), "a message": payloadFrame(frameMessage, nil),
	} {
		if c, err = dialStore(t, s, asClient); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: an answer", name)
		}
	}
	if _, err := readResult(strings.NewReader(string(payloadFrame(frameResult, make([]byte, resultHeaderBytes-1))))); !errors.Is(err, errGarbage) {
		t.Errorf("a short result: %v", err)
	}
	here, there := net.Pipe()
	defer there.Close()
	(&Store{cfg: Config{tick: time.Microsecond}}).serve(here) // returns
}
