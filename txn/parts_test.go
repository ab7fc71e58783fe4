package txn

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/region"
)

func mustPanic(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: accepted", name)
		}
	}()
	f()
}

// The set against a map, across the size at which it changes its ways.
func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	var s set
	for range 300 {
		model := map[region.Addr]int{}
		for range rng.IntN(4*scanMax) << rng.IntN(5) {
			switch n := len(s.entries); {
			case rng.IntN(8) == 0 && n > 0:
				n -= rng.IntN(min(n, 2*scanMax) + 1)
				s.truncate(n)
				for a, i := range model {
					if i >= n {
						delete(model, a)
					}
				}
			default:
				a := region.MakeAddr(1, 64*(1+rng.Uint32N(300)))
				if _, there := model[a]; !there {
					model[a] = s.add(entry{ptr: region.MakePtr(a, 0, 1)})
				}
			}
			for slot := range uint32(302) {
				a := region.MakeAddr(1, 64*slot)
				want, there := model[a]
				if !there {
					want = -1
				}
				if got := s.find(a); got != want {
					t.Fatalf("find(%v) is %d, want %d", a, got, want)
				}
			}
		}
		s.reset()
		if len(s.entries) != 0 || s.find(region.MakeAddr(1, 64)) != -1 {
			t.Fatal("not empty after reset")
		}
	}
	for i := range tableKeepMost {
		if at := s.add(entry{ptr: region.MakePtr(region.MakeAddr(1, uint32(64*i)), 0, 1)}); at != i || s.find(region.MakeAddr(1, uint32(64*i))) != i {
			t.Fatalf("entry %d is at %d", i, at)
		}
	}
	if s.reset(); cap(s.table) != 0 {
		t.Errorf("a table of %d places is kept", cap(s.table))
	}
}

func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var a arena
	for range 20 {
		type slice struct {
			b    []byte
			fill byte
		}
		var all []slice
		for i := range 200 {
			n := rng.IntN(300)
			if i%50 == 49 {
				n = arenaChunkBytes + rng.IntN(100_000)
			}
			b := a.get(n)
			if len(b) != n || cap(b) != n {
				t.Fatalf("asked for %d bytes, got %d with room for %d", n, len(b), cap(b))
			}
			for k := range b {
				b[k] = byte(i)
			}
			all = append(all, slice{b, byte(i)})
		}
		for _, s := range all {
			if !bytes.Equal(s.b, bytes.Repeat([]byte{s.fill}, len(s.b))) {
				t.Fatal("slices overlap")
			}
		}
		if c := a.copy(all[3].b); !bytes.Equal(c, all[3].b) {
			t.Fatal("copy differs")
		}
		a.reset()
		if len(a.chunk) > arenaKeepBytes {
			t.Fatalf("keeps %d bytes", len(a.chunk))
		}
	}
}

// sleepClock is a clock in which only Sleep passes time.
type sleepClock struct {
	clock.System
	now    time.Time
	sleeps []time.Duration
	draw   uint64
}

func (c *sleepClock) Now() time.Time { return c.now }
func (c *sleepClock) Uint64() uint64 { c.draw += 0x9e3779b97f4a7c15; return c.draw }
func (c *sleepClock) Sleep(d time.Duration) {
	c.sleeps = append(c.sleeps, d)
	c.now = c.now.Add(d)
}

func TestBackoff(t *testing.T) {
	c := &sleepClock{now: time.Unix(1, 0)}
	w := &worker{m: &Machine{cfg: Config{Clock: c}}}
	b := backoff{w: w, patience: 100 * time.Millisecond}
	begin := c.now
	tries := 0
	for b.again() {
		tries++
		if tries > 10_000 {
			t.Fatal("does not end")
		}
	}
	if waited := c.now.Sub(begin); waited < 100*time.Millisecond || waited > 100*time.Millisecond+backoffSleepMax {
		t.Errorf("waited %v of 100 ms", waited)
	}
	if tries != len(c.sleeps)+backoffYields {
		t.Errorf("%d tries, %d of them asleep", tries, len(c.sleeps))
	}
	for i, d := range c.sleeps {
		if limit := min(backoffSleepMin<<min(i+1, 20), backoffSleepMax); d >= limit {
			t.Errorf("sleep %d of %v, limit %v", i, d, limit)
		}
	}
	if b.again() {
		t.Error("goes on after the end")
	}
	impatient := backoff{w: w, patience: heldPatience}
	for tries = 0; impatient.again(); tries++ {
	}
	if tries < backoffYields || tries > backoffYields+2 {
		t.Errorf("without patience %d tries", tries)
	}
}

// Waiters are woken whichever way operations end, and keep the first error.
func TestWaiter(t *testing.T) {
	m := &Machine{cfg: Config{Clock: clock.System{}}}
	w := newWorker(m, 0)
	w.stopped = true // has nothing to step through
	wt := m.newWaiter()
	for i := range 3000 {
		const n = 3
		wt.add(n)
		var left atomic.Int32
		left.Store(n)
		var wg sync.WaitGroup
		for k := range n {
			wg.Go(func() {
				if i%3 == 0 {
					time.Sleep(time.Microsecond * time.Duration(i%50))
				}
				var err error
				if i%5 == 4 && k == 1 {
					err = ErrClosed
				}
				left.Add(-1)
				wt.doneLocked(err)
			})
		}
		err := w.await(&wt)
		if left.Load() != 0 {
			t.Fatal("did not wait for all")
		}
		if (err != nil) != (i%5 == 4) {
			t.Fatalf("round %d: %v", i, err)
		}
		if !wt.settled() {
			t.Fatal("not settled")
		}
		wg.Wait()
	}
}

// Questions about parts are not moved or given out twice, however many there are, and
// keep nothing alive once they have been taken back.
func TestPartQuestions(t *testing.T) {
	var q partQuestions
	const n = 3 * partsChunkMax
	for range 2 {
		seen := make(map[*partQuestion]int)
		for i := range n {
			p := q.next()
			if _, again := seen[p]; again || p.was != nil {
				t.Fatalf("question %d was given out, or has kept what it asked", i)
			}
			seen[p], p.was = i, []byte{byte(i), byte(i >> 8)}
		}
		for p, i := range seen {
			if p.was[0] != byte(i) || p.was[1] != byte(i>>8) {
				t.Fatalf("question %d has become another", i)
			}
		}
		q.reset()
		if cap(q.chunk) > partsChunkMax {
			t.Fatalf("keeps %d questions", cap(q.chunk))
		}
	}
}
