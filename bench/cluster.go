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

// A ClusterConfig says what a Cluster is made of.
type ClusterConfig struct {
	// Target says which machines there are. Its Transport is TransportSHM.
	Target TargetConfig
	// Command returns what starts the process of a machine, which calls
	// ServeMachine with the same Target and folder.
	Command func(machine int, folder string) *exec.Cmd
	// Log, if not nil, is called with each line that a machine writes to its standard error,
	// concurrently for different machines. If a machine's process ends by itself, the error
	// contains its last line.
	Log func(machine int, line string)
}

// A Cluster is a target each of whose machines is a process of its own, with the
// clients that run at it, as load in SOSP'15 section 6 comes from the machines
// themselves. Machines may be killed and restarted. A Cluster is used by one
// goroutine; only Suspend, Kill and Running.Stop may be called beside others. After an error
// it can only be closed.
type Cluster struct {
	cfg      ClusterConfig
	folder   string
	progress *Progress // while loading

	mu struct {
		sync.Mutex
		machines []*process // by machine: the last life
		waiting  int        // at a barrier
		stages   map[string]*Stage
		threads  int // of each machine in the run under way
		// uncertain is how many transactions of killed machines nobody knows of.
		uncertain int64
	}
	opened  opened // by all machines alike, but for the place
	clients int    // of all runs so far
}

// machineEnv is in the environment of machines. A process that should have been one
// and starts machines itself, which do the same, would soon fill the computer.
const machineEnv = "FARMSQL_BENCH_MACHINE"

// memoryFolder is the parent of the folders through which machines share memory.
const memoryFolder = "/dev/shm"

// In the folder of a Cluster there are its configuration, and what its machines share.
const (
	configurationFile = "configuration"
	sharedFolder      = "shared"
)

// configurationURL is where the machines of a Cluster have their configuration.
func configurationURL(folder string) string {
	return "file://" + filepath.Join(folder, configurationFile)
}

// OpenCluster starts the processes of all machines and waits until they are one
// cluster.
func OpenCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	if err := cfg.Target.validate(); err != nil {
		return nil, err
	}
	if os.Getenv(machineEnv) != "" {
		return nil, errors.New("bench: a machine's process is to call ServeMachine, and opens a cluster")
	}
	if cfg.Target.DSN != "" || cfg.Target.Transport != TransportSHM {
		return nil, fmt.Errorf("%w: machines that are processes are of farmsql (no --dsn), over %s", ErrTarget, TransportSHM)
	}
	folder, err := os.MkdirTemp(memoryFolder, folderPattern)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c := &Cluster{cfg: cfg, folder: folder}
	c.mu.stages = make(map[string]*Stage)
	c.mu.machines = make([]*process, cfg.Target.Machines)
	for i := range c.mu.machines {
		if err == nil {
			c.mu.machines[i], err = c.start(i)
		}
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

// alive returns the machines that run.
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

// command is one that goes to all machines.
func (c *Cluster) command(do string) command {
	m := command{Do: do}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.mu.machines {
		m.Places = append(m.Places, p.place)
	}
	return m
}

// Load has all machines load their parts of the workload's data.
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

// Machines returns how many machines there are, and Processes the numbers of their
// processes; one is 0 if the machine has been killed.
func (c *Cluster) Machines() int { return c.cfg.Target.Machines }

// Processes is described at Machines.
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

// Suspend stops a machine with SIGSTOP and returns when that was: it does nothing from then
// on, as a host that is gone, and the others find out by its lease. A run under way waits for
// it until it is killed, which it is to be.
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

// Kill kills a machine with SIGKILL and returns the time of it. A run under way goes on
// without it, and loses what it has measured.
func (c *Cluster) Kill(machine int) (at time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.mu.machines[machine]
	if p.isKilled {
		return at, fmt.Errorf("bench: machine %d has been killed before", machine)
	}
	p.isKilled = true // before it can be missed
	c.mu.uncertain += int64(c.mu.threads)
	at = time.Now()
	if err := p.command.Process.Kill(); err != nil {
		return at, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	return at, nil
}

// Restart starts a machine that has been killed, and returns when it is a machine of
// the cluster again and ready for the next run. Its replicas may not be filled yet.
func (c *Cluster) Restart(ctx context.Context, machine int) error {
	c.mu.Lock()
	old := c.mu.machines[machine]
	runs := !old.isKilled
	c.mu.Unlock()
	if runs {
		return fmt.Errorf("bench: machine %d runs", machine)
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
	p.place = old.place // where the data are
	_, err = c.ask(ctx, only, c.command(doJoin))
	return err
}

// Check checks the data, at one of the machines that run, while no client does.
func (c *Cluster) Check(ctx context.Context) error {
	_, err := c.check(ctx)
	return err
}

// check is Check; of a Spacious workload it also returns the space.
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
		p.tell(command{Do: doClose}) // or it has ended
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

// arrived counts a machine at a barrier, and lets all pass when they are there.
func (c *Cluster) arrived() {
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

// show shows how far one machine is with loading, for all.
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

// A Running is a run of a Cluster under way.
type Running struct {
	c        *Cluster
	options  Options
	machines []*process
	start    time.Time
	before   sample
}

// startDelay is how long after the last machine is ready a run begins: the command
// has come to all of them by then.
const startDelay = 20 * time.Millisecond

// Start begins a run on all machines that have not been killed. Options.Rate is for
// all of them together, Options.Threads for each.
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

// Measured returns when the measured time begins: what Result has by time counts
// from there.
func (r *Running) Measured() time.Time { return r.start.Add(r.options.WarmUp) }

// Stop ends the run before its time is over.
func (r *Running) Stop() {
	for _, p := range r.machines {
		p.tell(command{Do: doStop})
	}
}

// Wait waits for the end of the run and returns the result of the machines that have not been
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
	c.Others = others(r.before, after, all.Own+after.own-r.before.own)
	return all.result(c, r.c.opened.Kinds)
}

// watch shows how far the run is.
func (r *Running) watch(ctx context.Context) {
	o := &r.options
	if o.Transactions > 0 {
		return // only the machines know
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

func (c *Cluster) conditions(o *Options, began time.Time) Conditions {
	n := conditions(&c.cfg.Target, o, c.opened.Name, c.opened.Scale, began)
	n.Processes = c.Machines()
	return n
}
