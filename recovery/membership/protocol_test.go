package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// own is the highest version that this program speaks.
const own = protocol.Resizes

func speaks(from, to protocol.Version) protocol.Range { return protocol.Range{Min: from, Max: to} }

func addressOf(id rdma.MachineID) string { return fmt.Sprintf("address of %d", id) }

// versions makes the machines of g speak the given ranges; other machines speak what this program
// does. A machine with the zero range is of version 1: what it stores as the CM lacks the fields
// that version 1 does not know.
func (g *group) versions(of map[rdma.MachineID]protocol.Range) {
	isFirst := func(id rdma.MachineID) bool { r, ok := of[id]; return ok && r == (protocol.Range{}) }
	g.change = func(cfg *Config) {
		if r, ok := of[cfg.Self.Machine]; ok {
			cfg.Endpoint.Speak(r)
		}
		if !isFirst(cfg.Self.Machine) {
			cfg.Self.Address = addressOf(cfg.Self.Machine)
		}
	}
	g.store.fail = func(from rdma.MachineID, _ uint64, next *cluster.Configuration) error {
		if isFirst(from) {
			clear(next.Address)
			clear(next.Protocol)
			next.Speaks = 0
		}
		return nil
	}
}

// simulateVersions is simulate for machines that speak the given ranges.
func simulateVersions(t *testing.T, n int, of map[rdma.MachineID]protocol.Range, f func(g *group)) {
	t.Helper()
	g := newGroup(t, sim.Options{Seed: 41})
	g.versions(of)
	err := g.world.Run(func() {
		for i := range rdma.MachineID(n) {
			g.boot(i, &cluster.Configuration{Replicas: n, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16})
			g.until("the machine is in", func() bool { return g.nodes[i].isUp })
		}
		f(g)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Machines that are restarted one by one with the next program are let in by the former one, and
// the instance speaks the next version once none of the former is left. A CM of the former one does not
// pass on what the others say; they say it again.
func TestRollingUpgrade(t *testing.T) {
	for _, x := range []struct {
		name   string
		before protocol.Range
		after  protocol.Range
		// spoken before and after
		old, now protocol.Version
	}{
		{"from the version that says nothing", protocol.Range{}, protocol.Own, 1, own},
		{"from the version before this one", speaks(1, own-1), protocol.Own, own - 1, own},
		{"to the version after this one", protocol.Own, speaks(1, own+1), own, own + 1},
		{"to one that knows no less than what is spoken", protocol.Own, speaks(own, own+1), own, own + 1},
	} {
		for cmFirst := range 2 {
			t.Run(fmt.Sprintf("%s, CM first: %v", x.name, cmFirst == 1), func(t *testing.T) {
				of := map[rdma.MachineID]protocol.Range{0: x.before, 1: x.before, 2: x.before}
				simulateVersions(t, 3, of, func(g *group) {
					c := g.settled(3)
					g.allocate(c.CM)
					order := append(g.others(), c.CM)
					if cmFirst == 1 {
						slices.Reverse(order)
					}
					for i, id := range order {
						if c.Version() != x.old {
							t.Errorf("after %d restarts the instance speaks %d", i, c.Version())
						}
						g.world.Machine(id).Kill()
						g.settled(2)
						of[id] = x.after
						g.boot(id, nil)
						c = g.settled(3)
					}
					for _, id := range c.Machines {
						if m, _ := c.Member(id); m.Protocol != x.after || m.Address != addressOf(id) {
							t.Errorf("machine %d is described by %+v", id, m)
						}
					}
					if c.Version() != x.now {
						t.Errorf("the instance speaks %d", c.Version())
					}
				})
			})
		}
	}
}

// As long as a machine of the former program is left, others of it join and come back, also
// with a CM of this program, and a machine that was restarted with this program can go back.
// The stored configuration has the format that they read.
func TestFormerVersionJoins(t *testing.T) {
	former := protocol.Range{}
	of := map[rdma.MachineID]protocol.Range{0: former, 1: former, 2: former, 3: former, 4: protocol.Own, 5: former}
	simulateVersions(t, 4, of, func(g *group) {
		g.settled(4)
		among := func(what string, n int) (c *cluster.Configuration) {
			t.Helper()
			if c = g.settled(n); c.Version() != protocol.First || !bytes.Contains(c.Encode(), []byte(`"Format":3`)) {
				t.Errorf("%s: the instance speaks %d: %s", what, c.Version(), c.Encode())
			}
			return c
		}
		restart := func(id rdma.MachineID, speaks protocol.Range) {
			t.Helper()
			g.world.Machine(id).Kill()
			among("one is away", len(g.cmConfig().Machines)-1)
			of[id] = speaks
			g.boot(id, nil)
			among("one is back", len(g.nodes))
		}
		g.boot(4, nil)
		among("a new machine of this program, with a CM of the former", 5)
		restart(1, protocol.Own)
		restart(2, protocol.Own)
		for n := 0; of[g.cm()] == former; n++ {
			if n == 3 {
				t.Fatal("no machine of this program becomes the CM")
			}
			restart(g.cm(), former)
		}
		g.boot(5, nil)
		c := among("a new machine of the former program, with a CM of this one", 6)
		with1, err1 := c.Between(4, 1)
		with5, err5 := c.Between(4, 5)
		if err := errors.Join(err1, err5); err != nil || with1 != protocol.Own.Max || with5 != protocol.First {
			t.Errorf("machine 4 speaks %d and %d: %v", with1, with5, err)
		}
		restart(2, former)
		if m, _ := g.settled(6).Member(2); m.Protocol != former {
			t.Errorf("machine 2 has gone back, and is described by %+v", m)
		}
	})
}

// All machines restarted at once with the next program speak it in the first configuration.
func TestMeetingOfTheNextVersion(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{0: {}, 1: {}, 2: {}}
	simulateVersions(t, 3, of, func(g *group) {
		before := g.settled(3)
		for i := range rdma.MachineID(3) {
			g.world.Machine(i).Kill()
		}
		clear(of)
		for i := range rdma.MachineID(3) {
			g.boot(i, nil)
		}
		if c := g.settled(3); before.Version() != 1 || c.Version() != protocol.Own.Max || c.ID != before.ID+1 {
			t.Errorf("configuration %d speaks %d", c.ID, c.Version())
		}
	})
}

// A machine of the next version joins machines of this one, and speaks with each what both know.
func TestNextVersionJoins(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{3: speaks(1, own+1), 4: speaks(2, own+2)}
	simulateVersions(t, 3, of, func(g *group) {
		g.settled(3)
		g.boot(3, nil)
		g.settled(4)
		g.boot(4, nil)
		c := g.settled(5)
		with2, err2 := c.Between(4, 2)
		with3, err3 := c.Between(4, 3)
		if err := errors.Join(err2, err3); err != nil || c.Version() != own || with2 != own || with3 != own+1 {
			t.Errorf("the instance speaks %d, machine 4 speaks %d and %d: %v", c.Version(), with2, with3, err)
		}
	})
}

// A machine that has no version in common with a member, the CM or another, gets an error that says
// so and what to do, and nothing changes for the others.
func TestVersionsApart(t *testing.T) {
	for name, x := range map[string]struct {
		joins protocol.Range
		text  string
	}{
		"the CM":                {speaks(own+1, own+2), "machine 0 speaks versions 1 to 4, machine 3 speaks versions 5 to 6: start machine 0 with a newer farmsql, which speaks version 5"},
		"the instance":          {speaks(1, 1), "machine 3 speaks version 1, the instance speaks version 4 since configuration 3 or before: start machine 3 with a newer farmsql"},
		"one that says nothing": {protocol.Range{}, "machine 3 speaks version 1, the instance speaks version 4"},
	} {
		t.Run(name, func(t *testing.T) {
			simulateVersions(t, 3, map[rdma.MachineID]protocol.Range{3: x.joins}, func(g *group) {
				g.settled(3)
				g.isRefused(3, x.text)
			})
		})
	}
}

// isRefused starts machine id, and has it refused without consequences.
func (g *group) isRefused(id rdma.MachineID, text string) {
	g.Helper()
	before := g.settled(3)
	n := g.boot(id, nil)
	g.until("the machine is refused", func() bool { return n.isUp })
	if !errors.Is(n.started, protocol.ErrRange) || !strings.Contains(n.started.Error(), text) {
		g.Error(n.started)
	}
	if c := g.settled(3); c.Revision != before.Revision {
		g.Errorf("revision %d, then %d", before.Revision, c.Revision)
	}
}

// So is who has one in common with the CM, but not with another member.
func TestVersionsApartFromAMember(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{1: speaks(1, own+1), 3: speaks(1, own+1)}
	simulateVersions(t, 4, of, func(g *group) {
		g.settled(4)
		g.world.Machine(0).Kill()
		if c := g.settled(3); c.CM == 2 || c.Version() != own {
			t.Fatalf("%+v", c)
		}
		of[0] = speaks(own+1, own+2)
		g.isRefused(0, "machine 2 speaks versions 1 to 4, machine 0 speaks versions 5 to 6")
	})
}

// Machines that are restarted with programs that have nothing in common do not wait for
// each other.
func TestMeetingOfVersionsApart(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{0: {}, 1: {}, 2: {}}
	simulateVersions(t, 3, of, func(g *group) {
		before := g.settled(3)
		for i := range rdma.MachineID(3) {
			g.world.Machine(i).Kill()
		}
		of[1], of[2] = speaks(2, 3), speaks(2, 3)
		apart := g.boot(0, nil)
		g.boot(1, nil)
		g.boot(2, nil)
		g.until("machine 0 is refused", func() bool { return apart.isUp })
		if !errors.Is(apart.started, protocol.ErrRange) {
			t.Error(apart.started)
		}
		if c := g.settled(2); c.Version() != 3 || c.ID != before.ID+1 {
			t.Errorf("configuration %d speaks %d", c.ID, c.Version())
		}
	})
}

// A machine that reports an invalid range of versions is not admitted: nobody could read the
// configuration.
func TestJoinOfNoRange(t *testing.T) {
	for _, r := range []protocol.Range{speaks(0, 2), speaks(3, 2)} {
		simulate(t, sim.Options{Seed: 3}, 3, 3, func(g *group) {
			c := g.settled(3)
			stranger := call.Peer{Machine: 7, Incarnation: 9}
			arg, err := json.Marshal(joinRequest{Cluster: c.Cluster, Member: cluster.Member{Machine: 7, Incarnation: 9, FailureDomain: 99, Protocol: r}})
			if err != nil {
				t.Fatal(err)
			}
			g.at(c.CM, func(n *node) { _, err = n.onJoin(stranger, arg) })
			if !errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), "machine 7 says") {
				t.Errorf("%v: %v", r, err)
			}
		})
	}
}

// An impossible report of a member in an ACK is ignored, so that the CM can go on, also without
// that member.
func TestAckOfNoRange(t *testing.T) {
	for _, r := range []protocol.Range{speaks(0, 2), speaks(9, 2), speaks(1, 1), speaks(5, 6)} {
		simulate(t, sim.Options{Seed: 3}, 3, 3, func(g *group) {
			c := g.settled(3)
			acks := make([]ack, len(c.Machines))
			for i, id := range c.Machines {
				acks[i].Self, _ = c.Member(id)
				if id != c.CM {
					acks[i].Self.Protocol = r
				}
			}
			next, err := c.Succeed(), error(nil)
			g.at(c.CM, func(n *node) {
				n.hear(c, acks)
				err = n.agree(next)
			})
			if err != nil || next.Version() != c.Version() {
				t.Errorf("%v: %v, the instance speaks %d", r, err, next.Version())
			}
		})
	}
}

// When the last machine of the former version was the CM and dies for good, the instance speaks
// the next version although nothing else happens.
func TestLastOfTheFormerVersionDies(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{0: {}, 1: {}, 2: {}}
	simulateVersions(t, 3, of, func(g *group) {
		cm := g.settled(3).CM
		for _, id := range g.others() {
			g.world.Machine(id).Kill()
			g.settled(2)
			of[id] = protocol.Own
			g.boot(id, nil)
			g.settled(3)
		}
		if g.cm() != cm {
			t.Fatal("another CM")
		}
		g.world.Machine(cm).Kill()
		g.until("the next version is spoken", func() bool { return g.cmConfig().Version() == protocol.Own.Max })
	})
}

// Two of three machines that are back, and do not understand each other, wait for the third, and
// say why.
func TestMeetingOfTwoApart(t *testing.T) {
	of := map[rdma.MachineID]protocol.Range{0: {}, 1: {}, 2: {}}
	simulateVersions(t, 3, of, func(g *group) {
		g.settled(3)
		for i := range rdma.MachineID(3) {
			g.world.Machine(i).Kill()
		}
		failed := g.events["failed"]
		of[0], of[1] = speaks(1, 1), speaks(2, 3)
		a, b := g.boot(0, nil), g.boot(1, nil)
		g.until("both say why", func() bool { return g.events["failed"] == failed+2 })
		if a.isUp || b.isUp {
			t.Error("they go on")
		}
	})
}

// Three machines restart together. One of them understands both of the others, which do not
// understand each other. It goes on with one of them, whichever was the CM. The third ends, and its
// error says why.
func TestMeetingInTheMiddle(t *testing.T) {
	for cm := range rdma.MachineID(3) {
		for low := range rdma.MachineID(3) { // who speaks version 1 alone; high speaks all but version 1
			for _, high := range []rdma.MachineID{(low + 1) % 3, (low + 2) % 3} {
				of := map[rdma.MachineID]protocol.Range{0: {}, 1: {}, 2: {}}
				simulateVersions(t, 3, of, func(g *group) {
					g.settled(3)
					for g.cm() != cm {
						was := g.cm()
						g.world.Machine(was).Kill()
						g.settled(2)
						g.boot(was, nil)
						g.settled(3)
					}
					for i := range rdma.MachineID(3) {
						g.allocate(i)
					}
					for i := range rdma.MachineID(3) {
						g.world.Machine(i).Kill()
					}
					middle := 3 - low - high
					of[low], of[high], of[middle] = speaks(1, 1), speaks(2, 3), speaks(1, 3)
					failed := g.events["failed"]
					for i := range rdma.MachineID(3) {
						g.boot(i, nil)
					}
					c := g.settled(2)
					if n := g.nodes[middle]; n.started != nil || n.Err() != nil || !slices.Contains(c.Machines, middle) {
						t.Errorf("CM %d, 1 at %d, 1-3 at %d: it ends: %v, %v; members %v", cm, low, middle, n.started, n.Err(), c.Machines)
					}
					third := low
					if slices.Contains(c.Machines, low) {
						third = high
					}
					g.until("the third has ended", func() bool { return g.nodes[third].isUp })
					if err := g.nodes[third].started; !errors.Is(err, protocol.ErrRange) || g.events["failed"] == failed {
						t.Errorf("CM %d, 1 at %d, 1-3 at %d: the third ends with %v", cm, low, middle, err)
					}
				})
			}
		}
	}
}

// Machines restart together with programs of any versions. Those of the largest set that has a version
// in common go on, if they are a majority, and the others end; otherwise all end. Machines that end do so
// soon, and their errors name the machines and the versions that these speak.
func TestMeetingOfAnyVersions(t *testing.T) {
	var ranges []protocol.Range
	for low := protocol.Version(1); low <= 3; low++ {
		for high := low; high <= 3; high++ {
			ranges = append(ranges, speaks(low, high))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{3, 4} {
		for range 60 {
			restart := map[rdma.MachineID]protocol.Range{}
			for i := range rdma.MachineID(n) {
				restart[i] = ranges[random.IntN(len(ranges))]
			}
			meetWith(t, n, restart)
		}
	}
}

// These have waited for each other for ever: nobody speaks the instance's version, or more than half do
// not, and one that understands all of them was the CM.
func TestMeetingAroundTheMiddle(t *testing.T) {
	for _, x := range [][]protocol.Range{
		{speaks(2, 3), speaks(2, 2), speaks(3, 3)},
		{speaks(1, 3), speaks(1, 1), speaks(2, 3), speaks(2, 3)},
		{speaks(2, 2), speaks(2, 2), speaks(3, 3), speaks(3, 3)},
	} {
		restart := map[rdma.MachineID]protocol.Range{}
		for i, r := range x {
			restart[rdma.MachineID(i)] = r
		}
		meetWith(t, len(x), restart)
	}
}

// meetWith restarts n machines of an instance that speaks version 1, at once, with the ranges given.
func meetWith(t *testing.T, n int, restart map[rdma.MachineID]protocol.Range) {
	t.Helper()
	of := map[rdma.MachineID]protocol.Range{}
	for i := range rdma.MachineID(n) {
		of[i] = protocol.Range{}
	}
	simulateVersions(t, n, of, func(g *group) {
		before := g.settled(n)
		for i := range rdma.MachineID(n) {
			g.world.Machine(i).Kill()
		}
		maps.Copy(of, restart)
		for i := range rdma.MachineID(n) {
			g.boot(i, nil)
		}
		if most := largest(restart); 2*most > n {
			g.settled(most)
		}
		ends := func(i rdma.MachineID) bool { return !isIn(g.cmConfig(), before, i) }
		for i := range rdma.MachineID(n) {
			if !ends(i) {
				continue
			}
			g.until(fmt.Sprintf("machine %d of %v ends", i, restart), func() bool { return g.nodes[i].isUp })
			if err := g.nodes[i].started; !errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), fmt.Sprintf("machine %d speaks %v", i, restart[i])) {
				t.Errorf("%v: machine %d: %v", restart, i, err)
			}
		}
	})
}

// isIn reports whether a machine is in a configuration that follows another.
func isIn(c, before *cluster.Configuration, machine rdma.MachineID) bool {
	_, in := c.Member(machine)
	return in && c.ID > before.ID
}

// largest returns how many machines have a version in common, at most.
func largest(of map[rdma.MachineID]protocol.Range) (most int) {
	for v := protocol.Version(1); v <= 3; v++ {
		n := 0
		for _, r := range of {
			if r.Has(v) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// A program that does not know the version that the instance speaks, and has not learned from the
// store that it cannot go on, is as if it were away: the others go on without it.
func TestMeetingBesideAnOldProgram(t *testing.T) {
	for old := range rdma.MachineID(3) {
		of := map[rdma.MachineID]protocol.Range{}
		simulateVersions(t, 3, of, func(g *group) {
			if v := g.settled(3).Version(); v != protocol.Own.Max {
				t.Fatalf("the instance speaks %d", v)
			}
			for i := range rdma.MachineID(3) {
				g.world.Machine(i).Kill()
			}
			of[old], g.store.cut[old] = speaks(1, 1), true
			for i := range rdma.MachineID(3) {
				g.boot(i, nil)
			}
			if c := g.settled(2); slices.Contains(c.Machines, old) {
				t.Errorf("machine %d: members %v", old, c.Machines)
			}
		})
	}
}

// A machine that was cut off while the others went on to a format that it does not know is no
// member any more: it ends, and says why.
func TestEvictedByNewer(t *testing.T) {
	simulate(t, sim.Options{Seed: 42}, 3, 3, func(g *group) {
		cut := g.others()[0]
		rest := []rdma.MachineID{g.cm(), g.others()[1]}
		g.store.newer = map[rdma.MachineID]bool{cut: true}
		g.cut([]rdma.MachineID{cut}, rest, g.world.Cut)
		g.until("it ends", func() bool { return g.nodes[cut].Err() != nil })
		if err := g.nodes[cut].Err(); !errors.Is(err, ErrEvicted) || !errors.Is(err, cluster.ErrNewer) || !strings.Contains(err.Error(), "version") {
			t.Errorf("it ends with %v", err)
		}
	})
}
