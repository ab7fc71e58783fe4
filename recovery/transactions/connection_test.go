package transactions_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery/transactions"
	"github.com/farmsql/farmsql/txn/message"
)

// quiesce is how long transactions may take to be truncated.
const quiesce = 5 * time.Second

// A recorder keeps the datagrams that a machine sends.
type recorder struct {
	rdma.NIC
	mu   sync.Mutex
	sent []datagram
}

type datagram struct {
	to rdma.MachineID
	b  []byte
}

func (r *recorder) Datagram(to rdma.MachineID, b []byte) error {
	r.mu.Lock()
	r.sent = append(r.sent, datagram{to, bytes.Clone(b)})
	r.mu.Unlock()
	return r.NIC.Datagram(to, b)
}

// again sends everything again, in any order.
func (r *recorder) again(rng *rand.Rand) {
	r.mu.Lock()
	sent := slices.Clone(r.sent)
	r.mu.Unlock()
	rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	for _, d := range sent {
		_ = r.NIC.Datagram(d.to, d.b) // to the dead as well
	}
}

// rejoined returns an instance that has lost a machine and got it back, with all messages since
// that machine was started.
func rejoined(t *testing.T, way testnet.Way) (*instance, map[rdma.MachineID]*recorder) {
	x := start(t, shape{4, 3, way})
	x.populate(12)
	x.play(2, 20, 1, history.NewRecorder())
	x.kill(1)
	x.reconfigure()
	recorders := make(map[rdma.MachineID]*recorder)
	x.wire = func(nic rdma.NIC) rdma.NIC {
		r := &recorder{NIC: nic}
		recorders[nic.Machine()] = r
		return r
	}
	x.rejoin(1)
	return x, recorders
}

func (x *instance) checkConnected() {
	x.t.Helper()
	for _, n := range x.nodes {
		for _, peer := range x.nodes {
			if n != peer && !n.m.Connected(peer.id) {
				x.t.Errorf("machine %d is not connected to machine %d", n.id, peer.id)
			}
		}
	}
}

// The messages of a machine are repeated, late and out of order, while it works.
func TestLateCopies(t *testing.T) {
	for seed, way := range []testnet.Way{testnet.Local, testnet.LocalAsync, testnet.TCP, testnet.BadTCP, testnet.Verbs} {
		if way == testnet.BadTCP && !testnet.RunsBad(t) || way == testnet.Verbs && !testnet.HasCard(t) {
			continue
		}
		seed := uint64(seed)
		x, recorders := rejoined(t, way)
		rng := rand.New(rand.NewPCG(seed, 0))
		for range 5 {
			recorders[1].again(rng)
			x.play(2, 5, seed, history.NewRecorder())
		}
		x.checkConnected()
		x.check(nil)
	}
}

// A machine that is connecting to members which are on without it, and which
// refuse it or do not answer, ends as soon as it learns that it has been evicted.
func TestConnectEndsWithCommit(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("answers=%v", answers), func(t *testing.T) {
			x := start(t, shape{4, 3, testnet.Local})
			x.kill(1)
			x.reconfigure()
			ctx, evict := context.WithCancel(t.Context())
			defer evict()
			test := make(chan struct{})
			t.Cleanup(func() { close(test) }) // before x.close, which waits for handlers
			for _, n := range x.survivors() {
				n.calls.Handle(transactions.KindConnect, func(call.Peer, []byte) ([]byte, error) {
					evict()
					if !answers {
						<-test
					}
					return nil, errors.New("not a member")
				})
			}
			committed := make(chan error, 1)
			go func() { committed <- x.enterAlone(ctx, 1) }()
			select {
			case err := <-committed:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("Commit: %v", err)
				}
			case <-time.After(quiesce):
				t.Fatalf("Commit goes on: %s", x.nodes[1].t.Progress())
			}
		})
	}
}

// enterAlone has a dead machine come back with a new life into a configuration
// that none of the others hears of, as the primary of a region: so it waits for its backups.
func (x *instance) enterAlone(ctx context.Context, id rdma.MachineID) error {
	self := cluster.Member{Machine: id, FailureDomain: int(id), Incarnation: 200 + uint64(id)}
	n := x.boot(id, self.Incarnation, 0)
	x.nodes[id] = n
	if _, err := n.m.Listen(id); err != nil {
		return err
	}
	next, _ := x.c.With(self, nil)
	p := &next.Regions[0]
	p.Primary, p.Backups = id, append([]rdma.MachineID{p.Primary}, p.Backups[1:]...)
	n.t.Freeze(next)
	for _, p := range next.Regions {
		if p.Has(id) {
			n.make(x.t, p)
		}
	}
	n.m.Remap(next, n.region)
	return n.t.Commit(ctx, next)
}

// A CONNECT of an earlier attempt, whose logs and queues are gone, comes after a
// later one.
func TestConnectComesLate(t *testing.T) {
	x, _ := rejoined(t, testnet.Local)
	sender, to := x.nodes[1], x.nodes[0]
	for _, n := range x.nodes {
		if err := n.m.Quiesce(quiesce); err != nil {
			t.Fatal(err)
		}
	}
	greeting, err := sender.m.Listen(0) // in place of what machine 0 writes to
	if err != nil {
		t.Fatal(err)
	}
	connect := func(number uint64) ([]byte, error) {
		arg := binary.LittleEndian.AppendUint64(nil, uint64(x.c.ID))
		arg = binary.LittleEndian.AppendUint64(arg, number)
		return sender.calls.Call(t.Context(), call.Peer{Machine: 0, Incarnation: to.calls.Self().Incarnation}, transactions.KindConnect, greeting.Append(arg, protocol.First))
	}
	const latest = 1 << 20 // higher than what the machine itself has come to
	first, err := connect(latest)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := message.DecodeGreeting(first[8:], protocol.First)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.m.Connect(0, mine); err != nil {
		t.Fatal(err)
	}
	x.play(2, 5, 1, history.NewRecorder())
	if again, err := connect(latest); err != nil || !bytes.Equal(again, first) {
		t.Errorf("the same attempt: %x, %v; was %x", again, err, first)
	}
	var refused *call.RemoteError
	for _, number := range []uint64{0, 1, latest - 1} {
		if _, err := connect(number); !errors.As(err, &refused) {
			t.Errorf("attempt %d after attempt %d: %v", number, latest, err)
		}
	}
	x.play(2, 5, 2, history.NewRecorder())
	x.checkConnected()
	x.check(nil)
}

// Two members begin to connect to each other. By the time the second one begins, the first one
// has connected the two, and refuses: they stay connected.
func TestConnectTwice(t *testing.T) {
	x, _ := rejoined(t, testnet.Local)
	for _, n := range x.survivors() {
		n.calls.Handle(transactions.KindConnect, func(call.Peer, []byte) ([]byte, error) { return nil, errors.New("connected already") })
		if n.id == 1 {
			continue
		}
		if err := x.nodes[1].t.Exchange(x.c.ID, n.id); err != nil {
			t.Errorf("with machine %d: %v", n.id, err)
		}
	}
	x.checkConnected()
	x.play(2, 5, 1, history.NewRecorder())
	x.check(nil)
}
