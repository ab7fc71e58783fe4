package rdmatest

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// testFlushSendsToAll posts a batch of writes and rings to several machines, and flushes once. All of it
// arrives, although nobody calls the queue again.
func testFlushSendsToAll(t *testing.T, f Fabric) {
	from := join(t, f, 1).open(t, 0, nil)
	const peers, writes = 3, 8
	var rung [peers]atomic.Bool
	var to [peers]*machine
	for i := range to {
		to[i] = join(t, f, rdma.MachineID(2+i))
		to[i].open(t, 0, func() { rung[i].Store(true) })
	}
	for round := range uint64(20) {
		for i := range rung {
			rung[i].Store(false)
		}
		for n := range uint64(writes) {
			for i := range to {
				must(from.q.Write(rdma.MachineID(2+i), key, 512*n, words(8, round<<8|n+1), rdma.Unsignalled))(t)
			}
		}
		for i := range to {
			if err := from.q.Ring(rdma.MachineID(2 + i)); err != nil {
				t.Fatal(err)
			}
		}
		from.q.Flush()
		for i, m := range to {
			eventually(t, "the last write", func() bool { return m.memory.Load(512*(writes-1)+56) == round<<8|writes })
			eventually(t, "doorbell", rung[i].Load)
			for n := range uint64(writes) {
				if v := m.memory.Load(512*n + 56); v != round<<8|n+1 {
					t.Fatalf("round %d: at machine %d the last write is there, and write %d has left %#x", round, 2+i, n, v)
				}
			}
		}
	}
	from.none()
}

// testFlushKeepsTheOrder flushes between operations that must follow each other, now and then.
func testFlushKeepsTheOrder(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	const rounds = 100
	seen := make([]byte, 8*rounds)
	pending := 0
	for i := range uint64(rounds) {
		for n, post := range []func() (bool, error){
			func() (bool, error) { return from.q.Write(2, key, 512, words(1, i+1), 1) },
			func() (bool, error) { return from.q.Read(2, key, 512, seen[8*i:8*i+8], 1) },
		} {
			if !must(post())(t) {
				pending++
			}
			if (i+uint64(n))%3 == 0 {
				from.q.Flush()
			}
		}
	}
	from.q.Flush()
	from.q.Flush() // flushes nothing
	from.poll(pending)
	from.none()
	for i := range uint64(rounds) {
		if v := binary.NativeEndian.Uint64(seen[8*i:]); v != i+1 {
			t.Fatalf("read after write %d saw %d", i+1, v)
		}
	}
	if v := to.memory.Load(512); v != rounds {
		t.Errorf("memory holds %d, want %d", v, rounds)
	}
}

// testFlushOfABrokenBatch cuts one of two machines off in the middle of a batch. Operations on that
// machine fail, or were carried out before the cut; operations on the other machine are carried out.
// The next batch connects again.
func testFlushOfABrokenBatch(t *testing.T, f Fabric) {
	from, cut := twoMachines(t, f)
	third := join(t, f, 3)
	third.open(t, 0, nil)
	for round := range uint64(5) {
		pending, failed := 0, 0
		for n := range uint64(20) {
			if n == 10 {
				f.Cut(1, 2)
			}
			for _, to := range []rdma.MachineID{2, 3} {
				done, err := from.q.Write(to, key, 0, words(1, round<<8|n+1), n)
				switch {
				case err != nil && (to != 2 || n < 10 || !errors.Is(err, rdma.ErrBroken)):
					t.Fatalf("write %d to machine %d: %v", n+1, to, err)
				case err != nil:
					failed++
				case !done:
					pending++
				}
			}
		}
		for _, c := range from.poll(pending) {
			if c.Err != nil && (c.To != 2 || !errors.Is(c.Err, rdma.ErrBroken)) {
				t.Fatalf("completion %+v", c)
			}
			if c.Err != nil {
				failed++
			}
		}
		if v := cut.memory.Load(0); failed < 10 || v > round<<8|10 {
			t.Errorf("%d writes have failed, and across the cut there is %#x", failed, v)
		}
		if v := third.memory.Load(0); v != round<<8|20 {
			t.Errorf("the other machine holds %#x", v)
		}
		f.Mend(1, 2)
		if err := from.write(2, key, 0, words(1, round<<8|20)); err != nil {
			t.Fatalf("the next batch: %v", err)
		}
	}
}

// testFlushOfTheClosed closes a queue, and a NIC, in the middle of a batch. Flush then does nothing.
func testFlushOfTheClosed(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	other := join(t, f, 3)
	fromOther := other.open(t, 0, nil)
	for i, c := range []struct {
		w     *worker
		close func() error
	}{{from, from.q.Close}, {fromOther, other.nic.Close}} {
		off := uint64(64 * i)
		must(c.w.q.Write(2, key, off, words(1, 1), 1))(t)
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		before := to.memory.Load(off)
		c.w.q.Flush()
		time.Sleep(time.Millisecond)
		if v := to.memory.Load(off); v != before {
			t.Errorf("case %d: Flush of a closed queue has written", i)
		}
		c.w.none()
	}
}
