package raftstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/rdma"
)

// forever is a patience that no test comes to the end of.
const forever = 1000 * time.Hour

// clientOf returns a client of a store of some machines, which asks machine 0 first.
func clientOf(t *testing.T, hedge time.Duration, dial ...func(ctx context.Context) (net.Conn, error)) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{
		Cluster: testCluster, Machines: founding(len(dial), 0).Machines, Patience: forever, hedge: hedge,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			for m, d := range dial {
				if address == addressOf(m) {
					return d(ctx)
				}
			}
			return nil, errors.New("no such machine")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.prefer(0)
	return c
}

func dials(l net.Listener) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// inTime fails the test if f takes as long as only a client does that waits for a machine that is silent.
func inTime(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatal("the client waits for a machine that is silent")
		return nil
	}
}

// A machine that is silent does not hold up a call, and is not asked first the next time. Its share of the
// patience is beyond what a test can take.
func TestSilentMachine(t *testing.T) {
	isOver := make(chan struct{})
	silent := newFakeMember(t, func(call) *result { <-isOver; return nil })
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	relay := storetest.NewRelay(t, silent.listener.Addr().String())
	relay.Drop(storetest.Requests)
	defer close(isOver)
	for name, first := range map[string]func(ctx context.Context) (net.Conn, error){
		"does not answer": dials(silent.listener),
		"does not greet":  dials(mute),
		"gets nothing": func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", relay.Address())
		},
		"does not accept: packets vanish": func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		for operation, want := range map[string]func(c *Client) error{
			"load": func(c *Client) error { _, err := c.Load(); return err },
			"swap": func(c *Client) error { return c.CompareAndSwap(1, configuration(2, 0)) },
		} {
			works := newFakeMember(t, func(k call) *result { return &result{k.swap.id, outcomeDone, nil} })
			c := clientOf(t, time.Millisecond, first, first, dials(works.listener))
			if err := inTime(t, func() error { return want(c) }); err != nil {
				t.Errorf("%s, %s: %v", name, operation, err)
			}
			if order := c.order(); order[0] != 2 {
				t.Errorf("%s, %s: the next call asks in the order %v", name, operation, order)
			}
			c.cfg.hedge = forever
			if err := inTime(t, func() error { return want(c) }); err != nil || works.connections.Load() != 1 {
				t.Errorf("%s, %s: again, over %d connections: %v", name, operation, works.connections.Load(), err)
			}
		}
	}
}

// Two machines get a copy of a swap, and one says that others have swapped more than once since. What became
// of the swap the other one knows, whose answer comes later.
func TestCopiesOfASwap(t *testing.T) {
	for name, c := range map[string]struct {
		other *result // nil: its answer is lost
		want  error
	}{
		"done":     {&result{outcome: outcomeDone}, nil},
		"moved":    {&result{outcome: outcomeMoved}, cluster.ErrMoved},
		"moved on": {&result{outcome: outcomeMovedOn}, cluster.ErrMoved},
		"failed":   {&result{outcome: outcomeFailed}, errMovedUncertain},
		"lost":     {nil, errMovedUncertain},
	} {
		isAnswered, ids := make(chan struct{}), make(chan requestID, 3)
		other := newFakeMember(t, func(k call) *result {
			ids <- k.swap.id
			<-isAnswered
			time.Sleep(20 * time.Millisecond) // so that "moved on" comes first; the result does not depend on it
			if c.other == nil {
				return nil
			}
			return &result{k.swap.id, c.other.outcome, nil}
		})
		movedOn := newFakeMember(t, func(k call) *result {
			ids <- k.swap.id
			close(isAnswered)
			return &result{k.swap.id, outcomeMovedOn, nil}
		})
		late := newFakeMember(t, func(k call) *result { // may get no copy
			ids <- k.swap.id
			<-isAnswered
			return &result{k.swap.id, outcomeMovedOn, nil}
		})
		client := clientOf(t, time.Millisecond, dials(other.listener), dials(movedOn.listener), dials(late.listener))
		client.cfg.linger = forever
		if err := inTime(t, func() error { return client.CompareAndSwap(1, configuration(2, 0)) }); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if a, b := <-ids, <-ids; a != b {
			t.Errorf("%s: copies with the identifiers %v and %v", name, a, b)
		}
	}
}

// A machine that has got a copy of a swap and is silent holds up the call only for a moment, once another one has said
// that others have swapped more than once since.
func TestSilentCopyOfASwap(t *testing.T) {
	isAsked, isOver := make(chan struct{}), make(chan struct{})
	silent := newFakeMember(t, func(call) *result { close(isAsked); <-isOver; return nil })
	defer close(isOver)
	movedOn := newFakeMember(t, func(k call) *result { <-isAsked; return &result{k.swap.id, outcomeMovedOn, nil} })
	client := clientOf(t, time.Millisecond, dials(silent.listener), dials(movedOn.listener), dials(movedOn.listener))
	if err := inTime(t, func() error { return client.CompareAndSwap(1, configuration(2, 0)) }); err != errMovedUncertain {
		t.Errorf("%v, want %v", err, errMovedUncertain)
	}
}

// Machines are asked one by one, each later than the one before, and at once when one has failed. Only one is
// asked to change the founders, as long as it is not known to have failed.
func TestWhoIsAsked(t *testing.T) {
	asked := make(chan rdma.MachineID, 3)
	isOver := make(chan struct{})
	var dial []func(ctx context.Context) (net.Conn, error)
	for m := range rdma.MachineID(3) {
		dial = append(dial, func(ctx context.Context) (net.Conn, error) {
			asked <- m
			if m == 0 {
				return nil, errors.New("no network")
			}
			select {
			case <-isOver:
			case <-ctx.Done():
			}
			return nil, errors.New("too late")
		})
	}
	c := clientOf(t, time.Millisecond, dial...)
	failed := make(chan error)
	go func() { failed <- c.Replace(Successor{}) }()
	if got := []rdma.MachineID{<-asked, <-asked}; !slices.Equal(got, []rdma.MachineID{0, 1}) {
		t.Errorf("asked: %v", got)
	}
	select {
	case m := <-asked:
		t.Errorf("machine %d gets a copy of a change of the founders", m)
	case <-time.After(50 * time.Millisecond):
	}
	c.Close()
	if err := inTime(t, func() error { return <-failed }); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	close(isOver)
}
