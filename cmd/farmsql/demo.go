package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/shm"
)

type demoCommand struct {
	Data     string        `placeholder:"FOLDER" help:"Data folder, which stays. Without one everything is in a temporary folder, and gone in the end."`
	Machines int           `default:"3" placeholder:"N" help:"Machines to start, at most 7 (${default})."`
	Port     int           `placeholder:"PORT" help:"Port of the first machine; the others have the next ones. Free ports by default."`
	Restart  time.Duration `default:"3s" placeholder:"DURATION" help:"Start a machine again so long after it was killed (${default}); 0 never does."`
	Lease    time.Duration `placeholder:"DURATION" help:"See farmsql serve."`
}

const (
	demoMachinesMax = 7
	// demoReplicas is the number of replicas of a region, if there are as many
	// machines.
	demoReplicas = 3
	// sharedParent is the parent of the folder that the machines share.
	sharedParent = "/dev/shm"
	// demoPatience is how long a machine may take to stop after a request.
	demoPatience = 15 * time.Second
)

// Help is shown by demo --help.
func (demoCommand) Help() string {
	return durability + `

Starts machines as processes of their own, which answer MySQL clients and keep three replicas of
everything, each at another machine, and shows what happens to them. Kill some: a majority goes on
with all that was committed. Ctrl-C stops everything.`
}

func (c *demoCommand) validate() error {
	switch {
	case c.Machines < 1 || c.Machines > demoMachinesMax:
		return cli.UsageError(fmt.Sprintf("--machines is %d, must be from 1 to %d", c.Machines, demoMachinesMax))
	case c.Port < 0 || c.Port+c.Machines > 1<<16:
		return cli.UsageError(fmt.Sprintf("--port is %d, must be from 1 to %d", c.Port, 1<<16-c.Machines))
	case c.Restart < 0:
		return cli.UsageError(fmt.Sprintf("--restart is %v, must not be negative", c.Restart))
	}
	return farmsql.Config{Folder: "x", Cluster: "file://x", LeaseTime: c.Lease}.Validate()
}

// Run runs the machines until a signal asks it to stop.
func (c *demoCommand) Run(std cli.Streams) error {
	if err := c.validate(); err != nil {
		return cli.UsageError(err.Error())
	}
	// Pdeathsig is sent when the thread that started the process ends, so keep this
	// thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := &demo{command: c, std: std, events: make(chan demoEvent), over: make(chan struct{}), data: c.Data}
	defer d.removeFolders()
	defer close(d.over)
	if err := d.prepare(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	err := d.run(ctx)
	stop() // a second signal kills this process, and all machines with it
	return errors.Join(err, d.stop())
}

// A demo is a set of running machines and their state.
type demo struct {
	command  *demoCommand
	std      cli.Streams
	data     string
	flags    []string // flags that all machines get
	remove   []string // folders to remove at the end
	events   chan demoEvent
	over     chan struct{} // closed when events are no longer handled
	machines []demoMachine
	running  int
	printed  bool // the user has been told how to connect
}

// A demoMachine is one of the machines.
type demoMachine struct {
	port    int
	process *exec.Cmd // nil if it does not run
	isReady bool
	starts  int // number of lives so far
}

// A demoEvent is a log line of a machine's process, or the process's end.
type demoEvent struct {
	machine int
	// line is the log line; empty for the end of the process.
	line string
	// ready is set if the machine now serves clients, and restart if it is time to start the
	// machine again.
	ready, restart bool
	err            error // an ended, if the process has ended
}

// prepare makes folders and finds ports.
func (d *demo) prepare() (err error) {
	shared := ""
	if d.data == "" {
		if err := shm.Sweep(filepath.Join(sharedParent, "farmsql-demo-*")); err != nil { // folders of demos that were killed
			fmt.Fprintf(d.std.Err, "folders that nobody uses are left: %v\n", err)
		}
		if d.data, err = os.MkdirTemp("", "farmsql-demo-"); err != nil {
			return fmt.Errorf("no temporary folder: %w", err)
		}
		d.remove = append(d.remove, d.data)
		shared = filepath.Join(sharedParent, filepath.Base(d.data))
		d.remove = append(d.remove, shared)
	}
	if err := os.MkdirAll(d.data, nvram.PrivateFolder); err != nil {
		return err
	}
	if d.data, err = filepath.Abs(d.data); err != nil {
		return err
	}
	replicas := min(demoReplicas, d.command.Machines)
	d.flags = []string{"serve", "--data", d.data, "--cluster", d.url(), "--replicas", strconv.Itoa(replicas),
		"--workers", "2", "--region-size", "256MiB", "--log-size", "4MiB", "--log-format", "json"}
	if shared != "" {
		d.flags = append(d.flags, "--shared-folder", shared)
	}
	if d.command.Lease > 0 {
		d.flags = append(d.flags, "--lease", d.command.Lease.String())
	}
	for i := range d.command.Machines {
		port := d.command.Port + i
		if d.command.Port == 0 {
			if port, err = freePort(); err != nil {
				return err
			}
		}
		d.machines = append(d.machines, demoMachine{port: port})
	}
	return nil
}

func (d *demo) url() string { return "file://" + filepath.Join(d.data, "configuration") }

// freePort returns an unused port of the loopback interface.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (d *demo) removeFolders() {
	for _, f := range d.remove {
		if err := os.RemoveAll(f); err != nil {
			fmt.Fprintf(d.std.Err, "farmsql: %v\n", err)
		}
	}
}

// run starts all machines and handles their events until ctx ends, or a machine
// fails by itself.
func (d *demo) run(ctx context.Context) error {
	d.say("starting %d machines in %s", len(d.machines), d.data)
	for i := range d.machines {
		if err := d.start(i); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-d.events:
			if err := d.handle(e); err != nil {
				return err
			}
		}
	}
}

// start starts a process for a machine.
func (d *demo) start(i int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	m := &d.machines[i]
	p := exec.Command(program, append(d.flags, "--machine-id", strconv.Itoa(i), "--listen", fmt.Sprintf("127.0.0.1:%d", m.port))...)
	// The machine dies with this process, but Ctrl-C must reach only this process.
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	log, err := p.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return fmt.Errorf("machine %d: %w", i, err)
	}
	m.process = p
	m.starts++
	d.running++
	go d.follow(i, p, out, log)
	return nil
}

// follow passes on a process's log lines, and its end.
func (d *demo) follow(i int, p *exec.Cmd, out, log io.Reader) {
	printed := make(chan struct{})
	// A machine prints one line on its standard output: that it is ready.
	go func() {
		defer close(printed)
		for s := bufio.NewScanner(out); s.Scan(); {
			d.tell(demoEvent{machine: i, ready: true})
		}
	}()
	for s := bufio.NewScanner(log); s.Scan(); {
		d.tell(demoEvent{machine: i, line: s.Text()})
	}
	<-printed
	d.tell(demoEvent{machine: i, err: ended{p.Wait()}})
}

// tell passes an event to run, unless run has ended.
func (d *demo) tell(e demoEvent) {
	select {
	case d.events <- e:
	case <-d.over:
	}
}

// ended is the result of a process that has ended; a nil error is exit status 0.
type ended struct{ error }

// isKilled reports whether a signal has ended the process.
func (e ended) isKilled() bool {
	var exit *exec.ExitError
	if !errors.As(e.error, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// handle deals with one event.
func (d *demo) handle(e demoEvent) error {
	m := &d.machines[e.machine]
	end, isEnd := e.err.(ended)
	switch {
	case e.restart:
		d.say("machine %d is started again", e.machine)
		return d.start(e.machine)
	case e.ready:
		m.isReady = true
		if m.starts > 1 || d.printed {
			d.say("machine %d is ready: process %d, port %d", e.machine, m.process.Process.Pid, m.port)
		}
		d.printHowToConnect()
	case isEnd:
		m.process, m.isReady = nil, false
		d.running--
		if end.error != nil && !end.isKilled() {
			return fmt.Errorf("machine %d has failed: %w", e.machine, end.error)
		}
		d.say("machine %d has ended%s", e.machine, endText(end))
		if d.command.Restart > 0 {
			time.AfterFunc(d.command.Restart, func() { d.tell(demoEvent{machine: e.machine, restart: true}) })
		}
	default:
		if text := readable(e.line); text != "" {
			d.say("machine %d %s", e.machine, text)
		}
	}
	return nil
}

func endText(e ended) string {
	if e.error == nil {
		return " by itself"
	}
	return ": " + e.Error()
}

// printHowToConnect prints how to connect, if all machines are ready and it has not printed that
// before.
func (d *demo) printHowToConnect() {
	for i := range d.machines {
		if !d.machines[i].isReady {
			return
		}
	}
	if d.printed {
		return
	}
	d.printed = true
	out := d.std.Out
	fmt.Fprintf(out, "\n%d machines are ready. Any of them takes any statement:\n\n", len(d.machines))
	for i, m := range d.machines {
		fmt.Fprintf(out, "  machine %d   mariadb -h 127.0.0.1 -P %d -u root   (process %d)\n", i, m.port, m.process.Process.Pid)
	}
	fmt.Fprintf(out, "\nKill one, and go on at another:     kill -9 %d\n", d.machines[0].process.Process.Pid)
	last := d.machines[len(d.machines)-1].process.Process.Pid
	fmt.Fprintf(out, "Stop one for longer than its lease:  kill -STOP %d; sleep 1; kill -CONT %d\n", last, last)
	fmt.Fprintf(out, "See how they are:                    farmsql status --data %s\n", d.data)
	if d.command.Restart > 0 {
		fmt.Fprintf(out, "What is killed is started again after %v. Ctrl-C stops everything.\n\n", d.command.Restart)
	} else {
		fmt.Fprintf(out, "Ctrl-C stops everything.\n\n")
	}
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.std.Out, "%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// stop ends all machines at the same time, so that none suspects another, and waits
// for them.
func (d *demo) stop() error {
	d.say("stopping")
	d.signal(syscall.SIGTERM)
	late := time.NewTimer(demoPatience)
	defer late.Stop()
	for d.running > 0 {
		select {
		case e := <-d.events:
			if _, isEnd := e.err.(ended); isEnd {
				d.machines[e.machine].process = nil
				d.running--
			}
		case <-late.C:
			d.say("killing what does not stop")
			d.signal(syscall.SIGKILL)
		}
	}
	return nil
}

// signal sends a signal to all machines, also to those stopped by SIGSTOP.
func (d *demo) signal(s syscall.Signal) {
	for _, m := range d.machines {
		if m.process != nil {
			_ = m.process.Process.Signal(s) // fails if the process has ended
			_ = m.process.Process.Signal(syscall.SIGCONT)
		}
	}
}

// A logLine has the interesting fields of a line in a machine's log.
type logLine struct {
	Level, Msg    string
	Suspect       int
	Configuration int
	Dead          []int
	Joined        *int
	Took          time.Duration
	Region        int
	Bytes         int
	Regions       any
	Missing       []int
	Reason, Error string
}

// readable returns a line of a machine's log in words; empty if it is not
// interesting.
func readable(line string) string {
	var l logLine
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		return "says: " + line
	}
	switch l.Msg {
	case "machine suspected":
		return fmt.Sprintf("suspects machine %d", l.Suspect)
	case "reconfigured":
		return reconfiguredText(l)
	case "replica filled":
		return fmt.Sprintf("has filled its replica of region %d: %d KiB in %v", l.Region, l.Bytes>>10, l.Took.Round(time.Millisecond))
	case "evicted":
		return "has been evicted: " + l.Reason
	case "coming back":
		return "comes back as a new machine"
	case "waiting for a majority":
		return fmt.Sprintf("waits for a majority; missing: %s", list(l.Missing))
	case "regions have lost all their replicas":
		return fmt.Sprintf("says that regions have lost all their replicas: %v", l.Regions)
	}
	if l.Level == "ERROR" {
		return strings.TrimSuffix(fmt.Sprintf("says: %s: %s", l.Msg, l.Error), ": ")
	}
	return ""
}

func reconfiguredText(l logLine) string {
	change := "as before"
	switch {
	case l.Configuration == 1:
		change = "the first"
	case l.Joined != nil:
		change = fmt.Sprintf("with machine %d", *l.Joined)
	case len(l.Dead) > 0:
		change = "without machine " + list(l.Dead)
	}
	return fmt.Sprintf("leads configuration %d, %s: all regions active after %v", l.Configuration, change, l.Took.Round(10*time.Microsecond))
}
