package farm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// An evicted machine that does not know it yet does not look anything up in the replicas whose
// primary it was: the others have changed them since (SOSP'15 section 5.2).
func TestLookupAtAnEvictedMachine(t *testing.T) {
	const evicted = rdma.MachineID(2)
	key := []byte("key")
	aFewMembers(t, 7, 4, 3, func(g *members) {
		var table, tree, value region.Ptr
		run := func(m *Member, f func(*txn.Tx) error) {
			if err := m.Transactions().Run(context.Background(), f); err != nil {
				t.Error(err)
			}
		}
		g.at(evicted, func(m *Member) {
			run(m, func(tx *txn.Tx) (err error) {
				if table, err = hash.Create(tx, hash.Config{}, 0); err != nil {
					return err
				}
				tree, err = btree.Create(tx, btree.Config{}, 0)
				return err
			})
			run(m, func(tx *txn.Tx) (err error) {
				if value, _, err = tx.Alloc(8, 0); err != nil {
					return err
				}
				if err := hash.Open(m.Transactions(), table).Put(tx, key, []byte("before")); err != nil {
					return err
				}
				return btree.Open(m.Transactions(), tree).Put(tx, key, value)
			})
		})
		if t.Failed() {
			return
		}
		machine := g.up[evicted].Transactions()
		h, b := hash.Open(machine, table), btree.Open(machine, tree)
		lookups := []func() (bool, error){
			func() (bool, error) { _, ok, err := h.Lookup(key, nil); return ok, err },
			func() (bool, error) { _, ok, err := b.Lookup(key); return ok, err },
			func() (any bool, err error) {
				err = h.LookupMany([][]byte{key, []byte("none")}, func(_ int, _ []byte, ok bool) { any = any || ok })
				return any, err
			},
		}
		g.at(evicted, func(*Member) { // which fills caches
			for _, lookup := range lookups {
				if ok, err := lookup(); !ok || err != nil {
					t.Errorf("lookup: %v, %v", ok, err)
				}
			}
		})
		local := machine.Stats()
		g.both(evicted, g.world.Cut)
		g.goneOnWithout(evicted)
		g.at(0, func(m *Member) {
			run(m, func(tx *txn.Tx) error { return hash.Open(m.Transactions(), table).Put(tx, key, []byte("after")) })
			run(m, func(tx *txn.Tx) error { _, err := btree.Open(m.Transactions(), tree).Delete(tx, key); return err })
		})
		ended := 0
		for _, lookup := range lookups {
			g.world.Machine(evicted).Process().Go(func() {
				if ok, err := lookup(); !errors.Is(err, outcome.ErrEvicted) || ok {
					t.Errorf("lookup at a machine that is evicted: %v, %v", ok, err)
				}
				ended++
			})
		}
		g.world.Outside().Sleep(10 * time.Millisecond)
		g.both(evicted, g.world.Mend)
		g.until("the lookups have ended", func() bool { return ended == len(lookups) })
		if now := machine.Stats(); now.LocalReads == local.LocalReads {
			t.Error("nothing was looked at where it is")
		}
	})
}

// TestLookupManyBeyondEviction: if a machine is evicted in the middle of batched lookups, it does
// not show what it looks up after that. Keys that are not in their first place, here in chains, are
// looked up after the results for others of their group were shown.
func TestLookupManyBeyondEviction(t *testing.T) {
	const evicted = rdma.MachineID(2)
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	aFewMembers(t, 7, 4, 3, func(g *members) {
		const keys = 30
		var anchor region.Ptr
		putAll := func(m *Member, value string) {
			table := hash.Open(m.Transactions(), anchor)
			for i := range keys {
				err := m.Transactions().Run(context.Background(), func(tx *txn.Tx) error {
					return table.Put(tx, key(i), []byte(value))
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		g.at(evicted, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(tx *txn.Tx) (err error) {
				anchor, err = hash.Create(tx, hash.Config{Buckets: 16, Neighbourhood: 2, MaxLoad: 100}, 0)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			putAll(m, "before")
		})
		if t.Failed() {
			return
		}
		table := hash.Open(g.up[evicted].Transactions(), anchor)
		process := g.world.Machine(evicted).Process()
		waiting, ended, shown, goOn := 0, 0, 0, false
		for i := range keys {
			process.Go(func() {
				isFirst := true
				err := table.LookupMany([][]byte{key(i), key(i)}, func(int, []byte, bool) {
					if !isFirst {
						shown++
						return
					}
					isFirst = false
					for waiting++; !goOn; {
						process.Sleep(time.Millisecond)
					}
				})
				if err != nil && !errors.Is(err, outcome.ErrEvicted) {
					t.Errorf("lookups at a machine that is evicted: %v", err)
				}
				ended++
			})
		}
		g.until("all wait", func() bool { return waiting == keys })
		g.both(evicted, g.world.Cut)
		g.goneOnWithout(evicted)
		g.at(0, func(m *Member) { putAll(m, "after") })
		goOn = true
		g.world.Outside().Sleep(10 * time.Millisecond)
		g.both(evicted, g.world.Mend)
		g.until("the lookups have ended", func() bool { return ended == keys })
		if shown == 0 || shown == keys {
			t.Errorf("of %d keys %d were shown", keys, shown)
		}
	})
}
