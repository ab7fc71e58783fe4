package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn/step"
)

// A Fault is a kind of fault.
type Fault uint8

const (
	Spike              Fault = iota // messages between some machines are slow
	Pause                           // a machine stops for a while, perhaps for longer than a lease
	PowerCut                        // all machines stop at once; their memory is saved
	PowerCutAtStep                  // all machines stop at once, at a step of a transaction; their memory is saved
	PowerCutInRecovery              // all machines stop at once, and once more while they recover; their memory is saved
	PowerCutUnsaved                 // all machines stop at once, and some do not complete their save
	Kill                            // a machine stops and keeps its memory
	KillAtStep                      // a machine stops, at a step of a transaction, and keeps its memory
	KillInRecovery                  // a machine stops and keeps its memory, and a second one does while they recover
	Destroy                         // a machine stops, and its memory is lost
	FailDomain                      // all machines of a failure domain stop
	Cut                             // some machines are cut off from all others
	CutOneWay                       // some machines are cut off from all others in one direction
	CutInRecovery                   // a machine is killed, and another one cut off while it is suspected and replaced
	single                          // not a fault: the kinds above come one after the other, unless there is an Overlap

	// iota - 1: single takes no number.
	Rolling          Fault = iota - 1 // machines are killed one after the other, each as soon as the one before serves again
	LinkCut                           // two machines cannot reach each other, or one cannot reach the other
	Flap                              // a link is cut and mended again and again
	Slow                              // a machine's processors are slow
	Storm                             // datagrams arrive twice, and later than a lease lasts
	StoreCut                          // a machine cannot reach the store of configurations
	StoreFailures                     // the store fails now and then, before or after it has carried out a request
	Wedge                             // a machine does nothing for a while, but keeps its leases
	FullMemory                        // a machine's memory is full: it can use only the storage that it gives back
	OldCopy                           // a machine stops, and its memory is replaced by an older copy of it
	Drain                             // not a fault: a machine is drained for a while, so that regions move
	KillAtMove                        // machines stop just when a move begins or ends, and keep their memory
	Order                             // not a fault: an operator moves a replica
	KillAtHandover                    // machines stop just when primaries are handed over, and keep their memory
	Resize                            // not a fault: an operator changes the number of replicas
	KillAtResize                      // machines stop just when regions get or lose replicas, and keep their memory
	ShrinkAtHandover                  // regions lose replicas, and then get some, just after primaries were handed over, while machines stop
	faults
)

// Faults is the number of kinds.
const Faults = int(faults)

var faultNames = [faults]string{"spike", "pause", "power cut", "power cut at a step", "power cut in recovery", "power cut without a save",
	"kill", "kill at a step", "kill in recovery", "destroy", "failure of a domain", "cut", "one-way cut", "cut in recovery",
	"rolling kill", "cut link", "flapping link", "slow machine", "storm", "cut from the store", "failures of the store", "wedge", "full memory", "old copy", "drain", "kill at a move", "order", "kill at a handover", "resize", "kill at a resize", "shrink at a handover"}

func (f Fault) String() string { return faultNames[f] }

// FaultNamed returns the kind with this name.
func FaultNamed(name string) (Fault, bool) {
	i := slices.Index(faultNames[:], name)
	return Fault(max(i, 0)), i >= 0
}

const (
	// spikeMax is the longest delay of a message in a spike.
	spikeMax = 2 * time.Millisecond
	// pauseMax is the longest time of a pause or a cut; it is longer than any lease.
	pauseMax = 40 * time.Millisecond
	// darkMax is the longest time that machines stay down.
	darkMax = 2 * time.Millisecond
	// stepPatience is how long a crash waits for its step.
	stepPatience = 10 * time.Millisecond
	// stepsMax bounds how often a step of a transaction is reached before the crash.
	// recoveryStepsMax bounds how many steps of recovery come before it, unless a certain step is
	// drawn.
	stepsMax         = 8
	recoveryStepsMax = 200
	// onceBits: in half of all cases the crash comes at a step's first time, since some steps are
	// reached only once. It comes at the eighth time at the latest.
	onceBits = 4
	// cutStepsMax is recoveryStepsMax for a cut. The first step is the suspicion: then the lease of
	// the machine that is cut off still lasts for a while.
	cutStepsMax = 8
	// recoveryPatience is how long a cut waits for its step: longer than a lease.
	recoveryPatience = 50 * time.Millisecond
	// wholeMax bounds the time until every region has all its replicas again.
	wholeMax = 30 * time.Second
)

// injector injects faults, one after the other.
type injector struct {
	*run
	// countdown counts down each time that a transaction reaches the step in the field step. At 0,
	// armed, if not nil, is called with the machine, and then struck is set.
	armed     func(machine int)
	step      step.Step
	countdown int
	struck    clock.Event
	// recovering counts down each time that recovery reaches one of the steps in seconds. At 0,
	// second, if not nil, is called with the machine.
	second     func(machine int)
	seconds    []recovery.Step
	recovering int
	health     *health // nil if the cluster has none
}

func (j *injector) startAll() error { return j.start(j.all()) }

func (j *injector) healthOf() *health { return j.health }

// disturb calls do, which injects a fault that affects all machines and returns when the fault is
// over. Meanwhile the machines' health counts the fault.
func (j *injector) disturb(do func()) {
	h := j.health
	if h == nil {
		do()
		return
	}
	h.disturbs++
	do()
	h.disturbs--
	h.noteChange()
}

// injectAll injects faults until the time is up, and repairs each before the next.
func (j *injector) injectAll() error {
	kinds := slices.DeleteFunc(slices.Clone(j.options.Faults), func(f Fault) bool { return !j.cluster.Takes(f) })
	for j.calm(); j.world.Now() < j.until && j.failure == nil; j.calm() {
		if len(kinds) == 0 {
			continue
		}
		if err := j.heal(); err != nil { // heal the effects of lost datagrams
			return fmt.Errorf("while it was calm: %w", err)
		}
		f := kinds[j.rng.IntN(len(kinds))]
		j.world.Note(f.String())
		j.disturb(func() { j.inject(f) })
		if err := j.heal(); err != nil {
			return fmt.Errorf("after %v: %w", f, err)
		}
	}
	return nil
}

// calm waits for a random time of about Calm.
func (j *injector) calm() { j.outside.Sleep(j.upTo(2 * j.options.Calm)) }

// upTo draws a duration below d.
func (j *injector) upTo(d time.Duration) time.Duration { return time.Duration(j.rng.Int64N(int64(d))) }

// any draws a machine.
func (j *injector) any() int { return j.rng.IntN(j.options.Farm.Machines) }

func (r *run) machine(i int) *sim.Machine { return r.world.Machine(rdma.MachineID(i)) }

// inject injects one fault. A fault that needs a transaction or a recovery in a certain step
// becomes a plain one if it finds none.
func (j *injector) inject(f Fault) {
	switch f {
	case Spike:
		j.result.Faults[f]++
		for range 1 + j.rng.IntN(4) {
			j.world.Spike(rdma.MachineID(j.any()), rdma.MachineID(j.any()), j.upTo(spikeMax), j.upTo(spikeMax))
		}
	case Pause:
		j.result.Faults[f]++
		d := j.upTo(pauseMax)
		j.machine(j.any()).Pause(d)
		j.outside.Sleep(d) // wait for the end of the pause: the machine may notice then that it was evicted
	case PowerCut:
		j.powerCut(f)
	case PowerCutAtStep:
		if !j.atStep(func(int) { j.powerCut(f) }) {
			j.powerCut(PowerCut)
		}
	case PowerCutInRecovery:
		j.powerCut(PowerCut)
		j.inRecovery(func(int) { j.powerCut(f) }, recoveryStepsMax)
	case PowerCutUnsaved:
		j.result.Faults[f]++
		lost := j.unsaved()
		j.world.PowerCut(func(m *sim.Machine) bool { return !slices.Contains(lost, int(m.ID())) })
		j.cluster.Died(j.all())
	case Kill:
		j.kill(f, j.any())
	case KillAtStep:
		if !j.atStep(func(i int) { j.kill(f, i) }) {
			j.kill(Kill, j.any())
		}
	case KillInRecovery:
		j.kill(Kill, j.any())
		if j.options.Farm.Replicas > 2 && j.options.Farm.Machines > 4 {
			j.inRecovery(func(i int) { j.kill(f, i) }, recoveryStepsMax)
		}
	case Destroy:
		j.result.Faults[f]++
		i := j.any()
		j.machine(i).Destroy()
		j.cluster.Died([]int{i})
	case FailDomain:
		j.result.Faults[f]++
		j.failDomain(j.machine(j.any()).Domain())
	case Cut, CutOneWay:
		j.cut(f)
	case CutInRecovery:
		j.cutInRecovery()
	}
}

// some draws between 0 and n machines.
func (j *injector) some(n int) []int {
	machines := j.rng.Perm(j.options.Farm.Machines)
	return machines[:j.rng.IntN(n+1)]
}

// unsaved draws machines that do not complete their save: those of one failure domain, or fewer
// machines than a region has replicas. It draws less than half of all machines, because the others
// must be able to decide by themselves.
func (j *injector) unsaved() []int {
	fewer := (j.options.Farm.Machines - 1) / 2
	d := j.machine(j.any()).Domain()
	domain := slices.DeleteFunc(j.all(), func(i int) bool { return j.machine(i).Domain() != d })
	if j.rng.IntN(2) == 0 && len(domain) <= fewer {
		return domain
	}
	most := min(fewer, j.options.Farm.Replicas-1)
	return j.rng.Perm(j.options.Farm.Machines)[:1+j.rng.IntN(most)]
}

// powerCut stops all machines, whose memory is saved, and counts a fault of this kind.
func (j *injector) powerCut(kind Fault) {
	j.result.Faults[kind]++
	j.world.PowerCut(nil)
	j.cluster.Died(j.all())
}

// kill stops machine i, which keeps its memory, and counts a fault of this kind.
func (j *injector) kill(kind Fault, i int) {
	j.result.Faults[kind]++
	j.machine(i).Kill()
	j.cluster.Died([]int{i})
}

// failDomain fails a failure domain, with or without losing its memory.
func (j *injector) failDomain(d int) {
	j.world.FailDomain(d, j.rng.IntN(2) == 0)
	j.cluster.Died(slices.DeleteFunc(j.all(), func(i int) bool { return j.machine(i).Domain() != d }))
}

// cut cuts off some machines for a while: less than half of them, and fewer than a region has
// replicas, because machines that are cut off for long lose their replicas.
func (j *injector) cut(kind Fault) {
	most := min((j.options.Farm.Machines-1)/2, j.options.Farm.Replicas-1)
	links := j.linksOf(j.some(most), kind == CutOneWay)
	j.sever(kind, links)
	j.mend(links)
}

// cutInRecovery kills a machine, and cuts off another one at one of the first steps of the recovery
// that follows.
func (j *injector) cutInRecovery() {
	n := j.options.Farm.Machines
	first := j.any()
	links := j.linksOf([]int{(first + 1 + j.rng.IntN(n-1)) % n}, j.rng.IntN(4) == 0)
	j.kill(Kill, first)
	j.inRecovery(func(int) {
		j.sever(CutInRecovery, links)
		j.struck.Set()
	}, cutStepsMax)
	if j.struck.WaitFor(recoveryPatience) {
		j.mend(links)
	}
	j.second = nil
}

// linksOf returns the links between the machines in away and all others. With oneWay it draws a
// direction, and returns only the links in that direction.
func (j *injector) linksOf(away []int, oneWay bool) (links [][2]rdma.MachineID) {
	inward := j.rng.IntN(2) == 0
	for _, a := range away {
		for b := range j.options.Farm.Machines {
			if slices.Contains(away, b) {
				continue
			}
			if !oneWay || inward {
				links = append(links, [2]rdma.MachineID{rdma.MachineID(b), rdma.MachineID(a)})
			}
			if !oneWay || !inward {
				links = append(links, [2]rdma.MachineID{rdma.MachineID(a), rdma.MachineID(b)})
			}
		}
	}
	return links
}

// sever cuts links, and counts a fault of this kind, unless there are no links.
func (j *injector) sever(kind Fault, links [][2]rdma.MachineID) {
	if len(links) > 0 {
		j.result.Faults[kind]++
	}
	for _, l := range links {
		j.world.Cut(l[0], l[1])
	}
}

// mend waits for a while and then mends links.
func (j *injector) mend(links [][2]rdma.MachineID) {
	j.outside.Sleep(j.upTo(pauseMax))
	for _, l := range links {
		j.world.Mend(l[0], l[1])
	}
}

// atStep calls strike when a machine reaches a drawn step, and reports whether that happened in
// time.
func (j *injector) atStep(strike func(machine int)) bool {
	j.armed, j.step, j.countdown = strike, step.Step(j.rng.IntN(step.Count)), 1+j.rng.IntN(stepsMax)
	struck := j.struck.WaitFor(stepPatience)
	j.armed = nil
	return struck
}

// onStep is called at each step of a transaction.
func (j *injector) onStep(machine int, s step.Step) {
	if j.armed == nil || s != j.step {
		return
	}
	if j.countdown--; j.countdown == 0 {
		strike := j.armed
		j.armed = nil
		j.result.Steps[s]++
		strike(machine)
		j.struck.Set()
	}
}

// inRecovery makes onRecovering call strike in the recovery that follows: at one of the first
// steps, of any kind, or at a certain kind of step.
func (j *injector) inRecovery(strike func(machine int), first int) {
	j.second, j.seconds = strike, j.options.Second
	if j.seconds == nil {
		j.seconds = j.cluster.RecoverySteps()
	}
	if j.rng.IntN(4) == 0 {
		j.recovering = 1 + j.rng.IntN(first)
		return
	}
	at := j.rng.IntN(len(j.seconds))
	j.seconds = j.seconds[at : at+1]
	j.recovering = 1 + j.rng.IntN(1<<j.rng.IntN(onceBits))
}

// onRecovering is called at each step of recovery.
func (j *injector) onRecovering(machine int, s recovery.Step) {
	if j.second == nil || !slices.Contains(j.seconds, s) {
		return
	}
	if j.recovering--; j.recovering == 0 {
		strike := j.second
		j.second = nil
		j.result.Recovery[s]++
		j.disturb(func() { strike(machine) })
	}
}

// heal starts machines that are down until all are up, and waits until the cluster is ready for
// another fault.
func (j *injector) heal() error {
	for end := j.world.Now() + wholeMax; ; {
		down := slices.DeleteFunc(j.all(), func(i int) bool { return j.machine(i).Process() != nil })
		switch {
		case j.world.Now() > end:
			return fmt.Errorf("not whole again after %v", wholeMax)
		case len(down) > 0:
			j.outside.Sleep(j.upTo(darkMax))
			if err := j.start(down); err != nil && err != errDied {
				return err
			}
		case !j.cluster.Whole():
			j.outside.Sleep(time.Millisecond)
		default:
			j.second = nil
			return nil
		}
	}
}
