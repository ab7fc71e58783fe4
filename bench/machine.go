package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
)

// A MachineConfig describes the process of one machine of a cluster.
type MachineConfig struct {
	// Target describes the cluster.
	Target TargetConfig
	// Folder is the folder that all machines share. Machine is this machine's number.
	Folder  string
	Machine int
	// Profile, if not empty, is Options.Profile for this process, in runs with a profile.
	Profile string
	// Log receives what happens to the machine.
	Log *slog.Logger
}

// errParentGone ends a machine's process.
var errParentGone = errors.New("bench: the process that has started this machine is gone")

// ServeMachine makes this process a machine of a Cluster: it opens the machine, makes its
// workload, and executes the Cluster's commands from in until the one to close. If the
// Cluster's process ends first, ServeMachine removes the cluster's folder and returns; the
// process should then exit, whatever still runs in it.
func ServeMachine(ctx context.Context, cfg MachineConfig, newWorkload func(*Target) (Workload, error), in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // the signal would end the process before it cleans up
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &servedMachine{
		cfg: cfg, newWorkload: newWorkload, speaker: newSpeaker(out),
		// At most one command, and one barrier, is outstanding.
		commands: make(chan command, 1), pass: make(chan struct{}, 1),
	}
	closed, served := make(chan bool, 1), make(chan error, 1)
	go func() {
		closed <- m.listen(in)
		cancel() // ends the commands that are under way
	}()
	go func() { served <- m.serve(ctx) }()
	if <-closed {
		return m.end(served)
	}
	select {
	case <-served:
	case <-time.After(parentGonePatience): // a close that hangs ends with the process
	}
	// Clean up here: a process that is killed when its parent ends could not.
	return errors.Join(errParentGone, os.RemoveAll(cfg.Folder))
}

// parentGonePatience is how long a machine without a parent tries to close.
const parentGonePatience = time.Second

// end waits until serve has closed the machine, after the command to close has cancelled its context.
// Some operations continue nevertheless, such as a commit whose outcome depends on a majority that is
// gone: end waits endPatience for them, and then closes the database, which ends them.
func (m *servedMachine) end(served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-time.After(endPatience):
	}
	if db := m.db.Load(); db != nil {
		return errors.Join(db.Close(), <-served)
	}
	return <-served
}

// endPatience bounds the time for running operations to end.
const endPatience = time.Second

// A servedMachine is a machine in its process.
type servedMachine struct {
	cfg         MachineConfig
	newWorkload func(*Target) (Workload, error)
	speaker     *speaker
	// listen sends the Cluster's commands to the channel commands, and serve executes them one after
	// the other; listen sends to pass when the machine may leave a barrier.
	commands chan command
	pass     chan struct{}

	target   *Target
	db       atomic.Pointer[farmsql.DB] // the database of the target
	workload Workload
	run      atomic.Pointer[run] // the run that is under way
}

// listen reads the Cluster's commands, until the command to close (then it returns true) or the
// end of the input.
func (m *servedMachine) listen(in io.Reader) (isClosed bool) {
	defer close(m.commands)
	for d := json.NewDecoder(in); ; {
		var c command
		if d.Decode(&c) != nil {
			return false
		}
		switch c.Do {
		case doClose:
			return true
		case doPass:
			m.pass <- struct{}{}
		case doStop:
			if r := m.run.Load(); r != nil {
				r.finish()
			}
		default:
			m.commands <- c
		}
	}
}

// serve opens the machine, executes the commands, and closes it.
func (m *servedMachine) serve(ctx context.Context) error {
	first, err := m.open(ctx)
	if err != nil {
		first = failed(err)
	}
	// If this fails, listen notices the broken pipe.
	_ = m.speaker.say(first)
	for c := range m.commands {
		answer, err := m.do(ctx, &c)
		if err != nil {
			answer = failed(err)
		}
		_ = m.speaker.say(answer)
	}
	if m.target == nil {
		return nil
	}
	return m.target.Close()
}

// open opens the machine and makes the workload.
func (m *servedMachine) open(ctx context.Context) (report, error) {
	var err error
	if m.target, err = openMember(ctx, &m.cfg); err != nil {
		return report{}, err
	}
	t := m.target
	m.db.Store(t.dbs[0])
	t.peers.say, t.peers.pass = func(r report) error { return m.speaker.say(r) }, m.pass
	if m.workload, err = m.newWorkload(t); err != nil {
		return report{}, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	place, err := t.place(ctx, m.cfg.Machine)
	if err != nil {
		return report{}, err
	}
	return report{Opened: &opened{place, m.workload.Name(), m.workload.Scale(), m.workload.Kinds()}}, nil
}

// do executes one command.
func (m *servedMachine) do(ctx context.Context, c *command) (report, error) {
	t := m.target
	switch c.Do {
	case doLoad:
		t.places = c.Places
		return report{Done: true}, m.workload.Load(ctx, m.progress())
	case doJoin:
		t.places, t.peers.isLate = c.Places, true
		return report{Done: true}, m.workload.Attach(ctx)
	case doRun:
		return report{Done: true}, m.prepare(ctx, c.Run)
	case doStart:
		p, err := m.measure(ctx, c.Start)
		return report{Part: p}, err
	case doCheck:
		t.peers.uncertain = c.Uncertain
		err := m.workload.Check(ctx)
		return report{Done: true, Space: spaceOf(m.workload)}, err
	}
	return report{}, fmt.Errorf("bench: a machine was told to %q", c.Do)
}

// progress reports this machine's progress with loading to the Cluster. Only machine 0 reports; its
// progress stands for that of all machines.
func (m *servedMachine) progress() *Progress {
	if m.cfg.Machine != 0 {
		return nil
	}
	return &Progress{tell: func(s stageReport) { _ = m.speaker.say(report{Progress: &s}) }}
}

// prepare opens the clients of a run.
func (m *servedMachine) prepare(ctx context.Context, o *runOrder) error {
	if o.IsProfiled {
		o.Options.Profile = m.cfg.Profile
	}
	if err := o.Options.validate(); err != nil {
		return err
	}
	m.target.clients = o.First
	r := newRun(m.target, m.workload, o.Options)
	if err := r.openClients(ctx); err != nil {
		return errors.Join(err, r.closeClients())
	}
	m.run.Store(r)
	return nil
}

// measure runs the prepared workload.
func (m *servedMachine) measure(ctx context.Context, start time.Time) (*part, error) {
	r := m.run.Load()
	if r == nil {
		return nil, errors.New("bench: a machine was told to start, and nothing is prepared")
	}
	defer m.run.Store(nil)
	// start came as JSON, without a reading of the monotonic clock: r.start is the same moment with one.
	now := time.Now()
	r.start = now.Add(start.Sub(now))
	if err := errors.Join(r.measure(ctx), r.closeClients()); err != nil {
		return nil, err
	}
	return r.part(), nil
}

// freePort listens on any free port, reachable only from this host.
const freePort = "127.0.0.1:0"

// openMember opens this process's machine of a target.
func openMember(ctx context.Context, cfg *MachineConfig) (*Target, error) {
	if err := cfg.Target.validate(); err != nil {
		return nil, err
	}
	t := &Target{cfg: cfg.Target, machines: make([]machine, cfg.Target.Machines)}
	t.peers = &peers{machine: cfg.Machine, folder: cfg.Folder}
	if err := t.openCounter(); err != nil {
		return nil, err
	}
	c := t.config()
	// Machines is for machines that share a process; this is one of a cluster.
	c.Machines, c.MachineID, c.Folder, c.Logger = 0, cfg.Machine, cfg.Folder, cfg.Log
	if err := setTransport(ctx, cfg, &c); err != nil {
		return nil, err
	}
	c.LeaseTime, c.RecoveryPace = cfg.Target.LeaseTime, cfg.Target.RecoveryPace
	if n := cfg.Target.Domains; n > 0 {
		c.FailureDomain = 1 + cfg.Machine%n // 0 is a domain of its own
	}
	db, err := farmsql.OpenContext(ctx, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %w", err), t.Close())
	}
	t.dbs, t.machines[cfg.Machine] = []*farmsql.DB{db}, machine{db, 0}
	if cfg.Target.API == SQL {
		if err := t.serve(ctx, db, freePort); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// setTransport sets how the machine reaches the others.
func setTransport(ctx context.Context, cfg *MachineConfig, c *farmsql.Config) (err error) {
	c.Cluster = configurationURL(cfg.Folder)
	switch cfg.Target.Transport {
	case TransportTCP:
		c.Transport, c.Advertise = farmsql.TransportTCP, advertised(cfg.Folder, cfg.Machine)
	case TransportHosts:
		err = setHost(ctx, cfg, c)
	default:
		c.SharedFolder = filepath.Join(cfg.Folder, sharedFolder)
	}
	return err
}

// advertised returns the address of a machine of the Cluster with a folder: a loopback address of its
// own. A hash of the folder makes it unlikely that a machine of another Cluster has it.
func advertised(folder string, machine int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(folder)) // never fails
	n := h.Sum32()
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+((n>>8)&0x7f), n&0xff, 1+machine, 20000+((n>>16)&0x3fff))
}
