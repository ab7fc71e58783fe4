//go:build !race

package shm

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
)

// pair returns worker 0's queue at machine 1, and memory of machine 2, registered
// under key 7; both are in this process.
func pair(tb testing.TB) (rdma.Queue, *NIC, *nvram.Memory) {
	path := folderOf(tb)
	var queues [2]rdma.Queue
	for i := range queues {
		nic, err := Join(path, rdma.MachineID(i+1))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = nic.Close() })
		if queues[i], err = nic.Open(0, nil); err != nil {
			tb.Fatal(err)
		}
		if i == 1 {
			m, err := nvram.NewShared(1 << 16)
			if err != nil {
				tb.Fatal(err)
			}
			if err := nic.Register(7, m); err != nil {
				tb.Fatal(err)
			}
			return queues[0], nic, m
		}
	}
	panic("unreachable")
}

func BenchmarkRead(b *testing.B)  { benchmarkTransfer(b, rdma.Queue.Read) }
func BenchmarkWrite(b *testing.B) { benchmarkTransfer(b, rdma.Queue.Write) }

func benchmarkTransfer(b *testing.B, transfer func(rdma.Queue, rdma.MachineID, rdma.Key, uint64, []byte, uint64) (bool, error)) {
	for _, size := range []int{8, 64, 128, 256, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			q, _, _ := pair(b)
			buf := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if done, err := transfer(q, 2, 7, 64, buf, 1); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}

// An end is one of two machines that send each other records: a ring in its own
// memory to receive, a sender to the other's.
type end struct {
	queue rdma.Queue
	to    rdma.MachineID
	in    *ring.Receiver
	out   *ring.Sender
}

const (
	creditAt  = 32 << 10
	ringAt    = 64 << 10
	ringBytes = 64 << 10
)

func newEnd(m *nvram.Memory, q rdma.Queue, to rdma.MachineID, inNonce, outNonce uint64) (*end, error) {
	in, err := ring.Create(m, ringAt, ringBytes, inNonce)
	if err != nil {
		return nil, err
	}
	in.Feedback(q, to, key, creditAt)
	other, err := ring.Create(nvram.NewMemory(ringBytes), 0, ringBytes, outNonce) // as the other end makes it
	if err != nil {
		return nil, err
	}
	s, err := other.State()
	return &end{q, to, in, ring.NewSender(s, ring.Link{Queue: q, To: to, Key: key, Offset: ringAt, Credit: m, CreditOffset: creditAt})}, err
}

// send appends a record and rings.
func (e *end) send(b []byte) error {
	_, _, err := e.out.AppendRing(1, b)
	return err
}

// receive takes a record out, if there is one.
func (e *end) receive() (b []byte, ok bool, err error) {
	r, ok, err := e.in.Poll()
	if ok {
		e.in.Free(r.End)
	}
	return r.Payload, ok, err
}

// serve sends every record back.
func (e *end) serve() {
	for {
		b, ok, err := e.receive()
		if err == nil && ok {
			err = e.send(b)
		}
		if err != nil {
			panic(err)
		}
		if !ok {
			return
		}
	}
}

// between starts machine 2 as a process that sends records back.
func between(b *testing.B) (*self, *end) {
	s := newSelf(b)
	c := start(b, s.path, 2, folderOf(b))
	c.do("register")
	e, err := newEnd(s.memory, s.q, 2, 1, 2)
	if err != nil {
		b.Fatal(err)
	}
	c.do("bench")
	return s, e
}

// roundTrip sends 128 bytes and waits for their return.
func (e *end) roundTrip(b *testing.B, record []byte) {
	if err := e.send(record); err != nil {
		b.Fatal(err)
	}
	for {
		_, ok, err := e.receive()
		if err != nil {
			b.Fatal(err)
		}
		if ok {
			return
		}
		schedYield()
		runtime.Gosched()
	}
}

// BenchmarkRoundTrip appends a record to the ring of another process, rings, and
// polls for the answer: awake, with the peer's doorbell spinning, and asleep, with
// the peer on its futex.
func BenchmarkRoundTrip(b *testing.B) {
	record := make([]byte, 128)
	b.Run("awake", func(b *testing.B) {
		_, e := between(b)
		b.ReportAllocs()
		for b.Loop() {
			e.roundTrip(b, record)
		}
	})
	b.Run("asleep", func(b *testing.B) {
		s, e := between(b)
		parked := s.nic.stateOf(2).parked(0)
		var total time.Duration
		n := 0
		for b.Loop() {
			for parked.Load() != 1 {
				time.Sleep(100 * time.Microsecond)
			}
			began := time.Now()
			e.roundTrip(b, record)
			total += time.Since(began)
			n++
		}
		b.ReportMetric(float64(total.Nanoseconds())/float64(n), "ns/wake-up")
	})
}

// BenchmarkBetweenProcesses is the cost of operations on another process's memory.
func BenchmarkBetweenProcesses(b *testing.B) {
	b.Run("read64", func(b *testing.B) {
		s, _ := between(b)
		buf := make([]byte, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.q.Read(2, key, 0, buf, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write128", func(b *testing.B) {
		s, _ := between(b)
		buf := make([]byte, 128)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.q.Write(2, key, 0, buf, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("writeRing128", func(b *testing.B) {
		s, _ := between(b)
		buf := make([]byte, 128)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.q.WriteRing(2, key, 0, buf, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ring", func(b *testing.B) {
		s, _ := between(b)
		b.ReportAllocs()
		for b.Loop() {
			if err := s.q.Ring(2); err != nil {
				b.Fatal(err)
			}
		}
	})
}
