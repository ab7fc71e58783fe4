package farm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A machine that was evicted and does not know it still writes to the block tables of regions whose
// primary it was. These writes fail, and change nothing.
func TestBlockHeadersOfAnEvictedPrimary(t *testing.T) {
	const evicted = rdma.MachineID(2)
	aFewMembers(t, 3, 4, 3, func(g *members) {
		var id region.ID
		zombie := g.up[evicted]
		g.at(evicted, func(m *Member) {
			tx := m.Transactions().Begin()
			defer tx.Abort()
			p, _, err := tx.Alloc(100, 0)
			if err != nil {
				t.Error(err)
			}
			id = p.Addr.Region()
		})
		g.both(evicted, g.world.Cut)
		g.goneOnWithout(evicted)
		p, _ := g.up[0].Membership().Configuration().Placement(id)
		off, n := g.up[p.Primary].replica(id).Table()
		tables := func() (all [][]byte) {
			for _, x := range p.Replicas() {
				table := make([]byte, n)
				g.up[x].replica(id).Memory().CopyOut(table, off)
				all = append(all, table)
			}
			return all
		}
		before := tables()
		g.both(evicted, g.world.Mend)
		g.at(evicted, func(*Member) {
			if !zombie.txn.IsPrimary(region.MakeAddr(id, 0)) {
				t.Fatal("the machine knows")
			}
			if err := zombie.txn.WriteBackups(&region.Tenure{Region: zombie.replica(id)}, off, make([]byte, n), 0); !errors.Is(err, outcome.ErrEvicted) {
				t.Errorf("got %v", err)
			}
		})
		for i, table := range tables() {
			if !bytes.Equal(table, before[i]) {
				t.Errorf("the block table at machine %d has changed", p.Replicas()[i])
			}
		}
	})
}

// both does something to the links between a machine and all others.
func (g *members) both(id rdma.MachineID, f func(from, to rdma.MachineID)) {
	for other := range g.up {
		if other != id {
			f(id, other)
			f(other, id)
		}
	}
}

// goneOnWithout waits until a machine is no member any more and the others have recovered.
func (g *members) goneOnWithout(id rdma.MachineID) {
	g.Helper()
	g.until("the others have gone on", func() bool {
		_, isMember := g.up[0].Membership().Configuration().Member(id)
		return !isMember && !g.up[0].Membership().Status().Recovering
	})
}
