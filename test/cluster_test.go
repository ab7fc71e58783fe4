package test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/zookeepertest"
	"github.com/farmsql/farmsql/rdma"
)

// A fleet is an instance whose machines are processes.
type fleet struct {
	t        *testing.T
	folder   string // on a tmpfs
	url      string // --cluster
	replicas int
	store    cluster.Store
	machines []*machine
	more     []string      // flags of all machines
	program  string        // farmsql, or another build of it
	patience time.Duration // of wait
	peers    *peers        // nil if the machines share memory
	hosts    *hosts        // nil if the machines are on this host
	joining  *joining      // nil if the configuration is at url
}

// newFleet makes a fleet of machines that do not run yet. Without a url the
// configuration is in a file.
func newFleet(t *testing.T, machines, replicas int, url string) *fleet {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "farmsql-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if url == "" {
		url = "file://" + filepath.Join(folder, "configuration")
	}
	f := &fleet{t: t, folder: folder, url: url, replicas: replicas, program: binary, patience: startTimeout}
	if f.store, err = cluster.Open(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.store.Close() })
	for id := range machines {
		f.machines = append(f.machines, &machine{fleet: f, id: id})
	}
	if os.Getenv(overTCP) != "" {
		f.peers = newPeers(t)
	}
	return f
}

// stores are where a fleet's configuration can be.
var stores = map[string]func(*testing.T) string{
	"file":      func(*testing.T) string { return "" },
	"zookeeper": func(t *testing.T) string { return "zk://" + zookeepertest.Start(t).Address + "/farmsql/test" },
}

// start starts all machines and returns when all serve. The end of the test kills machines that
// still run.
func (f *fleet) start() {
	f.t.Helper()
	f.t.Cleanup(f.killAll)
	for _, m := range f.machines {
		m.start()
		if f.joining != nil {
			f.wait(fmt.Sprintf("machine %d to join", m.id), m.hasJoined) // for numbers are given in turn
		}
	}
	f.awaitServing()
}

func (f *fleet) awaitServing() {
	f.t.Helper()
	for _, m := range f.machines {
		f.wait(fmt.Sprintf("machine %d to serve", m.id), func() bool { return m.serves() })
	}
}

// killAll kills all running machines, in the middle of their work.
func (f *fleet) killAll() {
	for _, m := range f.machines { // that die one after the other, but all of them now
		if m.cmd != nil {
			_ = m.cmd.Process.Signal(syscall.SIGSTOP)
		}
	}
	for _, m := range f.machines {
		if m.cmd != nil {
			m.kill()
		}
	}
}

// configuration returns the current configuration.
func (f *fleet) configuration() *cluster.Configuration {
	f.t.Helper()
	if f.store == nil {
		f.store = f.joining.store(f)
	}
	c, err := f.store.Load()
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// isWhole reports whether all machines are members and every region has all of its replicas,
// filled.
func (f *fleet) isWhole() bool {
	c := f.configuration()
	if c == nil || len(c.Machines) != len(f.machines) || len(c.Lost) > 0 || len(c.Regions) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool {
		return len(p.Filling) > 0 || 1+len(p.Backups) != f.replicas
	})
}

func (f *fleet) awaitWhole() {
	f.t.Helper()
	f.wait("all regions to have all replicas", f.isWhole)
	f.awaitServing()
}

// cm returns the CM of the current configuration.
func (f *fleet) cm() *machine { return f.machines[f.configuration().CM] }

// wait waits until a condition holds, as long as the fleet's patience lasts.
func (f *fleet) wait(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(f.patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("waited %v for %s\n%s", f.patience, what, f.remains())
		}
		for _, m := range f.machines {
			if err := m.died(); err != nil {
				f.t.Errorf("machine %d has ended by itself: %v", m.id, err) // tails may find no configuration
				f.t.Fatal(f.tails())
			}
		}
	}
}

// tails returns the end of each machine's log, for failures.
func (f *fleet) tails() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", f.configuration())
	for _, m := range f.machines {
		m.mu.Lock()
		from := slices.IndexFunc(m.lines, func(s string) bool { return strings.HasPrefix(s, "panic: ") || strings.HasPrefix(s, "fatal error: ") })
		if from < 0 {
			from = max(0, len(m.lines)-12)
		}
		fmt.Fprintf(&b, "machine %d:\n\t%s\n", m.id, strings.Join(m.lines[from:min(from+40, len(m.lines))], "\n\t"))
		m.mu.Unlock()
	}
	return b.String()
}

// remains returns tails, and the places where each machine's goroutines wait. It ends all machines.
func (f *fleet) remains() string {
	var b strings.Builder
	b.WriteString(f.tails())
	for _, m := range f.machines {
		if m.cmd == nil {
			continue
		}
		m.mu.Lock()
		m.killed, m.serving = true, false
		m.upset++
		said := len(m.lines)
		m.mu.Unlock()
		_ = m.cmd.Process.Signal(syscall.SIGCONT)
		_ = m.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-m.exited:
		case <-time.After(10 * time.Second):
			_ = m.cmd.Process.Kill()
		}
		m.mu.Lock()
		fmt.Fprintf(&b, "goroutines of machine %d:\n%s", m.id, goroutines(m.lines[said:]))
		m.mu.Unlock()
	}
	return b.String()
}

// goroutines shortens the output of a process after SIGQUIT to the functions in which the
// goroutines of the lower layers are.
func goroutines(lines []string) string {
	const own = "github.com/farmsql/farmsql/"
	count := make(map[string]int)
	var calls []string
	end := func() {
		if stack := strings.Join(calls, " < "); strings.Contains(stack, own) {
			count[strings.ReplaceAll(stack, own, "")]++
		}
		calls = nil
	}
	for _, line := range lines {
		arguments := strings.LastIndexByte(line, '(')
		switch {
		case line == "":
			end()
		case arguments > 0 && strings.HasSuffix(line, ")") && len(calls) < 12:
			calls = append(calls, line[:arguments])
		}
	}
	end()
	var b strings.Builder
	for _, stack := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "\t%d: %s\n", count[stack], stack)
	}
	return b.String()
}

// A machine is one machine of a fleet, through all its processes.
type machine struct {
	fleet *fleet
	id    int
	more  []string // flags of its own
	// program is the build of farmsql that the machine runs; if it is empty, the fleet's.
	program string

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has
	err    error         // of Wait, after exited

	mu      sync.Mutex // guards the rest
	addr    string
	killed  bool    // the process was to end
	upset   int     // how often it was killed or evicted
	events  []event // what it has logged
	lines   []string
	serving bool
}

// An event is a line of a machine's log.
type event struct {
	Time     time.Time `json:"time"`
	Message  string    `json:"msg"`
	Address  string    `json:"address"`
	Machine  int       `json:"machine"`
	Suspect  *int      `json:"suspect"`
	Steps    string    `json:"steps"`
	Length   int64     `json:"length"`
	KeptBy   string    `json:"kept by"`
	ID       uint64    `json:"configuration"`
	Revision uint64    `json:"revision"`
	Bytes    int64     `json:"bytes"`
	Of       int64     `json:"of"`
}

// flags are those of the machine's process.
func (m *machine) flags() []string {
	if j := m.fleet.joining; j != nil {
		return slices.Concat(j.flags(m), m.fleet.more, m.more)
	}
	return slices.Concat([]string{
		"serve", "--data", m.fleet.folder, "--cluster", m.fleet.url, "--machine-id", fmt.Sprint(m.id),
		"--replicas", fmt.Sprint(m.fleet.replicas),
		"--region-size", "16MiB", "--log-size", "1MiB", "--listen", net.JoinHostPort(m.listen(), "0"), "--log-format", "json",
	}, m.network(), m.fleet.more, m.more)
}

// listen is the IP address at which the machine listens for clients.
func (m *machine) listen() string {
	if m.fleet.hosts != nil {
		return "0.0.0.0"
	}
	return "127.0.0.1"
}

// network are the flags of the network between machines.
func (m *machine) network() []string {
	if m.fleet.peers != nil {
		return m.fleet.peers.flags(m.fleet.t, m.id)
	}
	return []string{"--shared-folder", filepath.Join(m.fleet.folder, "shared")}
}

// executable is the file of the program that the machine runs.
func (m *machine) executable() string { return cmp.Or(m.program, m.fleet.program) }

// start starts the machine's process, and does not wait for it.
func (m *machine) start() {
	t := m.fleet.t
	t.Helper()
	m.cmd = exec.Command(m.executable(), m.flags()...)
	if m.fleet.hosts != nil {
		m.cmd = m.fleet.hosts.command(m.id, m.executable(), m.flags()...)
	}
	// If the test process dies, its machines must end, too.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := m.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.killed, m.serving = false, false
	m.mu.Unlock()
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.exited = make(chan struct{})
	var pipes sync.WaitGroup
	pipes.Go(func() { each(stdout, m.said) })
	pipes.Go(func() { each(stderr, m.logged) })
	go func(cmd *exec.Cmd, exited chan struct{}) {
		pipes.Wait()
		m.err = cmd.Wait()
		close(exited)
	}(m.cmd, m.exited)
}

// said takes a line that the machine prints. The log says as much, in order with the rest, but for
// tokens.
func (m *machine) said(line string) {
	if _, token, ok := strings.Cut(line, " --join "); ok {
		m.fleet.joining.tokens <- token
	}
}

func each(r io.Reader, f func(line string)) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			f(strings.TrimSpace(line))
		}
		if err != nil {
			return
		}
	}
}

// logged takes a line of the log.
func (m *machine) logged(line string) {
	var e event
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, line)
	if json.Unmarshal([]byte(line), &e) != nil {
		return
	}
	m.events = append(m.events, e)
	switch e.Message {
	case "ready":
		m.addr, m.serving = e.Address, true
	case "evicted":
		m.upset++
		m.serving = false
	}
}

// serves reports whether clients can connect.
func (m *machine) serves() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serving && !m.killed
}

// died returns why the process has ended although nobody has killed it.
func (m *machine) died() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exited == nil || m.killed {
		return nil
	}
	select {
	case <-m.exited:
		return fmt.Errorf("exit: %v", m.err)
	default:
		return nil
	}
}

// kill ends the process as a crash would, and returns the time of that.
func (m *machine) kill() time.Time {
	m.mu.Lock()
	m.killed, m.serving = true, false
	m.upset++
	m.mu.Unlock()
	at := time.Now()
	_ = m.cmd.Process.Kill()
	<-m.exited
	return at
}

// stop ends the process in order, as an operator does, and returns when it has ended. Clients may be
// connected to it.
func (m *machine) stop() {
	t := m.fleet.t
	t.Helper()
	m.mu.Lock()
	m.killed, m.serving = true, false
	m.upset++
	m.mu.Unlock()
	m.signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(startTimeout):
		t.Fatalf("machine %d did not end within %v of SIGTERM\n%s", m.id, startTimeout, m.fleet.remains())
	}
	if m.err != nil {
		t.Errorf("machine %d, stopped: %v\n%s", m.id, m.err, m.fleet.tails())
	}
}

// signal sends a signal to the process.
func (m *machine) signal(s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil {
		m.fleet.t.Fatal(err)
	}
}

// upsets counts how often the machine was killed or evicted.
func (m *machine) upsets() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.upset
}

// find returns the first event since a moment that f accepts.
func (m *machine) find(since time.Time, f func(e *event) bool) (event, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if !e.Time.Before(since) && f(&e) {
			return e, true
		}
	}
	return event{}, false
}

// address returns where the machine serves.
func (m *machine) address() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fleet.hosts == nil {
		return m.addr
	}
	_, port, _ := net.SplitHostPort(m.addr) // which the machine has logged
	return net.JoinHostPort(m.fleet.hosts.address(m.id), port)
}

// isMember reports whether the machine is in the configuration.
func (f *fleet) isMember(m *machine) bool {
	_, ok := f.configuration().Member(rdma.MachineID(m.id))
	return ok
}
