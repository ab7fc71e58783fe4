package growth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

// A Counter is a workload that can tell from its data how many of its transactions have committed.
type Counter interface {
	bench.Workload
	// Committed returns a kind of transactions, and the number of its commits that the last Check
	// has found, without those of Load.
	Committed() (kind, n int)
}

// ErrPatience means that a step did not end in time.
var ErrPatience = errors.New("growth: waited too long")

// Measure runs the workload on a cluster that grows and shrinks.
func Measure(ctx context.Context, c Config, workload func(*bench.Target) (bench.Workload, error)) (_ *Result, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if !c.AnyBuild {
		if err := bench.Refuse(); err != nil {
			return nil, err
		}
	}
	c = c.withDefaults()
	_ = mysql.SetLogger(&mysql.NopLogger{}) // broken connections are counted, not logged; never fails
	ms, err := newMachines(&c)
	if err != nil {
		return nil, err
	}
	m := &measurement{cfg: &c, machines: ms, workload: workload, clients: newClients(c.Clients, c.Seed), watch: bench.StartWatch()}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.load(ctx); err != nil {
		return nil, err
	}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	if err := m.withPatience(ctx, m.machines.end); err != nil {
		return nil, err
	}
	return m.result(), nil
}

// A measurement is the state of one Measure.
type measurement struct {
	cfg       *Config
	machines  *machines
	workload  func(*bench.Target) (bench.Workload, error)
	clients   *clients
	watch     *bench.Watch
	endpoints []*endpoint // by machine

	measured time.Duration // when the warm-up ended; like all times here, since the clients began
	ended    time.Duration
	steps    []stepTimes
	samples  []Sample
	evenness []Evenness
	work     *work
}

// stepTimes has the times at which a step began and ended.
type stepTimes struct {
	name         string
	began, ended time.Duration
}

// close closes the targets, and ends the machines.
func (m *measurement) close() error {
	var errs []error
	for _, e := range m.endpoints {
		errs = append(errs, e.target.Close())
	}
	return errors.Join(append(errs, m.machines.remove())...)
}

// withPatience calls f with a context that ends after Config.Patience.
func (m *measurement) withPatience(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.Patience, fmt.Errorf("%w: %v", ErrPatience, m.cfg.Patience))
	defer cancel()
	return f(ctx)
}

// load starts the cluster, and loads the workload.
func (m *measurement) load(ctx context.Context) error {
	var addresses []string
	err := m.withPatience(ctx, func(ctx context.Context) (err error) {
		addresses, err = m.machines.begin(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i, address := range addresses {
		if err := m.serve(ctx, i, address); err != nil {
			return err
		}
	}
	return m.endpoints[0].workload.Load(ctx, m.cfg.Progress)
}

// serve lets clients connect to a machine.
func (m *measurement) serve(ctx context.Context, machine int, address string) error {
	t, err := bench.Open(ctx, bench.TargetConfig{API: bench.SQL, DSN: fmt.Sprintf("root@tcp(%s)/", address)})
	if err != nil {
		return err
	}
	t.SQL().SetMaxIdleConns(-1) // a client that leaves a machine disconnects
	e := &endpoint{machine: machine, target: t}
	m.endpoints = append(m.endpoints, e)
	if e.workload, err = m.workload(t); err != nil {
		return err
	}
	m.clients.open(e)
	return nil
}

// run runs the clients through all steps.
func (m *measurement) run(ctx context.Context) error {
	stage := m.cfg.Progress.Stage("growing and shrinking", m.cfg.stepsTotal())
	defer stage.Done()
	m.clients.begin(ctx)
	watching, stop := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		m.sample(watching)
	}()
	err := m.goThrough(ctx, stage)
	m.ended = m.clients.now()
	stop()
	<-sampled
	work, failure := m.clients.end(m.cfg.Patience)
	m.work = work
	return errors.Join(err, failure)
}

// stepsTotal is the number of steps.
func (c *Config) stepsTotal() int {
	joins, leaves, evenOuts := c.Machines-c.first(), 2*(c.Machines-c.Back), 2 // a machine leaves in two steps: drain, stop
	n := joins + leaves + evenOuts
	if c.Resize > 0 {
		n++
	}
	return n
}

// goThrough goes through all steps.
func (m *measurement) goThrough(ctx context.Context, stage *bench.Stage) error {
	c := m.cfg
	sleep(ctx, c.WarmUp)
	m.measured = m.clients.now()
	sleep(ctx, c.Between)
	var steps []step
	for i := c.first(); i < c.Machines; i++ {
		steps = append(steps, step{fmt.Sprintf("machine %d joins", i), m.join})
	}
	if c.Resize > 0 {
		steps = append(steps, step{fmt.Sprintf("%d replicas", c.Resize), func(ctx context.Context) error { return m.machines.resize(ctx, c.Resize) }})
	}
	steps = append(steps, step{"regions move to them", m.evenOut(fmt.Sprintf("with %d machines", c.Machines), c.Machines)})
	for i := c.Machines - 1; i >= c.Back; i-- {
		steps = append(steps,
			step{fmt.Sprintf("machine %d is drained", i), func(ctx context.Context) error { return m.machines.drain(ctx, i) }},
			step{fmt.Sprintf("machine %d stops", i), func(ctx context.Context) error { return m.stop(ctx, i) }})
	}
	steps = append(steps, step{"the others even out", m.evenOut(fmt.Sprintf("back to %d machines", c.Back), c.Back)})
	for _, s := range steps {
		if err := m.take(ctx, s); err != nil {
			return fmt.Errorf("%w (%s)", err, s.name)
		}
		stage.Add(1)
	}
	return nil
}

// A step is one change of the cluster, made while clients work.
type step struct {
	name string
	do   func(context.Context) error
}

// take carries out a step, and then leaves the clients undisturbed for a time.
func (m *measurement) take(ctx context.Context, s step) error {
	began := m.clients.now()
	if err := m.withPatience(ctx, s.do); err != nil {
		return err
	}
	m.steps = append(m.steps, stepTimes{s.name, began, m.clients.now()})
	sleep(ctx, m.cfg.Between)
	return errors.Join(ctx.Err(), m.clients.failure(), m.machines.died())
}

func (m *measurement) join(ctx context.Context) error {
	machine, address, err := m.machines.join(ctx)
	if err != nil {
		return err
	}
	return m.serve(ctx, machine, address)
}

func (m *measurement) stop(ctx context.Context, machine int) error {
	m.clients.shut(machine)
	return m.machines.stop(ctx, machine)
}

// Before the machines' shares are compared, nothing must have been left to move for the time quiet,
// which is more than the CM takes between two batches. If the machines are not even by then, they
// get the time quietUneven, since the CM may begin late on a busy computer.
const (
	quiet       = 2 * time.Second
	quietUneven = 5 * time.Second
)

// evenOut returns a step that waits until nothing is left to move, and then notes the machines' shares.
func (m *measurement) evenOut(when string, machines int) func(context.Context) error {
	return func(ctx context.Context) error {
		var since time.Time // when something was last left to move, or the time of the first look
		var last *farmsql.Status
		err := bench.Poll(ctx, "regions to move "+when, func() (bool, error) {
			if err := errors.Join(m.machines.died(), m.clients.failure()); err != nil {
				return false, err
			}
			s, err := m.machines.view()
			if err == nil {
				last = s
			}
			if err != nil || since.IsZero() || !isSettled(s, machines) {
				since = time.Now()
				return false, nil
			}
			if time.Since(since) < quiet {
				return false, nil
			}
			shares, ok, err := m.shares(s)
			if !ok || err != nil {
				return false, err
			}
			e := newEvenness(when, m.clients.now().Seconds(), len(s.Regions), shares)
			if !e.isEven() && time.Since(since) < quietUneven {
				return false, nil
			}
			m.evenness = append(m.evenness, e)
			return true, nil
		})
		if err != nil {
			return fmt.Errorf("%w; %s, %d machines have been evicted and come back", err, unsettled(last), m.machines.evictions())
		}
		return nil
	}
}

// shares returns the machines' shares. It returns false if a folder does not have the regions that
// the status names: clients have made a region meanwhile, or the memory of a region that has moved
// away is not freed yet.
func (m *measurement) shares(s *farmsql.Status) (shares []Share, ok bool, err error) {
	for _, p := range m.machines.running() {
		x := Share{Machine: p.machine, Replicas: s.ReplicasAt(p.machine), Primaries: primariesAt(s, p.machine)}
		regions := 0
		if regions, x.Bytes, err = p.regionBytes(); err != nil || regions != x.Replicas {
			return nil, false, err
		}
		shares = append(shares, x)
	}
	return shares, true, nil
}

// A Sample has the number of replicas of each machine at one moment, by the machine's number; 0 if it is no member.
type Sample struct {
	Seconds  float64 `json:"seconds"`
	Replicas []int   `json:"replicas"`
}

// sample notes the machines' replicas each second.
func (m *measurement) sample(ctx context.Context) {
	for sleep(ctx, time.Second) {
		s, err := m.machines.view()
		if err != nil {
			continue // a machine was too busy to answer
		}
		x := Sample{Seconds: m.clients.now().Seconds(), Replicas: make([]int, m.cfg.Machines)}
		for i := range x.Replicas {
			x.Replicas[i] = s.ReplicasAt(i)
		}
		m.samples = append(m.samples, x)
	}
}

// check checks the data, at the machine that joined last among those that have stayed.
func (m *measurement) check(ctx context.Context) error {
	stage := m.cfg.Progress.Stage("checking", 1)
	defer stage.Done()
	w := m.endpoints[m.cfg.Back-1].workload
	if err := w.Check(ctx); err != nil {
		return fmt.Errorf("growth: no result, for the check after the run failed: %w", err)
	}
	c, ok := w.(Counter)
	if !ok {
		return nil
	}
	kind, found := c.Committed()
	least := m.work.acknowledged[kind]
	if most := least + m.work.doubtful[kind]; found < least || found > most {
		return fmt.Errorf("growth: no result: %w: %d transactions (%s) have committed, and clients were told so of %d, and do not know of %d",
			bench.ErrInconsistent, found, w.Kinds()[kind], least, most-least)
	}
	return nil
}
