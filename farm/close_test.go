package farm

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/step"
)

// An instance is closed right after some of its machines were killed in the middle of a commit. If
// the machines that are left are a majority, they decide the commit, and everything is applied. If
// not, nobody can decide it, and it is left to the next life: closing does not wait for it, however
// long its patience is.
func TestCloseInTheMiddleOfACommit(t *testing.T) {
	defer func(was time.Duration) { closePatience = was }(closePatience)
	closePatience = time.Hour
	for name, killed := range map[string][]int{"a majority is left": {1}, "a minority is left": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			cfg := small(3, 3)
			cfg.Volatile = NewVolatile()
			var isArmed atomic.Bool
			var c *Local
			cfg.Each = func(m *MemberConfig) {
				m.Steps = func(s step.Step) {
					if s == step.CommitBackup && isArmed.CompareAndSwap(true, false) {
						killAll(t, c, killed)
					}
				}
			}
			c, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ptrs := accounts(t, c, 2, 100)
			c.Machine(0).WaitAtMost(time.Millisecond)
			isArmed.Store(true)
			if err := move(t, c, ptrs); isArmed.Load() {
				t.Fatalf("nobody was killed: %v", err)
			}
			closed := make(chan error, 1)
			go func() { closed <- c.Close() }()
			select {
			case err = <-closed:
			case <-time.After(30 * time.Second):
				all := make([]byte, 1<<20)
				t.Fatalf("it does not close:\n%s", all[:runtime.Stack(all, true)])
			}
			isMinority := len(killed) > 1
			if err != nil && !(isMinority && strings.Contains(err.Error(), "1 are left, which is no majority")) {
				t.Errorf("closed: %v", err)
			}
			cfg.Each = nil
			c = open(t, cfg)
			if err := checkTotal(c.Machine(0), ptrs, 200); err != nil {
				t.Error(err)
			}
			checkCluster(t, "after that", c, ptrs)
		})
	}
}

// killAll kills machines at a step of another machine's commit, which holds the lock of a worker.
// Killing locks what is to be locked before that, so it is done by another goroutine.
func killAll(t *testing.T, c *Local, machines []int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, i := range machines {
			if err := c.Kill(i); err != nil {
				t.Error(err)
			}
		}
	}()
	<-done
}

// move moves something from one account to another, and returns nil or that it is not known whether
// it has happened.
func move(t *testing.T, c *Local, ptrs []region.Ptr) error {
	t.Helper()
	err := c.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
		from, err := tx.Write(ptrs[0])
		if err != nil {
			return err
		}
		to, err := tx.Write(ptrs[1])
		if err != nil {
			return err
		}
		from[0]--
		to[0]++
		return nil
	})
	if err != nil && !errors.Is(err, outcome.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	return err
}
