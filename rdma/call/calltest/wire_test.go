package calltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
)

// A request and its reply wait until they are delivered, whatever is sent again meanwhile.
func TestWireHoldsCalls(t *testing.T) {
	w := new(Wire)
	network := local.NewNetwork(local.Options{})
	var ends [2]*call.Endpoint
	for i := range ends {
		nic, err := network.Join(rdma.MachineID(i))
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = call.New(w.Wrap(nic), clock.System{}, uint64(100+i))
		t.Cleanup(func() { ends[i].Close(); nic.Close() })
	}
	ends[1].Handle(7, func(_ call.Peer, arg []byte) ([]byte, error) { return slices.Concat(arg, arg), nil })
	ends[1].Handle(8, func(call.Peer, []byte) ([]byte, error) { return nil, errors.New("refused") })
	ask := func(kind uint8) (reply []byte, err error) {
		return ends[0].Call(context.Background(), ends[1].Self(), kind, []byte("ab"))
	}
	if reply, err := ask(7); err != nil || string(reply) != "abab" { // nothing is held yet
		t.Fatalf("%q, %v", reply, err)
	}
	sent := make(chan Message, 10)
	w.Sent = func(m Message) {
		if m.key.id == 1 { // the call before: its caller may have repeated it, and a late answer comes now
			w.Drop(m)
			return
		}
		sent <- m
	}
	w.Hold()
	for _, c := range []struct {
		kind            uint8
		reply, failure  string
		isHeldForAWhile bool
	}{{7, "abab", "", true}, {8, "", "refused", false}} {
		ended := make(chan error, 1)
		go func() {
			reply, err := ask(c.kind)
			if string(reply) != c.reply {
				t.Errorf("%q", reply)
			}
			ended <- err
		}()
		request := <-sent
		if c.isHeldForAWhile {
			time.Sleep(20 * time.Millisecond) // the caller repeats its request meanwhile: the wire holds one of them
		}
		held := w.Held()
		if len(held) != 1 || request.From != 0 || request.To != 1 || request.Kind != c.kind || request.IsReply || string(request.Body) != "ab" {
			t.Fatalf("held %+v, sent %+v", held, request)
		}
		w.Deliver(held[0])
		reply := <-sent
		if reply.From != 1 || !reply.IsReply || string(reply.Body) != c.reply || reply.Failure != c.failure {
			t.Errorf("%+v", reply)
		}
		w.Deliver(reply)
		if err := <-ended; (err != nil) != (c.failure != "") {
			t.Error(err)
		}
	}
	if held := w.Held(); len(held) > 0 || len(sent) > 0 {
		t.Errorf("%d are held, %d were sent", len(held), len(sent))
	}
}

// What is dropped does not arrive, though it is sent again.
func TestWireDropsCalls(t *testing.T) {
	w := new(Wire)
	nic, err := local.NewNetwork(local.Options{}).Join(0)
	if err != nil {
		t.Fatal(err)
	}
	e := call.New(w.Wrap(nic), clock.System{}, 100)
	t.Cleanup(func() { e.Close(); nic.Close() })
	w.Hold()
	w.Sent = w.Drop
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.Call(ctx, e.Self(), 7, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if held := w.Held(); len(held) > 0 {
		t.Errorf("held %+v", held)
	}
}
