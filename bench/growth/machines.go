package growth

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

// machines are the processes of a cluster. They keep the configuration themselves, and reach each other
// over TCP with TLS.
type machines struct {
	cfg    *Config
	folder string // has the machines' data folders
	net    string // the first three numbers of the machines' IP addresses

	mu  sync.Mutex
	all []*process // by number; nil after stop
	old []*process // the processes that stop has ended
}

// peerPort is the port at which machines listen for each other, each at an address of its own.
const peerPort = "7070"

// newMachines creates the folder. No machine runs yet.
func newMachines(cfg *Config) (*machines, error) {
	folder, err := os.MkdirTemp(cfg.Data, "farmsql-growth-")
	if err != nil {
		return nil, fmt.Errorf("growth: %w", err)
	}
	pid := os.Getpid() // makes the addresses differ from those of other runs at the same time
	high, low := (pid>>8)&0x7f, pid&0xff
	return &machines{cfg: cfg, folder: folder, net: fmt.Sprintf("127.%d.%d", 128+high, low)}, nil
}

func (m *machines) host(id int) string { return m.net + "." + strconv.Itoa(id+1) }

func (m *machines) data(id int) string { return filepath.Join(m.folder, strconv.Itoa(id)) }

// begin starts the machines with which the cluster begins, and returns the addresses for their clients.
func (m *machines) begin(ctx context.Context) (addresses []string, err error) {
	c := m.cfg
	first, err := m.start("--cluster", "raft:", "--replicas", strconv.Itoa(c.Replicas), "--workers", strconv.Itoa(c.Workers),
		"--region-size", c.RegionSize.String(), "--log-size", c.LogSize.String())
	if err != nil {
		return nil, err
	}
	begun := []*process{first}
	if c.first() > 1 {
		token, err := first.awaitLine(ctx, first.token, "its invitation")
		if err != nil {
			return nil, err
		}
		for len(begun) < c.first() {
			p, err := m.start("--join", token)
			if err != nil {
				return nil, err
			}
			begun = append(begun, p)
			if err := m.awaitNumber(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range begun {
		address, err := p.awaitLine(ctx, p.ready, "it to serve")
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// awaitNumber waits until a machine has its number, which is in the name of its folder, so that the next
// machine gets the next number.
func (m *machines) awaitNumber(ctx context.Context, p *process) error {
	return bench.Poll(ctx, fmt.Sprintf("machine %d to join", p.machine), func() (bool, error) {
		if p.hasEnded() {
			return false, p.unexpectedEnd()
		}
		_, err := os.Stat(p.folder())
		return err == nil, nil
	})
}

// join makes one more machine join, and returns the address for its clients.
func (m *machines) join(ctx context.Context) (machine int, address string, err error) {
	out, err := m.command(ctx, "token", "--data", m.data(0))
	if err != nil {
		return 0, "", err
	}
	found := tokenPattern.FindStringSubmatch(strings.TrimSpace(out))
	if found == nil {
		return 0, "", fmt.Errorf("growth: no token in what farmsql token prints: %q", out)
	}
	p, err := m.start("--join", found[1])
	if err != nil {
		return 0, "", err
	}
	address, err = p.awaitLine(ctx, p.ready, "it to serve")
	return p.machine, address, err
}

// start starts the machine with the next number.
func (m *machines) start(args ...string) (*process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := len(m.all)
	args = append(args, "--listen", net.JoinHostPort(m.host(id), "0"), "--advertise", net.JoinHostPort(m.host(id), peerPort),
		"--lease", m.cfg.Lease.String(), "--recovery-pace", string(m.cfg.Pace))
	p, err := startProcess(m.cfg.Program, id, m.data(id), args...)
	if err == nil {
		m.all = append(m.all, p)
	}
	return p, err
}

// command runs the program to its end.
func (m *machines) command(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, m.cfg.Program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("growth: farmsql %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// resize gives all regions another number of replicas.
func (m *machines) resize(ctx context.Context, replicas int) error {
	_, err := m.command(ctx, "resize", "--data", m.data(0), "--replicas", strconv.Itoa(replicas))
	return err
}

// drain moves all data off a machine.
func (m *machines) drain(ctx context.Context, id int) error {
	_, err := m.command(ctx, "drain", "--data", m.data(0), "--machine", strconv.Itoa(id))
	return err
}

// stop ends a machine in good order, and waits until the others have removed it from the configuration.
func (m *machines) stop(ctx context.Context, id int) error {
	m.mu.Lock()
	p := m.all[id]
	m.all[id], m.old = nil, append(m.old, p)
	m.mu.Unlock()
	p.terminate()
	if err := p.awaitEnd(ctx); err != nil {
		p.kill()
		return err
	}
	return bench.Poll(ctx, fmt.Sprintf("the others to go on without machine %d", id), func() (bool, error) {
		s, err := m.view()
		return err == nil && memberOf(s, id) == nil, m.died()
	})
}

// running returns the machines that were started and have not been stopped.
func (m *machines) running() (all []*process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.all {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// evictions returns how often machines were evicted and came back.
func (m *machines) evictions() (n int) {
	for _, p := range append(m.running(), m.old...) {
		n += p.evictions()
	}
	return n
}

// died returns an error if a machine has ended by itself.
func (m *machines) died() error {
	for _, p := range m.running() {
		if p.hasEnded() {
			return p.unexpectedEnd()
		}
	}
	return nil
}

// view returns the CM's view of the cluster. The first machine says who the CM is; its own view stands
// in if no machine that runs is the CM.
func (m *machines) view() (*farmsql.Status, error) {
	running := m.running()
	s, err := running[0].status()
	if err != nil {
		return nil, err
	}
	for _, p := range running[1:] {
		if member := memberOf(s, p.machine); member != nil && member.IsCM {
			return p.status()
		}
	}
	return s, nil
}

func memberOf(s *farmsql.Status, id int) *farmsql.MachineStatus {
	for i := range s.Machines {
		if s.Machines[i].Machine == id {
			return &s.Machines[i]
		}
	}
	return nil
}

// end stops all machines in good order, all at the same time.
func (m *machines) end(ctx context.Context) error {
	running := m.running()
	for _, p := range running {
		p.terminate()
	}
	for _, p := range running {
		if err := p.awaitEnd(ctx); err != nil {
			return err
		}
	}
	return nil
}

// remove kills what runs, and removes the folder.
func (m *machines) remove() error {
	for _, p := range m.running() {
		p.kill()
	}
	if err := os.RemoveAll(m.folder); err != nil {
		return fmt.Errorf("growth: %w", err)
	}
	return nil
}
