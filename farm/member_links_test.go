package farm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

const simulatedLease = 10 * time.Millisecond // of aFewMembers

// writers makes every machine that is up write to the root object again and again, and returns the
// time at which each has last committed.
func (g *members) writers() (last map[rdma.MachineID]time.Duration) {
	last = make(map[rdma.MachineID]time.Duration)
	for _, id := range slices.Sorted(maps.Keys(g.up)) {
		m := g.up[id]
		g.world.Machine(id).Process().Go(func() {
			for g.ended[id] == nil && g.up[id] == m {
				err := m.Transactions().Run(context.Background(), func(t *txn.Tx) error {
					b, err := t.Write(m.Root())
					if err == nil {
						b[9]++
					}
					return err
				})
				if last[id] = g.world.Now(); err != nil {
					delete(last, id)
				}
				m.clock.Sleep(500 * time.Microsecond)
			}
		})
	}
	return last
}

// apart returns two machines that are not the CM and have the root object.
func (g *members) apart() (a, b rdma.MachineID) {
	c := g.configuration()
	p, _ := c.Placement(g.up[c.CM].Root().Addr.Region())
	have := slices.DeleteFunc(p.Replicas(), func(x rdma.MachineID) bool { return x == c.CM })
	return have[0], have[1]
}

// cutLink cuts the link from a to b, or both ways.
func (g *members) cutLink(a, b rdma.MachineID, isOneWay bool) {
	g.world.Cut(a, b)
	if !isOneWay {
		g.world.Cut(b, a)
	}
}

// members returns those of the current configuration.
func (g *members) configuration() *cluster.Configuration {
	c, err := g.store.Load()
	if err != nil {
		g.Fatal(err)
	}
	return c
}

// One link is cut for good, one way or both, while every machine writes. Within ten lease times one
// of its two ends is evicted, with the reason, and the others commit again. That machine is not
// admitted while the link is cut, and is admitted once the link is mended.
func TestBrokenLink(t *testing.T) {
	for _, n := range []int{3, 5} {
		for way, isOneWay := range map[string]bool{"both ways": false, "one way": true} {
			for seed := range uint64(4) {
				aFewMembers(t, 20+seed, n, 3, func(g *members) {
					last := g.writers()
					g.world.Outside().Sleep(3 * simulatedLease)
					a, b := g.apart()
					if seed%2 == 1 {
						a, b = b, a
					}
					g.cutLink(a, b, isOneWay)
					cut := g.world.Now()
					g.until("one of the two is evicted", func() bool { return len(g.ended) > 0 })
					g.world.Outside().Sleep(cut + 10*simulatedLease - g.world.Now())
					for id := range g.up {
						if g.ended[id] == nil && last[id] < cut+5*simulatedLease {
							t.Errorf("%d machines, seed %d, %s: machine %d has committed last %v after the cut", n, seed, way, id, last[id]-cut)
						}
					}
					c := g.configuration()
					out := a
					if g.ended[out] == nil {
						out = b
					}
					reason := g.ended[out]
					if len(g.ended) != 1 || len(c.Machines) != n-1 || !errors.Is(reason, membership.ErrEvicted) || !strings.Contains(reason.Error(), "do not reach each other") {
						t.Fatalf("%d machines, seed %d, %s: ended %v, members %v", n, seed, way, g.ended, c.Machines)
					}
					g.kill(out)
					g.boot(out)
					g.world.Outside().Sleep(50 * simulatedLease)
					if g.up[out] != nil {
						t.Errorf("machine %d is let in while its link is cut", out)
					}
					g.world.Mend(a, b)
					g.world.Mend(b, a)
					g.until("it is back", func() bool { return g.up[out] != nil && g.whole() })
				})
			}
		}
	}
}

// A link that breaks again and again causes fewer and fewer evictions: a machine evicted for it
// stays out for longer each time.
func TestFlappingLink(t *testing.T) {
	aFewMembers(t, 30, 3, 3, func(g *members) {
		a, b := g.apart()
		g.writers()
		evictions := 0
		begin := g.world.Now()
		const during = 400 * simulatedLease
		for g.world.Now() < begin+during {
			g.cutLink(a, b, false)
			g.world.Outside().Sleep(6 * simulatedLease)
			g.world.Mend(a, b)
			g.world.Mend(b, a)
			g.world.Outside().Sleep(3 * simulatedLease)
			for _, id := range []rdma.MachineID{a, b} {
				if g.ended[id] != nil {
					evictions++
					g.kill(id)
					g.boot(id)
				} else if g.up[id] != nil {
					g.up[id].Membership().Disconnected(a + b - id) // as if it had something to send
				}
			}
		}
		// 10, 20, 40, 80, 160 lease times and so on.
		if evictions < 2 || evictions > 7 {
			t.Errorf("%d evictions in %d lease times", evictions, during/simulatedLease)
		}
		g.until("all are back", func() bool { return len(g.up) == 3 && g.whole() })
		g.add(g.configuration().CM, 7)
	})
}

// A link that has broken for a moment, a few times, evicts nobody: the two connect anew.
func TestLinkBreaksForAMoment(t *testing.T) {
	aFewMembers(t, 31, 3, 3, func(g *members) {
		last := g.writers()
		a, b := g.apart()
		for range 3 {
			g.world.Outside().Sleep(5 * simulatedLease)
			g.cutLink(a, b, false)
			g.world.Outside().Sleep(simulatedLease)
			g.world.Mend(a, b)
			g.world.Mend(b, a)
		}
		mended := g.world.Now()
		g.world.Outside().Sleep(5 * simulatedLease)
		for id := range g.up {
			if g.ended[id] != nil || last[id] < mended+2*simulatedLease {
				t.Errorf("machine %d: %v, committed last %v after the link was mended", id, g.ended[id], last[id]-mended)
			}
		}
	})
}

// A link is broken between two machines, each of which alone has a region, so neither can be
// evicted. Operations that do not need the link go on: all regions become active again, also for
// the two machines, and transactions interrupted by the break are decided. Operations that need the
// link wait until it is mended.
func TestBrokenLinkNobodyCanGo(t *testing.T) {
	for way, isOneWay := range map[string]bool{"both ways": false, "one way": true} {
		for seed := range uint64(4) {
			aFewMembers(t, 40+seed, 4, 1, func(g *members) {
				// If no transaction is in progress between the two, their logs hold nothing for
				// which connecting would have to wait.
				wasQuiet, isCut := seed%2 == 1, false
				c := g.configuration()
				a, b := (c.CM+1)%4, (c.CM+2)%4
				at := [4]region.Ptr{}
				for id := range rdma.MachineID(4) {
					at[id] = g.object(id)
				}
				last := make(map[[2]rdma.MachineID]time.Duration) // by machine and whose object
				for id := range rdma.MachineID(4) {
					for whose := range rdma.MachineID(4) {
						m := g.up[id]
						needsLink := id == a && whose == b || id == b && whose == a
						g.world.Machine(id).Process().Go(func() {
							for wasQuiet && needsLink && !isCut {
								m.clock.Sleep(500 * time.Microsecond)
							}
							for g.up[id] == m {
								if write(m, at[whose]) == nil {
									last[[2]rdma.MachineID{id, whose}] = g.world.Now()
								}
								m.clock.Sleep(500 * time.Microsecond)
							}
						})
					}
				}
				g.world.Outside().Sleep(3 * simulatedLease)
				g.cutLink(a, b, isOneWay)
				cut := g.world.Now()
				isCut = true
				check := func(what string, since time.Duration, needsLink bool) {
					for id := range rdma.MachineID(4) {
						for whose := range rdma.MachineID(4) {
							isOver := id == a && whose == b || id == b && whose == a
							if isOver && !needsLink {
								continue
							}
							if at := last[[2]rdma.MachineID{id, whose}]; at < since {
								t.Errorf("seed %d, %s, %s: machine %d has last written machine %d's object %v after the cut", seed, way, what, id, whose, at-cut)
							}
						}
					}
				}
				g.world.Outside().Sleep(15 * simulatedLease)
				check("cut", cut+10*simulatedLease, false)
				if c := g.configuration(); len(g.ended) > 0 || len(c.Machines) != 4 || len(c.Lost) > 0 {
					t.Errorf("seed %d, %s: ended %v, members %v, lost %v", seed, way, g.ended, c.Machines, c.Lost)
				}
				g.world.Mend(a, b)
				g.world.Mend(b, a)
				mended := g.world.Now()
				g.world.Outside().Sleep(15 * simulatedLease)
				check("mended", mended+10*simulatedLease, true)
			})
		}
	}
}
