package farm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
)

// An older copy of a machine's memory takes the place of the latest memory: while the others go on,
// and when all machines are down. It does not count as a full replica.
func TestOldCopyOfAMemory(t *testing.T) {
	for _, all := range []bool{false, true} {
		keepReplicas(t, 51, func(k *keeping) {
			k.kill(1)
			k.awaitMembers(2)
			older := k.world.Machine(1).Copy()
			k.back(1)
			k.until("all is whole", k.whole)
			k.change(0, 50)
			down := []rdma.MachineID{1}
			if all {
				down = []rdma.MachineID{0, 1, 2}
			}
			for _, id := range down {
				k.kill(id)
			}
			k.world.Machine(1).Restore(older)
			if !all {
				k.awaitMembers(2)
			}
			clear(k.pieces)
			k.back(down...)
			k.until("machine 1 is filled", func() bool { return k.up[1] != nil && k.pieces[1] > 0 && k.filled() })
		})
	}
}

// A machine that alone has a region is refused with an older copy of its memory, and admitted with
// the latest.
func TestOldCopyIsNotWhatIsAwaited(t *testing.T) {
	aFewMembers(t, 52, 3, 1, func(g *members) {
		c, _ := g.store.Load()
		p, _ := c.Placement(c.Root.Addr.Region())
		id := p.Primary
		restart := func() {
			g.kill(id)
			g.until("the others go on", func() bool { c, _ := g.store.Load(); return len(c.Machines) == 2 })
		}
		back := func() {
			g.boot(id)
			g.until("it is back", func() bool { return g.up[id] != nil && g.whole() })
		}
		restart()
		older := g.world.Machine(id).Copy()
		back()
		g.add(id, 3)
		restart()
		last := g.world.Machine(id).Copy()
		g.world.Machine(id).Restore(older)
		g.isNeeded = true
		g.boot(id)
		g.until("it is refused", func() bool { return g.ended[id] != nil })
		if err := g.ended[id]; !errors.Is(err, membership.ErrNeeded) || !strings.Contains(err.Error(), "older copy") {
			t.Errorf("%v", err)
		}
		g.kill(id)
		g.world.Machine(id).Restore(last)
		back()
		g.sees(3, 1)
	})
}

// The last CM comes back with an older copy of what it alone has, after all were down. It
// does not lead the meeting, and the others go on.
func TestOldCopyAtTheLastCM(t *testing.T) {
	aFewMembers(t, 55, 3, 1, func(g *members) {
		leave := func(id rdma.MachineID) {
			g.kill(id)
			g.until("the others go on", func() bool { c, _ := g.store.Load(); return len(c.Machines) == 2 && g.whole() })
		}
		back := func(id rdma.MachineID) {
			g.boot(id)
			g.until("it is back", func() bool { return g.up[id] != nil && g.whole() })
		}
		c, _ := g.store.Load()
		p, _ := c.Placement(c.Root.Addr.Region())
		id := p.Primary
		leave(id)
		older := g.world.Machine(id).Copy()
		back(id)
		for c, _ = g.store.Load(); c.CM != id; c, _ = g.store.Load() { // until it is the CM
			cm := c.CM
			leave(cm)
			back(cm)
		}
		other, third := (id+1)%3, (id+2)%3
		leave(third)
		g.isNeeded = true
		g.kill(id)
		g.kill(other)
		g.world.Machine(id).Restore(older)
		g.boot(id)
		g.boot(other)
		g.until("the copy is refused", func() bool { return g.ended[id] != nil })
		before, _ := g.store.Load()
		if before.ID == c.ID {
			g.kill(id)
			g.boot(id) // as a supervisor does
		}
		g.until("the other one goes on", func() bool { now, _ := g.store.Load(); return now.CM == other && g.up[other] != nil })
	})
}

// A memory has the lives since it was given something last, as far as there is room.
func TestLivesOfAMemory(t *testing.T) {
	shelf := sim.New(sim.Options{Seed: 1}).Machine(0).Memory()
	var m *Member
	begin := func(life uint64) []uint64 {
		t.Helper()
		shelf.Close() // as the process before ends
		m = &Member{clock: clock.System{}}
		m.memory, m.cfg.Self.Incarnation = shelf, life
		if err := m.identify(); err != nil {
			t.Fatal(err)
		}
		return m.cfg.Self.Lives
	}
	is := func(what string, lives []uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(lives, want) {
			t.Errorf("%s: lives %v, want %v", what, lives, want)
		}
	}
	apply := func() {
		m.leadLife()
		m.identity.Store(identityLed, 5)
		m.identity.Store(identityApplied, 5)
		m.identity.Store(identityHolds, 1)
	}
	committed := func() (uint64, bool) {
		last, isKnown := (*host)(m).Committed()
		return uint64(last), isKnown
	}
	is("new", begin(10), 10)
	is("still without anything", begin(11), 11)
	apply()
	is("it had something", begin(12), 11, 12)
	is("nothing came of the last", begin(13), 11, 12, 13)
	apply()
	is("it had something", begin(14), 13, 14)
	if last, isKnown := committed(); last != 0 || !isKnown {
		t.Errorf("committed %d, known %v", last, isKnown)
	}

	// The memory was used by a program that records neither lives nor commits.
	m.identity.Store(identityApplied, 7)
	is("unknown lives", begin(15), 0, 15)
	if _, isKnown := committed(); isKnown {
		t.Error("what was committed is taken for known")
	}
	apply()
	m.noteCommitted(5)
	is("it had something", begin(16), 15, 16)
	apply()
	is("it had something", begin(17), 16, 17)
	if last, isKnown := committed(); last != 5 || !isKnown {
		t.Errorf("committed %d, known %v", last, isKnown)
	}

	token := m.cfg.Self.Memory
	for life := uint64(18); life < 18+2*livesMax; life++ {
		begin(life)
	}
	// Nobody knows which of so many lives was the last that was a member.
	lives := m.cfg.Self.Lives
	if len(lives) > livesMax || lives[0] != 16 || lives[1] != 0 || lives[len(lives)-1] != 17+2*livesMax || m.cfg.Self.Memory != token {
		t.Errorf("%d lives: %v", len(lives), lives)
	}
	if _, isKnown := committed(); isKnown {
		t.Error("what was committed is taken for known")
	}
	m.identity.Store(identityHolds, 0) // it was destroyed as far as it matters
	is("nothing", begin(9), 9)
	if m.cfg.Self.Memory == token {
		t.Error("the memory has its token still")
	}
}
