package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// A Kind says which machines are killed.
type Kind string

// The kinds.
const (
	Machine Kind = "machine" // a machine that is not the CM
	CM      Kind = "cm"
	Domain  Kind = "domain" // all machines of a failure domain, if possible not the CM's
)

// A Way says how the machines fail.
type Way string

// The ways.
const (
	// Kill is by SIGKILL: the others learn of it at once, from broken connections.
	Kill Way = "kill"
	// Stop is by SIGSTOP: the others learn of it only from leases that run out, as if the host
	// were gone. The stopped machines are killed at the end of the run.
	Stop Way = "stop"
)

// past returns the way as a participle: killed or stopped.
func (w Way) past() string {
	if w == Stop {
		return stepStopped
	}
	return stepKilled
}

// A Config describes a measurement of failures. The zero value of a field means its default.
type Config struct {
	Kill Kind // which machines fail; Machine by default
	Way  Way  // how they fail; Kill by default
	Runs int  // number of failures; 1 by default
	// Target describes the cluster.
	Target bench.TargetConfig
	// Threads is the number of clients at each machine; 1 by default.
	Threads int
	// WarmUp and Before are the undisturbed time of a run. The throughput before the failure is
	// that of Before, 1 s by default. After all regions are active, the run continues for After,
	// 500 ms by default, and until all replicas are filled.
	WarmUp, Before, After time.Duration
	Seed                  uint64
	// Patience bounds the wait for a step; five minutes by default.
	Patience time.Duration
	Progress *bench.Progress
	// AnyBuild is bench.Options.AnyBuild.
	AnyBuild bool
}

// ErrConfig is wrapped by all errors of Validate.
var ErrConfig = errors.New("failure: cannot be measured")

// Validate returns an error if failures cannot be measured with c.
func (c Config) Validate() error {
	c = c.withDefaults()
	t := &c.Target
	killed := min(1, t.Machines)
	if c.Kill == Domain && t.Domains > 0 {
		killed = (t.Machines + t.Domains - 1) / t.Domains // the number of machines in the largest domain
	}
	switch {
	case c.Kill != Machine && c.Kill != CM && c.Kill != Domain:
		return fmt.Errorf("%w: %q (--kill)", ErrConfig, c.Kill)
	case c.Way != Kill && c.Way != Stop:
		return fmt.Errorf("%w: by a %q (--by)", ErrConfig, c.Way)
	case c.Runs < 1:
		return fmt.Errorf("%w: %d runs (--runs)", ErrConfig, c.Runs)
	case c.WarmUp < 0 || c.Before < windowMS*time.Millisecond || c.After < 0:
		return fmt.Errorf("%w: a warm-up of %v, %v before the failure and %v after it", ErrConfig, c.WarmUp, c.Before, c.After)
	case t.Transport != bench.TransportSHM:
		return fmt.Errorf("%w: machines over %q (--transport) are not processes, which can be killed: those are over %q", ErrConfig, t.Transport, bench.TransportSHM)
	case t.Replicas < 2:
		return fmt.Errorf("%w: with %d replica (--replicas) a machine that is killed takes data with it", ErrConfig, t.Replicas)
	case 2*(t.Machines-killed) <= t.Machines:
		return fmt.Errorf("%w: the %d that are left of %d machines (--machines, --domains) are no majority", ErrConfig, t.Machines-killed, t.Machines)
	}
	return nil
}

func (c Config) withDefaults() Config {
	setDefault(&c.Kill, Machine)
	setDefault(&c.Way, Kill)
	setDefault(&c.Runs, 1)
	setDefault(&c.Threads, 1)
	setDefault(&c.Before, time.Second)
	setDefault(&c.After, 500*time.Millisecond)
	setDefault(&c.Patience, 5*time.Minute)
	setDefault(&c.Target.Transport, bench.TransportSHM)
	setDefault(&c.Target.RecoveryPace, farmsql.PaceSlow)
	setDefault(&c.Target.Domains, c.Target.Machines)
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// ErrPatience means that a step did not happen in time.
var ErrPatience = errors.New("failure: waited too long")

// Measure kills machines of a cluster, whose workload is loaded, as often as c says. log must
// receive the log lines of the machines.
func Measure(ctx context.Context, cl *bench.Cluster, log *Log, c Config) (*Result, error) {
	return measure(ctx, processes{cl}, log, c)
}

// machines is a bench.Cluster, or a stand-in for one in tests.
type machines interface {
	Start(ctx context.Context, o bench.Options) (running, error)
	Suspend(machine int) (at time.Time, err error)
	Kill(machine int) (at time.Time, err error)
	Restart(ctx context.Context, machine int) error
	Check(ctx context.Context) error
	Configuration() (*cluster.Configuration, error)
}

// running has the methods of bench.Running that Measure uses.
type running interface {
	Measured() time.Time
	Stop()
	Wait(ctx context.Context) (*bench.Result, error)
}

// processes implements machines with a bench.Cluster, in which each machine is a process.
type processes struct{ *bench.Cluster }

// Start implements machines.
func (p processes) Start(ctx context.Context, o bench.Options) (running, error) {
	return p.Cluster.Start(ctx, o)
}

func measure(ctx context.Context, cl machines, log *Log, c Config) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &measurement{cfg: c.withDefaults(), cluster: cl, log: log}
	res := &Result{Kind: m.cfg.Kill, Way: m.cfg.Way, Pace: m.cfg.Target.RecoveryPace, Domains: m.cfg.Target.Domains}
	stage := c.Progress.Stage("failures", m.cfg.Runs)
	defer stage.Done()
	for range m.cfg.Runs {
		r, err := m.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("failure: no result, for run %d failed: %w", len(res.Runs)+1, err)
		}
		res.Runs = append(res.Runs, *r)
		stage.Add(1)
	}
	if kept := log.since(time.Time{}, leasesKept); len(kept) > 0 {
		res.LeaseMilliseconds, res.LeaseKeptBy = inMilliseconds(kept[0].Length), kept[0].KeptBy
	}
	res.summarize()
	return res, nil
}

// A measurement is the state of one Measure.
type measurement struct {
	cfg     Config
	cluster machines
	log     *Log
}

// run measures one failure. Before and after it the cluster is whole. Before it, nothing is left to
// move or to hand over, either: machines that come back after a run get primaries some time later,
// which must not count as a part of the next failure.
func (m *measurement) run(ctx context.Context) (*Run, error) {
	if err := m.await(ctx, "all regions to have all replicas, and machines to be even", m.isEven); err != nil {
		return nil, err
	}
	victims, err := m.victims()
	if err != nil {
		return nil, err
	}
	o := bench.Options{Threads: m.cfg.Threads, WarmUp: m.cfg.WarmUp, Duration: endless, Seed: m.cfg.Seed, AnyBuild: m.cfg.AnyBuild}
	running, err := m.cluster.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	m.log.forget(running.Measured())
	f := &failure{measurement: m, victims: victims, measured: running.Measured()}
	failed := errors.Join(f.happen(ctx), f.killStopped())
	running.Stop()
	survivors, err := running.Wait(ctx)
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	if err := m.cluster.Check(ctx); err != nil {
		return nil, fmt.Errorf("the check after the failure of machines %v: %w", victims, err)
	}
	f.returned = time.Now()
	for _, v := range victims {
		if err := m.cluster.Restart(ctx, v); err != nil {
			return nil, err
		}
	}
	if err := m.await(ctx, "all regions to have all replicas again", m.isWhole); err != nil {
		return nil, err
	}
	return f.result(survivors, time.Now()), nil
}

// endless is a duration that no run reaches: each run is stopped earlier.
const endless = 24 * time.Hour

// A failure is one run, in progress or ended.
type failure struct {
	*measurement
	victims          []int
	failed           int       // number of victims that have failed so far; they fail in order
	measured, killed time.Time // measured is when the measured time began, killed when the first victim failed
	steps            reconfiguration
	suspected        time.Time
	returned         time.Time // time at which the victims were started again
}

// happen makes the victims fail after an undisturbed time, and returns when all steps of
// recovery have happened.
func (f *failure) happen(ctx context.Context) error {
	if err := sleepUntil(ctx, f.measured.Add(f.cfg.Before)); err != nil {
		return err
	}
	fail := f.cluster.Kill
	if f.cfg.Way == Stop {
		fail = f.cluster.Suspend
	}
	for _, v := range f.victims {
		at, err := fail(v)
		if err != nil {
			return err
		}
		if f.failed++; f.failed == 1 {
			f.killed = at
		}
	}
	err := f.await(ctx, "all regions to be active", func() (ok bool, err error) {
		f.steps, ok, err = f.log.withoutAll(f.victims, f.killed)
		return ok, err
	})
	if err != nil {
		return err
	}
	f.suspected = f.log.firstSuspicion(f.victims, f.killed, &f.steps)
	if err := sleepUntil(ctx, f.steps.allActive.Add(f.cfg.After)); err != nil {
		return err
	}
	return f.await(ctx, "replicas to be filled", f.isFilled)
}

// killStopped kills the stopped machines and waits for their end.
func (f *failure) killStopped() error {
	if f.cfg.Way != Stop {
		return nil
	}
	var errs []error
	for _, v := range f.victims[:f.failed] {
		_, err := f.cluster.Kill(v)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// result combines the survivors' measurements and logs. whole is when all regions had all replicas
// again.
func (f *failure) result(survivors *bench.Result, whole time.Time) *Run {
	since := func(t time.Time) float64 { return inMilliseconds(t.Sub(f.killed)) }
	series := survivors.PerMillisecond
	killedMS := int(f.killed.Sub(f.measured).Milliseconds())
	r := &Run{
		Killed: f.victims, way: f.cfg.Way, Suspected: since(f.suspected), Probed: since(f.steps.probed), Stored: since(f.steps.stored),
		Committed: since(f.steps.committed), AllActive: since(f.steps.allActive), Whole: since(whole), Aborts: survivors.Aborts, conditions: survivors.Conditions,
	}
	r.Before = 1000 * mean(series[:min(killedMS, len(series))])
	afterSuspicion := 1 + int(f.suspected.Sub(f.measured).Milliseconds()) // the first whole millisecond after it
	if back, ok := backAfter(series, killedMS, afterSuspicion); ok {
		ms := since(f.measured.Add(time.Duration(back) * time.Millisecond))
		r.Throughput = &ms
	}
	r.timeline.PerMillisecond = series
	r.conditions.Duration = r.timeline.seconds() // in place of endless
	stopped := f.measured.Add(time.Duration(len(series)) * time.Millisecond)
	for _, e := range f.log.since(f.killed, filled) {
		if e.Time.After(stopped) || !e.Time.Before(f.returned) {
			break // the run has stopped; replicas filled later are those of machines that are back
		}
		r.noteFill(since(e.Time.Add(-e.Took)), since(e.Time), e.Bytes)
		r.timeline.Filled = append(r.timeline.Filled, e.Time.Sub(f.measured).Seconds())
	}
	r.Return = f.comeBack(whole)
	for _, s := range r.steps() {
		r.timeline.Events = append(r.timeline.Events, Event{Seconds: f.killed.Sub(f.measured).Seconds() + s.ms/1000, Text: s.name})
	}
	return r
}

// comeBack returns the time until the victims had all replicas again, and the bytes that they
// read.
func (f *failure) comeBack(whole time.Time) Return {
	b := Return{Whole: inMilliseconds(whole.Sub(f.returned))}
	for _, e := range f.log.since(f.returned, filled) {
		if !e.Time.After(whole) {
			b.Replicas++
			b.Read += e.Bytes
			b.Held += e.Of
		}
	}
	return b
}

// noteFill notes that a replica was filled, between two times in milliseconds since the failure.
func (r *Run) noteFill(began, ended float64, bytes int64) {
	r.FilledReplicas++
	r.FilledBytes += bytes
	if r.RecoveryStarted == nil || began < *r.RecoveryStarted {
		r.RecoveryStarted = &began
	}
	if r.Recovered == nil || ended > *r.Recovered {
		r.Recovered = &ended
	}
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// victims returns the machines to kill.
func (m *measurement) victims() ([]int, error) {
	c, err := m.configuration()
	if err != nil {
		return nil, err
	}
	if m.cfg.Kill == CM {
		return []int{int(c.CM)}, nil
	}
	groups := make(map[int][]int) // the machines to kill together: those of each failure domain if domains are killed, else each alone
	for i, id := range c.Machines {
		key := int(id)
		if m.cfg.Kill == Domain {
			key = c.FailureDomain[i]
		}
		groups[key] = append(groups[key], int(id))
	}
	return pick(c, groups), nil
}

// pick returns the group that is primary of the most regions, without the CM if possible. Of equal
// groups it returns the one with the lowest first machine.
func pick(c *cluster.Configuration, groups map[int][]int) []int {
	var best []int
	rank := func(group []int) (n int) {
		for _, id := range group {
			n += c.PrimaryOf(rdma.MachineID(id))
		}
		if !slices.Contains(group, int(c.CM)) {
			n += 1 + len(c.Regions) // more than any number of primaries
		}
		return n
	}
	for _, g := range groups {
		if best == nil || rank(g) > rank(best) || (rank(g) == rank(best) && g[0] < best[0]) {
			best = g
		}
	}
	return best
}

// isWhole reports whether all machines are members, and all replicas exist and are filled.
func (m *measurement) isWhole() (bool, error) {
	c, err := m.configuration()
	return err == nil && m.isWholeIn(c), err
}

func (m *measurement) isWholeIn(c *cluster.Configuration) bool {
	return len(c.Machines) == m.cfg.Target.Machines && hasReplicas(c, m.cfg.Target.Replicas)
}

// isEven reports whether the cluster is whole, and nothing is left to move or to hand over.
func (m *measurement) isEven() (bool, error) {
	c, err := m.configuration()
	return err == nil && m.isWholeIn(c) && c.Urgency() == cluster.NothingMoves, err
}

// isFilled reports whether all replicas are filled for which there are machines, in failure domains of
// their own.
func (m *measurement) isFilled() (bool, error) {
	c, err := m.configuration()
	if err != nil {
		return false, err
	}
	domains := slices.Clone(c.FailureDomain)
	slices.Sort(domains)
	return hasReplicas(c, min(m.cfg.Target.Replicas, len(slices.Compact(domains)))), nil
}

// ErrLost means that a failure has cost data.
var ErrLost = errors.New("failure: regions have lost all their replicas")

// configuration returns the current configuration, or ErrLost if it has lost a region.
func (m *measurement) configuration() (*cluster.Configuration, error) {
	c, err := m.cluster.Configuration()
	if err == nil && len(c.Lost) > 0 {
		err = fmt.Errorf("%w: %v", ErrLost, c.Lost)
	}
	return c, err
}

// hasReplicas reports whether there are regions, every one has at least the given number of replicas,
// and none is being filled.
func hasReplicas(c *cluster.Configuration, replicas int) bool {
	return len(c.Regions) > 0 && !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool {
		return len(p.Filling) > 0 || 1+len(p.Backups) < replicas
	})
}

// poll is the interval of checks while waiting.
const poll = 2 * time.Millisecond

// await waits until holds returns true.
func (m *measurement) await(ctx context.Context, what string, holds func() (bool, error)) error {
	for deadline := time.Now().Add(m.cfg.Patience); ; {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w, %v, for %s", ErrPatience, m.cfg.Patience, what)
		}
		if err := sleepUntil(ctx, time.Now().Add(poll)); err != nil {
			return err
		}
	}
}

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}
