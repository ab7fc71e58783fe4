package test

import (
	"strings"
	"testing"
	"time"
)

// TestFlappingHosts: the cable of a host, its own interface, and the link between two hosts go down and up
// again and again, faster than a lease and slower. The others make progress meanwhile, or stand still until
// TCP has found the host silent, but no client of theirs waits for longer than it may. When it is over,
// everything is whole, and what all clients were told is strictly serializable.
//
// Packets that are lost at random, repeated, delayed or reordered are not tried here: that takes netem or
// nftables, which kernels without these modules do not have, or relays: TestRelayedHosts.
func TestFlappingHosts(t *testing.T) {
	h := newHosts(t, 3)
	f := newJoiningFleet(t, 3, newPeersAt(t, h.net))
	f.hosts = h
	f.start()
	f.awaitWhole()
	f.letIn()
	l := newListLoad(t, f)
	l.begin()
	faster, slower := l.lease/8, 3*l.lease/2
	flaps := []hostFault{
		hostCutOff,
		{"without its interface", func(h *hosts, victim *machine) func() { return h.unplug(victim.id) }},
		{"apart from another", func(h *hosts, victim *machine) func() {
			other := (victim.id + 1) % len(f.machines)
			there, back := h.drop(victim.id, other), h.drop(other, victim.id)
			return func() { there(); back() }
		}},
	}
	rounds := 10
	if !nightly {
		rounds, flaps = 1, flaps[:1]
	}
	for n := range rounds {
		for i, flap := range flaps {
			victim := f.machines[(n+i)%len(f.machines)]
			for _, half := range []time.Duration{faster, slower} {
				l.flap(flap, victim, half)
			}
		}
	}
	l.end()
	l.judge()
}

// flap begins and ends a fault for some leases, each for half a period, and returns when everything is
// whole again and all clients get answers.
func (l *listLoad) flap(fault hostFault, victim *machine, half time.Duration) {
	t, f := l.t, l.fleet
	t.Helper()
	acknowledged, before := l.answers.count(), f.configuration().ID
	begun := time.Now()
	for time.Since(begun) < 8*l.lease {
		end := fault.begin(f.hosts, victim)
		time.Sleep(half)
		end()
		time.Sleep(half)
	}
	answered := l.answers.count() - acknowledged
	ended := time.Now()
	f.awaitWhole()
	l.awaitAnswers(ended, func(int) bool { return true })
	longest := l.waits.longest(begun, victim)
	t.Logf("machine %d %s, every %v: %d answers meanwhile, %d configurations, longest wait at the others %v; whole and all clients answered after %v",
		victim.id, fault.name, 2*half, answered, f.configuration().ID-before, ms(longest), ms(time.Since(ended)))
	if longest > l.bound() {
		t.Errorf("machine %d %s, every %v: a client of another machine waited %v, longer than %v", victim.id, fault.name, 2*half, longest, l.bound())
	}
}

// TestOneWayHosts: a host is heard by nobody, or hears nobody, or has lost its own interface. The others go
// on without it, and it comes back.
func TestOneWayHosts(t *testing.T) {
	h := newHosts(t, 3)
	f := newJoiningFleet(t, 3, newPeersAt(t, h.net))
	f.hosts = h
	f.start()
	f.awaitWhole()
	f.letIn()
	l := newListLoad(t, f)
	l.begin()
	rounds := 1
	if nightly {
		rounds = 20
	}
	each := func(do func(other int) func()) func() {
		var ends []func()
		for other := range f.machines {
			ends = append(ends, do(other))
		}
		return func() {
			for _, end := range ends {
				end()
			}
		}
	}
	for n := range rounds {
		for i, fault := range []hostFault{
			{"is heard by nobody", func(h *hosts, victim *machine) func() {
				return each(func(other int) func() { return h.dropUnlessSame(victim.id, other) })
			}},
			{"hears nobody", func(h *hosts, victim *machine) func() {
				return each(func(other int) func() { return h.dropUnlessSame(other, victim.id) })
			}},
			{"has lost its interface", func(h *hosts, victim *machine) func() { return h.unplug(victim.id) }},
		} {
			l.befall(fault, f.machines[(n+i)%len(f.machines)])
		}
	}
	l.end()
	l.judge()
}

// TestDatagramsBlocked: a firewall lets through TCP of a host, and not UDP. Its machine is left out, comes back in vain, and
// says why; when UDP is let through, it comes back.
func TestDatagramsBlocked(t *testing.T) {
	h := newHosts(t, 3)
	f := newJoiningFleet(t, 3, newPeersAt(t, h.net))
	f.hosts = h
	f.start()
	f.awaitWhole()
	victim := f.machines[2]
	mend := h.dropDatagrams(victim.id)
	begin := time.Now()
	f.wait("the machine to say that no datagrams come", func() bool {
		_, found := victim.find(begin, func(e *event) bool { return strings.HasPrefix(e.Message, "no datagram of a machine arrives") })
		return found
	})
	mend()
	f.awaitWhole()
}
