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
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
)

// resize asks a machine for another number of replicas.
func (g *members) resize(by rdma.MachineID, replicas int) {
	g.Helper()
	g.at(by, func(m *Member) {
		err := m.Membership().Resize(context.Background(), replicas)
		for ; membership.IsPassing(err); err = m.Membership().Resize(context.Background(), replicas) {
			g.world.Machine(by).Process().Sleep(time.Millisecond)
		}
		if err != nil {
			g.Errorf("%d replicas: %v", replicas, err)
		}
	})
}

// isResized reports whether all regions have n replicas, and everything is whole.
func (g *members) isResized(n int) bool {
	c, _ := g.store.Load()
	return g.whole() && !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool { return p.Had != 0 || len(p.Replicas()) != n })
}

// The number of replicas grows and shrinks while all machines commit transactions, and make and free objects: nothing
// is lost, and all replicas are equal.
func TestResize(t *testing.T) {
	for seed := range uint64(2) {
		aFewMembers(t, 20+seed, 4, 1, func(g *members) {
			c := &counters{g: g}
			c.begin(80)
			for id := range rdma.MachineID(4) {
				c.count(id)
			}
			c.churn(rdma.MachineID(seed))
			for _, n := range []int{2, 3, 1, 4, 2} {
				g.resize(rdma.MachineID(n-1), n)
				g.until(fmt.Sprintf("all regions have %d replicas", n), func() bool { return g.isResized(n) })
			}
			c.finish()
		})
	}
}

// Machines fail while regions grow and shrink, the CM among them, and in the end all restart at once in the middle.
func TestFailuresDuringAResize(t *testing.T) {
	for seed := range uint64(4) {
		aFewMembers(t, 30+seed, 5, 2, func(g *members) {
			c := &counters{g: g}
			c.begin(30)
			for id := range rdma.MachineID(3) {
				c.count(id)
			}
			for round, n := range []int{3, 2, 4, 3} { // with one a failure makes regions unavailable, and counters wait
				g.resize(rdma.MachineID(round%3), n)
				g.world.Outside().Sleep(time.Duration(seed) * 700 * time.Microsecond)
				victim := rdma.MachineID(3 + round%2) // nobody counts there
				g.kill(victim)
				g.until("the others have gone on", func() bool { now, _ := g.store.Load(); return len(now.Machines) == 4 })
				g.boot(victim)
				g.until(fmt.Sprintf("all regions have %d replicas", n), func() bool { return g.up[victim] != nil && g.isResized(n) })
			}
			c.stops = true
			g.until("nobody counts any more", func() bool { return c.going == 0 })
			g.resize(0, []int{2, 4}[seed%2])
			g.world.Outside().Sleep(time.Duration(seed) * 300 * time.Microsecond)
			for id := range rdma.MachineID(5) {
				g.kill(id)
			}
			for id := range rdma.MachineID(5) {
				g.boot(id)
			}
			g.until("all are back, and the regions have the new number", func() bool { return len(g.up) == 5 && g.isResized([]int{2, 4}[seed%2]) })
			c.finish()
		})
	}
}

// isGrowing reports whether a region has more replicas than before a resize that goes on for it.
func isGrowing(p cluster.Placement) bool { return p.Had != 0 && len(p.Replicas()) > p.Had }

// beingFilled waits until a region is being filled where it grows, and returns the machine.
func (g *members) beingFilled() (target rdma.MachineID) {
	g.until("a region is being filled where it grows", func() bool {
		now, _ := g.store.Load()
		i := slices.IndexFunc(now.Regions, isGrowing)
		if i < 0 || len(now.Regions[i].Filling) == 0 {
			return false
		}
		target = now.Regions[i].Filling[0]
		m := g.up[target]
		if m == nil {
			return false
		}
		m.replicas.Lock()
		defer m.replicas.Unlock()
		return m.read[now.Regions[i].Region] > 0
	})
	return target
}

// If the former number is asked for while a region is being filled, and its machine becomes full, the machine gives up what
// nobody needs any more: nothing waits for it.
func TestTakenBackWhileTheTargetIsFull(t *testing.T) { resizesWhileTheTargetIsFull(t, 2) }

// So it does if more replicas are asked for once again meanwhile: the regions then grow elsewhere.
func TestAskedForAgainWhileTheTargetIsFull(t *testing.T) { resizesWhileTheTargetIsFull(t, 2, 3) }

// resizesWhileTheTargetIsFull asks for three replicas in place of two, and for other numbers once a machine that is being
// filled has become full; regions get the last.
func resizesWhileTheTargetIsFull(t *testing.T, then ...int) {
	t.Helper()
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(40)
		g.resize(1, 3)
		target := g.beingFilled()
		g.world.Machine(target).Fill(0)
		for _, n := range then {
			g.resize(1, n)
		}
		last := then[len(then)-1]
		g.until(fmt.Sprintf("all regions have %d replicas", last), func() bool { return g.isResized(last) })
		g.world.Machine(target).Relieve()
		c.finish()
	})
}

// Regions that are unavailable do not keep the others from growing: these may be lost next. When the machine is back with
// its memory, its regions grow, too.
func TestGrowthBesideUnavailableRegions(t *testing.T) {
	aFewMembers(t, 41, 4, 1, func(g *members) {
		c := &counters{g: g}
		c.begin(20)
		g.kill(3)
		g.until("the others go on, without some regions", func() bool {
			now, _ := g.store.Load()
			return len(now.Machines) == 3 && len(now.Unavailable()) > 0
		})
		g.resize(1, 2)
		g.until("all other regions have 2 replicas", func() bool {
			now, _ := g.store.Load()
			isShort := func(p cluster.Placement) bool { return p.IsAvailable() && (len(p.Backups) != 1 || len(p.Filling) > 0) }
			return len(now.Unavailable()) > 0 && !slices.ContainsFunc(now.Regions, isShort)
		})
		g.boot(3)
		g.until("all regions have 2 replicas", func() bool { return len(g.up) == 4 && g.isResized(2) })
		c.finish()
	})
}

// A machine that fails while a region grows there, and is back, goes on with what it has copied.
func TestGrowthGoesOnWhenTheTargetIsBack(t *testing.T) {
	aFewMembers(t, 43, 3, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(40)
		g.resize(1, 3)
		target := g.beingFilled()
		g.kill(target)
		g.until("the others go on", func() bool {
			now, _ := g.store.Load()
			return len(now.Machines) == 2
		})
		g.boot(target)
		g.until("a region grows there again, with what was copied", func() bool {
			now, _ := g.store.Load()
			return slices.ContainsFunc(now.Regions, func(p cluster.Placement) bool { return isGrowing(p) && slices.Contains(p.Kept, target) })
		})
		g.until("all regions have 3 replicas", func() bool { return len(g.up) == 3 && g.isResized(3) })
		c.finish()
	})
}

// A machine that becomes full while a region grows there refuses it. The region has what it had, grows at another
// machine, and nothing else waits for the full one.
func TestGrowthThatFindsNoRoom(t *testing.T) {
	aFewMembers(t, 9, 4, 2, func(g *members) {
		c := &counters{g: g}
		c.begin(40)
		g.resize(1, 3)
		target := g.beingFilled()
		g.world.Machine(target).Fill(0)
		g.until("the machine has refused", func() bool {
			now, _ := g.store.Load()
			member, _ := now.Member(target)
			return member.Capacity != 0
		})
		g.world.Machine(target).Relieve()
		g.until("all regions have 3 replicas", func() bool { return g.isResized(3) })
		c.finish()
	})
}

// A backup's machine has applied the configuration in which the backup leaves it, and dies with the primary before
// anybody can have committed there. Its memory has everything, and is one of those that the region waits for.
func TestMemoryBehindAnUnusedResize(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 2 && seed < 20; seed++ {
		aFewMembers(t, seed, 5, 2, func(g *members) {
			c := &counters{g: g}
			c.begin(4)
			now, _ := g.store.Load()
			at := slices.IndexFunc(now.Regions, func(p cluster.Placement) bool { return !p.Has(now.CM) })
			if at < 0 {
				return // the CM must survive, as it alone knows that nobody has committed
			}
			had := now.Regions[at]
			isOver := false
			g.recovering = func(id rdma.MachineID, s recovery.Step) {
				next, _ := g.store.Load()
				p, _ := next.Placement(had.Region)
				if isOver || id != had.Backups[0] || s != recovery.StepApplied || p.Has(id) {
					return
				}
				isOver = true
				g.kill(had.Primary)
				g.kill(id)
			}
			g.resize(now.CM, 1)
			g.until("the replica leaves", func() bool { return isOver })
			tried++
			g.until("the others have gone on", func() bool { now, _ := g.store.Load(); return len(now.Machines) == 3 })
			g.isNeeded = true
			g.boot(had.Backups[0])
			g.until("the region is back", func() bool {
				now, _ := g.store.Load()
				return g.up[had.Backups[0]] != nil && !slices.Contains(now.Unavailable(), had.Region)
			})
			g.at(had.Backups[0], func(m *Member) {
				for k, p := range c.ptrs {
					if p.Addr.Region() != had.Region {
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
		t.Error("the CM has had a replica of every region")
	}
}

// Whoever asks for a number of replicas that the instance cannot have is told so.
func TestResizeRefused(t *testing.T) {
	aFewMembers(t, 3, 3, 2, func(g *members) {
		g.add(0, 7)
		for _, n := range []int{-1, 0, 4, 70000} {
			g.at(1, func(m *Member) {
				if err := m.Membership().Resize(context.Background(), n); !errors.Is(err, cluster.ErrCannotResize) {
					t.Errorf("%d replicas: %v", n, err)
				}
			})
		}
	})
}
