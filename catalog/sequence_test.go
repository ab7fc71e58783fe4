package catalog_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// handlerReserve is a HandlerID of users.
const handlerReserve = 0x8000

// numbered is some machines, all replicas of a number object whose primary is machine 0.
type numbered struct {
	*txntest.Instance
	at region.Ptr
}

// openNumbered opens three machines over a network, and makes a number object.
func openNumbered(t testing.TB, way testnet.Way) numbered {
	t.Helper()
	network := func() txntest.Network { return testnet.New(t, way) }
	x, err := txntest.Open(txntest.Config{Machines: 3, Replicas: 3, Workers: 1, NewNetwork: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	n := numbered{Instance: x}
	err = x.Machine(0).Run(context.Background(), func(tx *txn.Tx) (err error) {
		n.at, err = catalog.NewNumber(tx, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// since returns what all machines have counted since they counted before; all aborts are under the first reason.
func (n numbered) since(before txn.Stats) (s txn.Stats) {
	for i := range n.Machines() {
		m := n.Machine(i).Stats()
		s.Commits += m.Commits
		s.Messages += m.Messages
		s.Records += m.Records
		s.RemoteReads += m.RemoteReads
		for _, aborts := range m.Aborts {
			s.Aborts[0] += aborts
		}
	}
	return s.Sub(before)
}

// together runs f on so many goroutines of each machine but the owner, in all as often as total says.
func (n numbered) together(t testing.TB, clients, total int, f func(machine int) error) {
	var left atomic.Int64
	left.Store(int64(total))
	var running sync.WaitGroup
	for machine := 1; machine < n.Machines(); machine++ {
		for range clients {
			running.Go(func() {
				for left.Add(-1) >= 0 {
					if err := f(machine); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

// measure is together with b.N calls, and reports what one has cost.
func (n numbered) measure(b *testing.B, clients int, f func(machine int) error) {
	before := n.since(txn.Stats{})
	defer cputime.Report(b)()
	b.ResetTimer()
	n.together(b, clients, b.N, f)
	b.StopTimer()
	c := n.since(before)
	for unit, count := range map[string]uint64{
		"commits/op": c.Commits, "aborts/op": c.Aborts[0], "messages/op": c.Messages, "records/op": c.Records, "reads/op": c.RemoteReads,
	} {
		b.ReportMetric(float64(count)/float64(b.N), unit)
	}
}

// sequences returns those of each machine.
func (n numbered) sequences() (all []*catalog.Sequences) {
	for i := range n.Machines() {
		all = append(all, catalog.NewSequences(n.Machine(i)))
	}
	return all
}

// A number costs a thousandth of a transaction, however many callers wait: one of them reserves for all.
func TestSequencesReserveTogether(t *testing.T) {
	const clients, numbers = 16, 40_000
	for _, way := range []testnet.Way{testnet.LocalAsync, testnet.TCP} {
		n := openNumbered(t, way)
		of, before := n.sequences(), n.since(txn.Stats{})
		n.together(t, clients, numbers, func(machine int) error {
			_, err := of[machine].Next(context.Background(), n.at)
			return err
		})
		// Each of two machines has reserved 8, 16, ..., 512, which are 7 ranges, and then 1,024 at a time, the last in part.
		const most = 2*7 + numbers/1024 + 2
		if got := n.since(before).Commits; got > most {
			t.Errorf("%s: %d transactions for %d numbers, more than %d", way, got, numbers, most)
		}
	}
}

// BenchmarkNext draws numbers at the two machines that are not the owner.
func BenchmarkNext(b *testing.B) {
	for _, way := range []testnet.Way{testnet.Local, testnet.TCP} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", way, clients), func(b *testing.B) {
				n := openNumbered(b, way)
				of := n.sequences()
				n.measure(b, clients, func(machine int) error {
					_, err := of[machine].Next(context.Background(), n.at)
					return err
				})
			})
		}
	}
}

// BenchmarkReserve reserves ranges at the two machines that are not the owner: each by a transaction
// of the machine, as Sequences do, or by a message to the owner, which reserves for all requests
// that have come meanwhile in one transaction (Design Guidelines, section 4.2). See docs/internals/catalog.md.
func BenchmarkReserve(b *testing.B) {
	for _, way := range []testnet.Way{testnet.Local, testnet.TCP} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("transaction/%s/%d", way, clients), func(b *testing.B) {
				n := openNumbered(b, way)
				n.measure(b, clients, func(machine int) error {
					_, err := advance(n.Machine(machine), n.at, 1024)
					return err
				})
			})
			b.Run(fmt.Sprintf("message/%s/%d", way, clients), func(b *testing.B) {
				n := openNumbered(b, way)
				s := &sequencer{m: n.Machine(0), at: n.at}
				n.Machine(0).Handle(handlerReserve, s.serve)
				n.measure(b, clients, func(machine int) error {
					_, err := n.Machine(machine).Ship(context.Background(), n.at.Addr, handlerReserve, binary.LittleEndian.AppendUint64(nil, 1024))
					return err
				})
			})
		}
	}
}

// advance reserves numbers in a transaction.
func advance(m *txn.Machine, at region.Ptr, by uint64) (first uint64, err error) {
	err = m.Run(context.Background(), func(tx *txn.Tx) error {
		b, err := catalog.OpenNumber(tx, at)
		if err != nil {
			return err
		}
		first = binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(b, first+by)
		return nil
	})
	return first, err
}

// A sequencer reserves at the owner, in one transaction for all requests that have come while the
// last one ran.
type sequencer struct {
	m       *txn.Machine
	at      region.Ptr
	running sync.Mutex // held during a transaction
	mu      sync.Mutex
	next    *round // that of the next transaction, nil if nobody waits for it
}

// A round is the requests of one transaction.
type round struct {
	once         sync.Once
	count, first uint64
	err          error
}

// serve answers a request, which says how many numbers are wanted, with the first of them.
func (s *sequencer) serve(_ context.Context, request []byte) ([]byte, error) {
	r, before := s.join(binary.LittleEndian.Uint64(request))
	r.once.Do(func() {
		s.running.Lock()
		defer s.running.Unlock()
		s.mu.Lock()
		s.next = nil
		s.mu.Unlock()
		r.first, r.err = advance(s.m, s.at, r.count)
	})
	return binary.LittleEndian.AppendUint64(nil, r.first+before), r.err
}

// join adds a request to the next round, and returns how many numbers those before it want.
func (s *sequencer) join(count uint64) (r *round, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = new(round)
	}
	before = s.next.count
	s.next.count += count
	return s.next, before
}
