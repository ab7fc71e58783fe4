package test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestIdleHostsFail: a cluster of five idle hosts, whose lease threads remind them of their beats, and that keeps its
// configuration itself. A machine that stands still for half a lease keeps it. One that stands still for longer, is cut
// off, hears nobody or is heard by nobody, loses it within the bound of a busy cluster, and comes back. A link that is cut costs one of its
// two machines at most, however fast it flaps. None of the other machines is left out.
func TestIdleHostsFail(t *testing.T) {
	h := newHosts(t, 5)
	f := newJoiningFleet(t, 3, newPeersAt(t, h.net))
	f.hosts = h
	f.start()
	f.awaitWhole()
	f.grow()
	f.grow()
	f.letIn()
	length, ok := f.leases()
	if !ok {
		t.Skip("leases are not kept by a thread of their own")
	}
	rounds := 1
	if nightly {
		rounds = 20
	}
	for round := range rounds {
		for _, withCM := range []bool{false, true} {
			f.pauseIdle(f.idleVictim(withCM, round), length)
		}
		for _, fault := range idleFaults {
			for _, withCM := range []bool{false, true} {
				f.failIdle(fault, f.idleVictim(withCM, round), length)
			}
		}
		for _, half := range []time.Duration{length / 8, 3 * length / 2, 8 * length} {
			f.flapIdle(f.idleVictim(false, round), half, length)
		}
	}
}

// idleFaults are those for which a machine has to lose its lease.
var idleFaults = []hostFault{
	{"stopped", func(_ *hosts, victim *machine) func() {
		victim.signal(syscall.SIGSTOP)
		return func() { victim.signal(syscall.SIGCONT) }
	}},
	hostCutOff,
	{"heard by nobody", func(h *hosts, victim *machine) func() {
		return forOthers(victim, func(other int) func() { return h.dropUnlessSame(victim.id, other) })
	}},
	{"hears nobody", func(h *hosts, victim *machine) func() {
		return forOthers(victim, func(other int) func() { return h.dropUnlessSame(other, victim.id) })
	}},
}

// forOthers begins something for each machine, and returns a function that ends all of it.
func forOthers(victim *machine, begin func(other int) (end func())) func() {
	var ends []func()
	for other := range victim.fleet.machines {
		ends = append(ends, begin(other))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// idleVictim returns the CM, or another machine, in turn.
func (f *fleet) idleVictim(isCM bool, round int) *machine {
	cm := f.cm()
	if isCM {
		return cm
	}
	return f.machines[(cm.id+1+round%(len(f.machines)-1))%len(f.machines)]
}

// pauseIdle stops an idle machine for half a lease, again and again. On a quiet computer it keeps its lease.
func (f *fleet) pauseIdle(victim *machine, length time.Duration) {
	t := f.t
	t.Helper()
	before, begun := f.configuration().ID, time.Now()
	for range 10 {
		victim.signal(syscall.SIGSTOP)
		time.Sleep(length / 2)
		victim.signal(syscall.SIGCONT)
		time.Sleep(2 * length)
	}
	late := time.Since(begun) - 25*length
	after := f.configuration().ID
	t.Logf("machine %d stopped ten times for half a lease, %v late in all: %d configurations", victim.id, ms(late), after-before)
	if after != before && late < length/4 {
		t.Errorf("machine %d stopped for half a lease of %v has lost it", victim.id, length)
	}
	f.awaitWhole()
}

// failIdle does something to an idle machine for which it loses its lease, and returns when everything is whole again.
func (f *fleet) failIdle(fault hostFault, victim *machine, length time.Duration) {
	t := f.t
	t.Helper()
	isCM := f.cm() == victim
	begun := time.Now()
	end := fault.begin(f.hosts, victim)
	var active time.Duration
	f.wait(fmt.Sprintf("the others to go on without machine %d, %s", victim.id, fault.name), func() (ok bool) {
		active, ok = f.activeWithout(victim, begun)
		return ok
	})
	suspected := f.suspectedAfter(victim, begun, active)
	f.noneBut([]*machine{victim}, begun)
	end()
	mended := time.Now()
	f.awaitWhole()
	t.Logf("machine %d (CM: %v) %s: suspected after %v, others active after %v, whole %v after the end", victim.id, isCM, fault.name, ms(suspected), ms(active), ms(time.Since(mended)))
	if suspected > 2*length+slack || active > 10*length+slack {
		t.Errorf("machine %d (CM: %v) %s, leases of %v: suspected after %v, others active after %v", victim.id, isCM, fault.name, length, suspected, active)
	}
}

// flapIdle cuts the link between a machine and another, neither of which is the CM, and mends it, again and again, each for half a period.
func (f *fleet) flapIdle(victim *machine, half, length time.Duration) {
	t, h := f.t, f.hosts
	t.Helper()
	other := f.machines[(victim.id+1)%len(f.machines)]
	if other == f.cm() {
		other = f.machines[(other.id+1)%len(f.machines)]
	}
	before, begun := f.configuration().ID, time.Now()
	for time.Since(begun) < 16*length {
		there, back := h.drop(victim.id, other.id), h.drop(other.id, victim.id)
		time.Sleep(half)
		there()
		back()
		time.Sleep(half)
	}
	after, ended := f.configuration().ID, time.Now()
	f.noneBut([]*machine{victim, other}, begun)
	if !f.isMember(victim) && !f.isMember(other) {
		t.Errorf("machines %d and %d have both been left out for the link between them", victim.id, other.id)
	}
	f.awaitWhole()
	t.Logf("the link of machines %d and %d down and up every %v: %d configurations, whole %v after the end", victim.id, other.id, half, after-before, ms(time.Since(ended)))
}

// noneBut fails the test if another machine than these has been left out since a moment.
func (f *fleet) noneBut(victims []*machine, since time.Time) {
	f.t.Helper()
	for _, m := range f.machines {
		if !slices.Contains(victims, m) && !f.isMember(m) {
			f.t.Errorf("machine %d has been left out since %v, and nothing had happened to it", m.id, since.Format(time.TimeOnly))
		}
	}
}
