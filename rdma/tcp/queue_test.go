package tcp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// pair returns a queue of machine 2 and memory of machine 1 that it may write, under key 5.
func pair(t testing.TB, size int64) (q rdma.Queue, memory *nvram.Memory, nics [2]*NIC) {
	t.Helper()
	f := newFabric(nil)
	memory = nvram.NewMemory(size)
	for i := range nics {
		nic, err := f.Join(rdma.MachineID(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		nics[i] = nic.(*NIC)
		t.Cleanup(func() { _ = nic.Close() })
		opened, err := nic.Open(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q = opened; i == 0 {
			err = nic.Register(5, memory)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return q, memory, nics
}

// A transfer that is longer than all buffers arrives whole.
func TestLongTransfers(t *testing.T) {
	const n = 20 << 20
	q, _, _ := pair(t, n)
	src := make([]byte, n-64)
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	dst := make([]byte, len(src))
	for _, post := range []func() (bool, error){
		func() (bool, error) { return q.Write(1, 5, 64, src, 1) },
		func() (bool, error) { return q.Read(1, 5, 64, dst, 1) },
	} {
		if _, err := post(); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		var cs [1]rdma.Completion
		until(t, func() bool { return q.Poll(cs[:]) == 1 }, func() any { return "no completion" })
		if cs[0].Err != nil {
			t.Fatal(cs[0].Err)
		}
	}
	if !bytes.Equal(src, dst) {
		t.Error("what was read is not what was written")
	}
}

// A peer that takes nothing from the network makes a queue full, and never makes a post wait; Close
// ends all the same.
func TestPeerThatStandsStill(t *testing.T) {
	f := newFabric(nil)
	standStill(t, f, 1)
	nic, err := Join(f.config(2))
	if err != nil {
		t.Fatal(err)
	}
	q, err := nic.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	posted, b := 0, make([]byte, 64<<10)
	for err == nil {
		if _, err = q.Write(1, 5, 0, b, 1); err == nil {
			posted++
		}
		if posted > depth {
			t.Fatal("more operations are pending than there may be")
		}
	}
	if !errors.Is(err, rdma.ErrFull) || posted*len(b) < unsentMax {
		t.Errorf("after %d writes: %v", posted, err)
	}
	begin := time.Now()
	closeAll(t, nic)
	if took := time.Since(begin); took < closePatience/2 {
		t.Errorf("Close did not wait for the peer's word: %v", took)
	}
}

// fake makes a process that accepts one connection as machine m, greets, and calls serve.
func fake(t *testing.T, f *fabric, m rdma.MachineID, serve func(socket *net.TCPConn)) {
	t.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		socket, err := door.Accept()
		if err != nil {
			return
		}
		defer socket.Close()
		_, _ = protocol.ReadGreeting(socket)
		serve(socket.(*net.TCPConn))
	}()
	t.Cleanup(func() {
		_ = door.Close()
		<-ended
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[m] = door.Addr().String()
}

// standStill makes a process that accepts a connection as machine m, and then does nothing until the
// test ends.
func standStill(t *testing.T, f *fabric, m rdma.MachineID) {
	t.Helper()
	stand := make(chan struct{})
	fake(t, f, m, func(socket *net.TCPConn) {
		_, _ = socket.Write(protocol.EncodeReply(hosts.Reply{Life: 1}))
		<-stand
	})
	t.Cleanup(func() { close(stand) }) // before fake's
}

// Close waits for all peers that stand still together, and whoever closes a second time waits for the
// first.
func TestCloseBesidePeersThatStandStill(t *testing.T) {
	f := newFabric(nil)
	standStill(t, f, 1)
	standStill(t, f, 3)
	nic, err := Join(f.config(2))
	if err != nil {
		t.Fatal(err)
	}
	q, err := nic.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []rdma.MachineID{1, 3} {
		if _, err := q.Write(to, 5, 0, make([]byte, 8), 1); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		c := q.(*Queue).mu.conns[to]
		until(t, func() bool {
			q.(*Queue).mu.Lock()
			defer q.(*Queue).mu.Unlock()
			return c.mu.link != nil
		}, func() any { return "not connected" })
	}
	first := make(chan struct{})
	go func() {
		defer close(first)
		_ = q.Close()
	}()
	until(t, func() bool {
		q.(*Queue).mu.Lock()
		defer q.(*Queue).mu.Unlock()
		return q.(*Queue).mu.closed
	}, func() any { return "Close has not begun" })
	closeAll(t, nic)
	select {
	case <-first:
	default:
		t.Error("the NIC was closed before its queue was")
	}
}

// silence is how long the peers of these tests may be silent.
const silence = time.Second

// The operations of a peer that stands still fail, although its kernel acknowledges everything; and
// unsignalled ones that are the last for a while are asked for.
func TestSilentPeer(t *testing.T) {
	f := newFabric(nil)
	standStill(t, f, 1)
	cfg := f.config(2)
	cfg.silence = silence
	nic, err := Join(cfg)
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

	asking, _, nics := pair(t, 64)
	nics[1].cfg.silence = silence
	if _, err := asking.Write(1, 5, 0, make([]byte, 8), rdma.Unsignalled); err != nil {
		t.Fatal(err)
	}
	asking.Flush()
	c := asking.(*Queue)
	until(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.mu.conns[1].mu.pending) == 0 && !c.mu.conns[1].mu.broken
	}, func() any { return "an unsignalled operation is pending for ever" })
}

// Break fails what is pending at a peer that stands still, without waiting for the end of its silence,
// and then posts connect anew. Without a connection it does nothing.
func TestBreak(t *testing.T) {
	f := newFabric(nil)
	standStill(t, f, 1)
	cfg := f.config(2)
	cfg.silence = time.Hour
	nic, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, nic)
	rdmaQueue, err := nic.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	q := rdmaQueue.(*Queue)
	q.Break(1)
	for range 2 {
		for tag := range uint64(2) {
			until(t, func() bool { _, err = q.Read(1, 5, 0, make([]byte, 8), tag); return err == nil }, func() any { return err })
		}
		q.Flush()
		q.Break(1)
		var cs []rdma.Completion
		until(t, func() bool {
			var one [1]rdma.Completion
			if q.Poll(one[:]) == 1 {
				cs = append(cs, one[0])
			}
			return len(cs) == 2
		}, func() any { return cs })
		for i, c := range cs {
			if c.Tag != uint64(i) || !errors.Is(c.Err, rdma.ErrBroken) {
				t.Errorf("%+v, want ErrBroken", c)
			}
		}
	}
}

// A batch is held until Flush, and is not missed until then; what is longer than heldMax leaves before.
func TestBatch(t *testing.T) {
	q, memory, nics := pair(t, 2*heldMax)
	nics[1].cfg.silence = silence
	if err := write(t, q); err != nil {
		t.Fatal(err)
	}
	c := q.(*Queue).mu.conns[1]
	state := func() (held int, watched bool) {
		q.(*Queue).mu.Lock()
		defer q.(*Queue).mu.Unlock()
		return len(c.mu.frames), c.mu.watched
	}
	until(t, func() bool { _, watched := state(); return !watched }, func() any { return "an answer is waited for" })
	const writes = 8
	word := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	for i := range uint64(writes) {
		if _, err := q.Write(1, 5, 64+8*i, word, rdma.Unsignalled); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Ring(1); err != nil {
		t.Fatal(err)
	}
	if held, watched := state(); held != writes*(frameBytes+8)+frameBytes || watched {
		t.Errorf("%d bytes are held, an answer is waited for: %v", held, watched)
	}
	q.Flush()
	if held, _ := state(); held != 0 {
		t.Errorf("after Flush %d bytes are held", held)
	}
	until(t, func() bool { return memory.Load(64+8*(writes-1)) == 1 }, func() any { return "the batch has not arrived" })
	long := bytes.Repeat(word, heldMax/8)
	if _, err := q.Write(1, 5, 0, long, rdma.Unsignalled); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return memory.Load(heldMax-8) == 1 }, func() any { return "a long write is held" })
}

// A copy in a closed queue, or of an agent that has ended, touches no memory.
func TestEndedCopier(t *testing.T) {
	q, memory, nics := pair(t, 64)
	own, err := nics[0].Open(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := own.(*Queue).own
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(5, 0, []byte{1, 0, 0, 0, 0, 0, 0, 0}); !errors.Is(err, rdma.ErrClosed) || memory.Load(0) != 0 {
		t.Errorf("%v, memory holds %d", err, memory.Load(0))
	}
	if err := write(t, q); err != nil {
		t.Errorf("of another worker: %v", err)
	}
}

// Unsignalled operations are answered now and then, so that they do not fill the queue for ever.
func TestUnsignalledOnly(t *testing.T) {
	q, memory, _ := pair(t, 64)
	word := make([]byte, 8)
	for i := range 5 * depth {
		word[0] = byte(i)
		until(t, func() bool {
			_, err := q.Write(1, 5, 0, word, rdma.Unsignalled)
			if err != nil && !errors.Is(err, rdma.ErrFull) {
				t.Fatal(err)
			}
			if err != nil {
				q.Flush()
			}
			return err == nil
		}, func() any { return "the queue stays full" })
	}
	q.Flush()
	until(t, func() bool { return byte(memory.Load(0)) == byte((5*depth-1)&0xff) }, func() any { return memory.Load(0) })
	var cs [1]rdma.Completion
	if q.Poll(cs[:]) != 0 {
		t.Errorf("completion %+v", cs[0])
	}
}

// The operations of a former life do not follow those of the next: its agents end first.
func TestFormerLife(t *testing.T) {
	_, memory, nics := pair(t, 64)
	to := nics[0]
	dial := func(life uint64) net.Conn {
		socket, err := net.Dial("tcp", to.Address())
		if err != nil {
			t.Fatal(err)
		}
		g := hosts.Greeting{From: 9, To: 1, Life: life, Cluster: [16]byte{7}}
		if _, err := socket.Write(protocol.EncodeGreeting(g)); err != nil {
			t.Fatal(err)
		}
		if _, err := protocol.ReadReply(socket); err != nil {
			t.Fatal(err)
		}
		return socket
	}
	send := func(socket net.Conn, v byte) {
		_, _ = socket.Write(append((&frame{op: rdma.OpWrite, bytes: 8, key: 5}).append(nil), v, 0, 0, 0, 0, 0, 0, 0))
	}
	former := dial(1)
	defer former.Close()
	refused := func(what string, g hosts.Greeting) {
		t.Helper()
		socket, err := net.Dial("tcp", to.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		if _, err := socket.Write(protocol.EncodeGreeting(g)); err != nil {
			t.Fatal(err)
		}
		if _, err := protocol.ReadReply(socket); !errors.Is(err, hosts.Refusals[hosts.Outdated]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	send(former, 1)
	until(t, func() bool { return memory.Load(0) == 1 }, func() any { return memory.Load(0) })
	next := dial(2)
	defer next.Close()
	send(former, 3)
	_ = former.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := former.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of the former life has not ended: %v", err)
	}
	if v := memory.Load(0); v != 1 {
		t.Errorf("the former life has written %d", v)
	}
	refused("the former life", hosts.Greeting{From: 9, To: 1, Life: 1, Cluster: [16]byte{7}})
	refused("its datagrams", hosts.Greeting{Purpose: keysOfDatagrams, From: 9, To: 1, Life: 1, Cluster: [16]byte{7}})
	send(next, 2)
	until(t, func() bool { return memory.Load(0) == 2 }, func() any { return memory.Load(0) })
}

func TestAddressIsTaken(t *testing.T) {
	f := newFabric(nil)
	nic, err := f.Join(1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, nic.(*NIC))
	cfg := f.config(2)
	cfg.Listen = nic.(*NIC).Address()
	if _, err := Join(cfg); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("%v, want ErrMachineTaken", err)
	}
	cfg.Listen = "nowhere"
	if _, err := Join(cfg); err == nil || errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("address without a port: %v", err)
	}
	cfg.Listen = "127.0.0.1:0"
	for name, change := range map[string]func(c *tls.Config){
		"RootCAs":            func(c *tls.Config) { c.RootCAs = nil },
		"ClientCAs":          func(c *tls.Config) { c.ClientCAs = nil },
		"InsecureSkipVerify": func(c *tls.Config) { c.InsecureSkipVerify = true },
	} {
		cfg.TLS = certificates(t)
		change(cfg.TLS)
		if _, err := Join(cfg); !errors.Is(err, hosts.ErrTLS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := nic.Open(workersMax, nil); err == nil {
		t.Error("a worker that has no number in greetings is opened")
	}
}

// A peer that answers slowly is not silent.
func TestSlowAnswer(t *testing.T) {
	f := newFabric(nil)
	fake(t, f, 1, func(socket *net.TCPConn) {
		_, _ = socket.Write(protocol.EncodeReply(hosts.Reply{Life: 1}))
		_, _ = io.ReadFull(socket, make([]byte, frameBytes))
		_, _ = socket.Write((&answer{bytes: 32}).append(nil))
		for range 4 {
			time.Sleep(silence * 2 / 3)
			_, _ = socket.Write(bytes.Repeat([]byte{1}, 8))
		}
		_, _ = io.Copy(io.Discard, socket)
	})
	cfg := f.config(2)
	cfg.silence = silence
	nic, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	q, err := nic.Open(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 32)
	if _, err := q.Read(1, 5, 0, dst, 1); err != nil {
		t.Fatal(err)
	}
	q.Flush()
	var cs [1]rdma.Completion
	until(t, func() bool { return q.Poll(cs[:]) == 1 }, func() any { return "no completion" })
	if cs[0].Err != nil || dst[31] != 1 {
		t.Errorf("%v, read %x", cs[0].Err, dst)
	}
	closeAll(t, nic)
}
