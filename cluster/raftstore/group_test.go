package raftstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/storetest"
	"github.com/farmsql/farmsql/internal/testcert"
	"github.com/farmsql/farmsql/rdma"
)

const (
	testCluster = 7
	// testTick makes elections short. On a slow machine they are disturbed more often, and tests take
	// longer; none depends on it.
	testTick     = 20 * time.Millisecond
	testPatience = time.Second
)

// addressOf returns the address of a machine in the Founding, which only the test's dialer knows.
func addressOf(machine int) string { return fmt.Sprintf("127.0.0.1:%d", 1+machine) }

func founding(machines, machine int) Founding {
	f := Founding{Cluster: testCluster, Machine: rdma.MachineID(machine), Machines: make(map[rdma.MachineID]string)}
	for m := range machines {
		f.Machines[rdma.MachineID(m)] = addressOf(m)
	}
	return f
}

// A group is the machines of a store. They reach each other through relays.
type group struct {
	t       testing.TB
	folder  string
	tls     *tls.Config
	relays  [][]*storetest.Relay // [from][to]
	founded int                  // how many found the store; the others are there to take their places

	patience, tick time.Duration
	hedge          time.Duration // of clients; 0 for the usual
	rivals         chan error    // what Config.Rival is told; nil if that does not matter
	changed        func(machine int, revision uint64)

	sent atomic.Int64 // how often machines have sent to each other

	mu        sync.Mutex
	stores    []*Store
	addresses []string             // where the machines listen
	guests    [][]*storetest.Relay // of clients to the machines
	asking    []*Client
}

// newGroup creates a store of some machines and starts them.
func newGroup(t testing.TB, machines int, tls *tls.Config) *group {
	g := prepareGroup(t, t.TempDir(), machines, tls)
	g.create()
	return g
}

// create creates the store and starts all machines.
func (g *group) create() {
	for m := range g.founded {
		if err := Create(g.folderOf(m), founding(g.founded, m)); err != nil {
			g.t.Fatal(err)
		}
		g.start(m)
	}
}

// prepareGroup makes a group whose machines are not started.
func prepareGroup(t testing.TB, folder string, machines int, tls *tls.Config) *group {
	g := &group{t: t, folder: folder, tls: tls, founded: machines, patience: testPatience, tick: testTick, stores: make([]*Store, machines), addresses: make([]string, machines)}
	for range machines {
		var from []*storetest.Relay
		for range machines {
			from = append(from, storetest.NewRelay(t, ""))
		}
		g.relays = append(g.relays, from)
	}
	t.Cleanup(func() {
		for m := range machines {
			g.kill(m)
		}
	})
	return g
}

func (g *group) folderOf(machine int) string { return filepath.Join(g.folder, fmt.Sprint(machine)) }

// start starts a machine.
func (g *group) start(machine int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Error(err)
		return
	}
	g.retarget(machine, l.Addr().String())
	cfg := Config{
		Folder: g.folderOf(machine), Listener: l, Dial: g.countSendings(through(g.relays[machine])), TLS: g.tls, Patience: g.patience, tick: g.tick, Rival: g.rival,
	}
	if g.changed != nil {
		cfg.Changed = func(revision uint64) { g.changed(machine, revision) }
	}
	s, err := Open(cfg)
	if err != nil {
		l.Close()
		g.t.Error(err)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stores[machine] = s
}

// rival is Config.Rival.
func (g *group) rival(reason error) {
	select {
	case g.rivals <- reason:
	default: // nobody waits for it
	}
}

// retarget has all relays to a machine lead to an address.
func (g *group) retarget(machine int, address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addresses[machine] = address
	for _, from := range slices.Concat(g.relays, g.guests) {
		from[machine].Retarget(address)
	}
}

// through returns a dialer that reaches each machine through a relay.
func through(relays []*storetest.Relay) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		for m, r := range relays {
			if address == addressOf(m) {
				return new(net.Dialer).DialContext(ctx, "tcp", r.Address())
			}
		}
		return nil, errors.New("no such machine")
	}
}

// client returns a client of the group, and its relays.
func (g *group) client() (*Client, []*storetest.Relay) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var relays []*storetest.Relay
	for _, address := range g.addresses {
		relays = append(relays, storetest.NewRelay(g.t, address))
	}
	g.guests = append(g.guests, relays)
	c, err := NewClient(ClientConfig{
		Cluster: testCluster, Machines: founding(g.founded, 0).Machines, Dial: through(relays), TLS: g.tls, Patience: g.patience, tick: g.tick, hedge: g.hedge,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.asking = append(g.asking, c)
	g.t.Cleanup(func() { c.Close() })
	return c, relays
}

// kill ends a machine. Close saves nothing, so that is what a crash does: see also TestKill.
func (g *group) kill(machine int) {
	if s := g.store(machine); s != nil {
		s.Close()
	}
}

func (g *group) store(machine int) *Store {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stores[machine]
}

// leader returns the machine that most machines follow.
func (g *group) leader() (machine int, ok bool) {
	votes := make(map[uint64]int)
	for m := range g.relays {
		s := g.store(m)
		if s == nil {
			continue
		}
		id := s.leader.Load()
		if votes[id]++; id != 0 && votes[id] > g.founded/2 {
			return int(machineOf(id)), true
		}
	}
	return 0, false
}

// each calls f for the relays from a machine and those to it.
func (g *group) each(machine int, f func(from, to *storetest.Relay)) {
	for m := range g.relays {
		f(g.relays[machine][m], g.relays[m][machine])
	}
}

func (g *group) heal(machine int) func() {
	return func() {
		g.each(machine, func(from, to *storetest.Relay) {
			from.Heal()
			to.Heal()
		})
	}
}

// system returns the group for the suite.
func (g *group) system() *storetest.System {
	s := &storetest.System{
		Machines: len(g.relays),
		Store:    func(machine int) cluster.Store { return mortal{g.store(machine)} },
		Restart: func() {
			for m := range g.relays {
				g.kill(m)
			}
			for m := range g.relays {
				g.start(m)
			}
		},
	}
	if s.Machines == 1 {
		return s
	}
	s.Cut = func(machine int) func() {
		g.each(machine, func(from, to *storetest.Relay) {
			from.Cut()
			to.Cut()
		})
		return g.heal(machine)
	}
	s.CutAnswers = func(machine int) func() {
		g.each(machine, func(from, to *storetest.Relay) {
			from.Drop(storetest.Answers)
			to.Drop(storetest.Requests)
		})
		return g.heal(machine)
	}
	s.Kill = func(machine int) func() {
		g.kill(machine)
		return func() { g.start(machine) }
	}
	s.Leader = g.leader
	return s
}

// clients returns a system of clients only. Faults of machines have no place in it.
func (g *group) clients(n int) *storetest.System {
	var clients []*Client
	var relays [][]*storetest.Relay
	for range n {
		c, r := g.client()
		clients, relays = append(clients, c), append(relays, r)
	}
	change := func(machine int, f func(r *storetest.Relay)) {
		for _, r := range relays[machine] {
			f(r)
		}
	}
	heal := func(machine int) func() {
		return func() { change(machine, (*storetest.Relay).Heal) }
	}
	return &storetest.System{
		Machines: n,
		Store:    func(machine int) cluster.Store { return clients[machine] },
		Restart:  g.system().Restart,
		Cut: func(machine int) func() {
			change(machine, (*storetest.Relay).Cut)
			return heal(machine)
		},
		CutAnswers: func(machine int) func() {
			change(machine, func(r *storetest.Relay) { r.Drop(storetest.Answers) })
			return heal(machine)
		},
	}
}

// mixed returns a system of the group's machines, and of clients with the numbers behind them.
func (g *group) mixed(clients int) *storetest.System {
	all, guests, members := g.system(), g.clients(clients), len(g.relays)
	either := func(f, guest func(int) func()) func(int) func() {
		return func(machine int) func() {
			if machine < members {
				return f(machine)
			}
			return guest(machine - members)
		}
	}
	all.Machines += clients
	all.Cut, all.CutAnswers = either(all.Cut, guests.Cut), either(all.CutAnswers, guests.CutAnswers)
	own := all.Store
	all.Store = func(machine int) cluster.Store {
		if machine < members {
			return own(machine)
		}
		return guests.Store(machine - members)
	}
	return all
}

// A mortal store may have been killed, which the suite knows as a store that cannot be reached.
type mortal struct{ *Store }

func alive(err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: it has been killed", cluster.ErrUnreachable)
	}
	return err
}

func (m mortal) Load() (*cluster.Configuration, error) {
	c, err := m.Store.Load()
	return c, alive(err)
}

func (m mortal) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	return alive(m.Store.CompareAndSwap(old, next))
}

// certificates returns the TLS configuration of machines of one cluster.
func certificates(t testing.TB) *tls.Config {
	t.Helper()
	return testcert.New(t, t.TempDir()).TLS(t, "127.0.0.1")
}
