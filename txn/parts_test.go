package txn

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/txn/outcome"
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

// Waiters are woken whichever way operations end, and keep the first error.
func TestWaiter(t *testing.T) {
	m := &machine{cfg: Config{Clock: clock.System{}}}
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
					err = outcome.ErrClosed
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
