package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"github.com/farmsql/farmsql/region"
	"golang.org/x/sync/errgroup"
)

// A process is one process of a machine of a Cluster.
type process struct {
	machine int
	command *exec.Cmd
	place   region.Addr
	// isKilled is set if the process is meant to end. Guarded by Cluster.mu.
	isKilled bool

	speaker *speaker
	answers chan report
	// ended is closed when the process has ended. By then err is its result, and lastLine the
	// last line of its standard error.
	ended    chan struct{}
	err      error
	lastLine string
}

// start starts the process of a machine.
func (c *Cluster) start(machine int) (*process, error) {
	p := &process{machine: machine, command: c.cfg.Command(machine, c.folder), answers: make(chan report, 1), ended: make(chan struct{})}
	p.command.Env = append(p.command.Environ(), machineEnv+"="+strconv.Itoa(machine))
	// Ctrl-C must reach only this process, which then closes the machines.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.cfg.Target.Transport == TransportHosts {
		p.command.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	}
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	p.speaker = newSpeaker(in)
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	log, err := p.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	err = p.command.Start()
	if errors.Is(err, syscall.EPERM) && c.cfg.Target.Transport == TransportHosts {
		return nil, fmt.Errorf("%w: a network namespace for each machine (--transport %s) needs root: %w", ErrTarget, TransportHosts, err)
	}
	if err != nil {
		return nil, fmt.Errorf("bench: machine %d: %w", machine, err)
	}
	go func() {
		var reading sync.WaitGroup
		reading.Go(func() { c.listen(p, out) })
		reading.Go(func() { c.follow(p, log) })
		reading.Wait()
		p.err = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// tell sends the process a command. Other code notices if the process has ended.
func (p *process) tell(c command) { _ = p.speaker.say(c) }

// listen reads the process's reports.
func (c *Cluster) listen(p *process, out io.Reader) {
	for d := json.NewDecoder(out); ; {
		var r report
		if d.Decode(&r) != nil {
			return
		}
		switch {
		case r.Barrier:
			c.arrive()
		case r.Progress != nil:
			c.show(r.Progress)
		default:
			p.answers <- r
		}
	}
}

// follow reads what the process logs.
func (c *Cluster) follow(p *process, log io.Reader) {
	const lineMax = 1 << 20
	s := bufio.NewScanner(log)
	s.Buffer(nil, lineMax)
	for s.Scan() {
		p.lastLine = s.Text()
		if c.cfg.Log != nil {
			c.cfg.Log(p.machine, p.lastLine)
		}
	}
}

// answer waits for the answer to a command. If the machine was killed before it answered, answer
// returns an empty report and no error.
func (c *Cluster) answer(ctx context.Context, p *process) (r report, err error) {
	select {
	case r = <-p.answers:
	case <-ctx.Done():
		return r, ctx.Err()
	case <-p.ended:
		select {
		case r = <-p.answers: // the last answer of a process that has ended
		default:
			return r, c.endOf(p)
		}
	}
	if r.Failed != nil {
		return r, fmt.Errorf("bench: machine %d: %w", p.machine, r.Failed)
	}
	return r, nil
}

// endOf returns an error for a process that has ended; nil if the Cluster killed it.
func (c *Cluster) endOf(p *process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.isKilled {
		return nil
	}
	how := "by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("bench: machine %d, process %d, has ended (%s); the last it said: %q", p.machine, p.command.Process.Pid, how, p.lastLine)
}

// ask sends a command to machines, all at once, and returns their answers.
func (c *Cluster) ask(ctx context.Context, machines []*process, m command) ([]report, error) {
	for _, p := range machines {
		p.tell(m)
	}
	return c.answers(ctx, machines)
}

// answers waits for an answer of each of the machines.
func (c *Cluster) answers(ctx context.Context, machines []*process) ([]report, error) {
	all := make([]report, len(machines))
	waiting, ctx := errgroup.WithContext(ctx)
	for i, p := range machines {
		waiting.Go(func() (err error) {
			all[i], err = c.answer(ctx, p)
			return err
		})
	}
	return all, waiting.Wait()
}
