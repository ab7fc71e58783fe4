package farm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// The others go on without a machine that is killed, and have what it has committed. It comes back
// with the rest.
func TestKillOneOfALocal(t *testing.T) {
	cfg := small(3, 2)
	cfg.Volatile = NewVolatile()
	var ptrs []region.Ptr
	for dead := range 3 {
		c := open(t, cfg)
		if n := len(c.Status().Configuration.Machines); n != 3 {
			t.Errorf("%d machines", n)
		}
		ptrs = append(ptrs, accounts(t, c, 3, 100)...)
		if err := c.Kill(dead); err != nil {
			t.Error(err)
		}
		for i := range 3 {
			if i == dead {
				continue
			}
			if err := checkTotal(c.Machine(i), ptrs, uint64(100*len(ptrs))); err != nil {
				t.Errorf("machine %d without %d: %v", i, dead, err)
			}
		}
		if n := len(c.Status().Configuration.Machines); n != 2 {
			t.Errorf("%d machines without %d", n, dead)
		}
		checkCluster(t, "killed", c, ptrs)
		if err := c.Close(); err != nil {
			t.Errorf("without %d: %v", dead, err)
		}
	}
}

// Ended tells the owner of an instance that a machine has left it, and the owner closes it at
// once.
func TestEndOfOneOfALocal(t *testing.T) {
	ended := make(chan error, 1)
	cfg := small(1, 1)
	cfg.Each = func(m *MemberConfig) { m.Ended = func(reason error) { ended <- reason } }
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Member(0).Membership().Restart(membership.ErrRestart)
	if reason := <-ended; !errors.Is(reason, membership.ErrRestart) || !errors.Is(c.Status().Err, membership.ErrRestart) {
		t.Errorf("%v, %v", reason, c.Status().Err)
	}
	err = c.Machine(0).Run(context.Background(), func(tx *txn.Tx) error {
		_, err := tx.Write(c.Root())
		return err
	})
	if !errors.Is(err, outcome.ErrEvicted) {
		t.Errorf("a transaction after the end: %v", err)
	}
	begin := time.Now()
	if err := c.Close(); err != nil || time.Since(begin) > closePatience/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
