package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn/step"
)

// An Overlap describes faults that come at any time: while replicas are filled, and at any step of
// the recovery from other faults. They may hit the machine that has the last full replica. But a
// machine loses its memory only if another has a copy of the data, so in the end every region must
// exist.
type Overlap struct {
	Kinds []Fault
	// Open bounds the number of faults at one time. Max is the number of faults in all; 0 means as
	// many as come in the run's Duration, with pauses of about Calm.
	Open, Max int
	// Hold bounds the duration of a fault.
	Hold time.Duration
	// Lost is how many of a hundred machines that die lose their memory.
	Lost int
	// Spare keeps a majority of the machines, with a full replica of every region, free of
	// faults.
	Spare bool
	// Core makes faults last for good in the end, while a core of machines continues without
	// the machines that have them: see awaitCore.
	Core bool
	// Early lets faults come while the machines start for the first time, too.
	Early bool
}

// overlapping are the kinds of faults that an Overlap can have, besides Wedge,
// FullMemory, OldCopy, Drain, KillAtMove, Order, KillAtHandover, Resize, KillAtResize and ShrinkAtHandover.
var overlapping = []Fault{
	Spike, Pause, PowerCut, Kill, KillAtStep, KillInRecovery, FailDomain, Cut, CutOneWay,
	Rolling, LinkCut, Flap, Slow, Storm, StoreCut, StoreFailures,
}

// overlapInjector injects faults that overlap, each on a routine of its own.
type overlapInjector struct {
	*injector
	*health
	plan    *Overlap
	open    int // faults under way
	count   int // faults so far
	watches []*watch
	end     time.Duration // the time when all faults have to be over
	// older are copies of machines' memories, each taken once, when its machine was down.
	older []*sim.Shelf
}

// A watch waits for one of some steps, of a transaction or of recovery.
type watch struct {
	step      step.Step
	recovery  []recovery.Step // nil: it waits for step
	countdown int
	strike    func(machine int)
}

// newOverlapInjector returns an injector of j's Overlap.
func newOverlapInjector(j *injector) *overlapInjector {
	return &overlapInjector{injector: j, health: j.health, plan: j.options.Overlap, older: make([]*sim.Shelf, j.options.Farm.Machines)}
}

// earlyMax bounds the time after its start at which an early fault hits a machine.
const earlyMax = 30 * time.Millisecond

// startAll starts all machines, with faults or without.
func (t *overlapInjector) startAll() error {
	if !t.plan.Early {
		return t.injector.startAll()
	}
	t.members.early = true
	for _, i := range t.all() {
		t.members.boot(i)
	}
	t.end = t.world.Now() + t.upTo(earlyMax)
	if err := t.injectUntilEnd(); err != nil {
		return err
	}
	return t.heal()
}

// injectAll injects faults until the time is up or there were enough, and returns when all
// have ended.
func (t *overlapInjector) injectAll() error {
	t.end, t.count = t.until, 0
	if err := t.injectUntilEnd(); err != nil || t.failure != nil || !t.plan.Core {
		return err
	}
	return t.awaitCore()
}

// injectUntilEnd starts one fault after the other, up to plan.Open at a time, with calm times
// between.
func (t *overlapInjector) injectUntilEnd() error {
	for t.calm(); t.goesOn() && (t.plan.Max == 0 || t.count < t.plan.Max); t.calm() {
		if t.open >= t.plan.Open || len(t.plan.Kinds) == 0 {
			continue
		}
		f := t.plan.Kinds[t.rng.IntN(len(t.plan.Kinds))]
		t.world.Note(f.String())
		t.open++
		t.count++
		t.outside.Go(func() {
			t.inject(f)
			t.open--
		})
	}
	for t.open > 0 {
		t.outside.Sleep(time.Millisecond)
	}
	t.watches = nil
	return t.members.err
}

// goesOn reports whether more faults are to come.
func (t *overlapInjector) goesOn() bool {
	return t.world.Now() < t.end && t.failure == nil && t.members.err == nil
}

// heal waits until the state is as before the first fault.
func (t *overlapInjector) heal() error {
	for end := t.world.Now() + wholeMax; !t.members.Whole() || !t.members.isResized(); t.outside.Sleep(time.Millisecond) {
		t.undrainAll()
		switch {
		case t.members.err != nil:
			return t.members.err
		case t.failure != nil:
			return nil
		case t.world.Now() > end:
			return fmt.Errorf("not whole again %v after the last fault: %s", wholeMax, t.members.state())
		}
	}
	return nil
}

// inject begins a fault and ends it.
func (t *overlapInjector) inject(f Fault) {
	switch f {
	case Spike:
		t.injector.inject(f)
	case Pause, Slow, StoreCut, Wedge, FullMemory:
		t.hinder(f, t.target())
	case PowerCut:
		t.die(f, t.all())
	case Kill:
		t.die(f, []int{t.target()})
	case OldCopy:
		machines := []int{t.target()}
		if t.rng.IntN(2) == 0 {
			machines = t.rng.Perm(t.options.Farm.Machines)
		}
		t.die(f, machines) // the first one gets an older copy of its memory
	case FailDomain:
		d := t.machine(t.any()).Domain()
		t.die(f, slices.DeleteFunc(t.all(), func(i int) bool { return t.machine(i).Domain() != d }))
	case KillAtStep:
		t.await(f, &watch{step: step.Step(t.rng.IntN(step.Count)), countdown: 1 + t.rng.IntN(stepsMax)}, stepPatience)
	case KillInRecovery:
		steps := t.cluster.RecoverySteps()
		at := t.rng.IntN(len(steps))
		t.await(f, &watch{recovery: steps[at : at+1], countdown: 1 + t.rng.IntN(1<<t.rng.IntN(onceBits))}, recoveryPatience)
	case Rolling:
		t.roll(f, 2+t.rng.IntN(2*t.options.Farm.Machines))
	case Cut, CutOneWay, LinkCut, Flap:
		t.cutLinks(f)
	case Storm:
		t.storm(f)
	case StoreFailures:
		t.failStore(f)
	case Drain:
		t.drain(f)
	case KillAtMove:
		t.killAtMove(f)
	case Order:
		t.order(f)
	case KillAtHandover:
		t.killAtHandover(f)
	case Resize:
		t.resize(f)
	case KillAtResize:
		t.killAtResize(f)
	case ShrinkAtHandover:
		t.shrinkAtHandover(f)
	}
}

// countFault counts a fault.
func (t *overlapInjector) countFault(f Fault) {
	t.result.Faults[f]++
	t.noteChange()
}

// hold draws the duration of a fault.
func (t *overlapInjector) hold() time.Duration { return t.upTo(t.plan.Hold) }

// target draws a machine; those that the others depend on are more likely.
func (t *overlapInjector) target() int {
	now := t.copies.now
	switch t.rng.IntN(4) {
	case 0:
		if now != nil {
			return int(now.CM)
		}
	case 1, 2:
		last := slices.DeleteFunc(t.all(), func(i int) bool { return !t.copies.isOnly(rdma.MachineID(i), anybody) })
		if len(last) > 0 {
			return last[t.rng.IntN(len(last))]
		}
	}
	return t.any()
}

func anybody(rdma.MachineID) bool { return true }

// mayFail reports whether the plan allows a fault of these machines now.
func (t *overlapInjector) mayFail(machines ...int) bool {
	isNew := t.copies.now == nil || len(t.copies.now.Regions) == 0 // at first there is no region to be spared
	return !t.plan.Spare || isNew || t.copies.suffice(func(m rdma.MachineID) bool {
		return t.isWell(m) && !slices.Contains(machines, int(m))
	})
}

// mayLose reports whether the memory of a machine may be lost. The others must be able to continue
// without it. If it is a member, none of the other members may be about to be evicted.
func (t *overlapInjector) mayLose(i int) bool {
	m := rdma.MachineID(i)
	if !t.copies.isMember(m) {
		return !t.copies.isOnly(m, anybody)
	}
	if t.resizes() && t.copies.hasSingle() {
		return false // a region may just be made there, which no other machine has
	}
	return t.members.isSteady(t.copies.now) && t.copies.canLose(m)
}

// resizes reports whether the plan changes the number of replicas.
func (t *overlapInjector) resizes() bool {
	return slices.ContainsFunc(t.plan.Kinds, func(f Fault) bool { return f == Resize || f == KillAtResize || f == ShrinkAtHandover })
}

// loses draws whether a machine that dies loses its memory.
func (t *overlapInjector) loses() bool { return t.rng.IntN(100) < t.plan.Lost }

// kill ends the process of a machine, if it has one. If lose is set, the machine is to lose its
// memory: kill destroys it if mayLose allows that now. Otherwise it returns true, and revive tries
// again before the machine's next life.
func (t *overlapInjector) kill(i int, lose bool) (later bool) {
	t.hinders[i]++
	t.nodes[i] = nil
	if lose && t.mayLose(i) {
		t.destroy(i)
		lose = false
	} else {
		t.machine(i).Kill()
		t.copyMemory(i)
	}
	t.cluster.Died([]int{i})
	return lose
}

// copyMemory keeps a copy of the memory of a machine that is down. destroy may later put this older
// copy in place of the memory.
func (t *overlapInjector) copyMemory(i int) {
	if t.older[i] == nil && slices.Contains(t.plan.Kinds, OldCopy) {
		t.older[i] = t.machine(i).Copy()
	}
}

// destroy loses the memory of a machine, or puts an older copy in its place.
func (t *overlapInjector) destroy(i int) {
	t.result.Faults[Destroy]++
	t.copies.destroyed(rdma.MachineID(i))
	if older := t.older[i]; older != nil {
		t.older[i] = nil
		t.machine(i).Kill()
		t.machine(i).Restore(older)
		return
	}
	t.machine(i).Destroy()
}

// revive starts a killed machine again.
func (t *overlapInjector) revive(i int, lose bool) {
	if lose && t.mayLose(i) {
		t.destroy(i)
	}
	t.members.boot(i)
	t.hinders[i]--
	t.noteChange()
}

// die kills machines at one moment, and starts each again after a while.
func (t *overlapInjector) die(f Fault, machines []int) {
	machines = slices.DeleteFunc(slices.Clone(machines), func(i int) bool { return t.machine(i).Process() == nil })
	if len(machines) == 0 || !t.mayFail(machines...) {
		return
	}
	t.countFault(f)
	left, over := len(machines), t.outside.NewEvent()
	for _, i := range machines {
		losesMemory := t.loses() || (f == OldCopy && i == machines[0])
		stillToLose := t.kill(i, losesMemory)
		t.outside.Go(func() {
			t.outside.Sleep(t.hold())
			t.revive(i, stillToLose)
			if left--; left == 0 {
				over.Set()
			}
		})
	}
	over.Wait()
}

// await kills a machine at a step, if the step comes in time: the machine of the step, or one
// on which the others depend.
func (t *overlapInjector) await(f Fault, w *watch, patience time.Duration) {
	struck, own := t.outside.NewEvent(), t.rng.IntN(2) == 0
	victim, lose := -1, false
	w.strike = func(i int) {
		if !own {
			i = t.target()
		}
		if t.machine(i).Process() == nil || !t.mayFail(i) {
			return
		}
		t.countFault(f)
		if w.recovery == nil {
			t.result.Steps[w.step]++
		} else {
			t.result.Recovery[w.recovery[0]]++
		}
		victim, lose = i, t.kill(i, t.loses())
		struck.Set()
	}
	t.watches = append(t.watches, w)
	came := struck.WaitFor(patience)
	t.watches = slices.DeleteFunc(t.watches, func(x *watch) bool { return x == w })
	if came || victim >= 0 { // a strike just when patience ends counts, too
		t.outside.Sleep(t.hold())
		t.revive(victim, lose)
	}
}

// onStep is called at each step of a transaction.
func (t *overlapInjector) onStep(machine int, s step.Step) {
	t.onWatched(machine, func(w *watch) bool { return w.recovery == nil && w.step == s })
}

// onRecovering is called at each step of recovery.
func (t *overlapInjector) onRecovering(machine int, s recovery.Step) {
	t.onWatched(machine, func(w *watch) bool { return slices.Contains(w.recovery, s) })
}

// onWatched counts down the watches for which matches returns true. A watch that reaches 0 calls
// its strike.
func (t *overlapInjector) onWatched(machine int, matches func(*watch) bool) {
	for _, w := range t.watches {
		if w.countdown > 0 && matches(w) {
			if w.countdown--; w.countdown == 0 {
				w.strike(machine)
			}
		}
	}
}

// servesMax is how long a rolling kill waits for a machine.
const servesMax = 500 * time.Millisecond

// roll kills machines in order, beginning with a drawn one: each as soon as the one before
// serves again, filled or not.
func (t *overlapInjector) roll(f Fault, times int) {
	for i := t.any(); times > 0 && t.failure == nil && t.members.err == nil; i = (i + 1) % t.options.Farm.Machines {
		times--
		if t.machine(i).Process() == nil || !t.mayFail(i) {
			continue
		}
		t.countFault(f)
		lose := t.kill(i, t.loses())
		t.outside.Sleep(t.upTo(darkMax))
		t.revive(i, lose)
		for end := t.world.Now() + servesMax; t.members.up[i] == nil && t.world.Now() < end; {
			t.outside.Sleep(100 * time.Microsecond)
		}
	}
}

// hinder gives a machine a fault for a while.
func (t *overlapInjector) hinder(f Fault, i int) {
	if t.machine(i).Process() == nil || !t.mayFail(i) {
		return
	}
	t.countFault(f)
	t.hinders[i]++
	d := t.hold()
	switch f {
	case Pause:
		t.machine(i).Pause(d)
	case Slow:
		t.machine(i).Slow(d, t.upTo(slowMax))
	case StoreCut:
		t.members.store.away[i]++
	case Wedge:
		d = t.maybeLong(d)
		t.machine(i).Hang(d)
	case FullMemory:
		d = t.maybeLong(d)
		t.machine(i).Fill(t.left())
	}
	t.outside.Sleep(d)
	switch f {
	case StoreCut:
		t.members.store.away[i]--
	case FullMemory:
		t.machine(i).Relieve()
	}
	t.hinders[i]--
	t.noteChange()
}

// maybeLong draws the duration of a wedge or full memory: one in longFaults of them lasts longFault
// times as long as other faults. That is long enough for all reactions to a machine that does
// nothing, and for machines that die to come back meanwhile.
func (t *overlapInjector) maybeLong(d time.Duration) time.Duration {
	if t.rng.IntN(longFaults) == 0 {
		d *= longFault
	}
	return d
}

const (
	longFaults = 4
	longFault  = 5
)

// left draws the free pages of full memory: none in half of all cases, otherwise at most the
// pages of a few logs.
func (t *overlapInjector) left() int { return t.rng.IntN(1 + t.rng.IntN(2)*leftMax) }

const leftMax = 200

// slowMax bounds how long a turn waits for a slow machine's processor. A lease lasts for a few such waits.
const slowMax = 2 * time.Millisecond

// cutLinks cuts links for a while, once or again and again.
func (t *overlapInjector) cutLinks(f Fault) {
	var links [][2]rdma.MachineID
	var away []int
	switch f {
	case Cut, CutOneWay:
		away = t.some((t.options.Farm.Machines - 1) / 2)
		links = t.linksOf(away, f == CutOneWay)
	default:
		a := t.target()
		b := (a + 1 + t.rng.IntN(t.options.Farm.Machines-1)) % t.options.Farm.Machines
		away = []int{a, b} // either may be given up
		// The link is cut one way or both.
		links = [][2]rdma.MachineID{{rdma.MachineID(a), rdma.MachineID(b)}, {rdma.MachineID(b), rdma.MachineID(a)}}[:1+t.rng.IntN(2)]
	}
	if len(away) == 0 || !t.mayFail(away...) {
		return
	}
	t.countFault(f)
	times := 1
	if f == Flap {
		times = 2 + t.rng.IntN(flapsMax)
	}
	for _, i := range away {
		t.hinders[i]++
	}
	for range times {
		t.each(links, t.world.Cut)
		t.outside.Sleep(t.hold() / time.Duration(times))
		t.each(links, t.world.Mend)
		t.outside.Sleep(t.upTo(t.plan.Hold) / time.Duration(times) / 4)
	}
	for _, i := range away {
		t.hinders[i]--
	}
	t.noteChange()
}

const flapsMax = 20

// each calls do for the two ends of every link.
func (t *overlapInjector) each(links [][2]rdma.MachineID, do func(from, to rdma.MachineID)) {
	for _, l := range links {
		do(l[0], l[1])
	}
}

// storm makes datagrams arrive twice and very late, for a while.
func (t *overlapInjector) storm(f Fault) {
	t.countFault(f)
	t.disturbs++
	t.world.Storm(sim.Storm{Doubled: t.rng.IntN(200), Late: t.rng.IntN(5), LateMax: 5 * leaseTime})
	t.outside.Sleep(t.hold())
	t.world.Storm(sim.Storm{})
	t.disturbs--
	t.noteChange()
}

// failStore makes operations of the store fail, for a while.
func (t *overlapInjector) failStore(f Fault) {
	if t.plan.Spare {
		return // this fault would hit all machines, and some must be spared
	}
	t.countFault(f)
	t.disturbs++
	t.members.store.failing = 1 + t.rng.IntN(400)
	t.outside.Sleep(t.hold())
	t.members.store.failing = 0
	t.disturbs--
	t.noteChange()
}
