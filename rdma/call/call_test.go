package call

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kind = 7

// life of machine m in these tests, and the one after it.
func life(m rdma.MachineID) uint64     { return 1000 + uint64(m) }
func nextLife(m rdma.MachineID) uint64 { return 2000 + uint64(m) }

func join(t *testing.T, n *local.Network, m rdma.MachineID, incarnation uint64) *Endpoint {
	t.Helper()
	nic, err := n.Join(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nic.Close() })
	return endpoint(t, nic, incarnation)
}

func endpoint(t *testing.T, nic rdma.NIC, incarnation uint64) *Endpoint {
	e := New(nic, clock.System{}, incarnation)
	t.Cleanup(e.Close)
	return e
}

func two(t *testing.T) (a, b *Endpoint) {
	n := local.NewNetwork(local.Options{})
	return join(t, n, 1, life(1)), join(t, n, 2, life(2))
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// soon is over after two tries.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestCall(t *testing.T) {
	for _, way := range []testnet.Way{testnet.Local, testnet.TCP, testnet.TLS, testnet.BadTCP, testnet.Verbs} {
		if way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		t.Run(string(way), func(t *testing.T) {
			n := testnet.New(t, way)
			testCall(t, over(t, n, 1), over(t, n, 2))
		})
	}
}

// over returns an endpoint on a network.
func over(t *testing.T, n rdmatest.Fabric, m rdma.MachineID) *Endpoint {
	nic, err := n.Join(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nic.Close() })
	return endpoint(t, nic, life(m))
}

func testCall(t *testing.T, a, b *Endpoint) {
	for _, size := range []int{0, 1, 1000, BytesMax} {
		want := bytes.Repeat([]byte{byte(size)}, size)
		b.Handle(kind, func(from Peer, arg []byte) ([]byte, error) {
			if from != a.Self() || !bytes.Equal(arg, want) {
				return nil, fmt.Errorf("%d bytes from %v", len(arg), from)
			}
			return append(arg[:0:0], arg...), nil
		})
		for _, to := range []Peer{b.Self(), {2, AnyLife}} {
			if got, err := a.Call(patient(t), to, kind, want); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: reply has %d: %v", size, len(got), err)
			}
		}
	}
	a.Handle(kind, func(from Peer, arg []byte) ([]byte, error) { return []byte("to myself"), nil })
	if got, err := a.Call(patient(t), a.Self(), kind, nil); err != nil || string(got) != "to myself" {
		t.Errorf("own machine: %q, %v", got, err)
	}
}

// Every call is answered, with the reply to its own argument, whatever the network
// loses, repeats and reorders.
func TestCallsOverALossyNetwork(t *testing.T) {
	for _, way := range []testnet.Way{testnet.Local, testnet.TCP, testnet.BadTCP, testnet.Verbs} {
		if way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		t.Run(string(way), func(t *testing.T) { callsOverALossyNetwork(t, testnet.New(t, way)) })
	}
}

func callsOverALossyNetwork(t *testing.T, n rdmatest.Fabric) {
	var ends [2]*Endpoint
	for i := range ends {
		nic, err := n.Join(rdma.MachineID(i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nic.Close() })
		ends[i] = endpoint(t, &lossy{NIC: nic, rng: rand.New(rand.NewPCG(uint64(i), 1))}, life(rdma.MachineID(i)))
	}
	var handled atomic.Int64
	for _, e := range ends {
		e.Handle(kind, func(_ Peer, arg []byte) ([]byte, error) {
			handled.Add(1)
			return append([]byte("reply to "), arg...), nil
		})
	}
	const calls, callers = 30, 4
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			from, to := ends[i%2], ends[(i+1)%2]
			for c := range calls {
				arg := fmt.Sprintf("%d/%d", i, c)
				got, err := from.Call(patient(t), to.Self(), kind, []byte(arg))
				if err != nil || string(got) != "reply to "+arg {
					t.Errorf("call %s: %q, %v", arg, got, err)
				}
			}
		})
	}
	group.Wait()
	if handled.Load() < calls*callers {
		t.Errorf("%d of %d calls were handled", handled.Load(), calls*callers)
	}
}

// A call that takes long is sent again; what comes while its handler runs does not
// run it once more. (What comes after does, as it may.)
func TestSlowHandlerRunsOnce(t *testing.T) {
	a, b := two(t)
	var handled atomic.Int64
	again := make(chan struct{}, 100)
	b.Handle(kind, func(Peer, []byte) ([]byte, error) {
		if handled.Add(1) == 1 {
			for range 3 {
				<-again
			}
			if n := handled.Load(); n != 1 {
				return nil, fmt.Errorf("%d handlers run", n)
			}
		}
		return []byte("done"), nil
	})
	b.nic.Datagrams(func(from rdma.MachineID, datagram []byte) {
		b.receive(from, datagram)
		select {
		case again <- struct{}{}:
		default:
		}
	})
	if got, err := a.Call(patient(t), b.Self(), kind, nil); err != nil || string(got) != "done" {
		t.Errorf("%q, %v", got, err)
	}
}

// A machine that runs as many handlers as it may takes up calls later.
func TestTooManyHandlers(t *testing.T) {
	_, b := two(t)
	release := make(chan struct{})
	var handled atomic.Int64
	b.Handle(kind, func(Peer, []byte) ([]byte, error) {
		handled.Add(1)
		<-release
		return nil, nil
	})
	m := message{typ: request, kind: kind, from: 5, body: []byte{}}
	for range runningMax + 10 {
		m.id++
		b.receive(1, m.encode())
	}
	close(release)
	b.Close()
	if handled.Load() != runningMax {
		t.Errorf("%d handlers ran, want %d", handled.Load(), runningMax)
	}
}

var errKnown, errBroader = errors.New("known"), errors.New("broader")

func TestHandlerErrors(t *testing.T) {
	a, b := two(t)
	for _, e := range []*Endpoint{a, b} {
		e.Know(9, errKnown)
		e.Know(11, errBroader)
	}
	b.Know(12, context.Canceled) // and a does not
	long := strings.Repeat("x", 2*BytesMax)
	for _, c := range []struct {
		err, is error
		text    string
	}{
		{errors.New("told nobody"), nil, "told nobody"},
		{fmt.Errorf("wrapped: %w", errKnown), errKnown, "wrapped: known"},
		{fmt.Errorf("%w and %w", errBroader, errKnown), errKnown, "broader and known"},
		{errBroader, errBroader, "broader"},
		{context.Canceled, nil, "context canceled"},
		{errors.New(long), nil, long[:BytesMax-1]},
	} {
		b.Handle(kind, func(Peer, []byte) ([]byte, error) { return []byte("ignored"), c.err })
		got, err := a.Call(patient(t), b.Self(), kind, nil)
		var remote *RemoteError
		if !errors.As(err, &remote) || err.Error() != c.text || got != nil || remote.Err != c.is || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("handler's %.40q: reply %q, error %.40v", c.err, got, err)
		}
	}
	b.Handle(kind, func(Peer, []byte) ([]byte, error) { return make([]byte, BytesMax+1), nil })
	if _, err := a.Call(patient(t), b.Self(), kind, nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("reply that is too long: %v", err)
	}
	if _, err := a.Call(patient(t), b.Self(), kind, make([]byte, BytesMax+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("argument that is too long: %v", err)
	}
	if err := a.Notify(b.Self(), kind, make([]byte, BytesMax+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("notice that is too long: %v", err)
	}
}

func TestUnknownKind(t *testing.T) {
	a, b := two(t)
	_, err := a.Call(soon(t), b.Self(), kind, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnknownKind) {
		t.Errorf("nobody handles it: %v", err)
	}
	if _, err := a.CallStarted(patient(t), b.Self(), kind, nil); !errors.Is(err, ErrUnknownKind) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody handles it, nor will: %v", err)
	}
	if err := a.Notify(b.Self(), kind, nil); err != nil {
		t.Error(err)
	}
	refused := make(chan struct{}, 100)
	a.nic.Datagrams(func(from rdma.MachineID, datagram []byte) {
		a.receive(from, datagram)
		select {
		case refused <- struct{}{}:
		default:
		}
	})
	result := make(chan error, 1)
	ctx := patient(t)
	go func() {
		_, err := a.Call(ctx, b.Self(), kind, nil)
		result <- err
	}()
	<-refused // a machine that is starting
	b.Handle(kind, func(Peer, []byte) ([]byte, error) { return nil, nil })
	if err := <-result; err != nil {
		t.Errorf("once there is a handler: %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	a, _ := two(t)
	if _, err := a.Call(soon(t), Peer{3, AnyLife}, kind, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := a.Call(ctx, Peer{3, AnyLife}, kind, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The clock decides about the deadline, also where no timer ends the context.
func TestDeadlineByTheClock(t *testing.T) {
	a, _ := two(t)
	ctx := deadlineOnly{t.Context(), time.Now().Add(5 * time.Millisecond)}
	if _, err := a.Call(ctx, Peer{3, AnyLife}, kind, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// A machine that was started again does not answer for its former self, unless
// anybody may answer.
func TestOtherLife(t *testing.T) {
	n := local.NewNetwork(local.Options{})
	a, b := join(t, n, 1, life(1)), join(t, n, 2, life(2))
	old := b.Self()
	answer := func(Peer, []byte) ([]byte, error) { return []byte("answer"), nil }
	b.Handle(kind, answer)
	b.Close()
	if err := b.nic.Close(); err != nil {
		t.Fatal(err)
	}
	b = join(t, n, 2, nextLife(2))
	var noticed atomic.Int64
	b.Handle(kind, func(p Peer, arg []byte) ([]byte, error) { noticed.Add(1); return answer(p, arg) })
	if _, err := a.Call(patient(t), old, kind, nil); !errors.Is(err, ErrOtherLife) {
		t.Errorf("call to the old life: %v", err)
	}
	if err := a.Notify(old, kind, nil); err != nil {
		t.Error(err)
	}
	if noticed.Load() != 0 {
		t.Error("what was meant for the old life was handled")
	}
	for _, to := range []Peer{b.Self(), {2, AnyLife}} {
		if got, err := a.Call(patient(t), to, kind, nil); err != nil || string(got) != "answer" {
			t.Errorf("call to %v: %q, %v", to, got, err)
		}
	}
}

// Replies that are not to this call are dropped.
func TestRepliesThatAreDropped(t *testing.T) {
	n := local.NewNetwork(local.Options{})
	a := join(t, n, 1, life(1))
	nic, err := n.Join(2)
	if err != nil {
		t.Fatal(err)
	}
	defer nic.Close()
	third, err := n.Join(3)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	send := func(nic rdma.NIC, r message) {
		if err := nic.Datagram(1, r.encode()); err != nil {
			t.Error(err)
		}
	}
	tries := 0
	nic.Datagrams(func(_ rdma.MachineID, b []byte) {
		m, _ := decode(b)
		good := message{typ: reply, kind: m.kind, id: m.id, from: life(2), to: m.from, body: []byte("good")}
		if tries++; tries == 3 {
			send(nic, good)
			return
		}
		bad := func(nic rdma.NIC, change func(*message)) {
			r := good
			r.body = []byte("bad")
			change(&r)
			send(nic, r)
		}
		bad(third, func(*message) {})                              // another machine's
		bad(nic, func(r *message) { r.to = nextLife(1) })          // to another life of the caller
		bad(nic, func(r *message) { r.from = nextLife(2) })        // from another life, which cannot have handled it
		bad(nic, func(r *message) { r.status = otherLife })        // denies the life that it is
		bad(nic, func(r *message) { r.kind++ })                    // to another kind
		bad(nic, func(r *message) { r.id++ })                      // to another call
		bad(nic, func(r *message) { r.speaks.Min = 2 })            // from versions 2 to 0
		bad(nic, func(r *message) { r.typ = 9 })                   // no message at all
		bad(nic, func(r *message) { r.status = statuses })         // no such status
		bad(nic, func(r *message) { r.typ, r.status = notice, 1 }) // a request has no status
	})
	if got, err := a.Call(patient(t), Peer{2, life(2)}, kind, nil); err != nil || string(got) != "good" {
		t.Errorf("%q, %v", got, err)
	}
	if err := a.decodeErrorLocked(nil); err == nil {
		t.Error("an error without text is none")
	}
}

func TestNotify(t *testing.T) {
	a, b := two(t)
	got := make(chan string, 1)
	b.Handle(kind, func(from Peer, arg []byte) ([]byte, error) {
		got <- fmt.Sprint(from.Machine, string(arg))
		return nil, errors.New("nobody hears this")
	})
	for _, to := range []Peer{b.Self(), {2, AnyLife}} {
		if err := a.Notify(to, kind, []byte(" hello")); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != "1 hello" {
			t.Errorf("got %q", s)
		}
	}
}

func TestClose(t *testing.T) {
	a, b := two(t)
	running, release := make(chan struct{}), make(chan struct{})
	b.Handle(kind, func(Peer, []byte) ([]byte, error) {
		close(running)
		<-release
		return nil, nil
	})
	result := make(chan error, 1)
	ctx := patient(t)
	go func() {
		_, err := a.Call(ctx, b.Self(), kind, nil)
		result <- err
	}()
	<-running
	a.Close()
	a.Close()
	if err := <-result; !errors.Is(err, ErrClosed) {
		t.Errorf("pending call: %v", err)
	}
	if _, err := a.Call(ctx, b.Self(), kind, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("call: %v", err)
	}
	if err := a.Notify(b.Self(), kind, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("notify: %v", err)
	}
	closed := make(chan struct{})
	go func() {
		b.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("did not wait for the handler")
	case <-time.After(5 * time.Millisecond):
	}
	close(release)
	<-closed
	b.Close()
}

// A handler that fails because its endpoint is being closed says nothing to the caller, who
// would take it for an answer about what it has asked for.
func TestNoErrorOfALifeThatIsOver(t *testing.T) {
	a, b := two(t)
	running, release := make(chan struct{}), make(chan struct{})
	b.Handle(kind, func(Peer, []byte) ([]byte, error) { return b.Call(patient(t), a.Self(), kind+1, nil) })
	a.Handle(kind+1, func(Peer, []byte) ([]byte, error) {
		close(running)
		<-release
		return nil, nil
	})
	defer close(release)
	ctx, cancel := context.WithCancel(patient(t))
	result := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.Self(), kind, nil)
		result <- err
	}()
	<-running
	b.Close()
	cancel()
	var remote *RemoteError
	if err := <-result; err == nil || errors.As(err, &remote) {
		t.Errorf("%v", err)
	}
}

func TestClosedNIC(t *testing.T) {
	a, b := two(t)
	if err := a.nic.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(patient(t), b.Self(), kind, nil); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("call: %v", err)
	}
	if err := a.Notify(b.Self(), kind, nil); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("notify: %v", err)
	}
}

func TestProgrammersErrors(t *testing.T) {
	a, _ := two(t)
	for name, f := range map[string]func(){
		"no incarnation": func() { New(a.nic, clock.System{}, AnyLife) },
		"code 0":         func() { a.Know(0, errKnown) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			f()
		}()
	}
}

// FuzzReceive has an endpoint receive anything while a call is pending.
func FuzzReceive(f *testing.F) {
	for _, m := range []message{
		{typ: request, kind: kind, id: 1, from: 5, body: []byte("x")},
		{typ: notice, kind: kind, id: 1, from: 5, to: life(1)},
		{typ: reply, kind: kind, id: 1, from: life(2), to: life(1), status: failed},
		{typ: reply, kind: kind, id: 1, from: life(2), to: life(1), speaks: protocol.Range{Min: 7, Max: 9}},
		{typ: request, kind: kind, id: 1, from: 5, speaks: protocol.Own},
	} {
		f.Add(m.encode())
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := local.NewNetwork(local.Options{})
		a := join(t, n, 1, life(1))
		a.Handle(kind, func(_ Peer, arg []byte) ([]byte, error) { return arg, nil })
		p := &pending{to: Peer{2, life(2)}, kind: kind, event: a.clock.NewEvent()}
		a.mu.pending[1] = p
		a.receive(2, b)
		m, isMessage := decode(b)
		if isMessage && !bytes.Equal(m.encode()[8:], b[8:]) || isMessage && !bytes.Equal(m.encode()[:6], b[:6]) {
			t.Errorf("%x became %x", b, m.encode())
		}
		if p.done && (len(b) < headerBytes || binary.LittleEndian.Uint64(b[8:]) != 1) {
			t.Error("finished by what is no reply to it")
		}
	})
}
