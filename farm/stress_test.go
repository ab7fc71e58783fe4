package farm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// shapes are the instances that the tests of this file run on: the number of
// machines and replicas decides which messages are sent at all, and an
// asynchronous network makes every operation wait for its completion.
var shapes = []struct {
	machines, replicas int
	async              bool
}{{1, 1, false}, {2, 1, false}, {3, 3, false}, {3, 2, false}, {3, 3, true}, {2, 1, true}}

func eachShape(t *testing.T, f func(t *testing.T, cfg Config)) {
	for _, s := range shapes {
		t.Run(fmt.Sprintf("machines=%d,replicas=%d,async=%v", s.machines, s.replicas, s.async), func(t *testing.T) {
			cfg := small(s.machines, s.replicas)
			cfg.Network = local.Options{Async: s.async}
			f(t, cfg)
		})
	}
}

// accounts makes n objects with 8 bytes of balance each, spread over the
// machines.
func accounts(t *testing.T, c *Local, n int, balance uint64) []region.Ptr {
	var ptrs []region.Ptr
	for i := range n {
		p, err := account(c.Machine(i%c.Machines()), balance)
		if err != nil {
			t.Fatal(err)
		}
		ptrs = append(ptrs, p)
	}
	return ptrs
}

// account makes an account.
func account(m *txn.Machine, balance uint64) (p region.Ptr, err error) {
	err = m.Run(context.Background(), func(tx *txn.Tx) error {
		var b []byte
		if p, b, err = tx.Alloc(100, 0); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b, balance)
		return nil
	})
	return p, err
}

func TestTransfersKeepTheTotal(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg Config) {
		c := open(t, cfg)
		const n, balance, rounds = 10, 1000, 300
		ptrs := accounts(t, c, n, balance)
		var wg sync.WaitGroup
		for g := range 2 * c.Machines() {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(g)))
				m := c.Machine(g % c.Machines())
				for range rounds {
					if err := transfer(context.Background(), m, ptrs, rng); err != nil {
						t.Error(err)
						return
					}
					if err := checkTotal(m, ptrs, n*balance); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		checkReplicas(t, c, ptrs)
	})
}

func transfer(ctx context.Context, m *txn.Machine, ptrs []region.Ptr, rng *rand.Rand) error {
	from, to := rng.IntN(len(ptrs)), rng.IntN(len(ptrs))
	return m.Run(ctx, func(tx *txn.Tx) error {
		a, err := tx.Write(ptrs[from])
		if err != nil {
			return err
		}
		if from == to || binary.LittleEndian.Uint64(a) == 0 {
			return nil
		}
		b, err := tx.Write(ptrs[to])
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(a, binary.LittleEndian.Uint64(a)-1)
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+1)
		return nil
	})
}

func checkTotal(m *txn.Machine, ptrs []region.Ptr, want uint64) error {
	var total uint64
	err := m.Run(context.Background(), func(tx *txn.Tx) error {
		total = 0
		for _, p := range ptrs {
			b, err := tx.Read(p)
			if err != nil {
				return err
			}
			total += binary.LittleEndian.Uint64(b)
		}
		return nil
	})
	if err == nil && total != want {
		err = fmt.Errorf("total is %d, want %d", total, want)
	}
	return err
}

// checkReplicas checks everything there is, given the objects in use.
func checkReplicas(t *testing.T, c *Local, inUse []region.Ptr) {
	t.Helper()
	faults, err := c.Check(context.Background(), slices.Values(inUse))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestObjectsComeAndGo(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg Config) {
		c := open(t, cfg)
		var wg sync.WaitGroup
		inUse := make([][]region.Ptr, c.Machines())
		for g := range c.Machines() {
			wg.Go(func() { inUse[g] = churn(t, c, g) })
		}
		wg.Wait()
		checkReplicas(t, c, slices.Concat(inUse...))
	})
}

// churn allocates and frees objects, each in a region of a random machine, and
// returns those that are left.
func churn(t *testing.T, c *Local, g int) []region.Ptr {
	rng := rand.New(rand.NewPCG(2, uint64(g)))
	m := c.Machine(g)
	var mine []region.Ptr
	for i := range 200 {
		var made region.Ptr
		freed := -1
		err := m.Run(context.Background(), func(tx *txn.Tx) error {
			hint := region.Addr(0)
			if len(mine) > 0 {
				hint = mine[rng.IntN(len(mine))].Addr
			}
			p, b, err := tx.Alloc(40+rng.IntN(400), hint)
			if err != nil {
				return err
			}
			b[0], made = byte(i), p
			if freed = -1; len(mine) > 20 {
				freed = rng.IntN(len(mine))
				return tx.Free(mine[freed])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
			return nil
		}
		if freed >= 0 {
			buf := make([]byte, mine[freed].Capacity())
			if _, err := m.Read(mine[freed], buf); !errors.Is(err, region.ErrFreed) {
				t.Errorf("freed object %v reads as %v", mine[freed], err)
			}
			mine[freed] = made
		} else {
			mine = append(mine, made)
		}
	}
	return mine
}
