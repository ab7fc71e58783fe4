package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// A Core, at the end of an Overlap, is a set of machines that can continue without the others:
// a majority of the configuration with a full replica of every region and all links among
// them. They stay healthy, and every other machine has a fault that lasts for good, or none.
// Every machine that reaches the core has to make progress.

// coreMax bounds the time until the core has made progress, counted from the beginning of the
// faults. If no majority of the configuration has kept running, machines first have to restart
// together (meetingMax), and may wait for machines that do not come back.
const (
	coreMax    = 10 * leaseTime
	meetingMax = 10 * time.Second * 65 / 64 // the slowest clock takes this long for 10 s
)

// lasting are the faults that a machine outside of the core can keep until the end.
var lasting = []Fault{Kill, Pause, Slow, Cut, CutOneWay, LinkCut, StoreCut, Wedge, FullMemory}

// awaitCore injects faults that last, and waits for the progress of the core, several times. In the
// end it mends everything.
func (t *overlapInjector) awaitCore() error {
	away, bound := t.pickAway()
	t.world.Note(fmt.Sprintf("core without %v", away))
	faults := t.hinderForGood(away)
	defer func() {
		for _, f := range slices.Backward(faults) {
			f.undo()
		}
		t.noteChange()
	}()
	if err := t.awaitProgress(away, faults, bound); err != nil {
		return err
	}
	// Transactions that were running when the faults began may be the only ones that
	// committed. So the faults stay until the machines have noticed them and commit again.
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

// ponder is a longer pause, for clients while the test lets time pass: they run a transaction now
// and then, so that machines can notice faults.
func (c *client) ponder() { c.process.Sleep(time.Duration(c.rng.Int64N(int64(leaseTime)))) }

// coreRounds is how often progress is awaited while the faults last.
const coreRounds = 2

// awaitProgress waits until every machine that reaches the core has committed once more.
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

// keptOutMax bounds how long a machine is excluded because its links have broken before, including
// the time of a reconfiguration.
const keptOutMax = 640*leaseTime + coreMax

// areKeptOut reports whether all of these machines are excluded because of links that broke
// earlier. Such machines are not late.
func (t *overlapInjector) areKeptOut(machines []int) bool {
	return !slices.ContainsFunc(machines, func(i int) bool {
		at := t.members.keptOut[i]
		return at == 0 || t.world.Now()-at > keptOutMax
	})
}

// late returns the machines that reach the core and have committed nothing since before, which has
// the machines' numbers of commits at an earlier time. If the link between two machines is cut, one
// of them may be evicted: these two are late only if neither has committed anything.
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

// A lastingFault is a fault of a machine, or of the link between it and another one.
type lastingFault struct {
	kind      Fault
	at, other int
	undo      func()
}

// pickAway draws machines that the core does not need, and returns the time within which the
// others have to make progress.
func (t *overlapInjector) pickAway() (away []int, bound time.Duration) {
	bound = coreMax
	counts := t.isWell
	if !t.copies.suffice(counts) {
		bound += meetingMax
		counts = anybody
	}
	n := t.options.Farm.Machines
	isCoreWithout := func(away []int) bool {
		isLeft := func(m rdma.MachineID) bool { return counts(m) && !slices.Contains(away, int(m)) }
		return 2*(n-len(away)) > n && t.isMajorityWithout(away, counts) && t.copies.suffice(isLeft)
	}
	for _, i := range t.rng.Perm(n) {
		if more := append(away, i); (len(away) == 0 || t.rng.IntN(4) > 0) && isCoreWithout(more) {
			away = more
		}
	}
	return away, bound
}

// isMajorityWithout reports whether a majority is left without the machines in away: the members
// for which counts is true must be a majority of the configuration. Running machines in away that are not
// members are counted as if they had been added to it.
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
	return 2*left > all && t.isMajorityOfRunning(away, now)
}

// isMajorityOfRunning reports whether a majority is left without the machines in away even if members
// that have failed before are evicted first, while those in away still answer.
func (t *overlapInjector) isMajorityOfRunning(away []int, now *cluster.Configuration) bool {
	running, left, all := 0, 0, 0
	for _, m := range now.Machines {
		isAway, runs := slices.Contains(away, int(m)), t.hinders[m] == 0 && t.machine(int(m)).Process() != nil
		if runs {
			running++
		}
		switch {
		case isAway && runs:
			all++
		case !isAway && t.isWell(m): // others, such as one that is about to join again, may be evicted
			all++
			left++
		}
	}
	canEvict := 2*running > len(now.Machines)
	return !canEvict || 2*left > all
}

// hinderForGood gives each of some machines a fault that lasts.
func (t *overlapInjector) hinderForGood(away []int) (faults []lastingFault) {
	kinds := slices.DeleteFunc(slices.Clone(lasting), func(f Fault) bool { return !slices.Contains(t.plan.Kinds, f) })
	for _, i := range away {
		if len(kinds) == 0 || t.machine(i).Process() == nil {
			continue
		}
		f := lastingFault{kind: kinds[t.rng.IntN(len(kinds))], at: i}
		if f.kind == LinkCut {
			f.other = t.pickOther(away)
			if f.other < 0 {
				continue
			}
		}
		t.countFault(f.kind)
		t.world.Note(fmt.Sprintf("%v at %d for good", f.kind, i))
		f.undo = t.forGood(f)
		faults = append(faults, f)
	}
	return faults
}

// pickOther draws a machine of the core that the rest of the core can do without, or -1.
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
		mendLink := t.cut([][2]rdma.MachineID{{a, b}, {b, a}}[t.rng.IntN(2):]) // one way or both
		mend = func() {
			mendLink()
			t.hinders[f.other]--
		}
	}
	return func() {
		mend()
		t.hinders[i]--
	}
}

// cut cuts links, and returns a function that mends them.
func (t *overlapInjector) cut(links [][2]rdma.MachineID) (mend func()) {
	t.each(links, t.world.Cut)
	return func() { t.each(links, t.world.Mend) }
}
