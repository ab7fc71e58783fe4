package verbs

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(20 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}

// two joins machines 1 and 2, and connects them.
func two(t *testing.T, f *fabric, bytes int64) (a, b *machine) {
	t.Helper()
	a, b = f.machine(t, 1, bytes), f.machine(t, 2, bytes)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// quiet waits until nothing goes on.
func (w *wire) quiet(t *testing.T) {
	t.Helper()
	w.counted()
	eventually(t, "nothing goes on", func() bool {
		time.Sleep(10 * time.Millisecond)
		return w.counted() == counts{}
	})
}

// What a batch costs is counted: calls, doorbells, requests, completions that the card makes, bytes that travel inside the request.
func TestCountsOfABatch(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, _ := two(t, f, 1<<16)
	f.machine(t, 3, 1<<16)
	if err := a.write(3, 0, 1); err != nil {
		t.Fatal(err)
	}
	write := func(to rdma.MachineID, words int, tag uint64) {
		t.Helper()
		if _, err := a.q.Write(to, key, 0, make([]byte, 8*words), tag); err != nil {
			t.Fatal(err)
		}
	}
	read := func(tag uint64) {
		t.Helper()
		if _, err := a.q.Read(2, key, 0, make([]byte, 64), tag); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		post func()
		done int
		want counts
	}{
		"one WRITE and what settles it": {func() { write(2, 1, 1) }, 1, counts{doorbells: 1, requests: 2, signalled: 1, inlined: 1, reads: 1}},
		"WRITEs share what settles them": {func() {
			for range 5 {
				write(2, 9, 1)
			}
		}, 5, counts{doorbells: 1, requests: 6, signalled: 1, reads: 1}},
		"WRITEs that nobody waits for": {func() { write(2, 1, rdma.Unsignalled); write(2, 1, rdma.Unsignalled) }, 0, counts{doorbells: 1, requests: 2, inlined: 2}},
		"a READ settles, too":          {func() { write(2, 1, 1); read(2) }, 2, counts{doorbells: 1, requests: 2, signalled: 1, inlined: 1, reads: 1}},
		"READs share a completion":     {func() { read(1); read(2); read(3) }, 3, counts{doorbells: 1, requests: 3, signalled: 1, reads: 3}},
		"a WRITE after a READ waits for it": {
			func() { read(1); write(2, 1, 2); write(2, 1, 3) }, 3,
			counts{doorbells: 1, requests: 4, signalled: 1, inlined: 2, fenced: 1, reads: 2},
		},
		"two machines": {func() { write(2, 1, 1); write(3, 1, 1); write(2, 1, 1); write(3, 1, 1) }, 4, counts{doorbells: 2, requests: 6, signalled: 2, inlined: 4, reads: 2}},
		"a ring":       {func() { _ = a.q.Ring(2) }, 0, counts{doorbells: 1, requests: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f.wire.quiet(t)
			c.post()
			if got := f.wire.counted(); got != (counts{}) {
				t.Errorf("before Flush: %+v", got)
			}
			a.q.mu.Lock() // nobody else posts or polls
			before, nic := f.wire.counted(), a.Counts()
			a.q.mu.Unlock()
			a.q.Flush()
			if err := a.wait(c.done); err != nil {
				t.Fatal(err)
			}
			got := f.wire.counted()
			got.exchanges, got.arms = before.exchanges, 0 // polls
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			of := a.Counts().Sub(nic)
			if of.Doorbells != uint64(got.doorbells) || of.Requests != uint64(got.requests) || of.Signalled != uint64(got.signalled) ||
				of.Inlined != uint64(got.inlined) || of.Fenced != uint64(got.fenced) || of.Calls != 1 {
				t.Errorf("the NIC counts %+v, the card %+v", of, got)
			}
		})
	}
}

// longOperations writes and reads more than a connection has staging for, and than a batch has requests for.
func longOperations(t *testing.T, f *fabric, size int64) {
	a, b := two(t, f, size)
	src := make([]byte, size)
	for i := range src {
		src[i] = byte(i * 7 / 5)
	}
	post := func(op func() (bool, error)) {
		t.Helper()
		eventually(t, "room", func() bool {
			_, err := op()
			if err != nil && !errors.Is(err, rdma.ErrFull) {
				t.Fatal(err)
			}
			a.q.Flush()
			return err == nil
		})
	}
	for range 2 {
		post(func() (bool, error) { return a.q.Write(2, key, 0, src, rdma.Unsignalled) })
		src[9]++
	}
	dst := make([]byte, size)
	post(func() (bool, error) { return a.q.Write(2, key, 0, src, 1) })
	post(func() (bool, error) { return a.q.Read(2, key, 0, dst, 2) })
	if err := a.wait(2); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, size)
	b.memory.CopyOut(got, 0)
	if !bytes.Equal(got, src) || !bytes.Equal(dst, src) {
		t.Error("what was written is not what is there, or not what was read")
	}
	full := 0
	for i := range 5000 { // far more than a send queue, without a completion that anybody wants
		for {
			_, err := a.q.Write(2, key, uint64(8*i)%uint64(size), src[:8], rdma.Unsignalled)
			if err == nil {
				break
			}
			if !errors.Is(err, rdma.ErrFull) {
				t.Fatal(err)
			}
			full++
			a.q.Flush()
			a.q.Poll(make([]rdma.Completion, 1))
			time.Sleep(10 * time.Microsecond)
		}
	}
	if err := a.write(2, 0, 1); err != nil {
		t.Error(err)
	}
	if full == 0 {
		t.Error("the queue was never full")
	}
}

func TestLongOperations(t *testing.T) {
	needsMapping(t)
	longOperations(t, newFabric(t), 8<<20)
}

// ringsRunOut has a machine ring one that does not look: the connection breaks after a while, says why, and another one is made once
// the other machine looks again.
func ringsRunOut(t *testing.T, f *fabric) {
	f.receives = 16
	a, b := two(t, f, 1<<12)
	held, release := make(chan struct{}), make(chan struct{})
	go func() { // who has the lock may not have another queue's
		b.q.mu.Lock()
		defer b.q.mu.Unlock()
		close(held)
		<-release
	}()
	<-held
	for range 3 * f.receives {
		if _, err := a.q.WriteRing(2, key, 0, make([]byte, 8), rdma.Unsignalled); err != nil {
			t.Fatal(err)
		}
	}
	a.q.Flush()
	var cs [1]rdma.Completion
	eventually(t, "the connection breaks", func() bool { return a.q.Poll(cs[:]) == 1 })
	close(release)
	var s *StatusError
	if err := cs[0].Err; !errors.Is(err, rdma.ErrBroken) || !errors.As(err, &s) || status(s.Status) != statusNotReady || cs[0].Tag != rdma.Unsignalled {
		t.Errorf("completion %+v, want %v", cs[0], statusNotReady)
	}
	eventually(t, "another connection", func() bool {
		for a.q.Poll(cs[:]) == 1 {
		}
		return a.write(2, 0, 1) == nil
	})
	before := b.bells.Load()
	if err := a.q.Ring(2); err != nil {
		t.Fatal(err)
	}
	a.q.Flush()
	eventually(t, "a ring arrives", func() bool { return b.bells.Load() > before })
	for range 50 * f.receives { // many more rings than receives, for somebody who looks
		for a.q.Ring(2) != nil {
			a.q.Flush()
			a.q.Poll(cs[:])
			time.Sleep(10 * time.Microsecond)
		}
		a.q.Flush()
		if a.q.Poll(cs[:]) == 1 {
			t.Fatalf("a ring is lost: %+v", cs[0])
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func TestRingsRunOut(t *testing.T) {
	needsMapping(t)
	ringsRunOut(t, newFabric(t))
}

// Nothing runs at a machine with nothing to do, and one whose worker polls is not interrupted for each completion.
func TestArmsOnlyToSleep(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, _ := two(t, f, 1<<12)
	f.wire.quiet(t)
	time.Sleep(50 * time.Millisecond)
	if c := f.wire.counted(); c != (counts{}) {
		t.Errorf("with nothing to do: %+v", c)
	}
	const rounds = 2000
	for range rounds {
		if _, err := a.q.Write(2, key, 0, make([]byte, 8), 1); err != nil {
			t.Fatal(err)
		}
		a.q.Flush()
		for a.q.Poll(make([]rdma.Completion, 1)) == 0 {
		}
	}
	if c := f.wire.counted(); c.arms > rounds/4 {
		t.Errorf("armed %d times in %d rounds", c.arms, rounds)
	}
}

// tell has a card say what happens to it, and waits until it was heard.
func (m *machine) tell(e event) {
	c := m.card.(*fakeCard)
	c.events <- e
	c.events <- event{kind: otherHappens}
}

// A port that is down breaks connections at once, and lets none be made until it is up.
func TestPortDown(t *testing.T) {
	needsMapping(t)
	a, b := two(t, newFabric(t), 1<<12)
	if err := b.write(1, 0, 1); err != nil {
		t.Fatal(err)
	}
	a.tell(event{kind: portDown, text: "port error"})
	for range 2 {
		if err := a.write(2, 0, 1); !errors.Is(err, errPortDown) || !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("%v, want %v", err, errPortDown)
		}
	}
	if err := b.write(1, 0, 1); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("from the other side: %v", err)
	}
	a.tell(event{kind: portUp})
	eventually(t, "connections are made again", func() bool { return a.write(2, 0, 1) == nil && b.write(1, 0, 1) == nil })
}

// A card that is removed breaks all connections for good, and its NIC can be closed.
func TestCardRemoved(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, b := two(t, f, 1<<12)
	a.tell(event{kind: cardFailed, text: "local catastrophic error"})
	for range 2 {
		err := a.write(2, 0, 1)
		if !errors.Is(err, errCardGone) || !errors.Is(err, rdma.ErrBroken) || !strings.Contains(err.Error(), "device fake0, port 1, to machine 2: the device has failed or was removed: local catastrophic error") {
			t.Errorf("%v", err)
		}
	}
	if err := b.write(1, 0, 1); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("to a machine without a card: %v", err)
	}
	if err := a.Datagram(2, []byte("x")); err != nil {
		t.Errorf("a datagram: %v", err)
	}
	if err := b.Close(); err != nil { // what is refused below is refused to all machines
		t.Error(err)
	}
	f.wire.refuse("close pair", syscall.EIO)
	f.wire.refuse("deregister", syscall.EIO)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	f.wire.refuse("close pair", nil)
	f.wire.refuse("deregister", nil)
}

// Queue pairs and queues that fail break what they are for, and nothing else.
func TestQueuesFail(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, b := two(t, f, 1<<12)
	c := f.machine(t, 3, 1<<12)
	own := func(m *machine, to rdma.MachineID) uint32 {
		m.q.mu.Lock()
		defer m.q.mu.Unlock()
		return m.q.mu.conns[to].mu.pair.address().pair
	}
	serial := func(m *machine, to rdma.MachineID) uint32 {
		m.q.mu.Lock()
		defer m.q.mu.Unlock()
		return m.q.mu.conns[to].serial
	}
	for name, tell := range map[string]func(){
		"this side's pair": func() { a.tell(event{kind: pairFailed, pair: own(a, 2), text: "fatal"}) },
		"that side's pair": func() {
			b.NIC.mu.Lock()
			p := b.NIC.mu.agents[hosts.AgentID{From: 1}].pair.address().pair
			b.NIC.mu.Unlock()
			b.tell(event{kind: pairFailed, pair: p, text: "fatal"})
		},
		"this side's queue": func() { a.tell(event{kind: laneFailed, lane: a.q.lane, text: "fatal"}) },
		"that side's queue": func() { b.tell(event{kind: laneFailed, lane: b.q.lane, text: "fatal"}) },
	} {
		for _, to := range []rdma.MachineID{2, 3} {
			if err := a.write(to, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.write(2, 0, 1); err != nil {
			t.Fatal(err)
		}
		before := serial(a, 2)
		tell()
		eventually(t, name+": another connection", func() bool { return a.write(2, 0, 1) == nil && serial(a, 2) != before })
		if name == "this side's pair" {
			if err := a.write(3, 0, 1); err != nil {
				t.Errorf("%s: another machine: %v", name, err)
			}
		}
		for _, m := range []*machine{a, c} {
			for _, to := range []rdma.MachineID{2, 3} {
				eventually(t, name+": all is as before", func() bool { return to == m.Machine() || m.write(to, 0, 1) == nil })
			}
		}
	}
	a.tell(event{kind: pairFailed, pair: 1 << 20})      // of nobody
	a.tell(event{kind: laneFailed})                     // of nobody
	a.tell(event{kind: receivesLow, lane: a.q.lane})    // nothing is missing
	a.tell(event{kind: receivesLow, lane: &fakeLane{}}) // of nobody
	if err := a.write(2, 0, 1); err != nil {
		t.Error(err)
	}
}

// What the card refuses is an error that says what, and leaves nothing behind.
func TestCardRefuses(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	no := errors.New("no room on the card")
	a, b := f.machine(t, 1, 1<<12), f.machine(t, 2, 1<<12)
	refused := func(what string, attempt func() error) {
		t.Helper()
		f.wire.refuse(what, no)
		if err := attempt(); !errors.Is(err, no) {
			t.Errorf("%s: %v, want %v", what, err, no)
		}
		f.wire.refuse(what, nil)
		eventually(t, what+": the connection works", func() bool { return a.write(2, 0, 1) == nil })
		a.q.disconnect(2, errCut)
	}
	write := func() error { return a.write(2, 0, 1) }
	refused("pair", write)
	refused("register", write)
	refused("exchange", write)
	refused("arm", func() error { return no }) // the goroutine that watches ends; workers that poll go on
	f.wire.refuse("connect", no)
	if err := write(); !errors.Is(err, hosts.Refusals[hosts.CardBroken]) || !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("a peer whose card cannot connect: %v", err)
	}
	f.wire.refuse("connect", nil)
	f.wire.refuse("post", no)
	if err := write(); !errors.Is(err, syscall.EINVAL) || !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("a request that the card does not take: %v", err)
	}
	f.wire.refuse("post", nil)
	for _, what := range []string{"register", "lane"} {
		f.wire.refuse(what, no)
		var err error
		if what == "lane" {
			_, err = a.Open(1, nil)
		} else {
			err = a.Register(99, b.memory)
		}
		if !errors.Is(err, no) {
			t.Errorf("%s: %v", what, err)
		}
		f.wire.refuse(what, nil)
	}
	if q, err := a.Open(1, nil); err != nil {
		t.Errorf("the place is not free: %v", err)
	} else if err := q.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Register(99, b.memory); err != nil {
		t.Errorf("the key is not free: %v", err)
	}
	if _, err := a.Open(workersMax, nil); err == nil {
		t.Error("a worker with a number that no greeting has room for")
	}
	for _, what := range []string{"post pair", "receive", "register"} {
		f.wire.refuse(what, no)
		if nic, err := f.join(f.config(9)); !errors.Is(err, no) {
			t.Errorf("%s: %v, %v", what, nic, err)
		}
		f.wire.refuse(what, nil)
	}
}

// What the card does not free, Close says.
func TestCardKeeps(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	no := errors.New("busy")
	for _, what := range []string{"deregister", "close pair", "close lane"} {
		nic, err := f.Join(1)
		if err != nil {
			t.Fatal(err)
		}
		b := f.machine(t, 2, 1<<12)
		q, err := nic.Open(0, nil)
		if err == nil {
			err = nic.Register(key, b.memory)
		}
		if err != nil {
			t.Fatal(err)
		}
		a := &machine{NIC: nic.(*NIC), t: t, q: q.(*Queue)}
		if err := a.write(2, 0, 1); err != nil {
			t.Fatal(err)
		}
		f.wire.refuse(what, no)
		if err := nic.Close(); !errors.Is(err, no) {
			t.Errorf("%s: %v", what, err)
		}
		f.wire.refuse(what, nil)
		_ = b.Close() // its card may have kept something, too
	}
}

// Memory on the Go heap is refused.
func TestHeapIsRefused(t *testing.T) {
	if nvram.NewMemory(8).IsMapped() {
		t.Skip("memory is mapped but in race builds")
	}
	if _, err := newFabric(t).Join(1); !errors.Is(err, rdma.ErrPrivate) {
		t.Errorf("%v, want ErrPrivate", err)
	}
}

// Whoever is not of the cluster is told so, and gets nothing.
func TestStrangers(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a := f.machine(t, 1, 1<<12)
	f.machine(t, 2, 1<<12)
	good := greeting{Greeting: hosts.Greeting{From: 5, To: 1, Life: 10, Cluster: [16]byte{7}, Dial: 3}, at: someAddress}
	for name, c := range map[string]struct {
		change func(g *greeting)
		want   hosts.Refusal
	}{
		"good":          {func(*greeting) {}, hosts.Accepted},
		"cluster":       {func(g *greeting) { g.Cluster[0]++ }, hosts.OtherCluster},
		"machine":       {func(g *greeting) { g.To = 2 }, hosts.OtherMachine},
		"itself":        {func(g *greeting) { g.From = 1 }, hosts.OtherMachine},
		"worker":        {func(g *greeting) { g.Worker = 9 }, hosts.NoWorker},
		"purpose":       {func(g *greeting) { g.Purpose = 9 }, hosts.UnknownPurpose},
		"former life":   {func(g *greeting) { g.From, g.Life = 6, 9 }, hosts.Outdated},
		"cut off":       {func(g *greeting) { g.From = 8 }, hosts.Leaving},
		"for datagrams": {func(g *greeting) { g.Purpose = datagrams }, hosts.Accepted},
	} {
		t.Run(name, func(t *testing.T) {
			a.NIC.mu.Lock()
			a.NIC.mu.lives[6] = 10
			a.NIC.mu.cut[8] = true
			a.NIC.mu.Unlock()
			g := good
			c.change(&g)
			socket, err := net.Dial("tcp", a.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			if _, err := socket.Write(g.encode()); err != nil {
				t.Fatal(err)
			}
			if _, _, err = readReply(socket); !errors.Is(err, hosts.Refusals[c.want]) {
				t.Errorf("%v, want %v", err, hosts.Refusals[c.want])
			}
		})
	}
	socket, err := net.Dial("tcp", a.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := socket.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if n, err := socket.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("garbage was answered: %d, %v", n, err)
	}
	if err := a.write(2, 0, 1); err != nil {
		t.Error(err)
	}
}

// Two processes cannot be one machine at one address.
func TestAddressIsTaken(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	f.machine(t, 1, 1<<12)
	if _, err := f.join(f.config(1)); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("%v, want ErrMachineTaken", err)
	}
}

// strangePeer makes machine 2 a peer that accepts a connection, sends answers to questions that it has not read, and then
// only reads.
func (f *fabric) strangePeer(t *testing.T, answers []byte) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f.mu.Lock()
	f.at[2] = l.Addr().String()
	f.mu.Unlock()
	go func() {
		socket, err := l.Accept()
		if err != nil {
			return
		}
		defer socket.Close()
		_, _ = readGreeting(socket)
		r := reply{at: someAddress}
		_, _ = socket.Write(append(r.encode(), answers...))
		_, _ = io.Copy(io.Discard, socket)
	}()
}

// A peer that sends what is no answer is left.
func TestGarbageFromAPeer(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a := f.machine(t, 1, 1<<12)
	f.strangePeer(t, bytes.Repeat([]byte{9}, answerBytes))
	if err := a.write(2, 0, 1); !errors.Is(err, hosts.ErrGarbage) || !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("%v, want %v", err, hosts.ErrGarbage)
	}
}

// The card outlives all that uses it, though the NIC is closed while queues and registrations come and go. A card
// that is closed before its parts is a use of freed memory in C.
func TestCloseWhileInUse(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	for range 200 {
		nic, err := f.Join(1)
		if err != nil {
			t.Fatal(err)
		}
		memory := nvram.NewMemory(64)
		var users sync.WaitGroup
		for w := range 3 {
			users.Go(func() {
				for {
					q, err := nic.Open(w, nil)
					if err == nil {
						err = q.Close()
					}
					if err == nil {
						err = nic.Register(rdma.Key(w), memory)
					}
					if err != nil {
						if !errors.Is(err, rdma.ErrClosed) {
							t.Error(err)
						}
						return
					}
					nic.Deregister(rdma.Key(w))
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		if err := nic.Close(); err != nil {
			t.Error(err)
		}
		users.Wait()
	}
}
