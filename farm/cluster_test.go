package farm

import (
	"context"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

func small(machines, replicas int) Config {
	return Config{Machines: machines, Replicas: replicas, RegionBytes: 1 << 20, LogBytes: 1 << 20, MessageBytes: 64 << 10}
}

func open(t *testing.T, cfg Config) *Local {
	t.Helper()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCommitIsSeenByAllMachines(t *testing.T) {
	for _, n := range []int{1, 3} {
		c := open(t, small(n, n))
		for i := range n {
			err := c.Machine(i).Run(context.Background(), func(tx *txn.Tx) error {
				b, err := tx.Write(c.Root())
				if err == nil {
					b[i]++
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, c.Root().Capacity())
		for i := range n {
			if _, err := c.Machine(i).Read(c.Root(), b); err != nil {
				t.Fatal(err)
			}
			for j := range n {
				if b[j] != 1 {
					t.Errorf("machine %d sees %d of machine %d", i, b[j], j)
				}
			}
		}
	}
}

func TestReopenFromFolder(t *testing.T) {
	cfg := small(3, 2)
	cfg.Folder = t.TempDir()
	for i := range 3 {
		c, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Machine(i).Run(context.Background(), func(tx *txn.Tx) error {
			b, err := tx.Write(c.Root())
			if err == nil {
				if int(b[0]) != i {
					t.Errorf("opened for the %dth time, the root object says %d", i, b[0])
				}
				b[0]++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
