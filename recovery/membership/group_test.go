package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

const leaseKind = 8

// A fakeHost notes what its machine is told.
type fakeHost struct {
	g       *group
	machine rdma.MachineID

	log       []string
	blocked   bool
	config    *cluster.Configuration // frozen for
	active    cluster.ID
	isEvicted bool
	restarted bool
	prepared  []region.ID
	announced []region.ID

	refuse   []region.ID
	applyErr error
	prepare  error
	commit   func(ctx context.Context) error
	onApply  func(c *cluster.Configuration)
}

func (h *fakeHost) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *fakeHost) Freeze(c *cluster.Configuration) {
	h.note("freeze %d", c.ID)
	h.config, h.blocked = c, true
	// One configuration has one content, whoever applies it.
	h.g.agree(h.machine, c)
}

func (h *fakeHost) Apply(c *cluster.Configuration) ([]region.ID, error) {
	h.note("apply %d", c.ID)
	h.g.held[h.machine] = c
	if h.onApply != nil {
		h.onApply(c)
	}
	return h.refuse, h.applyErr
}

func (h *fakeHost) Commit(ctx context.Context, c *cluster.Configuration) error {
	h.note("commit %d", c.ID)
	h.g.committed(h.machine, c)
	h.g.last[h.machine] = c.ID
	h.blocked = false
	if h.commit != nil {
		return h.commit(ctx)
	}
	return nil
}

func (h *fakeHost) Settle(context.Context, *cluster.Configuration) error { return nil }

func (h *fakeHost) Active(c *cluster.Configuration) {
	h.note("active %d", c.ID)
	h.active = c.ID
}

func (h *fakeHost) Evicted() { h.isEvicted = true }

func (h *fakeHost) Restart() { h.restarted = true }

// Holds: what the last configuration gave to the machine, and what was made since.
func (h *fakeHost) Holds() (ids []region.ID, err error) {
	ids = append(ids, h.g.made[h.machine]...)
	if c := h.g.held[h.machine]; c != nil {
		for _, p := range c.Regions {
			if p.Has(h.machine) {
				ids = append(ids, p.Region)
			}
		}
	}
	return ids, nil
}

func (h *fakeHost) Committed() (cluster.ID, bool) { return h.g.last[h.machine], true }

func (h *fakeHost) Prepare(p cluster.Placement) error {
	h.prepared = append(h.prepared, p.Region)
	h.g.made[h.machine] = append(h.g.made[h.machine], p.Region)
	return h.prepare
}

func (h *fakeHost) Announce(p cluster.Placement) { h.announced = append(h.announced, p.Region) }

// A node is one life of a machine in these tests.
type node struct {
	*Machine
	host    *fakeHost
	keeper  lease.Keeper
	process *sim.Process
	started error // by Start
	isUp    bool  // Start has returned
}

// A group is some machines in a simulated world, with one store. Leases last
// 10 ms.
type group struct {
	*testing.T
	world  *sim.World
	store  *slowStore
	wiped  map[rdma.MachineID]uint64 // how often a machine's memory has been replaced by an empty one
	nodes  map[rdma.MachineID]*node  // the latest life of each
	seen   map[cluster.ID]string     // the content of each configuration applied
	events map[string]int            // how many of each
	steps  map[rdma.MachineID][]recovery.Step
	lines  []Timeline
	lost   []region.ID
	away   []region.ID                               // that have become unavailable
	held   map[rdma.MachineID]*cluster.Configuration // that a machine's memory has applied last
	last   map[rdma.MachineID]cluster.ID             // that it has committed last
	made   map[rdma.MachineID][]region.ID            // replicas that it has made room for
	stored []rdma.MachineID                          // who has stored configurations, in order
	change func(cfg *Config)
	// wrap, if not nil, stands between a machine and its NIC.
	wrap func(rdma.NIC) rdma.NIC
	// violated is called when an invariant is violated; it is Errorf unless a test provokes the
	// violation.
	violated func(format string, args ...any)
}

const (
	leaseLength = 10 * time.Millisecond
	restartWait = 20 * leaseLength
)

// A slowStore takes as long as a real one, and can fail.
type slowStore struct {
	cluster.MemoryStore
	g    *group
	fail func(from rdma.MachineID, old uint64, next *cluster.Configuration) error
	cut  map[rdma.MachineID]bool // who does not reach it
	// newer are those to whom what it holds is of a newer format.
	newer map[rdma.MachineID]bool
}

// storeOf is a machine's way to the store.
type storeOf struct {
	*slowStore
	process *sim.Process
}

func (s storeOf) Load() (*cluster.Configuration, error) {
	s.process.Sleep(300 * time.Microsecond)
	if s.cut[s.process.Machine().ID()] {
		return nil, cluster.ErrUnreachable
	}
	if s.newer[s.process.Machine().ID()] {
		return nil, cluster.ErrNewer
	}
	return s.MemoryStore.Load()
}

func (s storeOf) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	s.process.Sleep(500 * time.Microsecond)
	if s.cut[s.process.Machine().ID()] {
		return cluster.ErrUnreachable
	}
	if s.fail != nil {
		if err := s.fail(s.process.Machine().ID(), old, next); err != nil {
			return err
		}
	}
	return s.MemoryStore.CompareAndSwap(old, next)
}

func newGroup(t *testing.T, o sim.Options) *group {
	g := &group{
		T: t, world: sim.New(o), nodes: map[rdma.MachineID]*node{}, seen: map[cluster.ID]string{}, events: map[string]int{}, steps: map[rdma.MachineID][]recovery.Step{},
		wiped: map[rdma.MachineID]uint64{}, last: map[rdma.MachineID]cluster.ID{}, held: map[rdma.MachineID]*cluster.Configuration{}, made: map[rdma.MachineID][]region.ID{}, violated: t.Errorf,
	}
	g.store = &slowStore{g: g, cut: map[rdma.MachineID]bool{}}
	return g
}

// simulate runs f in a world of n machines with as many replicas as given.
func simulate(t *testing.T, o sim.Options, n, replicas int, f func(g *group)) {
	t.Helper()
	g := newGroup(t, o)
	err := g.world.Run(func() {
		for i := range n {
			g.boot(rdma.MachineID(i), &cluster.Configuration{Replicas: replicas, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16})
			g.until("the machine is in", func() bool { return g.nodes[rdma.MachineID(i)].isUp })
		}
		g.settled(n)
		f(g)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// boot begins a life of a machine.
func (g *group) boot(id rdma.MachineID, first *cluster.Configuration) *node {
	p := g.world.Machine(id).Boot()
	n := &node{process: p, host: &fakeHost{g: g, machine: id}}
	g.nodes[id] = n
	p.Go(func() {
		nic, err := p.Join()
		if err != nil {
			g.Error(err)
			return
		}
		if g.wrap != nil {
			nic = g.wrap(nic)
		}
		incarnation := p.Uint64() | 1
		e := call.New(nic, p, incarnation)
		var m *Machine
		n.keeper = lease.NewCalls(e, leaseKind, lease.Config{Length: leaseLength, Clock: p, Expired: func(x rdma.MachineID) {
			if m != nil {
				m.Suspect(x)
			}
		}})
		cfg := Config{
			Self:  cluster.Member{Machine: id, FailureDomain: g.world.Machine(id).Domain(), Incarnation: incarnation, Memory: 100*uint64(id) + g.wiped[id] + 1},
			Empty: g.held[id] == nil,
			First: first, Store: storeOf{g.store, p}, NIC: nic, Worker: 3, Endpoint: e, Keeper: n.keeper, Clock: p, Host: n.host,
			RestartWait: restartWait,
			Step:        func(s recovery.Step) { g.steps[id] = append(g.steps[id], s) },
			Events: Events{
				Suspected: func(rdma.MachineID) { g.events["suspected"]++ },
				Stored: func(c *cluster.Configuration, r cluster.Remapped) {
					g.events["stored"]++
					g.stored = append(g.stored, id)
					g.lost = append(g.lost, r.Lost...)
					g.away = append(g.away, r.Unavailable...)
				},
				Applied:      func(*cluster.Configuration) { g.events["applied"]++ },
				Reconfigured: func(t Timeline) { g.lines = append(g.lines, t) },
				Waiting:      func([]rdma.MachineID) { g.events["waiting"]++ },
				Evicted:      func(error) { g.events["evicted"]++ },
				Failed: func(what string, err error) {
					g.events["failed"]++
					g.Logf("%v machine %d: %s: %v", g.world.Now(), id, what, err)
				},
			},
		}
		if g.change != nil {
			g.change(&cfg)
		}
		if m, err = New(cfg); err != nil {
			n.started, n.isUp = err, true
			return
		}
		n.Machine = m
		n.started = m.Start(context.Background())
		n.isUp = true
	})
	return n
}

// wipe has a machine that is down come back with empty memory.
func (g *group) wipe(id rdma.MachineID) {
	g.wiped[id]++
	delete(g.held, id)
	delete(g.made, id)
}

// agree checks that a configuration is the same everywhere.
func (g *group) agree(m rdma.MachineID, c *cluster.Configuration) {
	content := fmt.Sprint(c.ID, c.CM, c.Machines, c.Incarnation, c.Regions)
	if was, ok := g.seen[c.ID]; ok && was != content {
		g.violated("configuration %d at machine %d is %s, elsewhere %s", c.ID, m, content, was)
	}
	g.seen[c.ID] = content
}

// committed checks what holds when a machine commits a configuration: all its
// members have applied it, and nobody who is alive and not in it relies on a lease.
func (g *group) committed(m rdma.MachineID, c *cluster.Configuration) {
	for id, n := range g.nodes {
		member, in := c.Member(id)
		switch {
		case in && n.Machine != nil && member.Incarnation == n.self.Incarnation:
			if n.host.config.ID < c.ID {
				g.violated("machine %d commits %d, machine %d has applied %d", m, c.ID, id, n.host.config.ID)
			}
		case n.keeper != nil && !n.process.Dead() && n.keeper.Valid():
			g.violated("machine %d commits %d, machine %d is not in it and relies on its lease", m, c.ID, id)
		}
	}
}

// until lets time pass until something holds.
func (g *group) until(what string, f func() bool) {
	g.Helper()
	for begin := g.world.Now(); !f(); g.world.Outside().Sleep(100 * time.Microsecond) {
		if g.world.Now() > begin+5*time.Second {
			for id, n := range g.nodes {
				g.Logf("machine %d: %v, %v", id, n.started, n.host.log[max(0, len(n.host.log)-12):])
			}
			g.Fatalf("not within five seconds: %s", what)
		}
	}
}

// settled waits until all machines that live are members of one configuration of
// n, and all its regions are active.
func (g *group) settled(n int) *cluster.Configuration {
	g.Helper()
	var c *cluster.Configuration
	g.until(fmt.Sprintf("%d machines, and all regions active", n), func() bool {
		c, _ = g.store.MemoryStore.Load()
		if c == nil || len(c.Machines) != n {
			return false
		}
		for _, id := range c.Machines {
			x := g.nodes[id]
			if x.Machine == nil || x.process.Dead() || x.host.active != c.ID || !x.keeper.Valid() || x.Configuration().ID != c.ID {
				return false
			}
		}
		return true
	})
	return c
}

// allocate makes a region whose primary is at the machine.
func (g *group) allocate(id rdma.MachineID) cluster.Placement {
	g.Helper()
	var p cluster.Placement
	var err error
	err = context.DeadlineExceeded
	for errors.Is(err, context.DeadlineExceeded) { // too many datagrams in a row were lost
		g.at(id, func(n *node) { p, err = n.Allocate(context.Background(), id, 0) })
	}
	if err != nil {
		g.Fatal(err)
	}
	return p
}

// at runs f on a routine of the machine and waits for it.
func (g *group) at(id rdma.MachineID, f func(n *node)) {
	g.Helper()
	done := false
	n := g.nodes[id]
	n.process.Go(func() {
		f(n)
		done = true
	})
	g.until("the routine has ended", func() bool { return done })
}

// cut separates two sets of machines.
func (g *group) cut(a, b []rdma.MachineID, f func(from, to rdma.MachineID)) {
	for _, x := range a {
		for _, y := range b {
			f(x, y)
			f(y, x)
		}
	}
}

func (g *group) cm() rdma.MachineID {
	c, _ := g.store.MemoryStore.Load()
	return c.CM
}

// others are the machines of the configuration that are not CM.
func (g *group) others() []rdma.MachineID {
	c, _ := g.store.MemoryStore.Load()
	return slices.DeleteFunc(slices.Clone(c.Machines), func(m rdma.MachineID) bool { return m == c.CM })
}

func (g *group) cmConfig() *cluster.Configuration {
	c, _ := g.store.MemoryStore.Load()
	return c
}
