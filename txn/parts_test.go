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
	"github.com/farmsql/farmsql/txn/wait"
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

// Waiters are woken whichever way operations end, and keep the first error.
func TestWaiter(t *testing.T) {
	m := &Machine{cfg: Config{Clock: clock.System{}}}
	w := newWorker(m, 0)
	w.stopped = true // has nothing to step through
	wt := wait.NewWaiter(m.cfg.Clock)
	for i := range 3000 {
		const n = 3
		wt.Add(n)
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
				wt.DoneLocked(err)
			})
		}
		err := w.await(&wt)
		if left.Load() != 0 {
			t.Fatal("did not wait for all")
		}
		if (err != nil) != (i%5 == 4) {
			t.Fatalf("round %d: %v", i, err)
		}
		if !wt.Settled() {
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
