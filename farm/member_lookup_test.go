package farm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A machine that the others have given up, and that does not know it, looks up
// nothing in the replicas of which it was the primary: the others have changed
// them since (SOSP'15 section 5.2).
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
		for id := range rdma.MachineID(4) {
			g.world.Cut(id, evicted)
			g.world.Cut(evicted, id)
		}
		g.until("the others have gone on", func() bool {
			c := g.up[0].Membership().Configuration()
			_, isMember := c.Member(evicted)
			return !isMember
		})
		g.at(0, func(m *Member) {
			run(m, func(tx *txn.Tx) error { return hash.Open(m.Transactions(), table).Put(tx, key, []byte("after")) })
			run(m, func(tx *txn.Tx) error { _, err := btree.Open(m.Transactions(), tree).Delete(tx, key); return err })
		})
		ended := 0
		for _, lookup := range lookups {
			g.world.Machine(evicted).Process().Go(func() {
				if ok, err := lookup(); !errors.Is(err, txn.ErrEvicted) || ok {
					t.Errorf("lookup at a machine that is evicted: %v, %v", ok, err)
				}
				ended++
			})
		}
		g.world.Outside().Sleep(10 * time.Millisecond)
		for id := range rdma.MachineID(4) {
			g.world.Mend(id, evicted)
			g.world.Mend(evicted, id)
		}
		g.until("the lookups have ended", func() bool { return ended == len(lookups) })
		if now := machine.Stats(); now.LocalReads == local.LocalReads {
			t.Error("nothing was looked at where it is")
		}
	})
}
