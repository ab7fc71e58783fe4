package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// A Core, in the end of an Overlap, is machines that can go on alone: a majority of
// the configuration with a full replica of every region and all links among them.
// They stay healthy, and every other machine has a fault that stays for good, unless
// it has none. Everybody who reaches the core has to make progress.

// coreMax bounds the time until then, counted from when the faults come. If no
// majority of the configuration is left that has not been restarted, machines have
// to meet first, and may wait for those that do not come back.
const (
	coreMax    = 10 * leaseTime
	meetingMax = 10 * time.Second * 65 / 64 // as long on the slowest clock
)

// lasting are the faults that can stay for good at a machine outside of the core.
var lasting = []Fault{Kill, Pause, Slow, Cut, CutOneWay, LinkCut, StoreCut, Wedge, FullMemory}

// awaitCore has faults come that last, waits for the progress of the core, more than once,
// and mends everything.
func (t *overlapInjector) awaitCore() error {
	away, bound := t.pickAway()
	t.world.Note(fmt.Sprintf("core without %v", away))
	faults := t.hinderForGood(away)
	defer func() {
		for _, f := range slices.Backward(faults) {
			f.undo()
		}
		t.changed()
	}()
	if err := t.awaitProgress(away, faults, bound); err != nil {
		return err
	}
	// Transactions that were under way when the faults came may be the only ones that
	// committed. So the faults stay until the machines have noticed them and go on.
	for range coreRounds {
		t.think = (*client).ponder
		t.outside.Sleep(coreMax)
		t.think = (*client).pause
		if err := t.awaitProgress(away, faults, coreMax); err != nil {
			return err
		}
	}
	return nil
}

// ponder is what clients think while it is only waited for that time passes: they do something
// now and then, so that whoever is to notice anything can.
func (c *client) ponder() { c.process.Sleep(time.Duration(c.rng.Int64N(int64(leaseTime)))) }

// coreRounds is how often progress is waited for while the faults stay.
const coreRounds = 2

// awaitProgress waits until everybody who reaches the core has committed once more.
func (t *overlapInjector) awaitProgress(away []int, faults []lastingFault, bound time.Duration) error {
	before := slices.Clone(t.commits)
	for end := t.world.Now() + bound; t.failure == nil; t.outside.Sleep(100 * time.Microsecond) {
		late := t.late(before, faults)
		switch {
		case t.members.err != nil:
			return t.members.err
		case len(late) == 0:
			return nil
		case t.world.Now() > end && !t.areKeptOut(late):
			return fmt.Errorf("no progress: machines %v reach the core and have committed nothing for %v; away are %v: %s", late, bound, away, t.members.state())
		}
	}
	return nil
}

// keptOutMax bounds for how long a machine that is told so is not let in because its links
// have broken before, the time of a reconfiguration included.
const keptOutMax = 640*leaseTime + coreMax

// areKeptOut says whether all of these machines are not let in because of links that have
// broken before, and so are not late.
func (t *overlapInjector) areKeptOut(machines []int) bool {
	return !slices.ContainsFunc(machines, func(i int) bool {
		at := t.members.keptOut[i]
		return at == 0 || t.world.Now()-at > keptOutMax
	})
}

// late returns who reaches the core and has committed nothing more. Of two machines
// that do not reach each other one may be left out, and none else.
func (t *overlapInjector) late(before []int, faults []lastingFault) (late []int) {
	for _, i := range t.all() {
		if t.hinders[i] == 0 && t.commits[i] == before[i] {
			late = append(late, i)
		}
	}
	for _, f := range faults {
		if f.kind == LinkCut && t.commits[f.at] == before[f.at] && t.commits[f.other] == before[f.other] {
			late = append(late, f.at, f.other)
		}
	}
	return late
}

// A lastingFault is at a machine, or at the link between it and another one.
type lastingFault struct {
	kind      Fault
	at, other int
	undo      func()
}

// pickAway draws machines that are not needed, and returns in how much time the
// others have to go on.
func (t *overlapInjector) pickAway() (away []int, bound time.Duration) {
	bound = coreMax
	counts := t.isWell
	if !t.copies.suffice(counts) {
		bound += meetingMax
		counts = anybody
	}
	n := t.options.Farm.Machines
	without := func(away []int) bool {
		return 2*(n-len(away)) > n && t.isMajorityWithout(away, counts) && t.copies.suffice(func(m rdma.MachineID) bool { return counts(m) && !slices.Contains(away, int(m)) })
	}
	for _, i := range t.rng.Perm(n) {
		if more := append(away, i); (len(away) == 0 || t.rng.IntN(4) > 0) && without(more) {
			away = more
		}
	}
	return away, bound
}

// isMajorityWithout says whether the members that count, without some machines, are a
// majority also of a configuration that the others of these are joining.
func (t *overlapInjector) isMajorityWithout(away []int, counts func(rdma.MachineID) bool) bool {
	now := t.copies.now
	if now == nil {
		return true
	}
	left, all := 0, len(now.Machines)
	for _, m := range now.Machines {
		if counts(m) && !slices.Contains(away, int(m)) {
			left++
		}
	}
	for _, i := range away {
		if m := rdma.MachineID(i); !t.copies.isMember(m) && t.machine(i).Process() != nil {
			all++
		}
	}
	return 2*left > all
}

// hinderForGood has a fault come to each of some machines.
func (t *overlapInjector) hinderForGood(away []int) (faults []lastingFault) {
	kinds := slices.DeleteFunc(slices.Clone(lasting), func(f Fault) bool { return !slices.Contains(t.plan.Kinds, f) })
	for _, i := range away {
		if len(kinds) == 0 || t.machine(i).Process() == nil {
			continue
		}
		f := lastingFault{kind: kinds[t.rng.IntN(len(kinds))], at: i}
		if f.kind == LinkCut {
			if f.other = t.pickOther(away); f.other < 0 {
				continue
			}
		}
		t.came(f.kind)
		t.world.Note(fmt.Sprintf("%v at %d for good", f.kind, i))
		f.undo = t.forGood(f)
		faults = append(faults, f)
	}
	return faults
}

// pickOther draws a machine of the core without which the rest of it suffices, or -1.
func (t *overlapInjector) pickOther(away []int) int {
	for _, i := range t.rng.Perm(t.options.Farm.Machines) {
		if t.hinders[i] == 0 && !slices.Contains(away, i) && t.copies.suffice(func(m rdma.MachineID) bool {
			return t.hinders[m] == 0 && int(m) != i && !slices.Contains(away, int(m))
		}) {
			return i
		}
	}
	return -1
}

// forever is longer than anything waits.
const forever = time.Hour

// forGood begins a fault that lasts, and returns a function that ends it.
func (t *overlapInjector) forGood(f lastingFault) (undo func()) {
	i := f.at
	if f.kind == Kill {
		lose := t.kill(i, t.loses())
		return func() { t.revive(i, lose) }
	}
	t.hinders[i]++
	mend := func() {}
	switch f.kind {
	case Pause:
		t.machine(i).Pause(forever)
		mend = t.machine(i).Resume
	case Wedge:
		t.machine(i).Hang(forever)
		mend = t.machine(i).Resume
	case FullMemory:
		t.machine(i).Fill(t.left())
		mend = t.machine(i).Relieve
	case Slow:
		t.machine(i).Slow(forever, t.upTo(slowMax))
		mend = func() { t.machine(i).Slow(0, 0) }
	case StoreCut:
		t.members.store.away[i]++
		mend = func() { t.members.store.away[i]-- }
	case Cut, CutOneWay:
		mend = t.cut(t.linksOf([]int{i}, f.kind == CutOneWay))
	case LinkCut:
		t.hinders[f.other]++
		a, b := rdma.MachineID(i), rdma.MachineID(f.other)
		again := t.cut([][2]rdma.MachineID{{a, b}, {b, a}}[t.rng.IntN(2):]) // one way or both
		mend = func() {
			again()
			t.hinders[f.other]--
		}
	}
	return func() {
		mend()
		t.hinders[i]--
	}
}

// cut cuts links, and returns what mends them.
func (t *overlapInjector) cut(links [][2]rdma.MachineID) (mend func()) {
	t.each(links, t.world.Cut)
	return func() { t.each(links, t.world.Mend) }
}
