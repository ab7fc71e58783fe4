package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// TestPaper5_2_FailureOfAMachine: when a lease of a machine expires at the CM, the
// CM reconfigures, and the others go on without it.
func TestPaper5_2_FailureOfAMachine(t *testing.T) {
	simulate(t, sim.Options{Seed: 1}, 5, 3, func(g *group) {
		before := g.settled(5)
		victim, other := g.others()[1], g.others()[2]
		g.lines, g.steps = nil, make(map[rdma.MachineID][]recovery.Step)
		g.world.Machine(victim).Kill()
		c := g.settled(4)
		if want := []recovery.Step{recovery.StepSuspected, recovery.StepProbed, recovery.StepStored, recovery.StepApplied, recovery.StepAcked, recovery.StepLeasesOver, recovery.StepCommitted, recovery.StepAllActive}; !slices.Equal(g.steps[c.CM], want) {
			t.Errorf("steps %v at the CM, not %v", g.steps[c.CM], want)
		}
		if want := []recovery.Step{recovery.StepApplied, recovery.StepCommitted, recovery.StepAllActive}; !slices.Equal(g.steps[other], want) {
			t.Errorf("steps %v, not %v", g.steps[other], want)
		}
		if c.ID != before.ID+1 || c.CM != before.CM || slices.Contains(c.Machines, victim) {
			t.Errorf("configuration %d with CM %d and machines %v", c.ID, c.CM, c.Machines)
		}
		if len(g.lines) != 1 {
			t.Fatalf("%v", g.lines)
		}
		l := g.lines[0]
		order := []time.Time{l.Suspect, l.Probed, l.Stored, l.Acked, l.Committed, l.AllActive}
		if !slices.IsSortedFunc(order, time.Time.Compare) || l.ID != c.ID || !slices.Equal(l.Dead, []rdma.MachineID{victim}) || l.IsJoin {
			t.Errorf("%+v", l)
		}
		t.Log(l)
	})
}

// leasesMax is how many lease times a reconfiguration may take, from the failure to all
// regions active, where nothing else fails.
const leasesMax = 10

// TestReconfigurationTakesALeaseOrTwo: a machine that fails is suspected at the latest when its
// lease has run out. After that, the reconfiguration waits only for messages and for the leases of
// others.
func TestReconfigurationTakesALeaseOrTwo(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, sim.Options{Seed: seed}, 5, 3, func(g *group) {
			c := g.settled(5)
			victim := g.others()[1]
			if seed%3 == 0 {
				victim = c.CM
			}
			begin, lease := g.world.Now(), g.nodes[c.CM].keeper.Length()
			g.world.Machine(victim).Kill()
			g.until("it is suspected", func() bool { return g.events["suspected"] > 0 })
			suspected := g.world.Now() - begin
			g.settled(4)
			if took := g.world.Now() - begin; suspected > 2*lease || took > leasesMax*lease {
				t.Errorf("seed %d: suspected after %v, all active after %v, leases are of %v", seed, suspected, took, lease)
			}
		})
	}
}

// TestPaper5_2_FailureOfTheCM: a non-CM machine that suspects the CM asks a backup
// CM first, which becomes the new CM. There is no crowd of attempts.
func TestPaper5_2_FailureOfTheCM(t *testing.T) {
	for seed := range uint64(5) {
		simulate(t, sim.Options{Seed: seed}, 9, 3, func(g *group) {
			before := g.settled(9)
			g.stored = nil
			g.world.Machine(before.CM).Kill()
			c := g.settled(8)
			if c.ID != before.ID+1 || !slices.Contains(successors(before, backupCMs), c.CM) {
				t.Errorf("configuration %d with CM %d, backup CMs were %v", c.ID, c.CM, successors(before, backupCMs))
			}
			if len(g.stored) != 1 {
				t.Errorf("stored by %v", g.stored)
			}
		})
	}
}

// TestPaper5_2_TriesItself: if the configuration is unchanged after a timeout,
// because the backup CMs have failed too, a machine attempts the
// reconfiguration itself.
func TestPaper5_2_TriesItself(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 7, 3, func(g *group) {
		before := g.settled(7)
		g.world.Machine(before.CM).Kill()
		for _, b := range successors(before, backupCMs) {
			g.world.Machine(b).Kill()
		}
		g.settled(4)
	})
}

// A machine that hears nobody suspects the CM, as all others would if the CM had
// failed. A backup CM that is asked to take its place knows better.
func TestBackupCMKnowsThatTheCMIsWell(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 5, 3, func(g *group) {
		before := g.settled(5)
		backup := successors(before, 1)[0]
		asker := g.others()[0]
		if asker == backup {
			asker = g.others()[1]
		}
		ask := func() (err error) {
			g.at(asker, func(n *node) {
				_, err = n.cfg.Endpoint.Call(n.within(time.Second), recovery.PeerIn(before, backup), kindSuspect, encodeID(before.ID))
			})
			return err
		}
		if err := ask(); err != nil {
			t.Error(err)
		}
		g.world.Outside().Sleep(time.Second)
		if c := g.settled(5); c.ID != before.ID {
			t.Errorf("configuration %d with CM %d, and not still %d with %d", c.ID, c.CM, before.ID, before.CM)
		}
		g.world.Machine(before.CM).Kill() // while the leases last
		if err := ask(); err != nil {
			t.Error(err)
		}
		if s := g.nodes[backup].Status(); !slices.Contains(s.Suspects, before.CM) || !g.nodes[backup].keeper.Valid() {
			t.Errorf("the backup CM suspects %v; its lease is valid: %v", s.Suspects, g.nodes[backup].keeper.Valid())
		}
		if c := g.settled(4); c.CM != backup {
			t.Errorf("the CM is %d, not %d", c.CM, backup)
		}
	})
}

// A machine whose connection to the CM breaks, for a link that was cut for a moment, does
// not cost the CM its membership, nor itself much time: the next configuration connects
// the two anew.
func TestConnectionToTheCMBreaks(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 5, 3, func(g *group) {
		before := g.settled(5)
		g.at(g.others()[0], func(n *node) { n.Suspect(before.CM) })
		at := g.world.Now()
		g.until("the next configuration", func() bool { return g.cmConfig().ID > before.ID })
		if took := g.world.Now() - at; took > 2*leaseLength {
			t.Errorf("there was no other configuration for %v", took)
		}
		c := g.settled(5)
		if c.CM != before.CM || !slices.Equal(c.Incarnation, before.Incarnation) {
			t.Errorf("configuration %d of lives %x with CM %d, after %x with %d", c.ID, c.Incarnation, c.CM, before.Incarnation, before.CM)
		}
		g.world.Outside().Sleep(20 * leaseLength)
		if last := g.settled(5); last.ID != c.ID {
			t.Errorf("configuration %d follows %d", last.ID, c.ID)
		}
		if s := g.nodes[g.others()[0]].Status(); len(s.Suspects)+len(s.Apart) > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A machine that cannot reach another, neither of which is the CM, tells the CM.
// Those that answer a probe stay, in another configuration, in which they connect
// anew; one that does not is replaced while its lease lasts.
func TestUnreachable(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 5, 3, func(g *group) {
		before := g.settled(5)
		a, b := g.others()[0], g.others()[1]
		g.nodes[a].Suspect(b)
		g.until("the next configuration", func() bool {
			c, _ := g.store.MemoryStore.Load()
			if c.ID == before.ID && !g.nodes[a].Status().Changing {
				t.Error("the machine that has reported another does not say that there will be a change")
			}
			return c.ID > before.ID
		})
		if c := g.settled(5); c.ID != before.ID+1 || c.CM != before.CM {
			t.Errorf("configuration %d with CM %d after %d with %d", c.ID, c.CM, before.ID, before.CM)
		}
		if g.until("no more changes", func() bool { return !g.nodes[a].Status().Changing && !g.nodes[before.CM].Status().Changing }); g.cm() != before.CM {
			t.Errorf("the CM is %d", g.cm())
		}
		for i, x := range []rdma.MachineID{a, before.CM} { // that of a peer that lives, and the CM
			g.nodes[x].Renew()
			g.until("the next configuration", func() bool { return g.nodes[b].Configuration().ID == before.ID+2+cluster.ID(i) })
			g.settled(5)
		}
		g.nodes[a].Suspect(a) // nobody
		g.world.Machine(b).Kill()
		killed := g.world.Now()
		g.nodes[a].Suspect(b)
		g.until("the next configuration", func() bool { c, _ := g.store.MemoryStore.Load(); return c.ID > before.ID+3 })
		if took := g.world.Now() - killed; took > g.nodes[a].keeper.Length()/2 {
			t.Errorf("replaced after %v", took)
		}
		g.settled(4)
	})
}

// TestPaper5_2_CorrelatedFailures: read probes handle failures of several machines
// in a single reconfiguration.
func TestPaper5_2_CorrelatedFailures(t *testing.T) {
	simulate(t, sim.Options{Seed: 4}, 9, 3, func(g *group) {
		before := g.settled(9)
		for _, m := range g.others()[:3] {
			g.world.Machine(m).Kill()
		}
		if c := g.settled(6); c.ID != before.ID+1 {
			t.Errorf("%d reconfigurations", c.ID-before.ID)
		}
	})
}

// A failure domain fails as a whole, the CM in it.
func TestFailureOfADomain(t *testing.T) {
	g0 := sim.Options{Seed: 5}
	g := &group{T: t, world: sim.New(g0), nodes: map[rdma.MachineID]*node{}, seen: map[cluster.ID]string{}, wiped: map[rdma.MachineID]uint64{}, last: map[rdma.MachineID]cluster.ID{}, held: map[rdma.MachineID]*cluster.Configuration{}, made: map[rdma.MachineID][]region.ID{}, events: map[string]int{}, steps: map[rdma.MachineID][]recovery.Step{}}
	g.store, g.violated = &slowStore{g: g}, t.Errorf
	err := g.world.Run(func() {
		for i := range 6 {
			g.world.Machine(rdma.MachineID(i)).SetDomain(i / 2)
			g.boot(rdma.MachineID(i), &cluster.Configuration{Replicas: 2})
			g.until("the machine is in", func() bool { return g.nodes[rdma.MachineID(i)].isUp })
		}
		g.settled(6)
		for i := range 6 {
			g.allocate(rdma.MachineID(i))
		}
		g.world.FailDomain(0, true)
		c := g.settled(4)
		if len(g.lost) > 0 || len(c.Regions) != 6 {
			t.Errorf("lost %v", g.lost)
		}
		for _, p := range c.Regions {
			if len(p.Replicas()) != 2 || slices.Contains(p.Filling, p.Primary) || p.Primary < 2 {
				t.Errorf("%+v", p)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPaper5_2_MajorityOfProbes: the new CM proceeds only if a majority answers:
// the smaller part of a partition never does, and its members learn that they
// were evicted when the network is whole again.
func TestPaper5_2_MajorityOfProbes(t *testing.T) {
	for seed := range uint64(6) {
		cmIsAlone, comesFirst := seed%3 > 0, seed%3 > 1
		simulate(t, sim.Options{Seed: seed}, 5, 3, func(g *group) {
			before := g.settled(5)
			small, large := g.others()[:2], append(g.others()[2:], g.cm())
			if cmIsAlone {
				small, large = append(g.others()[:1], g.cm()), g.others()[1:]
			}
			g.cut(small, large, g.world.Cut)
			if comesFirst { // before the others have noticed anything
				for _, m := range large {
					g.at(before.CM, func(n *node) { n.Suspect(m) })
				}
			}
			c := g.settled(3)
			if c.ID != before.ID+1 {
				t.Errorf("%d configurations later", c.ID-before.ID)
			}
			for _, m := range c.Machines {
				if slices.Contains(small, m) {
					t.Errorf("machine %d of the smaller part is a member", m)
				}
			}
			for _, m := range small {
				if g.nodes[m].keeper.Valid() || g.nodes[m].Configuration().ID != before.ID {
					t.Errorf("machine %d of the smaller part has moved on", m)
				}
			}
			g.cut(small, large, g.world.Mend)
			for _, m := range small {
				g.until("the machine learns that it was evicted", func() bool { return g.nodes[m].host.isEvicted })
				if !errors.Is(g.nodes[m].Err(), ErrEvicted) {
					t.Errorf("machine %d: %v", m, g.nodes[m].Err())
				}
			}
		})
	}
}

// Another life of a member that answers a probe is not the member: it is left out with who
// is suspected.
func TestPaper5_2_AnotherLifeIsMissing(t *testing.T) {
	simulate(t, sim.Options{Seed: 7}, 5, 3, func(g *group) {
		before := g.settled(5)
		dead, back := g.others()[0], g.others()[1]
		was, _ := before.Member(back)
		g.world.Machine(dead).Kill()
		g.world.Machine(back).Kill()
		g.boot(back, nil)
		g.at(before.CM, func(n *node) { n.Suspect(dead) })
		var next *cluster.Configuration
		g.until("the next configuration", func() bool {
			next = g.nodes[before.CM].Configuration()
			return next.ID > before.ID
		})
		if is, in := next.Member(back); next.ID != before.ID+1 || in && is.Incarnation == was.Incarnation {
			t.Errorf("configuration %d after %d has the life of machine %d that is over", next.ID, before.ID, back)
		}
	})
}

// TestPaper5_2_OneCompareAndSwap: only one machine can move the system to the
// next configuration, even if several attempt it at once.
func TestPaper5_2_OneCompareAndSwap(t *testing.T) {
	for seed := range uint64(10) {
		simulate(t, sim.Options{Seed: seed}, 7, 3, func(g *group) {
			before := g.settled(7)
			attempts := map[rdma.MachineID]bool{}
			g.store.fail = func(from rdma.MachineID, _ uint64, next *cluster.Configuration) error {
				if next.ID == before.ID+1 {
					attempts[from] = true
				}
				return nil
			}
			g.world.Machine(before.CM).Kill()
			for _, m := range g.others() { // all at once, as no machine would by itself
				g.nodes[m].suspect(before.CM, true)
			}
			g.settled(6)
			if len(attempts) < 2 {
				t.Errorf("seed %d: only %d have tried", seed, len(attempts))
			}
		})
	}
}

// TestPaper5_2_CommitAfterAll: NEW-CONFIG-COMMIT is sent when all members have
// acknowledged NEW-CONFIG: one that dies before leads to yet another
// configuration, and that before it is not committed. (committed checks, too.)
func TestPaper5_2_CommitAfterAll(t *testing.T) {
	for _, who := range []string{"another", "the CM"} {
		simulate(t, sim.Options{Seed: 7}, 7, 3, func(g *group) {
			before := g.settled(7)
			first, second := g.others()[0], g.others()[1]
			if who == "the CM" {
				second = before.CM
			}
			g.nodes[second].host.onApply = func(c *cluster.Configuration) { g.world.Machine(second).Kill() }
			g.world.Machine(first).Kill()
			c := g.settled(5)
			if c.ID < before.ID+2 {
				t.Errorf("%s: configuration %d after %d", who, c.ID, before.ID)
			}
			for _, m := range c.Machines {
				if slices.Contains(g.nodes[m].host.log, fmt.Sprintf("commit %d", before.ID+1)) {
					t.Errorf("%s: machine %d has committed %d", who, m, before.ID+1)
				}
			}
		})
	}
}

// NEW-CONFIG-COMMIT that comes while NEW-CONFIG is being applied waits for that: logs must not
// be drained before replicas have their new roles.
func TestCommitWaitsForApply(t *testing.T) {
	simulate(t, sim.Options{Seed: 8}, 4, 2, func(g *group) {
		n := g.nodes[g.others()[0]]
		ended := false
		n.host.onApply = func(c *cluster.Configuration) {
			n.process.Go(func() {
				if err := n.commit(c.ID); err != nil {
					t.Error(err)
				}
				ended = true
			})
			n.process.Sleep(leaseLength / 4)
			if ended || n.Status().Recovering && slices.Contains(n.host.log, fmt.Sprintf("commit %d", c.ID)) {
				t.Errorf("configuration %d is committed while it is applied", c.ID)
			}
		}
		g.violated = func(string, ...any) {} // it commits before the CM says so
		g.world.Machine(g.others()[1]).Kill()
		g.settled(3)
		if !ended {
			t.Error("nothing was committed")
		}
	})
}

// The CM dies after it has stored a configuration, before anybody hears of it.
func TestCMFailsAfterStoring(t *testing.T) {
	simulate(t, sim.Options{Seed: 8}, 7, 3, func(g *group) {
		before := g.settled(7)
		g.nodes[before.CM].host.onApply = func(*cluster.Configuration) { g.world.Machine(before.CM).Kill() }
		g.world.Machine(g.others()[0]).Kill()
		if c := g.settled(5); c.ID != before.ID+2 {
			t.Errorf("configuration %d after %d", c.ID, before.ID)
		}
	})
}

// TestPaper5_2_BlockedUntilCommitted: no member goes on in a new configuration
// before NEW-CONFIG-COMMIT, and then all do.
func TestPaper5_2_BlockedUntilCommitted(t *testing.T) {
	simulate(t, sim.Options{Seed: 9}, 5, 3, func(g *group) {
		before := g.settled(5)
		applied := 0
		for _, m := range before.Machines {
			h := g.nodes[m].host
			h.onApply = func(*cluster.Configuration) {
				if applied++; !h.blocked {
					t.Errorf("machine %d goes on before the configuration is committed", m)
				}
			}
		}
		g.world.Machine(g.others()[0]).Kill()
		after := g.settled(4)
		if applied != 4 {
			t.Errorf("%d machines have applied it, want 4", applied)
		}
		for _, m := range after.Machines {
			if g.nodes[m].host.blocked {
				t.Errorf("machine %d blocks clients still", m)
			}
		}
	})
}

// TestPaper5_2_OlderIsRefused: a machine applies a NEW-CONFIG only if its
// identifier is greater than its own, and one that was sent twice once.
func TestPaper5_2_OlderIsRefused(t *testing.T) {
	simulate(t, sim.Options{Seed: 10}, 3, 3, func(g *group) {
		c := g.settled(3)
		n := g.nodes[g.others()[0]]
		cm := recovery.PeerIn(c, c.CM)
		applied := g.events["applied"]
		old := c.Clone()
		old.ID--
		g.at(n.self.Machine, func(n *node) {
			if _, err := n.onNewConfig(cm, split(old)[0]); !errors.Is(err, recovery.ErrSuperseded) {
				t.Errorf("an older one: %v", err)
			}
			if b, err := n.onNewConfig(cm, split(c)[0]); err != nil || len(b) == 0 {
				t.Errorf("the same again: %q, %v", b, err)
			}
			next := c.Succeed()
			if _, err := n.onNewConfig(recovery.PeerIn(c, g.others()[1]), split(next)[0]); !errors.Is(err, recovery.ErrNotMember) {
				t.Errorf("from a machine that is not its CM: %v", err)
			}
			next.Incarnation[slices.Index(next.Machines, n.self.Machine)]++
			if _, err := n.onNewConfig(cm, split(next)[0]); !errors.Is(err, recovery.ErrNotMember) {
				t.Errorf("for another life: %v", err)
			}
			for _, b := range [][]byte{nil, make([]byte, 11), make([]byte, 12), append(encodeID(99), 0, 0, 0, 0, 1, 0, 0, 0, 'x')} {
				if _, err := n.onNewConfig(cm, b); err == nil {
					t.Errorf("%q is taken for a configuration", b)
				}
			}
		})
		if g.events["applied"] != applied {
			t.Error("applied again")
		}
	})
}

// A machine that follows one of two that were refounded does not go over to the other, though identifiers are greater
// there: its memory has another history.
func TestOtherLineIsRefused(t *testing.T) {
	simulate(t, sim.Options{Seed: 10}, 3, 3, func(g *group) {
		c := g.settled(3)
		n := g.nodes[g.others()[0]]
		g.at(n.self.Machine, func(n *node) {
			current := c.Clone()
			current.Line = cluster.Line{1}
			n.mu.current = current
			other := c.Succeed()
			other.Line = cluster.Line{2}
			if _, err := n.onNewConfig(recovery.PeerIn(c, c.CM), split(other)[0]); !errors.Is(err, ErrOtherLine) {
				t.Error(err)
			}
			starting := func(line cluster.Line) error {
				n.mu.current, n.mu.floor, n.mu.line = nil, c.ID, line
				_, err := n.onNewConfig(recovery.PeerIn(c, c.CM), split(other)[0])
				return err
			}
			for _, line := range []cluster.Line{{1}, nil} {
				if err := starting(line); !errors.Is(err, errUnheard) {
					t.Errorf("it has loaded one of line %v: %v", line, err)
				}
			}
			n.mu.current, n.mu.floor = c, 0
		})
		g.at(c.CM, func(cm *node) {
			cm.mu.current = c.Clone()
			cm.mu.current.Line = cluster.Line{1}
			from := call.Peer{Machine: 7, Incarnation: 9}
			joins := func(line *cluster.Line) error {
				arg, _ := json.Marshal(joinRequest{Cluster: c.Cluster, Member: cluster.Member{Machine: 7, Incarnation: 9}, Line: line})
				_, err := cm.onJoin(from, arg)
				return err
			}
			for _, line := range []cluster.Line{{2}, {}} {
				if err := joins(&line); !errors.Is(err, errUnheard) || !IsPassing(err) {
					t.Errorf("it joins with line %v: %v", line, err)
				}
			}
			for _, line := range []*cluster.Line{{1}, nil} { // also with an earlier program
				if err := joins(line); errors.Is(err, errUnheard) {
					t.Errorf("it joins with line %v: %v", line, err)
				}
			}
			cm.mu.current = c
		})
	})
}

// A machine whose memory has been in a configuration that was lost when the instance was refounded does not go over to
// what followed, whoever tells it: the CM, the store, or the store at its start.
func TestOmittedMemoryIsRefused(t *testing.T) {
	simulate(t, sim.Options{Seed: 12}, 3, 3, func(g *group) {
		c := g.settled(3)
		next := c.Succeed()
		next.ID += 10
		next.Gaps = []cluster.Gap{{After: c.ID - 1, Before: next.ID}}
		n := g.nodes[g.others()[0]]
		g.at(n.self.Machine, func(n *node) {
			if _, err := n.onNewConfig(recovery.PeerIn(c, c.CM), split(next)[0]); !errors.Is(err, ErrOmitted) {
				t.Errorf("NEW-CONFIG: %v", err)
			}
		})
		if err := g.store.CompareAndSwap(c.Revision, next); err != nil {
			t.Fatal(err)
		}
		g.at(n.self.Machine, func(n *node) {
			if c, err := n.base(); c != nil || err != nil || !errors.Is(n.Err(), ErrEvicted) || !errors.Is(n.Err(), ErrOmitted) {
				t.Errorf("stored: %+v, %v, %v", c, err, n.Err())
			}
		})
		g.change = func(cfg *Config) { cfg.Cluster, cfg.Applied = c.Cluster, c.ID }
		late := g.boot(7, nil)
		g.until("it has given up", func() bool { return late.isUp })
		if !errors.Is(late.started, ErrOmitted) || !strings.Contains(late.started.Error(), "farmsql refound --lost 7 at") {
			t.Errorf("at its start: %v", late.started)
		}
	})
}

// A configuration that is longer than a call travels in parts.
func TestLongConfiguration(t *testing.T) {
	was := partBytes
	partBytes = 100
	defer func() { partBytes = was }()
	simulate(t, sim.Options{Seed: 11, Loss: 50}, 4, 3, func(g *group) {
		g.world.Machine(g.others()[0]).Kill()
		g.settled(3)
	})
}

// A region of which nobody has everything any more is unavailable, and reported as
// that; the rest goes on. It is back as soon as one of the memories is that had all of
// it, and nothing has been lost.
func TestUnavailableRegions(t *testing.T) {
	for _, back := range []int{0, 1} {
		simulate(t, sim.Options{Seed: 12}, 5, 2, func(g *group) {
			p := g.awayRegion()
			c := g.settled(3)
			away, _ := c.Placement(p.Region)
			if len(c.Lost) > 0 || !slices.Equal(g.away, []region.ID{p.Region}) || away.IsAvailable() {
				t.Errorf("lost %v, unavailable %v, %+v", c.Lost, g.away, away)
			}
			who := p.Replicas()[back]
			g.boot(who, nil)
			c = g.settled(4)
			// The first to die may have been left out before the other.
			isAwaited := slices.ContainsFunc(away.Away, func(a cluster.Memory) bool { return a.Machine == who })
			if now, _ := c.Placement(p.Region); now.IsPrimary(who) != isAwaited || now.IsAvailable() != isAwaited {
				t.Errorf("after machine %d is back: %+v", who, now)
			}
			g.boot(p.Replicas()[1-back], nil)
			if c = g.settled(5); len(c.Unavailable())+len(c.Lost) > 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// awayRegion makes a region of two replicas, and kills both machines.
func (g *group) awayRegion() cluster.Placement {
	g.Helper()
	others := g.others()
	p := g.allocate(others[0])
	for p.Has(g.cm()) {
		p = g.allocate(others[0])
	}
	g.allocate(g.cm())
	g.settled(5)
	for _, m := range p.Replicas() {
		g.world.Machine(m).Kill()
	}
	return p
}

// A machine comes back with another memory than the one that regions wait for. While
// there is another one they wait for, it is let in. Otherwise it is refused, until an
// operator gives the regions up, who has to know which.
func TestForget(t *testing.T) {
	simulate(t, sim.Options{Seed: 13}, 5, 2, func(g *group) {
		p := g.awayRegion()
		g.settled(3)
		first, second := p.Replicas()[0], p.Replicas()[1]
		if away, _ := g.cmConfig().Placement(p.Region); len(away.Away) == 1 {
			second = away.Primary
			first = p.Replicas()[1-slices.Index(p.Replicas(), second)]
		}
		g.wipe(first)
		g.boot(first, nil)
		c := g.settled(4)
		if now, _ := c.Placement(p.Region); now.IsAvailable() || len(now.Away) != 1 || now.Primary != second {
			t.Errorf("%+v", now)
		}
		g.wipe(second)
		n := g.boot(second, nil)
		g.until("it is refused", func() bool { return n.isUp })
		if !errors.Is(n.started, ErrNeeded) || !strings.Contains(n.started.Error(), fmt.Sprintf("regions [%d]", p.Region)) {
			t.Errorf("got %v", n.started)
		}
		g.at(c.Machines[0], func(n *node) {
			for _, lost := range [][]region.ID{nil, {p.Region, 99}} {
				if err := n.Forget(context.Background(), second, lost); !errors.Is(err, ErrNotAwaited) {
					t.Errorf("forget with regions %v: %v", lost, err)
				}
			}
			if err := n.Forget(context.Background(), first, nil); !errors.Is(err, ErrNotAwaited) {
				t.Errorf("forget a machine that nobody waits for: %v", err)
			}
			for range 2 {
				if err := n.Forget(context.Background(), second, []region.ID{p.Region}); err != nil {
					t.Error(err)
				}
			}
		})
		c = g.settled(4)
		if !slices.Equal(c.Lost, []region.ID{p.Region}) || !slices.Equal(g.lost, c.Lost) || len(c.Unavailable()) > 0 {
			t.Errorf("lost %v, regions %v", c.Lost, c.Regions)
		}
		for _, m := range c.Machines[:2] {
			g.at(m, func(n *node) {
				if _, err := n.Placement(context.Background(), p.Region); !errors.Is(err, ErrLost) {
					t.Errorf("%v", err)
				}
			})
		}
		g.world.Machine(second).Kill()
		g.boot(second, nil)
		g.settled(5)
	})
}

// Two operators who give up one machine each, of two that a region waits for, do not lose the
// region, which neither of them has named.
func TestForgetBoth(t *testing.T) {
	waited := 0
	for seed := uint64(11); seed < 23; seed++ {
		simulate(t, sim.Options{Seed: seed}, 5, 2, func(g *group) {
			p := g.awayRegion()
			c := g.settled(3)
			if away, _ := c.Placement(p.Region); len(away.Away) != 2 {
				return // one of the two was left out before the other
			}
			waited++
			var errs []error
			g.at(c.CM, func(n *node) {
				n.cfg.Clock.Lock(&n.change) // another change is under way
				for _, machine := range p.Replicas() {
					n.process.Go(func() {
						err := errChanging
						for IsPassing(err) {
							err = n.Forget(context.Background(), machine, nil)
						}
						errs = append(errs, err)
					})
				}
				n.process.Sleep(leaseLength)
				n.change.Unlock()
			})
			g.until("both are answered", func() bool { return len(errs) == 2 })
			if !slices.Contains(errs, nil) || !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, ErrNotAwaited) }) {
				t.Errorf("seed %d: %v", seed, errs)
			}
			if now, _ := g.cmConfig().Placement(p.Region); len(now.Away) != 1 || len(g.lost) > 0 {
				t.Errorf("seed %d: the region waits for %v, lost are %v", seed, now.Away, g.lost)
			}
		})
	}
	if waited == 0 {
		t.Fatal("in no world does a region wait for two machines")
	}
}

// Rolling kills: machines that are admitted have nothing yet, and together they are a majority.
// When the last machine that has everything fails, everything waits for it, and then goes on.
func TestRollingKills(t *testing.T) {
	for replicas := 2; replicas <= 3; replicas++ {
		simulate(t, sim.Options{Seed: 14}, 3, replicas, func(g *group) {
			for i := range 3 {
				g.allocate(rdma.MachineID(i))
			}
			regions := len(g.settled(3).Regions)
			for round := range 12 {
				who := rdma.MachineID(round % 3)
				g.world.Machine(who).Kill()
				g.settled(2)
				g.boot(who, nil)
				c := g.settled(3)
				if len(c.Lost) > 0 || len(c.Unavailable()) > 0 || len(c.Regions) != regions {
					t.Fatalf("round %d: lost %v, unavailable %v, regions %v", round, c.Lost, c.Unavailable(), c.Regions)
				}
			}
		})
	}
}

// The stored configuration may be unknown: the store fails after it has stored, and the next
// attempt finds the configuration.
func TestStoreAnswerLost(t *testing.T) {
	simulate(t, sim.Options{Seed: 13}, 5, 3, func(g *group) {
		before := g.settled(5)
		once := true
		g.store.fail = func(_ rdma.MachineID, old uint64, next *cluster.Configuration) error {
			if !once {
				return nil
			}
			once = false
			if err := g.store.MemoryStore.CompareAndSwap(old, next); err != nil {
				t.Error(err)
			}
			return cluster.ErrUnreachable
		}
		g.world.Machine(g.others()[0]).Kill()
		if c := g.settled(4); c.ID != before.ID+1 {
			t.Errorf("configuration %d after %d", c.ID, before.ID)
		}
		// The same for a region.
		once = true
		g.at(g.cm(), func(n *node) {
			if _, err := n.Allocate(context.Background(), n.self.Machine, 0); !errors.Is(err, cluster.ErrUnreachable) {
				t.Errorf("%v", err)
			}
		})
		g.until("all know of it", func() bool {
			for _, n := range g.nodes {
				if c := n.Configuration(); !n.process.Dead() && (len(c.Regions) != 1 || n.host.active != c.ID) {
					return false
				}
			}
			return true
		})
	})
}

// A CM that does not reach the store stays a member, and another machine that does
// takes its place as soon as there is something to be changed.
func TestCMCutFromTheStore(t *testing.T) {
	for _, also := range []int{0, 2} { // how many of the others are cut off, too
		for name, change := range map[string]struct {
			do      func(g *group, before *cluster.Configuration)
			members int
		}{
			"a machine dies":  {func(g *group, before *cluster.Configuration) { g.world.Machine(g.others()[3]).Kill() }, 4},
			"a machine joins": {func(g *group, before *cluster.Configuration) { g.boot(9, nil) }, 6},
			"a region is made": {func(g *group, before *cluster.Configuration) {
				g.at(before.CM, func(n *node) {
					if _, err := n.Allocate(context.Background(), n.self.Machine, 0); !errors.Is(err, cluster.ErrUnreachable) {
						t.Errorf("%v", err)
					}
				})
				g.until("there is another CM", func() bool { return g.cmConfig().CM != before.CM })
			}, 5},
		} {
			simulate(t, sim.Options{Seed: 27}, 5, 3, func(g *group) {
				before := g.settled(5)
				begin := g.world.Now()
				g.store.cut[before.CM] = true
				for _, m := range g.others()[:also] {
					g.store.cut[m] = true
				}
				change.do(g, before)
				c := g.settled(change.members)
				if took := g.world.Now() - begin; c.CM == before.CM || g.store.cut[c.CM] || !slices.Contains(c.Machines, before.CM) || took > 30*leaseLength {
					t.Errorf("%s, %d more: CM %d of %v after %v; it was %d", name, also, c.CM, c.Machines, took, before.CM)
				}
				g.at(before.CM, func(n *node) { // an answer that comes late
					n.mu.Lock()
					defer n.mu.Unlock()
					n.mu.renew = true
					if n.isWorkLocked() {
						t.Errorf("%s, %d more: the machine that was CM goes on changing the configuration", name, also)
					}
				})
			})
		}
	}
}

// TestPaper5_2_WaitsForOldLeases: before NEW-CONFIG-COMMIT the CM waits until the
// leases of machines that are not in the configuration have run out. Without the
// wait, an evicted machine relies on its lease when others commit.
func TestPaper5_2_WaitsForOldLeases(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, sim.Options{Seed: seed}, 7, 3, func(g *group) {
			g.settled(7)
			first, second := g.others()[0], g.others()[1]
			rest := slices.DeleteFunc(append(g.others(), g.cm()), func(m rdma.MachineID) bool { return m == second })
			g.world.Machine(first).Kill()
			g.until("the first failure is noticed", func() bool { return g.events["suspected"] > 0 })
			g.cut([]rdma.MachineID{second}, rest, g.world.Cut)
			g.settled(5)
		})
	}
}

// A machine that is cut off holds its lease from a CM that has ended. It is waited
// for, whether both are left out at once, or one of them first in a configuration
// that is never committed.
func TestLeasesOfADeadCMLast(t *testing.T) {
	suspect := func(g *group, by []rdma.MachineID, who rdma.MachineID) {
		for _, m := range by {
			g.at(m, func(n *node) { n.Suspect(who) })
		}
	}
	for order, suspected := range map[string]func(g *group, cm, second rdma.MachineID, rest []rdma.MachineID){
		"at once": func(g *group, cm, second rdma.MachineID, rest []rdma.MachineID) {
			g.world.Machine(cm).Kill()
			suspect(g, rest, second)
			suspect(g, rest, cm)
		},
		"the CM first": func(g *group, cm, _ rdma.MachineID, rest []rdma.MachineID) {
			g.world.Machine(cm).Kill()
			suspect(g, rest, cm)
		},
		"the CM last": func(g *group, cm, second rdma.MachineID, rest []rdma.MachineID) {
			before := g.nodes[cm].Configuration().ID
			suspect(g, []rdma.MachineID{cm}, second)
			g.until("all have applied the first", func() bool {
				return !slices.ContainsFunc(rest, func(m rdma.MachineID) bool { return g.nodes[m].Configuration().ID == before })
			})
			g.world.Machine(cm).Kill()
			suspect(g, rest, cm)
		},
	} {
		for seed := uint64(1); seed < 20; seed += 2 { // deaths are known
			simulate(t, sim.Options{Seed: seed}, 7, 3, func(g *group) {
				violated := g.violated
				g.violated = func(f string, args ...any) { t.Helper(); violated(order+": "+f, args...) }
				g.settled(7)
				cm, second := g.cm(), g.others()[0]
				rest := slices.DeleteFunc(g.others(), func(m rdma.MachineID) bool { return m == second })
				for _, m := range append([]rdma.MachineID{cm}, rest...) { // it hears nothing
					g.world.Cut(m, second)
				}
				suspected(g, cm, second, rest)
				g.settled(5)
			})
		}
	}
}

// Nobody waits for the lease of a machine of which it is known that it is no more.
// One that is cut off may live, and so may one that is silent where nobody knows
// of deaths: their leases have run out when NEW-CONFIG-COMMIT is sent.
func TestNoWaitForTheDead(t *testing.T) {
	for _, c := range []struct {
		name         string
		seed         uint64 // in odd worlds deaths are known
		isCut, waits bool
	}{
		{"dead", 1, false, false},
		{"dead, unknown to anybody", 2, false, true},
		{"cut off", 3, true, true},
	} {
		for _, isCM := range []bool{false, true} {
			simulate(t, sim.Options{Seed: c.seed}, 5, 3, func(g *group) {
				g.settled(5)
				victim := g.others()[0]
				if isCM {
					victim = g.cm()
				}
				rest := slices.DeleteFunc(append(g.others(), g.cm()), func(m rdma.MachineID) bool { return m == victim })
				// Long before its lease runs out, as a broken connection would tell.
				if c.isCut {
					g.cut([]rdma.MachineID{victim}, rest, g.world.Cut)
				} else {
					g.world.Machine(victim).Kill()
				}
				g.lines = nil
				for _, m := range rest {
					g.at(m, func(n *node) { n.Suspect(victim) })
				}
				g.settled(4)
				if len(g.lines) != 1 {
					t.Fatalf("%s, CM %v: %v", c.name, isCM, g.lines)
				}
				waited := g.lines[0].Committed.Sub(g.lines[0].Acked)
				if c.waits != (waited > leaseLength/4) {
					t.Errorf("%s, CM %v: waited for %v", c.name, isCM, waited)
				}
			})
		}
	}
}

// A machine that is well again answers, however late the failure of an earlier probe
// was noticed.
func TestProbeAfterALateFailure(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 3, 2, func(g *group) {
		other := g.others()[0]
		g.at(g.cm(), func(n *node) {
			g.cut([]rdma.MachineID{g.cm()}, []rdma.MachineID{other}, g.world.Cut)
			first := n.probes.probe([]rdma.MachineID{other}, time.Microsecond)[0]
			n.process.Sleep(2 * time.Millisecond) // the card gives up
			g.cut([]rdma.MachineID{g.cm()}, []rdma.MachineID{other}, g.world.Mend)
			second := n.probes.probe([]rdma.MachineID{other}, time.Millisecond)[0]
			if !errors.Is(first.err, rdma.ErrBroken) || second.err != nil {
				t.Errorf("cut off: %v; well: %v", first.err, second.err)
			}
		})
	})
}
