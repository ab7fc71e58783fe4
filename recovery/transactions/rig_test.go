package transactions_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/transactions"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// A node is one machine with a memory of its own.
type node struct {
	id      rdma.MachineID
	nic     rdma.NIC
	calls   *call.Endpoint
	m       *txn.Machine
	t       *transactions.Recovery
	alloc   *region.Allocator
	alive   atomic.Bool // holds its lease
	dead    atomic.Bool
	settled atomic.Uint32

	mu      sync.Mutex
	regions map[region.ID]*region.Region
	blocks  map[region.ID]rdma.Key
	logs    map[[2]int]*nvram.Memory
}

const (
	rigLogBytes     = 64 << 10
	rigMessageBytes = 16 << 10
)

func (n *node) log(sender rdma.MachineID, worker int) *nvram.Memory {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := [2]int{int(sender), worker}
	if n.logs[k] == nil {
		n.logs[k] = nvram.NewMemory(rigLogBytes)
	}
	return n.logs[k]
}

func (n *node) region(id region.ID) *region.Region {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.regions[id]
}

// make makes room for a replica.
func (n *node) make(t testing.TB, p cluster.Placement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := n.regions[p.Region], error(nil)
	if r == nil {
		if r, err = region.Format(p.Region, nvram.NewMemory(region.MinSize)); err == nil {
			n.regions[p.Region] = r
			err = n.nic.Register(route.RegionKey(p.Region), r.Memory())
		}
	}
	if err == nil {
		n.blocks[p.Region], err = route.ReceiveBlocks(n.nic, p, r, n.blocks[p.Region])
	}
	if err != nil && !n.dead.Load() {
		t.Error(err)
	}
}

// An instance is several nodes and the least membership that does: a driver that
// knows who is dead and takes the others through one reconfiguration after the
// other.
type instance struct {
	t       testing.TB
	way     testnet.Way
	network rdmatest.Fabric
	ending  sync.WaitGroup // NICs of machines that were killed
	nodes   []*node
	ptrs    []region.Ptr
	// onTxn and onRecovery are called with steps, by machine. They may kill.
	onTxn      hook[step.Step]
	onRecovery hook[recovery.Step]
	// onBlocks is called with the regions whose block tables have come.
	onBlocks hook[region.ID]

	over   atomic.Bool // no steps are told any more
	zombie bool        // who is evicted is not told
	// wire, if not nil, is what a machine's calls go through.
	wire   func(rdma.NIC) rdma.NIC
	clock  clock.Clock // of transactions
	mu     sync.Mutex
	c      *cluster.Configuration
	failed chan struct{} // has room for one
}

// A hook is a function that is called with steps while it may be replaced.
type hook[S any] struct {
	f atomic.Pointer[func(rdma.MachineID, S)]
}

func (h *hook[S]) set(f func(rdma.MachineID, S)) { h.f.Store(&f) }

func (h *hook[S]) call(m rdma.MachineID, s S) {
	if f := h.f.Load(); f != nil {
		(*f)(m, s)
	}
}

type shape struct {
	machines, replicas int
	way                testnet.Way
}

func start(t testing.TB, s shape) *instance { return startOn(t, s, clock.System{}) }

func startOn(t testing.TB, s shape, transactions clock.Clock) *instance {
	x := &instance{t: t, clock: transactions, way: s.way, network: testnet.New(t, s.way), failed: make(chan struct{}, 1)}
	c := &cluster.Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: s.replicas, NextRegion: 1, Workers: 1, RegionBytes: region.MinSize, LogBytes: rigLogBytes}
	for i := range s.machines {
		c.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: uint64(100 + i)})
	}
	for i := range s.machines {
		var err error
		if c, _, err = c.Place(rdma.MachineID(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	x.c = c
	for i := range s.machines {
		x.nodes = append(x.nodes, x.boot(rdma.MachineID(i), uint64(100+i), 1))
	}
	x.connect()
	for _, n := range x.nodes {
		for _, p := range c.Regions {
			if p.Has(n.id) {
				n.make(t, p)
			}
			n.m.AddRegion(p, n.region(p.Region))
		}
	}
	for _, p := range c.Regions {
		x.nodes[p.Primary].alloc.Add(x.nodes[p.Primary].region(p.Region))
	}
	t.Cleanup(x.close)
	return x
}

// boot begins a life of a machine, in the given configuration or, if that is 0, in the first of
// which it is told.
func (x *instance) boot(id rdma.MachineID, incarnation uint64, config uint32) *node {
	n := &node{id: id, regions: map[region.ID]*region.Region{}, blocks: map[region.ID]rdma.Key{}, logs: map[[2]int]*nvram.Memory{}}
	n.alive.Store(true)
	var err error
	if n.nic, err = x.network.Join(id); err != nil {
		x.t.Fatal(err)
	}
	var wire rdma.NIC = n.nic
	if x.wire != nil {
		wire = x.wire(wire)
	}
	n.calls = call.New(wire, clock.System{}, incarnation)
	n.alloc = region.NewAllocator(region.AllocatorConfig{Workers: 1,
		Config: func() uint32 { return uint32(n.m.Config()) },
		Replicate: func(t *region.Tenure, off uint64, data []byte, in uint32) error {
			return n.m.WriteBackups(t, off, data, in)
		},
		Grow: func(region.ID) (*region.Region, error) { return nil, region.ErrFull },
	})
	n.m, err = txn.New(worker.Config{ID: id, Config: config, Workers: 1, NIC: n.nic,
		Log: func(sender rdma.MachineID, worker int) (*nvram.Memory, error) {
			return n.log(sender, worker), nil
		},
		LogBytes: rigLogBytes, MessageBytes: rigMessageBytes,
		Allocator: n.alloc, Clock: x.clock, Alive: n.alive.Load,
		Events: worker.Events{Step: func(s step.Step) {
			if !x.over.Load() {
				x.onTxn.call(id, s)
			}
		}}})
	if err != nil {
		x.t.Fatal(err)
	}
	n.t = transactions.New(transactions.Config{Machine: n.m, Endpoint: n.calls, Clock: clock.System{},
		Blocks:  func(r region.ID) { x.onBlocks.call(id, r) },
		Settled: func(c *cluster.Configuration) { n.settled.Store(uint32(c.ID)) },
		Step: func(s recovery.Step) {
			if !x.over.Load() {
				x.onRecovery.call(id, s)
			}
		}})
	return n
}

func (x *instance) connect() {
	greetings := map[[2]int]message.Greeting{}
	for i, n := range x.nodes {
		for k := range x.nodes {
			g, err := n.m.Listen(rdma.MachineID(k))
			if err != nil {
				x.t.Fatal(err)
			}
			greetings[[2]int{i, k}] = g
		}
	}
	for i, n := range x.nodes {
		for k := range x.nodes {
			if i != k {
				if err := n.m.Connect(rdma.MachineID(k), greetings[[2]int{k, i}]); err != nil {
					x.t.Fatal(err)
				}
			}
		}
	}
}

func (x *instance) close() {
	x.over.Store(true)
	for _, n := range x.nodes {
		n.end()
	}
	for _, n := range x.nodes {
		n.nic.Close()
	}
	x.ending.Wait()
}

// end ends whatever waits at a machine.
func (n *node) end() {
	n.m.Evict()
	_ = n.m.Abandon(time.Second)
	n.t.Close()
	n.calls.Close()
}

// kill takes a machine off the network. It may be called anywhere.
func (x *instance) kill(id rdma.MachineID) {
	n := x.nodes[id]
	if n.dead.Swap(true) {
		return
	}
	x.takeOff(n)
	select {
	case x.failed <- struct{}{}:
	default:
	}
}

// takeOff takes a machine off the network. The caller may hold locks that a NIC over TCP waits for when it closes,
// so that its cables are cut first: that takes it off as well.
func (x *instance) takeOff(n *node) {
	if x.way == testnet.Local || x.way == testnet.LocalAsync {
		n.nic.Close()
		return
	}
	x.toOthers(n.id, x.network.Cut)
	x.ending.Go(func() { n.nic.Close() })
}

// toOthers calls f with a machine and each other one.
func (x *instance) toOthers(id rdma.MachineID, f func(a, b rdma.MachineID)) {
	for _, other := range x.nodes {
		if other.id != id {
			f(id, other.id)
		}
	}
}

func (x *instance) survivors() (alive []*node) {
	for _, n := range x.nodes {
		if _, member := x.c.Member(n.id); member && !n.dead.Load() {
			alive = append(alive, n)
		}
	}
	return alive
}

// reconfigure goes on to a configuration without the dead, and to the next if
// more machines die on the way. It returns once all is settled.
func (x *instance) reconfigure() {
	x.t.Helper()
	for {
		var dead []rdma.MachineID
		for _, m := range x.c.Machines {
			if x.nodes[m].dead.Load() {
				dead = append(dead, m)
			}
		}
		if len(dead) == 0 && x.isSettled() {
			return
		}
		if len(dead) > 0 && !x.change(dead) {
			continue
		}
		if !x.awaitSettled() {
			continue
		}
		x.refill()
	}
}

// change takes the survivors through NEW-CONFIG and NEW-CONFIG-COMMIT.
func (x *instance) change(dead []rdma.MachineID) bool {
	next, report := x.c.Without(dead, x.survivors()[0].id)
	if len(report.Lost) > 0 {
		x.t.Errorf("lost %v", report.Lost)
	}
	return x.enter(next, dead)
}

// rejoin has a dead machine come back with a new life and empty memory.
func (x *instance) rejoin(id rdma.MachineID) {
	x.ending.Wait() // it takes the address that it had
	x.toOthers(id, x.network.Mend)
	n := x.boot(id, 200+uint64(id), 0)
	if _, err := n.m.Listen(id); err != nil {
		x.t.Fatal(err)
	}
	x.nodes[id] = n
	next, _ := x.c.With(cluster.Member{Machine: id, FailureDomain: int(id), Incarnation: 200 + uint64(id)}, nil)
	x.enter(next, nil)
	if !x.awaitSettled() {
		x.t.Fatal("a machine died")
	}
	x.refill()
}

// enter takes the members of a configuration, and those that leave, to it.
func (x *instance) enter(next *cluster.Configuration, dead []rdma.MachineID) bool {
	x.mu.Lock()
	x.c = next
	x.mu.Unlock()
	for _, m := range dead {
		x.nodes[m].alive.Store(false)
	}
	for _, n := range x.survivors() {
		n.t.Freeze(next)
		for _, p := range next.Regions {
			if p.Has(n.id) {
				n.make(x.t, p)
			}
		}
		n.m.Remap(next, n.region)
	}
	for _, m := range dead {
		if !x.zombie {
			x.nodes[m].end()
		}
	}
	for _, n := range x.survivors() {
		go func() {
			err := n.t.Commit(context.Background(), next)
			if err != nil && !n.dead.Load() && !errors.Is(err, context.Canceled) && !errors.Is(err, evidence.ErrConfiguration) && x.configuration() == next {
				x.t.Errorf("machine %d: %v", n.id, err)
			}
		}()
	}
	return true
}

func (x *instance) configuration() *cluster.Configuration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.c
}

func (x *instance) isSettled() bool {
	for _, n := range x.survivors() {
		if x.c.ID > 1 && n.settled.Load() != uint32(x.c.ID) {
			return false
		}
	}
	return true
}

// patience is how long a recovery, and the truncation of all transactions, may take: over a network on a busy computer for
// longer, since connections have to be made, and calls are repeated.
func (x *instance) patience() time.Duration {
	if x.way == testnet.Local || x.way == testnet.LocalAsync {
		return quiesce
	}
	return time.Minute
}

// awaitSettled reports false if a machine dies meanwhile.
func (x *instance) awaitSettled() bool {
	deadline := time.Now().Add(x.patience())
	for !x.isSettled() {
		if x.hasDied() {
			return false
		}
		if time.Now().After(deadline) {
			for _, n := range x.survivors() {
				x.t.Errorf("machine %d: settled %d of %d, open %d, caught %v, %s", n.id, n.settled.Load(), x.c.ID, len(n.m.Recovery().Open()), n.m.Caught(), n.t.Progress())
			}
			x.t.Fatal("recovery does not end")
		}
		time.Sleep(100 * time.Microsecond)
	}
	return !x.hasDied()
}

// hasDied reports whether a machine of the configuration is dead, which the next leaves out.
func (x *instance) hasDied() bool {
	return slices.ContainsFunc(x.c.Machines, func(m rdma.MachineID) bool { return x.nodes[m].dead.Load() })
}

// refill is data and allocator recovery. It ends early when a machine dies, since transactions then keep their locks until
// the next configuration, and copying waits for locks: what is not filled by then is filled in the next.
func (x *instance) refill() {
	for _, n := range x.survivors() {
		if err := data.Scan(context.Background(), n.alloc, clock.System{}, func(recovery.Step) {}); err != nil {
			x.t.Error(err)
		}
	}
	for _, p := range x.c.Regions {
		n := x.nodes[p.Primary]
		for _, b := range p.Filling {
			f := data.Refill{Stale: x.allStale(x.nodes[b].region(p.Region)), Clock: clock.System{}, Pace: data.Aggressive,
				Hold: func() func() { return x.nodes[b].m.Start().End },
				Read: func(_ context.Context, off uint64, dst []byte) error {
					n.region(p.Region).Memory().CopyOut(dst, off)
					return nil
				},
			}
			err := f.Run(context.Background())
			for try := 0; errors.Is(err, data.ErrNeverQuiet) && try < 30 && !x.hasDied(); try++ { // as members do: who holds a lock may not run for a second
				err = f.Run(context.Background())
			}
			if errors.Is(err, data.ErrNeverQuiet) && x.hasDied() {
				return
			}
			if err != nil {
				x.t.Error(err)
			}
			x.mu.Lock()
			x.c = x.c.Filled(b, []region.ID{p.Region})
			x.mu.Unlock()
		}
	}
}

// allStale says of an empty replica, whose block table is the primary's, that it needs everything.
func (x *instance) allStale(r *region.Region) *region.Stale {
	mem := nvram.NewMemory(region.StaleBytes(region.MinSize))
	if err := region.FormatStale(r.ID(), region.MinSize, mem); err != nil {
		x.t.Fatal(err)
	}
	s, err := r.OpenStale(mem)
	if err != nil {
		x.t.Fatal(err)
	}
	s.Compare()
	return s
}

// An object holds a value and the pointer of a child, which comes and goes.
const objectBytes = 100

func (x *instance) populate(n int) {
	for i := range n {
		m := x.nodes[i%len(x.nodes)].m
		err := m.Run(context.Background(), func(t *txn.Tx) error {
			p, _, err := t.Alloc(objectBytes, 0)
			if err == nil {
				x.ptrs = append(x.ptrs, p)
			}
			return err
		})
		if err != nil {
			x.t.Fatal(err)
		}
	}
}

// A player runs random transactions at one machine until it is told to stop, or
// the machine is gone.
type player struct {
	x    *instance
	n    *node
	rec  *history.Recorder
	rng  *rand.Rand
	name string
}

func (p *player) step() error {
	h := p.rec.Begin(p.name)
	defer h.End(history.Unknown)
	t := p.n.m.Begin()
	defer t.Abort()
	err := p.body(t, h)
	if err == nil {
		err = t.Commit(context.Background())
	}
	switch {
	case err == nil:
		h.End(history.Committed)
	case errors.Is(err, outcome.ErrConflict):
		h.End(history.Aborted)
		return nil
	}
	return err
}

func (p *player) body(t *txn.Tx, h *history.Recording) error {
	objects := p.rng.Perm(len(p.x.ptrs))[:1+p.rng.IntN(3)]
	for _, i := range objects {
		ptr := p.x.ptrs[i]
		if p.rng.IntN(3) == 0 {
			b, err := t.Read(ptr)
			if err != nil {
				return err
			}
			h.Read(history.Object(i), history.Value(binary.LittleEndian.Uint64(b)))
			continue
		}
		b, err := t.Write(ptr)
		if err != nil {
			return err
		}
		h.Read(history.Object(i), history.Value(binary.LittleEndian.Uint64(b)))
		v := p.rec.Value()
		binary.LittleEndian.PutUint64(b, uint64(v))
		h.Write(history.Object(i), v)
		if p.rng.IntN(3) == 0 {
			if err := changeChild(t, ptr, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeChild frees the object's child, or makes one.
func changeChild(t *txn.Tx, ptr region.Ptr, b []byte) error {
	child, err := region.DecodePtr(b[8:])
	if err != nil {
		return err
	}
	if !child.IsNil() {
		clear(b[8:24])
		return t.Free(child)
	}
	child, _, err = t.Alloc(200, ptr.Addr)
	if err == nil {
		child.Append(b[8:8])
	}
	return err
}

// play has players on all machines run that many transactions each. It takes the
// instance through reconfigurations as machines die, and returns when the players
// have ended and all is settled: those of the dead too, once they are evicted, for
// what they have written may be there and has to be in the history.
func (x *instance) play(perMachine, transactions int, seed uint64, rec *history.Recorder) {
	x.t.Helper()
	open := make([]atomic.Int32, len(x.nodes))
	for _, n := range x.nodes {
		if n.dead.Load() {
			continue
		}
		for k := range perMachine {
			open[n.id].Add(1)
			p := player{x: x, n: n, rec: rec, rng: rand.New(rand.NewPCG(seed, uint64(n.id)<<8|uint64(k))), name: fmt.Sprintf("machine %d, client %d", n.id, k)}
			go func() {
				defer open[n.id].Add(-1)
				p.run(transactions)
			}()
		}
	}
	deadline := time.Now().Add(60 * time.Second)
	playing := func(n *node) bool { return open[n.id].Load() > 0 && !(x.zombie && n.dead.Load()) }
	for slices.ContainsFunc(x.nodes, playing) {
		select {
		case <-x.failed:
			x.reconfigure()
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			for _, n := range x.nodes {
				x.t.Errorf("machine %d: dead %v, %d players", n.id, n.dead.Load(), open[n.id].Load())
			}
			x.t.Fatal("transactions do not end")
		}
	}
	x.reconfigure()
}

func (p *player) run(transactions int) {
	for range transactions {
		err := p.step()
		if p.n.dead.Load() || p.x.over.Load() {
			return
		}
		if err != nil && !errors.Is(err, region.ErrFull) {
			p.x.t.Errorf("machine %d: %v", p.n.id, err)
			return
		}
	}
}

// check checks, after all is quiet, that every survivor is as it should be: what
// was acknowledged is there (if a history was recorded), replicas agree, nothing
// is locked, leaked or left.
func (x *instance) check(rec *history.Recorder) {
	x.t.Helper()
	x.over.Store(true)
	n := x.survivors()[0]
	reachable := slices.Clone(x.ptrs)
	isHistory := rec != nil
	if !isHistory {
		rec = history.NewRecorder()
	}
	for i, p := range x.ptrs {
		h := rec.Begin("check")
		b := make([]byte, p.Capacity())
		if _, err := n.m.Read(p, b); err != nil {
			x.t.Errorf("object %d: %v", i, err)
			h.End(history.Unknown)
			continue
		}
		h.Read(history.Object(i), history.Value(binary.LittleEndian.Uint64(b)))
		h.End(history.Committed)
		if child, err := region.DecodePtr(b[8:]); err != nil {
			x.t.Error(err)
		} else if !child.IsNil() {
			reachable = append(reachable, child)
		}
	}
	if err := history.Check(rec.Transactions(), history.Options{}).Err(); isHistory && err != nil { // a dead machine's stay open
		x.t.Error(err)
	}
	for _, n := range x.survivors() {
		if err := n.m.Quiesce(x.patience()); err != nil {
			x.t.Error(err)
		}
	}
	for _, n := range x.survivors() {
		for _, f := range n.alloc.Check() {
			x.t.Errorf("machine %d: allocator: %v", n.id, f)
		}
	}
	for _, p := range x.c.Regions {
		primary := x.nodes[p.Primary].region(p.Region)
		for _, f := range primary.Check(slices.Values(reachable)) {
			x.t.Errorf("region %d at machine %d: %v", p.Region, p.Primary, f)
		}
		for _, b := range p.Backups {
			x.compare(primary, x.nodes[b].region(p.Region), b)
		}
	}
}

func (x *instance) compare(primary, backup *region.Region, at rdma.MachineID) {
	for p, h := range primary.Objects {
		if got := backup.Header(p.Addr.Offset()); got != h {
			x.t.Errorf("%v at backup %d: %v, primary %v", p, at, got, h)
			continue
		}
		if !h.Allocated() {
			continue
		}
		a, b := make([]byte, p.Capacity()), make([]byte, p.Capacity())
		_, err1 := primary.ReadObject(p, a)
		_, err2 := backup.ReadObject(p, b)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			x.t.Errorf("%v at backup %d differs: %v, %v", p, at, err1, err2)
		}
	}
}
