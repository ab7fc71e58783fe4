package growth

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
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
)

// A process is one machine: farmsql serve.
type process struct {
	machine int
	data    string // the value of --data
	command *exec.Cmd
	ready   chan string   // receives the address for clients
	token   chan string   // receives the token of the first machine's invitation
	ended   chan struct{} // closed when the process has ended
	err     error         // set when ended is closed: why the process did not end in good order

	mu      sync.Mutex
	last    string // the last line of its log
	evicted int    // how often the machine has logged that it comes back
}

// Patterns of lines: of farmsql serve, of farmsql token, and of the log of a machine that was evicted.
var (
	readyPattern = regexp.MustCompile(`^farmsql is ready on (\S+):`)
	tokenPattern = regexp.MustCompile(` --join (\S+)$`)
	backPattern  = regexp.MustCompile(`msg="coming back"`)
)

// startProcess starts farmsql serve. The new process ends when this process does.
func startProcess(program string, machine int, data string, args ...string) (*process, error) {
	p := &process{
		machine: machine, data: data, command: exec.Command(program, append([]string{"serve", "--data", data, "--log-level", "warn"}, args...)...),
		ready: make(chan string, 1), token: make(chan string, 1), ended: make(chan struct{}),
	}
	// Ctrl-C must reach only this process, which then ends the machines.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("growth: machine %d: %w", machine, err)
	}
	log, err := p.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("growth: machine %d: %w", machine, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("growth: machine %d: %w", machine, err)
	}
	go p.follow(out, log)
	return p, nil
}

// follow reads what the process prints until it ends.
func (p *process) follow(out, log io.Reader) {
	var reading sync.WaitGroup
	reading.Go(func() {
		eachLine(out, func(line string) {
			offerMatch(p.ready, readyPattern, line)
			offerMatch(p.token, tokenPattern, line)
		})
	})
	reading.Go(func() {
		eachLine(log, func(line string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.last = line
			if backPattern.MatchString(line) {
				p.evicted++
			}
		})
	})
	reading.Wait() // read all output first, because Wait closes the pipes
	p.err = p.command.Wait()
	close(p.ended)
}

func eachLine(r io.Reader, f func(line string)) {
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadString('\n')
		if line != "" {
			f(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

// offerMatch sends the text that pattern captures in line to matches, unless that channel holds a value
// already.
func offerMatch(matches chan string, pattern *regexp.Regexp, line string) {
	found := pattern.FindStringSubmatch(line)
	if found == nil {
		return
	}
	select {
	case matches <- found[1]:
	default:
	}
}

// awaitLine waits for a value from matches, one of the channels that offerMatch fills. what describes
// it for the error.
func (p *process) awaitLine(ctx context.Context, matches chan string, what string) (string, error) {
	select {
	case s := <-matches:
		return s, nil
	case <-p.ended:
		return "", p.unexpectedEnd()
	case <-ctx.Done():
		return "", fmt.Errorf("growth: machine %d: waited for %s: %w; the last that it logged: %q", p.machine, what, context.Cause(ctx), p.lastLine())
	}
}

func (p *process) unexpectedEnd() error {
	return fmt.Errorf("growth: machine %d has ended by itself (%v); the last that it logged: %q", p.machine, p.command.ProcessState, p.lastLine())
}

func (p *process) lastLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// evictions returns how often the machine was evicted because it was silent for too long, and came back.
func (p *process) evictions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.evicted
}

// hasEnded reports whether the process has ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// terminate asks the process to end.
func (p *process) terminate() { _ = p.command.Process.Signal(syscall.SIGTERM) } // fails only if it has ended

// awaitEnd waits for the end of a process after terminate. It fails if the process does not end in good order.
func (p *process) awaitEnd(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("growth: machine %d does not stop: %w; the last that it logged: %q", p.machine, context.Cause(ctx), p.lastLine())
	}
	if p.err != nil {
		return fmt.Errorf("growth: machine %d did not stop in good order: %w; the last that it logged: %q", p.machine, p.err, p.lastLine())
	}
	return nil
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.command.Process.Kill() // fails only if it has ended
	<-p.ended
}

// folder returns the folder that has the machine's memory.
func (p *process) folder() string { return filepath.Join(p.data, "machine-"+strconv.Itoa(p.machine)) }

// statusPatience is how long a machine may take to answer with its status.
const statusPatience = 5 * time.Second

// status asks the machine for its status.
func (p *process) status() (*farmsql.Status, error) {
	c, err := net.DialTimeout("unix", filepath.Join(p.folder(), "status.sock"), statusPatience)
	if err != nil {
		return nil, fmt.Errorf("growth: status of machine %d: %w", p.machine, err)
	}
	defer c.Close()
	s := new(farmsql.Status)
	err = errors.Join(c.SetDeadline(time.Now().Add(statusPatience)), json.NewDecoder(c).Decode(s))
	if err != nil {
		return nil, fmt.Errorf("growth: status of machine %d: %w", p.machine, err)
	}
	return s, nil
}

// regionBytes returns the number of regions in the machine's folder, and how many bytes they take.
func (p *process) regionBytes() (regions int, bytes int64, err error) {
	files, err := filepath.Glob(filepath.Join(p.folder(), "region-*.mem"))
	if err != nil {
		return 0, 0, fmt.Errorf("growth: %w", err)
	}
	for _, file := range files {
		var s syscall.Stat_t
		err := syscall.Stat(file, &s)
		if errors.Is(err, os.ErrNotExist) {
			continue // the region has moved away meanwhile
		}
		if err != nil {
			return 0, 0, fmt.Errorf("growth: %s: %w", file, err)
		}
		regions, bytes = regions+1, bytes+s.Blocks*blockBytes
	}
	return regions, bytes, nil
}

// blockBytes is the unit of Stat_t.Blocks.
const blockBytes = 512
