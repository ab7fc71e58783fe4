package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// A ClusterConfig describes a Cluster.
type ClusterConfig struct {
	// Target describes the machines. Its Transport is TransportSHM, TransportTCP or TransportHosts.
	Target TargetConfig
	// Command returns the command that starts the process of a machine, which calls
	// ServeMachine with the same Target and folder.
	Command func(machine int, folder string) *exec.Cmd
	// Log, if not nil, is called with each line that a machine writes to its standard error,
	// concurrently for different machines. If a machine's process ends by itself, the error
	// contains its last line.
	Log func(machine int, line string)
}

// A Cluster is a target whose machines are processes. Each has its own clients, because in SOSP'15
// section 6 the load comes from the machines themselves. Machines may be killed and restarted. A
// Cluster is used by one goroutine; only Suspend, Kill and Running.Stop may be called concurrently.
// After an error it can only be closed.
type Cluster struct {
	cfg      ClusterConfig
	folder   string
	progress *Progress // while loading

	mu struct {
		sync.Mutex
		machines []*process // the latest process of each machine
		waiting  int        // number of machines that wait at a barrier
		stages   map[string]*Stage
		threads  int // number of clients of each machine in the run under way
		// uncertain is the number of killed machines' transactions whose outcome is not known.
		uncertain int64
	}
	opened  opened // what machines report when they have joined; the same for all of them, except the place
	clients int    // number of clients of all runs so far
}

// machineEnv is set in the environment of machines. Without it, a process that was meant to be
// a machine could start machines itself, which would do the same, without end.
const machineEnv = "FARMSQL_BENCH_MACHINE"

// memoryFolder is the parent of the folders through which machines share memory.
const memoryFolder = "/dev/shm"

// The folder of a Cluster has its configuration, and the memory that its machines share.
const (
	configurationFile = "configuration"
	sharedFolder      = "shared"
)

// configurationURL returns the place of a Cluster's configuration.
func configurationURL(folder string) string {
	return "file://" + filepath.Join(folder, configurationFile)
}

// OpenCluster starts the processes of all machines, and waits until they form one cluster.
func OpenCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	if err := cfg.Target.validate(); err != nil {
		return nil, err
	}
	if os.Getenv(machineEnv) != "" {
		return nil, errors.New("bench: a machine's process is to call ServeMachine, and opens a cluster")
	}
	if cfg.Target.DSN != "" || !cfg.Target.HasProcesses() {
		return nil, fmt.Errorf("%w: machines that are processes are of farmsql (no --dsn), over %s, %s or %s", ErrTarget, TransportSHM, TransportTCP, TransportHosts)
	}
	folder, err := os.MkdirTemp(memoryFolder, folderPattern)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c := &Cluster{cfg: cfg, folder: folder}
	c.mu.stages = make(map[string]*Stage)
	c.mu.machines = make([]*process, cfg.Target.Machines)
	hasHosts := cfg.Target.Transport == TransportHosts
	for i := range c.mu.machines {
		if err == nil { // after an error the other machines stay nil
			c.mu.machines[i], err = c.start(i)
		}
	}
	if err == nil && hasHosts {
		err = joinHosts(c.mu.machines)
	}
	if err == nil {
		err = c.awaitOpened(ctx, c.alive())
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// awaitOpened waits until machines have joined the cluster.
func (c *Cluster) awaitOpened(ctx context.Context, machines []*process) error {
	answers, err := c.answers(ctx, machines)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if a.Opened == nil {
			return fmt.Errorf("bench: machine %d did not say that it is open", machines[i].machine)
		}
		c.opened, machines[i].place = *a.Opened, a.Opened.Place
	}
	return nil
}

// alive returns the processes of the running machines.
func (c *Cluster) alive() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aliveLocked()
}

func (c *Cluster) aliveLocked() []*process {
	var alive []*process
	for _, p := range c.mu.machines {
		if p != nil && !p.isKilled {
			alive = append(alive, p)
		}
	}
	return alive
}

// command returns a command with the places of the data of all machines.
func (c *Cluster) command(do string) command {
	m := command{Do: do}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.mu.machines {
		m.Places = append(m.Places, p.place)
	}
	return m
}

// Load loads the workload's data; each machine loads its part.
func (c *Cluster) Load(ctx context.Context, p *Progress) error {
	c.progress = p
	_, err := c.ask(ctx, c.alive(), c.command(doLoad))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.mu.stages {
		s.Done()
	}
	clear(c.mu.stages)
	return err
}

// Machines returns the number of machines.
func (c *Cluster) Machines() int { return c.cfg.Target.Machines }

// Processes returns the process numbers of the machines; 0 for a machine that has been killed.
func (c *Cluster) Processes() []int {
	all := make([]int, c.Machines())
	for _, p := range c.alive() {
		all[p.machine] = p.command.Process.Pid
	}
	return all
}

// Configuration returns the current configuration of the machines.
func (c *Cluster) Configuration() (*cluster.Configuration, error) {
	return cluster.NewFileStore(filepath.Join(c.folder, configurationFile)).Load()
}

// Suspend stops a machine with SIGSTOP, and returns the time at which it did. The machine does
// nothing from then on, as if its host were gone, and the others find out when its lease expires. A
// run in progress waits for the machine, which must therefore be killed before the run can end.
func (c *Cluster) Suspend(machine int) (at time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.mu.machines[machine]
	at = time.Now()
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return at, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	return at, nil
}

// Kill kills a machine with SIGKILL, and returns the time at which it did. A run in progress
// continues without the machine, and loses its measurements.
func (c *Cluster) Kill(machine int) (at time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.mu.machines[machine]
	if p.isKilled {
		return at, fmt.Errorf("bench: machine %d has been killed before", machine)
	}
	p.isKilled = true // set before the end of the process can be noticed
	c.mu.uncertain += int64(c.mu.threads)
	at = time.Now()
	if err := p.command.Process.Kill(); err != nil {
		return at, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	return at, nil
}

// Restart starts a killed machine, and returns when it has joined the cluster and is ready for
// the next run. Its replicas may not be filled yet.
func (c *Cluster) Restart(ctx context.Context, machine int) error {
	c.mu.Lock()
	old := c.mu.machines[machine]
	runs := !old.isKilled
	c.mu.Unlock()
	switch {
	case runs:
		return fmt.Errorf("bench: machine %d runs", machine)
	case c.cfg.Target.Transport == TransportHosts:
		return fmt.Errorf("bench: machine %d cannot start again: its network namespace has ended with it", machine)
	}
	<-old.ended
	p, err := c.start(machine)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.machines[machine] = p
	c.mu.Unlock()
	only := []*process{p}
	if err := c.awaitOpened(ctx, only); err != nil {
		return err
	}
	p.place = old.place // the data were loaded near the machine's earlier place
	_, err = c.ask(ctx, only, c.command(doJoin))
	return err
}

// Check checks the data, at one of the running machines. No client may run meanwhile.
func (c *Cluster) Check(ctx context.Context) error {
	_, err := c.check(ctx)
	return err
}

// check runs the workload's Check at one of the running machines, and returns the space of a Spacious
// workload.
func (c *Cluster) check(ctx context.Context) (*Space, error) {
	alive := c.alive()
	if len(alive) == 0 {
		return nil, errors.New("bench: all machines have been killed")
	}
	c.mu.Lock()
	m := command{Do: doCheck, Uncertain: c.mu.uncertain}
	c.mu.Unlock()
	answers, err := c.ask(ctx, alive[:1], m)
	if err != nil {
		return nil, err
	}
	return answers[0].Space, nil
}

// closePatience is how long a machine may take to close.
const closePatience = 20 * time.Second

// Close ends all processes and removes their memory and files.
func (c *Cluster) Close() error {
	var errs []error
	alive := c.alive()
	for _, p := range alive {
		p.tell(command{Do: doClose}) // if the process has ended already, this has no effect
	}
	late := time.After(closePatience)
	for _, p := range alive {
		select {
		case <-p.ended:
		case <-late:
			_, err := c.Kill(p.machine)
			errs = append(errs, fmt.Errorf("bench: machine %d did not close, and was killed", p.machine), err)
			late = time.After(0) // the others are late, too
		}
	}
	for _, p := range c.mu.machines {
		if p != nil {
			<-p.ended
		}
	}
	return errors.Join(append(errs, os.RemoveAll(c.folder))...)
}

// arrive counts a machine that has reached a barrier. Once all have reached it, arrive lets them pass.
func (c *Cluster) arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := c.aliveLocked()
	if c.mu.waiting++; c.mu.waiting < len(alive) {
		return
	}
	c.mu.waiting = 0
	for _, p := range alive {
		p.tell(command{Do: doPass})
	}
}

// show shows the progress with loading of one machine, which stands for all.
func (c *Cluster) show(r *stageReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stages[r.What]
	if s == nil {
		s = c.progress.Stage(r.What, r.Total)
		c.mu.stages[r.What] = s
	}
	s.set(r.Done)
	if r.IsOver {
		s.Done()
		delete(c.mu.stages, r.What)
	}
}

// A Running is a run in progress.
type Running struct {
	c        *Cluster
	options  Options
	machines []*process
	start    time.Time
	before   sample
}

// startDelay is the time between the readiness of the last machine and the start of a run: by
// then all machines have received the command.
const startDelay = 20 * time.Millisecond

// Start begins a run on all machines that have not been killed. Options.Rate is for all
// machines together, Options.Threads for each.
func (c *Cluster) Start(ctx context.Context, o Options) (*Running, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &Running{c: c, options: o, machines: c.alive()}
	if _, err := c.ask(ctx, r.machines, command{Do: doRun, Run: &runOrder{o, c.clients, o.Profile != ""}}); err != nil {
		return nil, err
	}
	c.clients += o.Threads * c.Machines()
	c.mu.Lock()
	c.mu.threads = o.Threads
	c.mu.Unlock()
	r.start = time.Now().Add(startDelay)
	for _, p := range r.machines {
		p.tell(command{Do: doStart, Start: r.start})
	}
	r.before = takeSample()
	return r, nil
}

// Measured returns the beginning of the measured time, from which Result counts times.
func (r *Running) Measured() time.Time { return r.start.Add(r.options.WarmUp) }

// Stop ends the run before its time has passed.
func (r *Running) Stop() {
	for _, p := range r.machines {
		p.tell(command{Do: doStop})
	}
}

// Wait waits for the end of the run, and returns the result of the machines that have not been
// killed. It does not check the data.
func (r *Running) Wait(ctx context.Context) (*Result, error) {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var watcher sync.WaitGroup
	watcher.Go(func() { r.watch(watching) })
	answers, err := r.c.answers(ctx, r.machines)
	after := takeSample()
	stopWatching()
	watcher.Wait()
	r.c.mu.Lock()
	r.c.mu.threads = 0
	r.c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, a := range answers {
		if a.Part != nil {
			parts = append(parts, a.Part)
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("bench: all machines have been killed")
	}
	all := merge(parts)
	c := r.c.conditions(&r.options, r.start)
	own := all.Own + (after.own - r.before.own) // processor time of the machines, and of this process
	c.Others = otherProcessors(r.before, after, own)
	return all.result(c, r.c.opened.Kinds)
}

// watch shows the progress of the run.
func (r *Running) watch(ctx context.Context) {
	o := &r.options
	if o.Transactions > 0 {
		return // only the machines know how far they are
	}
	total := o.WarmUp + o.Duration
	stage := o.Progress.stage("running", int(total), unitTime)
	defer stage.Done()
	for sleep(ctx, stageInterval) {
		stage.set(int(min(time.Since(r.start), total)))
	}
}

// Run runs the workload once on all machines and checks the data, as the function Run does for
// a Target.
func (c *Cluster) Run(ctx context.Context, o Options) (*Result, error) {
	running, err := c.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	result, err := running.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if result.Space, err = c.check(ctx); err != nil {
		return nil, fmt.Errorf("bench: no result, for the check after the run failed: %w", err)
	}
	return result, nil
}

// conditions returns the conditions of a run, without Others.
func (c *Cluster) conditions(o *Options, began time.Time) Conditions {
	n := conditions(&c.cfg.Target, o, c.opened.Name, c.opened.Scale, began)
	n.Processes = c.Machines()
	return n
}
