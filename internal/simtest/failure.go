package simtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/txn/step"
)

// A Failing says which machines of an instance fail at one moment.
type Failing uint8

const (
	FailingMachine Failing = iota // a machine that is not the CM (SOSP'15 Figures 9 and 12)
	FailingCM                     // the CM (SOSP'15 Figure 11)
	FailingDomain                 // all machines of a failure domain that is not the CM's (SOSP'15 Figure 13)
)

func (f Failing) String() string {
	return [...]string{"a machine", "the CM", "a failure domain"}[f]
}

// A Failure describes the effects of a failure, in virtual time.
type Failure struct {
	Failed int // number of machines
	// Suspect is the time from the failure to its suspicion. Each other time is from the suspicion
	// until a step was done: the machines probed, the configuration stored, all machines committed
	// to it, all regions active, the throughput at 80 % of its former value.
	Suspect, Probed, Stored, Committed, Active, Throughput time.Duration
	// Filled is the time from the suspicion until all regions had all replicas again.
	Filled time.Duration
	// Recovered is the number of transactions that recovery decided.
	Recovered int
	// Before is the survivors' throughput before the failure, in transactions a second.
	Before float64
}

const (
	// warmUp is the time before the measurement of the throughput; measured is the time of the
	// measurement.
	warmUp   = 5 * time.Millisecond
	measured = 10 * time.Millisecond
	window   = time.Millisecond
	// phase bounds a random delay of the failure. The delay matters, because truncations are sent
	// every 5 ms, and the records that recovery finds depend on the time since then.
	phase      = 5 * time.Millisecond
	enough     = 0.8 // the share of the former throughput that counts as full
	failureMax = 10 * time.Second
)

// Fail runs a workload on a cluster, makes some of its machines fail at one moment, and returns the
// effects.
func Fail(o Options, which Failing) (Failure, error) {
	r := newRun(o)
	r.work, r.think = (*client).subscriber, func(c *client) { c.process.Yield() }
	m := &measurement{run: r, which: which}
	m.members = NewMembers(r.world, o.Farm, Hooks{
		Prepare: r.prepare, Serving: r.serving,
		Step: m.onStep, Recovering: m.onRecovery,
		Reconfigured: m.onReconfigured,
	}).(*members)
	r.cluster = m.members
	if err := r.world.Run(func() { r.fail(m.phases()) }); err != nil {
		r.fail(err)
	}
	if r.failure == nil {
		r.failure = r.checkHistory()
	}
	return m.failure, r.failure
}

// measurement is a run with one failure.
type measurement struct {
	*run
	members   *members
	which     Failing
	survivors []int
	failure   Failure
	// timeline is the first one after the failure; active is the time when it was complete.
	timeline membership.Timeline
	failed   bool
	active   time.Duration
	// outcomes counts decisions of transactions, one for each replica.
	outcomes int
}

func (m *measurement) onStep(i int, s step.Step) { m.machine(i).Process().Work(stepCosts[s]) }

// onRecovery makes a step of recovery take its time, and counts the decisions after the failure.
func (m *measurement) onRecovery(i int, s recovery.Step) {
	m.machine(i).Process().Work(recoveryCosts[s])
	if m.failed && s == recovery.StepOutcome {
		m.outcomes++
	}
}

func (m *measurement) onReconfigured(_ int, t membership.Timeline) {
	if m.failed && m.active == 0 {
		m.timeline, m.active = t, m.world.Now()
	}
}

// phases runs the measurement: start, undisturbed throughput, failure, and the recovery of
// throughput and replicas.
func (m *measurement) phases() error {
	if err := m.start(m.all()); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := m.setUp(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := m.learnRegions(); err != nil {
		return err
	}
	victims, err := m.victims()
	if err != nil {
		return err
	}
	m.survivors = slices.DeleteFunc(m.all(), func(i int) bool { return slices.Contains(victims, i) })
	for _, n := range m.nodes {
		m.startClients(n)
	}
	m.outside.Sleep(warmUp)
	begin := m.committed()
	m.outside.Sleep(measured)
	before := m.committed() - begin
	m.outside.Sleep(time.Duration(m.rng.Int64N(int64(phase))))
	m.failure.Before, m.failure.Failed = float64(before)/measured.Seconds(), len(victims)

	at := m.world.Now()
	for _, i := range victims {
		m.machine(i).Kill()
	}
	m.cluster.Died(victims)
	m.failed = true
	full, err := m.fullThroughput(float64(before) * float64(window) / float64(measured))
	if err != nil {
		return err
	}
	if err := m.stop(); err != nil {
		return err
	}
	filled, err := m.awaitFilled()
	m.evaluate(at, full, filled)
	return err
}

// learnRegions makes every machine read an object of every other, because a machine asks the
// CM once where a region is.
func (m *measurement) learnRegions() error {
	left, done := len(m.nodes), m.outside.NewEvent()
	for _, n := range m.nodes {
		c := &client{run: m.run, node: n, label: "first reader"}
		n.process.Go(func() {
			for i := range m.nodes {
				m.run.fail(c.readObject(i))
			}
			if left--; left == 0 {
				done.Set()
			}
		})
	}
	done.Wait()
	return m.run.failure
}

// awaitFilled waits until all regions have all replicas, and returns the time. No client works
// meanwhile: data recovery is paced, so it takes as long as it would beside work.
func (m *measurement) awaitFilled() (time.Duration, error) {
	for end := m.world.Now() + failureMax; ; m.outside.Sleep(window) {
		c, err := m.members.store.Load()
		switch {
		case err != nil:
			return 0, err
		case len(c.Machines) != len(m.survivors):
			return 0, fmt.Errorf("%v failed: %d machines are left of %d", m.which, len(c.Machines), len(m.survivors))
		case isFilled(c):
			return m.world.Now(), nil
		case m.world.Now() > end:
			return 0, fmt.Errorf("%v failed: replicas are not filled within %v", m.which, failureMax)
		}
	}
}

// victims returns the machines that will fail.
func (m *measurement) victims() ([]int, error) {
	c, err := m.members.store.Load()
	if err != nil {
		return nil, err
	}
	next := (int(c.CM) + 1) % len(m.nodes) // the next machine is in another failure domain
	switch m.which {
	case FailingCM:
		return []int{int(c.CM)}, nil
	case FailingDomain:
		return slices.DeleteFunc(m.all(), func(i int) bool { return m.machine(i).Domain() != m.machine(next).Domain() }), nil
	}
	return []int{next}, nil
}

// committed returns the number of transactions that the survivors have committed.
func (m *measurement) committed() (n int) {
	for _, i := range m.survivors {
		n += m.commits[i]
	}
	return n
}

// fullThroughput waits until all regions are active and the survivors' throughput is enough again;
// n is the number of transactions in a window before the failure. It returns the end of the first
// window with that throughput.
func (m *measurement) fullThroughput(n float64) (time.Duration, error) {
	full := time.Duration(0)
	for end := m.world.Now() + failureMax; ; {
		before := m.committed()
		m.outside.Sleep(window)
		switch now := m.world.Now(); {
		case m.run.failure != nil:
			return 0, m.run.failure
		case now > end:
			return 0, fmt.Errorf("%v failed: no recovery within %v", m.which, failureMax)
		case float64(m.committed()-before) < enough*n:
			full = 0
		case full == 0:
			full = now
		}
		if m.active > 0 && full > 0 {
			return full, nil
		}
	}
}

// evaluate computes the result from the times at which the failure happened, the throughput was
// full again, and all replicas were filled.
func (m *measurement) evaluate(at, full, filled time.Duration) {
	f, t := &m.failure, m.timeline
	// at, full, filled and m.active are virtual times; the timeline is on a machine's clock. m.active
	// and t.AllActive are the same moment.
	suspect := m.active - t.AllActive.Sub(t.Suspect)
	f.Suspect = suspect - at
	f.Probed, f.Stored, f.Committed, f.Active = t.Probed.Sub(t.Suspect), t.Stored.Sub(t.Suspect), t.Committed.Sub(t.Suspect), t.AllActive.Sub(t.Suspect)
	f.Throughput, f.Filled = max(0, full-suspect), filled-suspect
	f.Recovered = m.outcomes / m.options.Farm.Replicas
}

// subscriber runs one transaction with a mix like TATP's, over objects drawn uniformly: of 100
// transactions 70 read one object without locks, 10 read a few, and 20 update one.
func (c *client) subscriber() error {
	n := len(c.store.objects)
	switch x := c.rng.IntN(100); {
	case x < 70:
		return c.readObject(c.rng.IntN(n))
	case x < 80:
		return c.transact(func() error {
			for range 2 + c.rng.IntN(3) {
				if err := c.onObject(c.rng.IntN(n), both, false); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c.transact(func() error { return c.onObject(c.rng.IntN(n), both, true) })
}
