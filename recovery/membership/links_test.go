package membership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// strangers returns two members that are not the CM.
func (g *group) strangers() (a, b rdma.MachineID) {
	o := g.others()
	slices.Sort(o)
	return o[0], o[1]
}

func (g *group) members() []rdma.MachineID {
	c, _ := g.store.MemoryStore.Load()
	return c.Machines
}

// Two members that do not reach each other, one way or both, and that say so, are
// resolved by evicting one within a few leases, also if only one of them has noticed. The
// other one and the CM stay.
func TestApartIsResolved(t *testing.T) {
	for _, oneWay := range []bool{false, true} {
		for _, lower := range []bool{false, true} { // who notices
			simulate(t, sim.Options{Seed: 11, Drift: 100}, 4, 3, func(g *group) {
				cm := g.cm()
				a, b := g.strangers()
				g.world.Cut(a, b)
				if !oneWay {
					g.world.Cut(b, a)
				}
				begin := g.world.Now()
				who, whom := b, a
				if lower {
					who, whom = a, b
				}
				g.at(who, func(n *node) { n.Disconnected(whom) })
				g.until("one is evicted", func() bool { return len(g.members()) == 3 })
				took := g.world.Now() - begin
				// Two leases, a report, and the configurations before and after.
				if took < 2*leaseLength || took > 6*leaseLength {
					t.Errorf("one way %v, noticed by %d: evicted after %v", oneWay, who, took)
				}
				if !slices.Contains(g.members(), cm) || slices.Contains(g.members(), b) {
					t.Errorf("members %v, want all but machine %d, nothing else being different", g.members(), b)
				}
				g.until("who is evicted knows", func() bool { return g.nodes[b].Err() != nil })
				if err := g.nodes[b].Err(); !strings.Contains(err.Error(), "do not reach each other") {
					t.Errorf("evicted: %v", err)
				}
			})
		}
	}
}

// A link that works when it is tried costs no machine its membership, however often it was reported
// as silent; nor does a link that is mended in time.
func TestApartForAMoment(t *testing.T) {
	simulate(t, sim.Options{Seed: 12, Drift: 100}, 4, 3, func(g *group) {
		a, b := g.strangers()
		for range 4 {
			g.at(a, func(n *node) { n.Disconnected(b) })
			g.world.Outside().Sleep(3 * leaseLength)
		}
		g.world.Cut(a, b)
		g.at(a, func(n *node) { n.Disconnected(b) })
		g.world.Outside().Sleep(leaseLength)
		for _, who := range []rdma.MachineID{a, g.cm()} {
			if far := g.nodes[who].Status().Apart; !slices.Equal(far, []rdma.MachineID{b}) {
				t.Errorf("machine %d: apart from %v", who, far)
			}
		}
		g.world.Mend(a, b)
		g.world.Outside().Sleep(20 * leaseLength)
		for _, who := range g.members() {
			if far := g.nodes[who].Status().Apart; len(far) > 0 {
				t.Errorf("in the end machine %d is apart from %v", who, far)
			}
		}
		if len(g.members()) != 4 || g.events["evicted"] > 0 {
			t.Errorf("members %v", g.members())
		}
	})
}

// If nobody can be evicted, everybody stays. That is reported once, and no configurations follow
// that change nothing.
func TestApartWithoutACover(t *testing.T) {
	simulate(t, sim.Options{Seed: 13}, 4, 1, func(g *group) {
		a, b := g.strangers()
		g.allocate(a)
		g.allocate(b)
		g.world.Cut(a, b)
		failed := g.events["failed"]
		g.at(a, func(n *node) { n.Disconnected(b) })
		g.world.Outside().Sleep(5 * leaseLength)
		before, _ := g.store.MemoryStore.Load()
		g.world.Outside().Sleep(50 * leaseLength)
		after, _ := g.store.MemoryStore.Load()
		if len(after.Machines) != 4 || len(after.Lost) > 0 || after.ID != before.ID {
			t.Errorf("configuration %d after %d, members %v, lost %v", after.ID, before.ID, after.Machines, after.Lost)
		}
		if n := g.events["failed"] - failed; n != 1 {
			t.Errorf("said %d times", n)
		}
	})
}

// A machine that holds its lease and never comes to the end of a step is given up after a
// bound.
func TestEndlessStep(t *testing.T) {
	simulate(t, sim.Options{Seed: 14}, 4, 3, func(g *group) {
		a, _ := g.strangers()
		n := g.nodes[a]
		n.cfg.Endpoint.Handle(kindNewConfig, func(call.Peer, []byte) ([]byte, error) {
			n.process.Sleep(time.Hour)
			return nil, nil
		})
		begin := g.world.Now()
		g.at(g.cm(), func(n *node) { n.Renew() })
		g.until("it is evicted", func() bool { return !slices.Contains(g.members(), a) })
		if took := g.world.Now() - begin; took < stepPatience*leaseLength || took > (stepPatience+10)*leaseLength {
			t.Errorf("after %v", took)
		}
	})
}

// Bytes that are no report, and reports by machines that are no members, change nothing.
func TestApartRefuses(t *testing.T) {
	simulate(t, sim.Options{Seed: 15}, 3, 3, func(g *group) {
		n := g.nodes[g.cm()]
		a, b := g.strangers()
		for _, arg := range [][]byte{nil, {1}, {1, 2, 3}, {1, 2, 3, 4, 5}} {
			if _, err := n.onApart(g.nodes[a].self, arg); err == nil {
				t.Errorf("report %v is taken", arg)
			}
		}
		if _, err := g.nodes[a].onExcluded(n.self, []byte{1}); err == nil {
			t.Error("an exclusion without a configuration is taken")
		}
		for range 50 {
			_, _ = n.onApart(call.Peer{Machine: a, Incarnation: 1}, append(encodeID(1), byte(b), 0)) // an earlier life
			_, _ = g.nodes[a].onExcluded(call.Peer{Machine: b, Incarnation: 1}, encodeID(1<<30))
			_, _ = g.nodes[a].onExcluded(n.self, encodeID(1)) // an old one
			g.world.Outside().Sleep(leaseLength / 4)
		}
		if len(g.members()) != 3 || g.nodes[a].Err() != nil {
			t.Errorf("members %v, %v", g.members(), g.nodes[a].Err())
		}
	})
}

// A machine that does not reach a member is not let in, and one that was evicted for that
// not before its time, which doubles.
func TestAdmits(t *testing.T) {
	simulate(t, sim.Options{Seed: 16}, 3, 3, func(g *group) {
		g.at(g.cm(), func(n *node) {
			c := n.Configuration()
			out := call.Peer{Machine: 9, Incarnation: 5}
			if err := n.admits(c, 9, []rdma.MachineID{7}); err != nil {
				t.Errorf("who does not reach a machine that is no member: %v", err)
			}
			if err := n.admits(c, 9, c.Machines[:1]); !IsPassing(err) {
				t.Errorf("who does not reach a member: %v", err)
			}
			for _, want := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 640} {
				n.exclude([]call.Peer{out}, c, []cluster.Link{cluster.LinkOf(9, 1)})
				x := n.mu.links.exclusions[9]
				if left := x.until.Sub(n.cfg.Clock.Now()); left != want*leaseLength || n.admits(c, 9, nil) == nil {
					t.Errorf("stays out for %v, want %d leases", left, want)
				}
				if want > 20 { // the test need not wait
					x.until = n.cfg.Clock.Now()
				}
				n.cfg.Clock.Sleep(x.until.Sub(n.cfg.Clock.Now()))
				if err := n.admits(c, 9, nil); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// Broken links are listed in order, each once, although both ends report it: the result does not
// depend on the order of a map.
func TestBrokenLinksInOrder(t *testing.T) {
	var l links
	l.init()
	now := time.Unix(100, 0)
	var want []cluster.Link
	for a := rdma.MachineID(0); a < 4; a++ {
		for b := a + 1; b < 4; b++ {
			want = append(want, cluster.LinkOf(a, b))
			for _, d := range []direction{{call.Peer{Machine: a}, call.Peer{Machine: b}}, {call.Peer{Machine: b}, call.Peer{Machine: a}}} {
				l.breakages[d] = &breakage{last: now, since: now.Add(-linkPatience * leaseLength)}
			}
		}
	}
	if got := l.lastingLocked(now, leaseLength); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A direction of a link is broken, and lasts as broken, for as long as the constants say: its
// condition follows from what its member reports, and when.
func TestConditionsOfALink(t *testing.T) {
	const tick = leaseLength / 10
	type report struct {
		at       time.Duration // in lease times
		isBroken bool
	}
	every := func(from, to time.Duration) (list []report) {
		for at := from; at < to; at++ {
			list = append(list, report{at, true})
		}
		return list
	}
	flaps := func(n, apart time.Duration) (list []report) {
		for i := range n {
			list = append(list, report{apart * i, true}, report{apart*i + 1, false})
		}
		return append(list, report{apart * n, true})
	}
	for _, x := range []struct {
		name    string
		reports []report
		// when the direction is whole for the first time since it broke, and lasting, in lease times;
		// -1 for never
		isWhole, isLasting time.Duration
	}{
		{"reported once", every(0, 1), reportLeases, linkPatience},
		{"reported again and again", every(0, 10), 9 + reportLeases, linkPatience},
		{"withdrawn", []report{{0, true}, {1, false}}, 1, -1},
		{"broken too often", flaps(flapsMax-1, 3), 3*(flapsMax-1) + reportLeases, 3 * (flapsMax - 1)},
		{"broken often", flaps(flapsMax-2, 3), 3*(flapsMax-2) + reportLeases, 3*(flapsMax-2) + linkPatience},
		{"broken often, in a long time", flaps(flapsMax-1, flapMemory+2), (flapMemory+2)*(flapsMax-1) + reportLeases, (flapMemory+2)*(flapsMax-1) + linkPatience},
	} {
		var l links
		l.init()
		begin := time.Unix(100, 0)
		d := direction{call.Peer{Machine: 1}, call.Peer{Machine: 2}}
		last := x.reports[len(x.reports)-1].at
		isWhole, isLasting := time.Duration(-1), time.Duration(-1)
		for at := time.Duration(0); at < (last+20)*leaseLength; at += tick {
			for _, r := range x.reports {
				if r.at*leaseLength == at {
					l.takeLocked(d, r.isBroken, begin.Add(at), leaseLength)
				}
			}
			switch now := l.breakages[d].condition(begin.Add(at), leaseLength); {
			case now == lasting && isLasting < 0:
				isLasting = at
			case now == whole && isWhole < 0 && at >= last*leaseLength:
				isWhole = at
			}
		}
		// A bound that has passed is noticed by the next tick.
		if d := isWhole - x.isWhole*leaseLength; d < 0 || d > tick {
			t.Errorf("%s: whole after %v, want %d lease times", x.name, isWhole, x.isWhole)
		}
		if want := x.isLasting * leaseLength; isLasting != want && (want >= 0 || isLasting >= 0) {
			t.Errorf("%s: lasting after %v, want %v", x.name, isLasting, want)
		}
	}
}

// A direction whose reports have ended without a withdrawal, which was lost, is broken anew by the
// next report, and not lasting at once.
func TestBrokenAnew(t *testing.T) {
	var l links
	l.init()
	begin := time.Unix(100, 0)
	d := direction{call.Peer{Machine: 1}, call.Peer{Machine: 2}}
	at := func(leases time.Duration) time.Time { return begin.Add(leases * leaseLength) }
	l.takeLocked(d, true, at(0), leaseLength)
	for i := range time.Duration(3) {
		later := 50 * (i + 1)
		if got := l.breakages[d].condition(at(later), leaseLength); got != whole {
			t.Errorf("before report %d: condition %d", i+2, got)
		}
		l.takeLocked(d, true, at(later), leaseLength)
		if got := l.breakages[d].condition(at(later), leaseLength); got != broken || l.breakages[d].times != int(i)+2 {
			t.Errorf("report %d: condition %d, broken %d times", i+2, got, l.breakages[d].times)
		}
	}
}
