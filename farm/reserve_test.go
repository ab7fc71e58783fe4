package farm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A machine has its reserve before it waits for others to recover with it: that may take as
// long as one of them is away, and meanwhile the machine may be killed, or its memory be full.
func TestReserveBeforeServing(t *testing.T) {
	aFewMembers(t, 41, 3, 3, func(g *members) {
		for i := range rdma.MachineID(3) {
			g.world.Machine(i).Kill()
		}
		seen := 0
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			if s != recovery.StepDrained {
				return
			}
			names, err := g.world.Machine(id).Memory().Names()
			if err != nil || !slices.Contains(names, reserveName) || len(livesOf(names)) != 2 {
				g.Errorf("machine %d recovers with %v, %v", id, names, err)
			}
			seen++
		}
		for i := range rdma.MachineID(3) {
			g.boot(i)
		}
		g.until("all serve", func() bool { return len(g.up) == 3 && seen >= 3 })
	})
}

// livesOf returns the lives of a machine that have logs among its memories.
func livesOf(names []string) map[string]bool {
	lives := make(map[string]bool)
	for _, n := range names {
		if strings.HasPrefix(n, logPrefix) {
			lives[n[strings.LastIndex(n, "-"):]] = true
		}
	}
	return lives
}

// A reserve takes what there is room for, to the page, and gives back nothing to take more:
// where others use up what is free, it would be less after each life, and nothing at last.
func TestReserveTakesWhatThereIs(t *testing.T) {
	aFewMembers(t, 46, 3, 3, func(g *members) {
		m, machine := g.up[1], g.world.Machine(1)
		g.until("all is recovered", func() bool { return g.whole() && m.settledFor.Load() == uint32(m.txn.Config()) })
		wanted := reserveForLog * int64(3*g.settings.Workers+1)
		has := func(when string, want int64) {
			t.Helper()
			m.keepRoom()
			if got := m.reserve.sizeLocked(); got != want {
				t.Errorf("%s, %d bytes are kept in reserve, want %d", when, got, want)
			}
		}
		has("with room", wanted)
		machine.Fill(0)
		has("with no more room", wanted)
		if err := m.giveBackReserve(); err != nil {
			t.Fatal(err)
		}
		machine.Fill(21)
		has("with room for 21 pages", 21*4096)
		machine.Relieve()
		has("with room again", wanted)
		if _, err := m.memory.Map(logPrefix+"another", 4096); err != nil {
			t.Fatal(err)
		}
		machine.Fill(5)
		has("with another log, and little room", wanted+5*4096)
		machine.Relieve()
		if err := m.memory.Remove(logPrefix + "another"); err != nil {
			t.Fatal(err)
		}
		has("with one log less", wanted)
		if !m.hasRoom() || m.reserve.sizeLocked() != wanted {
			t.Errorf("%d bytes are kept in reserve after a look for room", m.reserve.sizeLocked())
		}
	})
}

// A log that is made later gets the room of the reserve.
func TestReserveGivesWay(t *testing.T) {
	aFewMembers(t, 42, 3, 3, func(g *members) {
		m := g.up[0]
		m.memory = crowded{m.memory}
		mem, err := m.mapReserved("log-test", m.cfg.Settings.LogBytes)
		if err != nil || mem == nil {
			t.Fatalf("%v", err)
		}
		if names, err := m.memory.Names(); err != nil || slices.Contains(names, reserveName) {
			t.Errorf("%v, %v", names, err)
		}
		if _, err := m.mapReserved("log-test-2", m.cfg.Settings.LogBytes); !errors.Is(err, nvram.ErrNoSpace) {
			t.Errorf("%v", err)
		}
	})
}

// crowded memories have room for a log only in place of the reserve, and for one.
type crowded struct{ Memories }

func (c crowded) Map(name string, size int64) (*nvram.Memory, error) {
	names, err := c.Names()
	if err == nil && strings.HasPrefix(name, logPrefix) && (slices.Contains(names, reserveName) || slices.Contains(names, "log-test")) {
		err = nvram.ErrNoSpace
	}
	if err != nil {
		return nil, err
	}
	return c.Memories.Map(name, size)
}

// crampedMember has machine 1 of four, whose memory is full, end its life because there is
// no room for the log of a machine that is new. The others go on without it.
func crampedMember(g *members) {
	g.Helper()
	g.until("all is recovered", func() bool { return g.whole() && g.up[1].settledFor.Load() == uint32(g.up[1].txn.Config()) })
	g.fill(1)
	g.boot(4)
	g.until("the full machine ends its life", func() bool { return g.ended[1] != nil })
	if err := g.ended[1]; !errors.Is(err, membership.ErrRestart) || !errors.Is(err, nvram.ErrNoSpace) {
		g.Errorf("it ends with %v", err)
	}
	g.kill(1)
	g.until("the others go on", func() bool { return g.up[4] != nil && g.whole() })
	g.full = true
}

// fill leaves no room in the memory of a member, not even in place of its reserve.
func (g *members) fill(id rdma.MachineID) {
	g.Helper()
	if err := g.up[id].giveBackReserve(); err != nil {
		g.Fatal(err)
	}
	g.world.Machine(id).Fill(0)
}

// A member that has no room for the log of one that is new begins another life
// itself, so that nobody waits for it, and is let in once there is room for the logs of
// all members. Before that it does not disturb the others. In the end its reserve is as
// large as that of others.
func TestNoRoomForALog(t *testing.T) {
	aFewMembers(t, 43, 4, 3, func(g *members) {
		crampedMember(g)
		g.add(0, 0)
		before, _ := g.store.Load()
		full := g.world.Machine(1)
		full.Fill(0)
		g.boot(1)
		g.until("it does not open", func() bool { return g.ended[1] != nil })
		if now, _ := g.store.Load(); !errors.Is(g.ended[1], nvram.ErrNoSpace) || now.Revision != before.Revision {
			t.Errorf("it ends with %v, in configuration %d after %d", g.ended[1], now.ID, before.ID)
		}
		g.kill(1)
		full.Relieve()
		g.boot(1)
		g.until("all are up", func() bool { return len(g.up) == 5 && g.whole() })
		g.until("all is recovered", func() bool { return g.up[1].settledFor.Load() == uint32(g.up[1].txn.Config()) })
		if got, want := g.up[1].reserve.sizeLocked(), reserveForLog*int64(len(g.up)*g.settings.Workers+1); got != want {
			t.Errorf("%d bytes are kept in reserve, want %d", got, want)
		}
	})
}

// However little room there is, a machine that has ended its life for want of it either
// comes back for good, or does not ask to be let in.
func TestLittleRoomForLogs(t *testing.T) {
	const log = 64 // pages
	for free := 0; free <= 4*log; free += 20 {
		aFewMembers(t, 43, 4, 3, func(g *members) {
			crampedMember(g)
			before, _ := g.store.Load()
			g.world.Machine(1).Fill(free)
			g.boot(1)
			g.until("it opens or does not", func() bool { return g.ended[1] != nil || g.up[1] != nil })
			g.world.Outside().Sleep(time.Second)
			now, _ := g.store.Load()
			switch {
			case g.ended[1] == nil && g.whole():
				t.Logf("with %d pages it opens", free)
			case now.Revision != before.Revision || !errors.Is(g.ended[1], nvram.ErrNoSpace):
				t.Errorf("with %d pages it ends with %v, in configuration %d after %d", free, g.ended[1], now.ID, before.ID)
			}
		})
	}
}

// Nobody waits for a member that has no room to park transactions: it goes on with what it
// has, and parks them once there is room.
func TestNoRoomToPark(t *testing.T) {
	aFewMembers(t, 44, 3, 1, func(g *members) {
		const dead, full = 0, 1
		mine := g.objectOfEach(full)
		if c, _ := g.store.Load(); c.PrimaryOf(dead) == 0 || !g.up[full].txn.IsPrimary(mine.Addr) {
			t.Fatalf("regions %+v, object at %v", c.Regions, mine)
		}
		isSettled := func() bool { c, _ := g.store.Load(); return g.up[full].settledFor.Load() == uint32(c.ID) }
		g.until("all is recovered", isSettled)
		g.fill(full)
		g.kill(dead)
		g.until("a region is unavailable", func() bool { c, _ := g.store.Load(); return len(c.Unavailable()) > 0 })
		g.world.Outside().Sleep(time.Second)
		if g.ended[full] != nil || !isMember(g, full) || isSettled() {
			t.Fatalf("the full member ends with %v, has settled: %v", g.ended[full], isSettled())
		}
		for id := range g.up {
			g.at(id, func(m *Member) {
				if err := m.Transactions().Run(m.ctx, func(tx *txn.Tx) error { _, err := tx.Write(mine); return err }); err != nil {
					t.Errorf("machine %d: %v", id, err)
				}
			})
		}
		g.world.Machine(full).Relieve()
		g.until("it settles", isSettled)
		g.boot(dead)
		g.until("all are up", func() bool { return len(g.up) == 3 && g.whole() })
		g.sees(0, 3)
	})
}

// objectOfEach has each machine change an object, and have one in a region of its own; that of
// one of them is returned.
func (g *members) objectOfEach(of rdma.MachineID) (p region.Ptr) {
	g.Helper()
	for id := range rdma.MachineID(len(g.up)) {
		g.add(id, 0)
		g.at(id, func(m *Member) {
			err := m.Transactions().Run(m.ctx, func(tx *txn.Tx) error {
				own, _, err := tx.Alloc(100, 0)
				if id == of {
					p = own
				}
				return err
			})
			if err != nil {
				g.Error(err)
			}
		})
	}
	return p
}

// hasParked says whether there is memory of transactions that a machine has parked.
func (g *members) hasParked(id rdma.MachineID) bool {
	g.Helper()
	names, err := g.world.Machine(id).Memory().Names()
	if err != nil {
		g.Fatal(err)
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, parkedPrefix) })
}

// A full member parks transactions in place of its reserve, for which it need not have room for
// a log. So the machine that they wait for is let in. Then what was parked goes.
func TestParkInPlaceOfTheReserve(t *testing.T) {
	const dead, full = 0, 1
	g := &members{T: t, world: sim.New(sim.Options{Seed: 45}), logBytes: 4 << 20}
	g.run(3, 1, func(g *members) {
		g.objectOfEach(full)
		g.until("all is recovered", func() bool { return g.whole() && g.up[full].settledFor.Load() == uint32(g.up[full].txn.Config()) })
		g.world.Machine(full).Fill(0)
		g.kill(dead)
		g.until("a region is unavailable", func() bool { c, _ := g.store.Load(); return len(c.Unavailable()) > 0 })
		g.until("the full member settles", func() bool { c, _ := g.store.Load(); return g.up[full].settledFor.Load() == uint32(c.ID) })
		if !g.hasParked(full) {
			t.Error("nothing is parked")
		}
		g.world.Machine(full).Relieve()
		g.boot(dead)
		g.until("all are up", func() bool { return len(g.up) == 3 && g.whole() })
		g.sees(0, 3)
		g.until("what was parked is gone", func() bool { return !g.hasParked(full) })
	})
}
