package farm

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// This file has claims of SOSP'15 section 5 that take whole machines to show.

// TestPaper5_WholeClusterLosesPower: committed transactions survive even if the entire
// cluster loses power, in the middle of others: from regions and logs.
func TestPaper5_WholeClusterLosesPower(t *testing.T) {
	for seed := uint64(1); seed < 5; seed++ {
		aFewMembers(t, seed, 3, 3, func(g *members) {
			begun, committed := 0, 0
			for i := range 3 {
				m := g.up[rdma.MachineID(i)]
				g.world.Machine(m.id).Process().Go(func() {
					for {
						begun++
						if err := increment(m, 7); err != nil {
							g.Errorf("machine %d: %v", m.id, err)
							return
						}
						committed++
					}
				})
			}
			g.until("some have committed", func() bool { return committed >= 20 })
			g.world.PowerCut(nil)
			clear(g.up)
			for i := range 3 {
				g.boot(rdma.MachineID(i))
			}
			g.until("all are up again", func() bool { return len(g.up) == 3 })
			value := g.value(0, 7)
			if int(value) < committed || int(value) > begun {
				t.Errorf("seed %d: %d after %d of %d were acknowledged", seed, value, committed, begun)
			}
			g.add(2, 7)
			g.sees(7, value+1)
		})
	}
}

// TestPaper5_OnlyTheMajorityGoesOn: of a partition, only the part with the majority goes on. The
// other part reports none of its commits in progress, neither before nor after the network is whole
// again.
func TestPaper5_OnlyTheMajorityGoesOn(t *testing.T) {
	aFewMembers(t, 6, 5, 3, func(g *members) {
		g.add(0, 7)
		c, _ := g.store.Load()
		small := []rdma.MachineID{c.CM, c.Regions[0].Primary}
		if small[0] == small[1] {
			small[1] = c.Regions[0].Backups[0]
		}
		large := slices.DeleteFunc(slices.Clone(c.Machines), func(m rdma.MachineID) bool { return slices.Contains(small, m) })
		each := func(f func(from, to rdma.MachineID)) {
			for _, a := range small {
				for _, b := range large {
					f(a, b)
					f(b, a)
				}
			}
		}
		each(g.world.Cut)
		var ended []error
		for _, id := range small {
			m := g.up[id]
			g.world.Machine(id).Process().Go(func() { ended = append(ended, increment(m, 7)) })
		}
		for _, id := range large {
			g.add(id, 7)
		}
		if len(ended) > 0 {
			t.Errorf("without a majority: %v", ended)
		}
		each(g.world.Mend)
		g.until("the smaller part has given up", func() bool { return len(ended) == len(small) })
		for _, err := range ended {
			if !errors.Is(err, outcome.ErrInDoubt) && !errors.Is(err, outcome.ErrEvicted) {
				t.Errorf("evicted: %v", err)
			}
		}
		for _, id := range small {
			delete(g.up, id)
		}
		g.sees(7, 4)
	})
}

// increment adds one to a byte of the root object.
func increment(m *Member, at int) error {
	return m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
		b, err := t.Write(m.Root())
		if err == nil {
			b[at]++
		}
		return err
	})
}

// value returns a byte of the root object, as a machine sees it.
func (g *members) value(id rdma.MachineID, at int) (v byte) {
	g.Helper()
	g.at(id, func(m *Member) {
		b := make([]byte, m.Root().Capacity())
		if _, err := m.Transactions().Read(m.Root(), b); err != nil {
			g.Errorf("machine %d: %v", id, err)
		}
		v = b[at]
	})
	return v
}

// object makes an object in a region whose primary is at the machine.
func (g *members) object(id rdma.MachineID) (p region.Ptr) {
	g.Helper()
	g.at(id, func(m *Member) {
		err := m.Transactions().Run(context.Background(), func(t *txn.Tx) (err error) {
			p, _, err = t.Alloc(100, 0)
			return err
		})
		if err != nil {
			g.Errorf("machine %d: %v", id, err)
		}
	})
	return p
}

func write(m *Member, p region.Ptr) error {
	return m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
		b, err := t.Write(p)
		if err == nil {
			b[0]++
		}
		return err
	})
}

// TestPaper5_2_WhoNeedsTheSuspectedWaits: the paper blocks clients from the suspicion on. Here
// (membership.Host, Freeze) an operation that needs the suspected machine waits until the next
// configuration replaces it; other operations go on until then.
func TestPaper5_2_WhoNeedsTheSuspectedWaits(t *testing.T) {
	aFewMembers(t, 2, 5, 2, func(g *members) {
		before, _ := g.store.Load()
		client := before.CM
		var objects []region.Ptr
		for _, id := range before.Machines {
			objects = append(objects, g.object(id))
		}
		before, _ = g.store.Load()
		placement := func(p region.Ptr) cluster.Placement {
			at, _ := before.Placement(p.Addr.Region())
			return at
		}
		mine := objects[slices.Index(before.Machines, client)]
		suspect := before.Machines[slices.IndexFunc(before.Machines, func(m rdma.MachineID) bool { return !placement(mine).Has(m) })]
		its := objects[slices.Index(before.Machines, suspect)]
		if placement(its).Primary != suspect || placement(mine).Has(suspect) {
			t.Fatalf("regions %+v", before.Regions)
		}

		g.kill(suspect)
		m := g.up[client]
		waits, reached := false, 0
		g.storing = func(next *cluster.Configuration) {
			if next.ID == before.ID {
				return
			}
			g.storing = nil
			reached++
			if s := m.Membership().Status(); !slices.Contains(s.Suspects, suspect) {
				t.Errorf("suspects %v", s.Suspects)
			}
			if err := write(m, mine); err != nil || m.txn.Config() != before.ID {
				t.Errorf("needs no suspect: configuration %d, %v", m.txn.Config(), err)
			}
			g.world.Machine(client).Process().Sleep(5 * time.Millisecond)
			if !waits {
				t.Error("what needs the suspect has ended before there is a new configuration")
			}
		}
		g.at(client, func(*Member) {
			waits = true
			if err := write(m, its); err != nil || m.txn.Config() == before.ID {
				t.Errorf("needs the suspect: configuration %d, %v", m.txn.Config(), err)
			}
			waits = false
		})
		if reached != 1 {
			t.Error("the configuration has not changed")
		}
	})
}

// TestPaper5_2_RepliesOfTheEvictedAreIgnored: from NEW-CONFIG on, a machine ignores pending READs
// and WRITEs to machines that are not in the configuration: it uses neither the data nor the
// acknowledgements, although they arrive, because the evicted machine's memory can be read and
// written all the time.
func TestPaper5_2_RepliesOfTheEvictedAreIgnored(t *testing.T) {
	const evicted = rdma.MachineID(3)
	aFewMembers(t, 9, 5, 3, func(g *members) {
		theirs := g.object(evicted)
		c, _ := g.store.Load()
		p, _ := c.Placement(theirs.Addr.Region())
		backedUp := g.object(p.Backups[0])
		for c, _ = g.store.Load(); ; c, _ = g.store.Load() { // one that the evicted machine backs up
			q, _ := c.Placement(backedUp.Addr.Region())
			if q.Has(evicted) {
				break
			}
			backedUp = g.object((q.Primary + 1) % 5)
		}
		q, _ := c.Placement(backedUp.Addr.Region())
		at := func(x rdma.MachineID) bool { return x != evicted && !p.Has(x) && !q.Has(x) }
		reader := c.Machines[max(0, slices.IndexFunc(c.Machines, at))]
		m, process := g.up[reader], g.world.Machine(reader).Process()
		if q.Primary == evicted || p.Primary != evicted || !at(reader) {
			t.Fatalf("reader %d, regions %+v", reader, c.Regions)
		}

		const late = 400 * time.Millisecond
		g.world.Machine(evicted).Pause(time.Second)
		g.world.Spike(evicted, reader, time.Second, late)
		caught := 0
		g.recovering = func(at rdma.MachineID, s recovery.Step) {
			if at == reader && s == recovery.StepDrained {
				caught = len(m.txn.Caught())
			}
		}
		hasRead, hasWritten := false, false
		b := make([]byte, theirs.Capacity())
		process.Go(func() {
			if _, err := m.Transactions().Read(theirs, b); err != nil {
				t.Error(err)
			}
			hasRead = true
		})
		process.Go(func() {
			if err := write(m, backedUp); err != nil {
				t.Error(err)
			}
			hasWritten = true
		})
		g.until("the machine is evicted", func() bool {
			_, isMember := m.Membership().Configuration().Member(evicted)
			return !isMember && !m.Membership().Status().Recovering
		})
		g.at(q.Primary, func(m *Member) {
			if err := write(m, theirs); err != nil {
				t.Error(err)
			}
		})
		if hasRead {
			t.Error("the READ has ended too early for this test")
		}
		g.until("what was under way has ended", func() bool { return hasRead && hasWritten })
		if b[0] != 1 {
			t.Error("what the evicted machine had was believed")
		}
		if caught != 1 {
			t.Errorf("%d commits were left to recovery", caught)
		}
	})
}

// TestPaper5_4_StartsAfterAllRegionsAreActive: recovery of data (section 5.4) and of
// free lists (5.5) begins when all regions are active, everywhere: one machine
// that is late holds up both at all others.
func TestPaper5_4_StartsAfterAllRegionsAreActive(t *testing.T) {
	membersAtPace(t, data.Aggressive, 7, 5, 3, func(g *members) {
		var objects []region.Ptr
		for i := range 5 {
			objects = append(objects, g.object(rdma.MachineID(i)))
		}
		c, _ := g.store.Load()
		dead := (c.CM + 1) % 5
		lost := objects[dead].Addr.Region()
		p, _ := c.Placement(lost)
		if p.Primary != dead {
			t.Fatalf("regions %+v", c.Regions)
		}
		g.until("the objects are at the backups", func() bool { // truncation brings them
			return g.up[p.Backups[0]].replica(lost).Header(objects[dead].Addr.Offset()).Allocated() &&
				g.up[p.Backups[1]].replica(lost).Header(objects[dead].Addr.Offset()).Allocated()
		})
		checked := false
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			before, _ := g.store.Load()
			p, _ := before.Placement(lost)
			if p.Has(dead) || p.Has(id) || s != recovery.StepActive || checked {
				return // it is the one machine without a replica that is late
			}
			checked = true
			g.world.Machine(id).Process().Sleep(time.Second)
			primary := g.up[p.Primary]
			if !primary.allocator.Has(lost) || !primary.allocator.Scan(0) {
				t.Error("free lists are complete before all regions are active")
			}
			if len(p.Filling) != 1 || g.up[p.Filling[0]].replica(lost).Header(objects[dead].Addr.Offset()).Allocated() {
				t.Errorf("copied to %v before all regions were active", p.Filling)
			}
		}
		g.kill(dead)
		g.until("the regions are whole", func() bool { return checked && g.whole() })
		c, _ = g.store.Load()
		p, _ = c.Placement(lost)
		g.until("free lists are complete", func() bool { return !g.up[p.Primary].allocator.Scan(0) })
	})
}
