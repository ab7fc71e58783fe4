package farm

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/step"
)

// A freezer stops an instance under load at random steps: every goroutine that reaches a step waits
// there, until nothing moves any more. The memory is then in the state that it would have if all
// processes were killed.
type freezer struct {
	mu     sync.RWMutex // held by who has frozen the instance
	frozen atomic.Bool
	passed atomic.Int64 // steps
}

func (f *freezer) step(step.Step) {
	f.passed.Add(1)
	if f.frozen.Load() {
		f.mu.RLock()
		defer f.mu.RUnlock()
	}
}

// tellSteps returns a function that makes each machine report its steps to a function.
func tellSteps(to func(step.Step)) func(*MemberConfig) {
	return func(m *MemberConfig) { m.Steps = to }
}

// freeze runs fn while nothing moves.
func (f *freezer) freeze(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen.Store(true)
	defer f.frozen.Store(false)
	quiet := 0
	for last := int64(-1); quiet < 5; {
		time.Sleep(time.Millisecond)
		if now := f.passed.Load(); now == last {
			quiet++
		} else {
			last, quiet = now, 0
		}
	}
	fn()
}

// TestCrashUnderLoad runs several goroutines on each machine that transfer between shared accounts
// and keep counts of their transfers in objects on two machines. The instance is frozen and copied
// again and again. In each copy the total must be the same as at the beginning, and the counts of a
// goroutine must agree with each other and with what was acknowledged before.
func TestCrashUnderLoad(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg Config) {
		var f freezer
		cfg.Each, cfg.Volatile, cfg.LogBytes = tellSteps(f.step), NewVolatile(), 64<<10
		c := open(t, cfg)
		const n, balance = 6, 1000
		crashes := 12
		if invariant.Enabled { // slow
			crashes = 2
		}
		ptrs := accounts(t, c, n, balance)
		counters := accounts(t, c, 2*2*c.Machines(), 0)
		acked := make([]atomic.Uint64, len(counters)/2)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for g := range acked {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(3, uint64(g)))
				for i := uint64(1); !stop.Load(); i++ {
					if err := countedTransfer(c.Machine(g%c.Machines()), ptrs, counters[2*g:2*g+2], i, rng); err != nil {
						t.Error(err)
						return
					}
					acked[g].Store(i)
				}
			})
		}
		for i := range crashes {
			for range 1 + i%3 {
				time.Sleep(time.Millisecond)
			}
			f.freeze(func() {
				crashed := cfg
				crashed.Volatile, crashed.Each = cfg.Volatile.Clone(), nil
				checkCrashed(t, crashed, ptrs, n*balance, counters, acked)
			})
		}
		stop.Store(true)
		wg.Wait()
		checkCluster(t, "at the end", c, append(ptrs, counters...))
	})
}

// countedTransfer is a transfer that also sets the two counters.
func countedTransfer(m *txn.Machine, ptrs, counters []region.Ptr, count uint64, rng *rand.Rand) error {
	from, to := rng.IntN(len(ptrs)), rng.IntN(len(ptrs))
	return m.Run(context.Background(), func(tx *txn.Tx) error {
		for _, change := range []struct {
			p  region.Ptr
			by int64
		}{{ptrs[from], -1}, {ptrs[to], 1}} {
			b, err := tx.Write(change.p)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+uint64(change.by))
		}
		for _, p := range counters {
			b, err := tx.Write(p)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(b, count)
		}
		return nil
	})
}

func checkCrashed(t *testing.T, cfg Config, ptrs []region.Ptr, total uint64, counters []region.Ptr, acked []atomic.Uint64) {
	c, err := Open(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	if err := checkTotal(c.Machine(0), ptrs, total); err != nil {
		t.Errorf("after a crash: %v", err)
	}
	value := func(p region.Ptr) uint64 {
		b := make([]byte, p.Capacity())
		if _, err := c.Machine(0).Read(p, b); err != nil {
			t.Errorf("after a crash: %v: %v", p, err)
		}
		return binary.LittleEndian.Uint64(b)
	}
	for g := range acked {
		a, b, was := value(counters[2*g]), value(counters[2*g+1]), acked[g].Load()
		if a != b || a != was && a != was+1 {
			t.Errorf("after a crash: counters of goroutine %d are %d and %d, %d was acknowledged", g, a, b, was)
		}
	}
	checkCluster(t, "after a crash", c, append(ptrs[:len(ptrs):len(ptrs)], counters...))
}
