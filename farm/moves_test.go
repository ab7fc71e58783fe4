package farm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// counters are counters that transactions raise while regions move, each in an object of its
// own, and what they must be in the end.
type counters struct {
	g      *members
	ptrs   []region.Ptr
	counts []uint64
	stops  bool
	going  int
}

// count makes machine id raise counters, and make and free objects, until stop.
func (c *counters) count(id rdma.MachineID) {
	m, p := c.g.up[id], c.g.world.Machine(id).Process()
	c.going++
	p.Go(func() {
		defer func() { c.going-- }()
		for i := 0; !c.stops; i++ {
			if p.Dead() {
				return
			}
			k := (i*7 + int(id)) % len(c.ptrs)
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
				b, err := t.Write(c.ptrs[k])
				if err != nil {
					return err
				}
				b[0]++
				made, _, err := t.Alloc(100, 0)
				if err != nil {
					return err
				}
				return t.Free(made)
			})
			switch {
			case err == nil:
				c.counts[k]++
			case errors.Is(err, outcome.ErrInDoubt), errors.Is(err, outcome.ErrEvicted):
				return
			default:
				c.g.Errorf("machine %d: %v", id, err)
				return
			}
			p.Sleep(time.Millisecond)
		}
	})
}

// begin makes n counters at each machine.
func (c *counters) begin(n int) {
	c.g.Helper()
	for id := range rdma.MachineID(len(c.g.up)) {
		c.g.at(id, func(m *Member) {
			for range n {
				var p region.Ptr
				err := m.Transactions().Run(context.Background(), func(t *txn.Tx) (err error) {
					p, _, err = t.Alloc(7<<10, 0)
					return err
				})
				if err != nil {
					c.g.Errorf("machine %d: %v", id, err)
				}
				c.ptrs, c.counts = append(c.ptrs, p), append(c.counts, 0)
			}
		})
	}
}

// finish stops counting, and checks all counters at all machines, and all replicas.
func (c *counters) finish() {
	c.g.Helper()
	c.stops = true
	c.g.until("nobody counts any more", func() bool { return c.going == 0 })
	var total uint64
	for id := range c.g.up {
		c.g.at(id, func(m *Member) {
			total = 0
			for k, p := range c.ptrs {
				b := make([]byte, p.Capacity())
				if _, err := m.Transactions().Read(p, b); err != nil || b[0] != byte(c.counts[k]) {
					c.g.Errorf("machine %d sees %d at %v, want %d: %v", id, b[0], p, c.counts[k], err)
				}
				total += c.counts[k]
			}
		})
	}
	c.g.Logf("%d commits", total)
	now, _ := c.g.store.Load()
	var up []*Member
	for _, id := range now.Machines {
		up = append(up, c.g.up[id])
	}
	c.g.at(now.Machines[0], func(*Member) {
		defer HoldMoves(up)() // machines that are even may go on to even out their primaries
		whole, err := awaitWhole(context.Background(), up)
		if err != nil {
			c.g.Error(err)
			return
		}
		faults, err := CheckMembers(whole, up, slices.Values(c.ptrs))
		if err != nil || len(faults) > 0 {
			c.g.Errorf("%v, %v", faults, err)
		}
	})
	for id, m := range c.g.up { // any order
		c.g.until(fmt.Sprintf("machine %d has freed what has moved away", id), func() bool { return m.departing() == 0 })
	}
}

// even reports whether no two machines that may have replicas differ by more than one group, or a
// tenth.
func even(c *cluster.Configuration) bool {
	low, high, largest := -1, 0, 1
	groups := make(map[region.ID]int)
	for _, p := range c.Regions {
		groups[p.Group]++
		largest = max(largest, groups[p.Group])
	}
	for _, m := range c.Machines {
		n := 0
		for _, p := range c.Regions {
			if p.Has(m) {
				n++
			}
		}
		if c.IsDraining(m) {
			if n > 0 {
				return false
			}
			continue
		}
		if low < 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	return high-low <= max(largest, high/10)
}

// atRest reports whether everything is whole, nothing moves, and the machines are even.
func (g *members) atRest() bool {
	c, _ := g.store.Load()
	return g.whole() && !g.isMoving() && even(c)
}

// isMoving reports whether a replica moves.
func (g *members) isMoving() bool {
	c, _ := g.store.Load()
	return slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool { return p.Move != nil })
}

// drain drains a machine, or, with undo, takes that back, by a call of another machine.
func (g *members) drain(by, id rdma.MachineID, undo bool) {
	g.Helper()
	g.at(by, func(m *Member) {
		for {
			err := m.Membership().Drain(context.Background(), id, undo)
			if err == nil {
				return
			}
			if !errors.Is(err, cluster.ErrMoved) && g.world.Now() > time.Minute {
				g.Errorf("drain machine %d: %v", id, err)
				return
			}
			g.world.Machine(by).Process().Sleep(time.Millisecond)
		}
	})
}

// An instance grows from one machine to five and shrinks to two, while all machines commit
// transactions: nothing is lost, all replicas are equal, and the regions are even after each step.
func TestGrowAndShrink(t *testing.T) {
	for seed := range uint64(2) {
		aFewMembers(t, seed, 3, 2, func(g *members) {
			c := &counters{g: g}
			c.begin(200)
			for id := range rdma.MachineID(3) {
				c.count(id)
			}
			for id := rdma.MachineID(3); id < 5; id++ {
				g.boot(id)
				g.until(fmt.Sprintf("machine %d has its share", id), func() bool { return g.up[id] != nil && g.atRest() })
				now, _ := g.store.Load()
				if now.PrimaryOf(id) == 0 {
					t.Errorf("machine %d is the primary of no region: %+v", id, now.Regions)
				}
				c.count(id)
			}
			for _, id := range []rdma.MachineID{0, 1, 2} {
				g.drain(4, id, false)
				g.until(fmt.Sprintf("machine %d is drained", id), g.atRest)
			}
			g.drain(3, 1, true)
			g.until("machine 1 has its share again", g.atRest)
			c.finish()
		})
	}
}

// An operator moves replicas by hand, primaries and backups, while all machines commit transactions:
// nothing is lost, all replicas are equal, and they stay where they are.
func TestOrders(t *testing.T) {
	aFewMembers(t, 12, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(50)
		for id := range rdma.MachineID(4) {
			c.count(id)
		}
		for round := range 8 {
			g.until("nothing moves by itself", func() bool { return !g.isMoving() && g.whole() }) // then what is ordered is possible
			now, _ := g.store.Load()
			p := now.Regions[round%len(now.Regions)]
			to := slices.DeleteFunc(slices.Clone(now.Machines), p.Has)[round/4%2]
			o := cluster.Order{Region: p.Region, Move: cluster.Move{From: p.Replicas()[round%2], To: to}}
			by := rdma.MachineID(round % 4)
			g.at(by, func(m *Member) {
				err := m.Membership().Move(context.Background(), o)
				for ; membership.IsPassing(err); err = m.Membership().Move(context.Background(), o) {
					g.world.Machine(by).Process().Sleep(time.Millisecond)
				}
				if err != nil {
					g.Errorf("%+v: %v", o, err)
				}
			})
			g.until("the replica has moved", func() bool {
				now, _ := g.store.Load()
				p, _ := now.Placement(o.Region)
				return p.Move == nil && p.Has(to) && !p.Has(o.From) && g.whole()
			})
		}
		g.until("what moves has moved", g.whole)
		c.finish()
	})
}

// A machine without data can be stopped without leaving a region short, or making anybody wait.
func TestStopOfADrainedMachine(t *testing.T) {
	aFewMembers(t, 6, 4, 3, func(g *members) {
		c := &counters{g: g}
		c.begin(50)
		g.drain(0, 3, false)
		g.until("machine 3 is drained", g.atRest)
		for _, id := range []rdma.MachineID{0, 1, 2} {
			c.count(id)
		}
		g.at(3, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
				p, _, err := t.Alloc(100, 0)
				if err == nil && m.Transactions().IsPrimary(p.Addr) {
					g.Errorf("%v is made at the machine that is to have no data", p)
				}
				return errors.Join(err, t.Free(p))
			})
			if err != nil {
				g.Errorf("an object is made at a machine without data: %v", err)
			}
		})
		before, _ := g.store.Load()
		g.kill(3)
		g.until("the others go on", func() bool { now, _ := g.store.Load(); return len(now.Machines) == 3 })
		now, _ := g.store.Load()
		for i, p := range now.Regions {
			if len(p.Filling) > 0 || p.LastReplicaChange != before.Regions[i].LastReplicaChange {
				t.Errorf("region %d has changed: %+v", p.Region, p)
			}
		}
		c.finish()
	})
}

// A machine without data makes its objects at others also while a configuration is being recovered, in
// which no region is active yet.
func TestDrainedMachineAmongReconfigurations(t *testing.T) {
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(50)
		g.drain(0, 3, false)
		g.until("machine 3 is drained", g.atRest)
		first, _ := g.store.Load()
		m, p := g.up[3], g.world.Machine(3).Process()
		stops, made := false, 0
		p.Go(func() {
			defer func() { stops = false }()
			for ; !stops; made++ {
				err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
					made, _, err := t.Alloc(100, 0)
					if err != nil {
						return err
					}
					return t.Free(made)
				})
				if err != nil {
					g.Errorf("an object is made at a machine without data: %v", err)
					return
				}
				p.Sleep(20 * time.Microsecond)
			}
		})
		for range 20 {
			before, _ := g.store.Load()
			g.at(before.CM, func(m *Member) { m.Membership().Renew() })
			g.until("another configuration", func() bool { now, _ := g.store.Load(); return now.ID > before.ID })
			g.until("everything is whole", g.whole)
		}
		stops = true
		g.until("nothing is made any more", func() bool { return !stops })
		if now, _ := g.store.Load(); now.NextRegion != first.NextRegion || made == 0 {
			t.Errorf("%d objects were made, and regions from %d on: %+v", made, first.NextRegion, now.Regions)
		}
		c.finish()
	})
}

// If one of the other machines has no room, a machine without data makes its objects at those that have.
func TestDrainedMachineBesideAFullOne(t *testing.T) {
	aFewMembers(t, 10, 4, 2, func(g *members) {
		alloc := func(id rdma.MachineID) (err error) {
			g.at(id, func(m *Member) {
				err = m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
					_, _, err := t.Alloc(4000, 0)
					return err
				})
			})
			return err
		}
		for id := range rdma.MachineID(3) {
			if err := alloc(id); err != nil {
				t.Fatal(err)
			}
		}
		g.drain(0, 3, false)
		g.until("machine 3 is drained", g.atRest)
		g.up[0].cfg.Settings.RegionsMax = 1
		for {
			err := alloc(0)
			if errors.Is(err, region.ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		first, _ := g.store.Load()
		for range 20 {
			if err := alloc(3); err != nil {
				t.Error(err)
			}
		}
		if now, _ := g.store.Load(); now.NextRegion != first.NextRegion {
			t.Errorf("regions from %d on were made: %+v", first.NextRegion, now.Regions)
		}
	})
}

// A machine without data makes an array in a region of its own, which then moves away, too.
func TestArrayAtADrainedMachine(t *testing.T) {
	aFewMembers(t, 7, 4, 2, func(g *members) {
		g.drain(0, 3, false)
		g.until("machine 3 is drained", g.atRest)
		var p region.Ptr
		g.at(3, func(m *Member) {
			err := m.Transactions().Run(context.Background(), func(t *txn.Tx) (err error) {
				p, err = t.AllocArray(64, 4, 0)
				return err
			})
			if err != nil {
				g.Error(err)
			}
		})
		g.until("the region has moved away", g.atRest)
		g.at(3, func(m *Member) {
			for i := range 4 {
				if _, err := m.Transactions().Read(p.Element(i), make([]byte, p.Capacity())); err != nil {
					g.Errorf("element %d: %v", i, err)
				}
			}
		})
	})
}

// A life ends with the memory of replicas that have moved away, though nobody has ended epochs since.
func TestDepartedAtClose(t *testing.T) {
	aFewMembers(t, 8, 4, 2, func(g *members) {
		g.add(0, 7)
		g.at(0, func(m *Member) { // an open transaction keeps the epoch, and so the memory
			tx := m.Transactions().Begin()
			defer tx.Abort()
			if err := m.Membership().Drain(context.Background(), 0, false); err != nil {
				g.Error(err)
			}
			for m.departing() == 0 {
				m.clock.Sleep(time.Millisecond)
			}
			m.clock.Sleep(100 * time.Millisecond)
			if m.departing() == 0 {
				g.Error("memory is freed that a transaction may be reading")
			}
		})
		g.at(0, func(m *Member) {
			if err := m.Close(); err != nil || m.departing() > 0 {
				g.Errorf("%d replicas are left: %v", m.departing(), err)
			}
		})
		g.kill(0)
	})
}

// A target that becomes full while it is filled refuses, and the region moves to another machine.
func TestTargetThatBecomesFull(t *testing.T) {
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(40)
		g.drain(1, 0, false)
		var target rdma.MachineID
		g.until("a region is being filled at its target", func() bool {
			now, _ := g.store.Load()
			i := slices.IndexFunc(now.Regions, func(p cluster.Placement) bool { return p.Move != nil })
			if i < 0 {
				return false
			}
			target = now.Regions[i].Move.To
			m := g.up[target]
			m.replicas.Lock()
			defer m.replicas.Unlock()
			return m.read[now.Regions[i].Region] > 0
		})
		g.world.Machine(target).Fill(0)
		g.until("machine 0 has no data", func() bool {
			now, _ := g.store.Load()
			return !slices.ContainsFunc(now.Regions, func(p cluster.Placement) bool { return p.Has(0) || p.Move != nil })
		})
		now, _ := g.store.Load()
		if member, _ := now.Member(target); member.Capacity == 0 {
			t.Errorf("machine %d is full, and has room for %d", target, member.Capacity)
		}
		g.world.Machine(target).Relieve()
		g.until("there is room again", func() bool { now, _ := g.store.Load(); member, _ := now.Member(target); return member.Capacity == 0 })
		c.finish()
	})
}

// A machine gets a region back, empty, that has departed from it. Machines that have not applied the
// configuration yet READ what has departed until the configuration is committed.
func TestReadsOfWhatIsBack(t *testing.T) {
	aFewMembers(t, 10, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(1)
		p := c.ptrs[0]
		id := p.Addr.Region()
		var tx *txn.Tx
		g.at(0, func(m *Member) { tx = m.Transactions().Begin() }) // keeps the epoch, and so the memory
		g.drain(1, 0, false)
		g.until("the region has departed", func() bool {
			now, _ := g.store.Load()
			return g.atRest() && !now.Keeps(0, id) && g.up[0].departing() > 0
		})
		now, _ := g.store.Load()
		reads := func(want bool) {
			t.Helper()
			g.at(2, func(m *Member) {
				b := make([]byte, 8)
				if err := m.txn.ReadReplica(0, id, uint64(p.Addr.Offset()), b); err != nil || slices.Equal(b, make([]byte, 8)) == want {
					t.Errorf("header %x, %v; the object is to be there: %v", b, err, want)
				}
			})
		}
		back, _ := now.Placement(id)
		back.Backups, back.Filling = append(slices.Clone(back.Backups), 0), []rdma.MachineID{0}
		at := func(f func(m *Member) error) {
			t.Helper()
			g.at(0, func(m *Member) {
				if err := f(m); err != nil {
					t.Error(err)
				}
			})
		}
		reads(true)
		at(func(m *Member) error { return m.haveReplica(now.ID+1, back, true) })
		reads(true)
		at(func(m *Member) error { return m.loseReplica(now, id) }) // before it was committed
		reads(true)
		at(func(m *Member) error { return m.haveReplica(now.ID+2, back, true) })
		at(func(m *Member) error { return m.registerReads(now.ID + 1) })
		reads(true)
		at(func(m *Member) error { return m.registerReads(now.ID + 2) })
		reads(false)
		at(func(m *Member) error { return m.loseReplica(now, id) })
		g.at(0, func(*Member) { tx.Abort() })
		g.until("what has departed is freed", func() bool { return g.up[0].departing() == 0 })
	})
}

// What has departed is freed even if recovery takes longer than two epochs, if the message to the CM is
// lost, and if nothing else happens; and no epochs end meanwhile that could not help.
func TestDepartedAreFreedLate(t *testing.T) {
	aFewMembers(t, 11, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(1)
		now, _ := g.store.Load()
		lost, cm := 0, g.up[now.CM]
		cm.endpoint.Handle(kindReclaim, func(call.Peer, []byte) ([]byte, error) { lost++; return nil, nil })
		from := slices.DeleteFunc(slices.Clone(now.Machines), func(m rdma.MachineID) bool { return m == now.CM })[0]
		g.drain(now.CM, from, false)
		g.until("it has asked, and asked again", func() bool { return g.atRest() && g.up[from].departing() > 0 && lost > 2 })
		m := g.up[from]
		m.replicas.Lock()
		for _, d := range m.departed {
			d.in += 100 // recovery is not settled
		}
		m.replicas.Unlock()
		cm.endpoint.Handle(kindReclaim, cm.onReclaim)
		before := m.txn.Epoch()
		g.world.Outside().Sleep(10 * time.Second)
		after := m.txn.Epoch()
		if m.departing() == 0 || after > before+30 { // a few for each time that it asks
			t.Errorf("%d epochs have ended, %d replicas are left", after-before, m.departing())
		}
		m.replicas.Lock()
		for _, d := range m.departed {
			d.in -= 100
			d.epoch = m.txn.Epoch() + 1
		}
		m.replicas.Unlock()
		g.until("all is freed", func() bool { return m.departing() == 0 })
	})
}

// A look at an instance in the middle of moves, or with a machine that is being drained, changes
// nothing, and finds no faults; nor does a check while replicas move.
func TestCheckBesideMoves(t *testing.T) {
	cfg := small(4, 2)
	cfg.Volatile = NewVolatile()
	slow := func(m *MemberConfig) { m.Pace = data.Pace{Bytes: 8 << 10, Interval: 2 * time.Second} }
	held := func(m *MemberConfig) { m.HoldMoves = true }
	var reachable []region.Ptr
	reopen := func(each func(*MemberConfig), f func(l *Local)) {
		t.Helper()
		cfg.Each = each
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		f(l)
		die(t, l)
	}
	check := func(l *Local) {
		t.Helper()
		faults, err := l.Check(t.Context(), slices.Values(reachable))
		if err != nil || len(faults) > 0 {
			t.Errorf("%v, %v", faults, err)
		}
		if err := l.Unowned(t.Context()); err != nil {
			t.Error(err)
		}
	}
	drain := func(l *Local) {
		t.Helper()
		for err := error(membership.ErrRestart); err != nil; {
			if err = l.Member(0).Membership().Drain(t.Context(), 3, false); err != nil && !membership.IsPassing(err) {
				t.Fatal(err)
			}
		}
	}
	isMoving := func(l *Local) bool {
		now, _ := l.store.Load()
		return slices.ContainsFunc(now.Regions, func(p cluster.Placement) bool { return p.Move != nil })
	}
	reopen(held, func(l *Local) {
		for i := range 4 {
			err := l.Machine(i).Run(t.Context(), func(tx *txn.Tx) error {
				for range 30 {
					p, _, err := tx.Alloc(7<<10, 0)
					if err != nil {
						return err
					}
					reachable = append(reachable, p)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		drain(l)
	})
	reopen(held, func(l *Local) {
		check(l)
		if now, _ := l.store.Load(); !now.IsDraining(3) || isMoving(l) {
			t.Errorf("a check of an instance with a machine that is being drained: %+v", now)
		}
	})
	reopen(slow, func(l *Local) {
		for !isMoving(l) {
			time.Sleep(time.Millisecond)
		}
	})
	reopen(held, func(l *Local) {
		before, _ := l.store.Load()
		check(l)
		if now, _ := l.store.Load(); !isMoving(l) || now.ID != before.ID {
			t.Errorf("a check in the middle of a move: configuration %d after %d, %+v", now.ID, before.ID, now.Regions)
		}
	})
	reopen(nil, func(l *Local) {
		for now, _ := l.store.Load(); slices.ContainsFunc(now.Regions, func(p cluster.Placement) bool { return p.Has(3) || p.Move != nil }); now, _ = l.store.Load() {
			check(l)
			time.Sleep(time.Millisecond)
		}
		check(l)
	})
}

// A machine has applied the configuration in which a replica leaves it, and dies with the target before
// anybody can have committed there. Its memory has everything, and is one of those that the region
// waits for.
func TestMemoryBehindAnUnusedMove(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 2 && seed < 20; seed++ {
		aFewMembers(t, seed, 5, 1, func(g *members) {
			c := &counters{g: g}
			c.begin(4)
			now, _ := g.store.Load()
			from := slices.DeleteFunc(slices.Clone(now.Machines), func(m rdma.MachineID) bool { return m == now.CM || now.PrimaryOf(m) == 0 })[0]
			had := now.Regions[slices.IndexFunc(now.Regions, func(p cluster.Placement) bool { return p.Primary == from })].Region
			var target rdma.MachineID
			isOver := false
			g.recovering = func(id rdma.MachineID, s recovery.Step) {
				next, _ := g.store.Load()
				p, _ := next.Placement(had)
				if isOver || id != from || s != recovery.StepApplied || p.Has(from) {
					return
				}
				target, isOver = p.Primary, true
				if target != next.CM {
					g.kill(target)
					g.kill(from)
				}
			}
			g.at(now.CM, func(m *Member) {
				if err := m.Membership().Drain(context.Background(), from, false); err != nil {
					t.Error(err)
				}
			})
			g.until("the replica leaves", func() bool { return isOver })
			if target == now.CM {
				return // it must survive, as it alone knows that nobody has committed
			}
			tried++
			g.until("the others have gone on", func() bool { now, _ := g.store.Load(); return len(now.Machines) == 3 })
			g.isNeeded = true
			g.boot(from)
			g.until("the region is back", func() bool {
				now, _ := g.store.Load()
				return g.up[from] != nil && !slices.Contains(now.Unavailable(), had)
			})
			g.at(from, func(m *Member) {
				for k, p := range c.ptrs {
					if p.Addr.Region() != had {
						continue
					}
					if _, err := m.Transactions().Read(p, make([]byte, p.Capacity())); err != nil {
						t.Errorf("counter %d: %v", k, err)
					}
				}
			})
		})
	}
	if tried == 0 {
		t.Error("all targets were CMs")
	}
}

// What a machine finds of a replica that has departed in an earlier life lacks what was committed since
// the last configuration that was settled then, and is filled from there on.
func TestDepartedIsKeptAsOfThen(t *testing.T) {
	aFewMembers(t, 12, 3, 3, func(g *members) {
		g.add(0, 7)
		now, _ := g.store.Load()
		id := now.Regions[0].Region
		g.until("recovery is settled", func() bool { return g.up[2].settledFor.Load() == uint32(now.ID) })
		g.at(2, func(m *Member) {
			r := m.replica(id)
			m.loseComplete(&cluster.Configuration{ID: now.ID + 2}, id)
			if err := m.removeStrays(&cluster.Configuration{}, m.hasDepartedNamed); err != nil {
				t.Error(err)
			}
			if names, err := m.memory.Names(); err != nil || !slices.Contains(names, regionName(id)) {
				t.Errorf("what has departed has no name before recovery is settled: %v, %v", names, err)
			}
			m.memories.leave(regionName(id), r.Memory()) // as the next life finds it
			s, err := m.keepReplica(id, now.ID+2)
			if err != nil || s.Since() != uint32(now.ID)+1 {
				t.Fatalf("kept as of before %d, %v; settled is %d", s.Since(), err, now.ID)
			}
			m.settling(now.ID + 2)
			if names, err := m.memory.Names(); err != nil || slices.Contains(names, regionName(id)) {
				t.Errorf("what has departed has its name though recovery is settled: %v, %v", names, err)
			}
		})
	})
}

// The target dies just when the replica has left: when the machine that it leaves has applied that, or
// when all have. That machine makes and frees objects of many sizes meanwhile. Nothing is lost, and all
// replicas are equal.
func TestTargetDiesAtTheEnd(t *testing.T) {
	deaths := 0
	defer func() {
		if t.Logf("%d targets have died", deaths); deaths == 0 {
			t.Error("no target has died")
		}
	}()
	for seed := range uint64(6) {
		aFewMembers(t, seed, 4, 3, func(g *members) {
			c := &counters{g: g}
			c.begin(10)
			at := []recovery.Step{recovery.StepApplied, recovery.StepCommitted, recovery.StepAllActive}[seed%3]
			last, _ := g.store.Load()
			dead := false
			g.recovering = func(id rdma.MachineID, s recovery.Step) {
				next, _ := g.store.Load()
				if next.ID == last.ID || dead {
					return
				}
				was := last
				if id == 0 && s == at {
					last = next
				}
				for _, p := range was.Regions {
					now, _ := next.Placement(p.Region)
					if p.Move != nil && now.Move == nil && !now.Has(0) && id == 0 && s == at && p.Move.To != next.CM && !dead {
						dead = true
						deaths++
						g.kill(p.Move.To)
					}
				}
			}
			c.count(0)
			c.churn(0)
			g.drain(0, 0, false)
			g.until("the target has died, or all have moved", func() bool { return dead || g.atRest() })
			g.drain(0, 0, true)
			g.until("the region is whole again", func() bool { return g.whole() || len(g.up) == 3 && g.filled() })
			c.finish()
		})
	}
}

// filled reports whether nothing is being filled, and all transactions are recovered.
func (g *members) filled() bool {
	c, _ := g.store.Load()
	for _, m := range g.up { // any order
		if m.settledFor.Load() != uint32(c.ID) {
			return false
		}
	}
	return len(c.Machines) == len(g.up) && !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool { return len(p.Filling) > 0 || !p.IsAvailable() })
}

// churn makes a machine make and free objects of many sizes, until stop, so that it makes slabs and
// gives them back.
func (c *counters) churn(id rdma.MachineID) {
	m, p := c.g.up[id], c.g.world.Machine(id).Process()
	c.going++
	p.Go(func() {
		defer func() { c.going-- }()
		for i := 0; !c.stops && !p.Dead(); i++ {
			var made region.Ptr
			size := 64 << (i % 8)
			step := func(f func(t *txn.Tx) error) {
				err := m.Transactions().Run(context.Background(), f)
				if err != nil && !errors.Is(err, outcome.ErrInDoubt) && !errors.Is(err, outcome.ErrEvicted) {
					c.g.Errorf("machine %d: %d bytes: %v", id, size, err)
				}
			}
			step(func(t *txn.Tx) (err error) { made, _, err = t.Alloc(size, 0); return err })
			step(func(t *txn.Tx) error { return t.Free(made) })
			p.Sleep(500 * time.Microsecond)
		}
	})
}
