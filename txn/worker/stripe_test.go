package worker

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/prefetch"
)

// stripedMachine returns a machine of which only what epochs need is there.
func stripedMachine(workers int) *Machine {
	m := &Machine{cfg: Config{Clock: clock.System{}}}
	for range workers {
		m.workers = append(m.workers, &Worker{m: m})
	}
	m.stripes = newStripes(m)
	m.epoch.Store(1)
	return m
}

// An operation is open in the epoch in which it began, whether it has a bracket or not.
func TestEpochs(t *testing.T) {
	m := stripedMachine(1)
	s := &m.stripes[0]
	const n = stripeBrackets + 3
	var old, young []Operation
	for range n {
		old = append(old, s.enter(0))
	}
	m.epoch.Store(2)
	for range n {
		young = append(young, s.enter(transactionBrackets))
	}
	if s.open(1) != n || s.open(2) != n {
		t.Errorf("%d and %d open, want %d each", s.open(1), s.open(2), n)
	}
	for i := range n {
		old[i].End()
		if s.open(1) != n-1-i || m.epochClosed(1) != (i == n-1) {
			t.Errorf("after %d exits %d are open, closed: %v", i+1, s.open(1), m.epochClosed(1))
		}
	}
	for _, o := range young {
		o.End()
	}
	if !m.epochClosed(2) {
		t.Error("still open")
	}
	mustPanic(t, "exit twice", func() { old[0].End() })
	mustPanic(t, "exit twice, without a bracket", func() { old[n-1].End() })
}

// Transactions that stay open leave brackets to operations.
func TestTransactionsLeaveBrackets(t *testing.T) {
	s := &stripedMachine(1).stripes[0]
	for range 10 {
		s.enter(transactionBrackets)
	}
	for i := range transactionBrackets {
		if o := s.enter(0); o.b.isShared {
			t.Errorf("operation %d has no bracket", i)
		}
	}
}

// Reads are counted at once, also those of operations that are still open.
func TestReadsAreCounted(t *testing.T) {
	m := stripedMachine(1)
	for i := range 2 * stripeBrackets {
		m.Start().count(i)
	}
	if n := m.Traffic().LocalReads; n != 28 {
		t.Errorf("%d reads, want 28", n)
	}
}

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: accepted", name)
		}
	}()
	f()
}

// parityOf returns the parity of the epoch in which an operation began.
func parityOf(m *Machine, o Operation) uint64 {
	for i := range m.stripes {
		if o.b == &m.stripes[i].shared[0] {
			return 0
		}
	}
	if o.b.isShared {
		return 1
	}
	return o.b.word >> 1 & 1
}

// Goroutines begin and end operations while epochs end: when an epoch is closed, none of its
// operations is open.
func TestEpochsWhileOperationsRun(t *testing.T) {
	m := stripedMachine(2)
	var open [2]atomic.Int64 // by the parity of the epoch
	var enough atomic.Bool
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for !enough.Load() {
				o := m.Start()
				parity := parityOf(m, o)
				open[parity].Add(1)
				(clock.System{}).Yield()
				open[parity].Add(-1)
				o.End()
			}
		})
	}
	for ended := 0; ended < 100 && !t.Failed(); {
		current, closed := m.enterEpoch(m.epoch.Load() + 1)
		if closed {
			ended++
			if n := open[(current-1)&1].Load(); n != 0 { // nothing of this parity begins before the next epoch does
				t.Errorf("%d operations are open in epoch %d, which is closed", n, current-1)
			}
		}
		(clock.System{}).Yield()
	}
	enough.Store(true)
	running.Wait()
	if !m.epochClosed(0) || !m.epochClosed(1) {
		t.Error("operations have ended, and an epoch is open")
	}
}

// Each processor has a stripe, each worker too, and a worker is that of its processors.
func TestStripes(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 5, 16} {
		m := stripedMachine(workers)
		if n := len(m.stripes); n < max(workers, m.cfg.Clock.Processors()) || n&(n-1) != 0 {
			t.Errorf("%d stripes for %d workers and %d processors", n, workers, m.cfg.Clock.Processors())
		}
		for i := range m.stripes {
			if m.stripes[i].Worker != m.workers[i%workers] {
				t.Errorf("stripe %d of %d workers has another worker", i, workers)
			}
		}
	}
}

// field returns where a field begins in t, and where it ends.
func field(t *testing.T, of any, name string) (begin, end uintptr) {
	f, ok := reflect.TypeOf(of).FieldByName(name)
	if !ok {
		t.Fatalf("%T has no field %s", of, name)
	}
	return f.Offset, f.Offset + f.Type.Size()
}

// TestLines pins which fields can be on one cache line, whatever the address of the struct: those that
// different processors write are a Pad apart from each other, and from what others read.
func TestLines(t *testing.T) {
	const apart = 2 * prefetch.LineBytes
	separate := func(of any, one, other string) {
		_, end := field(t, of, one)
		begin, _ := field(t, of, other)
		if begin < end+apart {
			t.Errorf("%T: %s ends at %d, %s begins at %d", of, one, end, other, begin)
		}
	}
	together := func(of any, most uintptr, first, last string) {
		begin, _ := field(t, of, first)
		if _, end := field(t, of, last); end-begin > most {
			t.Errorf("%T: %s to %s take %d bytes, at most %d", of, first, last, end-begin, most)
		}
	}
	// Lock-free reads load m, while others ring the bell and take the lock.
	separate(Worker{}, "ID", "bell")
	// Ringers write the bell, then the lock: one line moves, not two.
	together(Worker{}, prefetch.LineBytes, "bell", "mu")
	// Reads and begins load these, while transactions and operations of all processors write the others.
	for _, name := range []string{"cfg", "workers", "stripes", "Routes", "epoch", "raw", "config", "closed"} {
		separate(Machine{}, name, "serving")
	}
	// A stripe shares no line with its neighbours, and an operation touches two lines at most.
	if begin, _ := field(t, Stripe{}, "brackets"); begin < apart {
		t.Errorf("a stripe begins with %d bytes of padding", begin)
	}
	if _, end := field(t, Stripe{}, "epoch"); reflect.TypeFor[Stripe]().Size() < end+apart {
		t.Errorf("a stripe ends with %d bytes of padding", reflect.TypeFor[Stripe]().Size()-end)
	}
	together(Stripe{}, 2*prefetch.LineBytes, "brackets", "brackets")
	if _, end := field(t, Worker{}, "caught"); reflect.TypeFor[Worker]().Size() < end+apart {
		t.Error("a worker does not end with padding")
	}
}
