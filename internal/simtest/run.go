package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/step"
)

// A Result describes one run.
type Result struct {
	Seed    uint64
	Hash    uint64 // hash of all events, and of everything that clients read
	Events  uint64
	Time    time.Duration // virtual
	Commits int
	Aborts  int
	Unknown int // transactions whose client did not learn the outcome
	Errands int // writes of errands that have succeeded
	Moves   int // replicas that have moved from one machine to another
	Orders  int // moves that an operator has been granted
	// Handovers counts regions of which the primary has become a backup.
	Handovers int
	Resizes   int // changes of the number of replicas that an operator has been granted
	Regrown   int // regions that got or lost replicas because of these changes
	// Tables counts statements that have created, changed, renamed or dropped a table,
	// Indexes those that have built an index.
	Tables, Indexes int
	// Faults counts faults by kind. A fault in recovery counts as its own kind, beside the fault that
	// caused the recovery, and only if it came. A fault at a step that was not reached counts as the
	// kind without a step.
	Faults [Faults]int
	// Steps and Recovery count faults at the steps of transactions and of recovery.
	Steps    [step.Count]int
	Recovery [recovery.Steps]int
	// Troubles counts the troubles that have happened.
	Troubles [clock.Troubles]int
	// Err is the first condition that does not hold.
	Err error
}

// Add adds up what runs did.
func (r *Result) Add(other Result) {
	r.Events += other.Events
	r.Time += other.Time
	r.Commits += other.Commits
	r.Aborts += other.Aborts
	r.Unknown += other.Unknown
	r.Errands += other.Errands
	r.Moves += other.Moves
	r.Orders += other.Orders
	r.Handovers += other.Handovers
	r.Resizes += other.Resizes
	r.Regrown += other.Regrown
	r.Tables += other.Tables
	r.Indexes += other.Indexes
	for f, n := range other.Faults {
		r.Faults[f] += n
	}
	for s, n := range other.Steps {
		r.Steps[s] += n
	}
	for s, n := range other.Recovery {
		r.Recovery[s] += n
	}
	for t, n := range other.Troubles {
		r.Troubles[t] += n
	}
}

// Line describes the run of one seed: runs with the same line were the same.
func (r Result) Line() string {
	happened := 0
	for _, n := range r.Faults {
		happened += n
	}
	verdict := "passed"
	if r.Err != nil {
		verdict = "FAILED"
	}
	return fmt.Sprintf("seed %d: %s, hash %016x, %d commits, %d faults, %v", r.Seed, verdict, r.Hash, r.Commits, happened, r.Time.Round(time.Microsecond))
}

func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d commits, %d aborts, %d of unknown outcome, %d errands, %d tables defined, %d indexes built, %d events in %v of virtual time; faults:", r.Commits, r.Aborts, r.Unknown, r.Errands, r.Tables, r.Indexes, r.Events, r.Time.Round(time.Millisecond))
	for f, n := range r.Faults {
		fmt.Fprintf(&b, " %v %d,", Fault(f), n)
	}
	b.WriteString(" at steps:")
	for s, n := range r.Steps {
		fmt.Fprintf(&b, " %v %d,", step.Step(s), n)
	}
	b.WriteString(" at steps of recovery:")
	for s, n := range r.Recovery {
		fmt.Fprintf(&b, " %v %d,", recovery.Step(s), n)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// run is one run.
type run struct {
	options Options
	world   *sim.World
	outside *sim.Process
	rng     *rand.Rand
	cluster Cluster
	result  Result
	// begun is when the workload began, and until is when the faults end; both are 0 before that.
	begun, until time.Duration

	store    store
	rec      *history.Recorder
	nodes    []*node
	prepared []*node // the nodes of machines that are about to serve
	stopping bool
	running  int // clients
	commits  []int
	orphans  int // transactions of unknown outcome whose clients died
	timings  []*timing
	failure  error
	// work is the work of most clients, one transaction per call.
	work func(*client) error
	// think is a client's pause between two transactions.
	think func(*client)
	// primaries maps each claim to its machine, as watch has seen it.
	primaries map[claim]int
}

// A node is the workload's state of one serving machine.
type node struct {
	id      int
	process *sim.Process
	m       *txn.Machine
	server  *hash.Server
	tree    *btree.Tree
	table   *hash.Table
	// twoSided sends lookups to a shard's primary when one READ is not enough.
	twoSided *hash.Table
	// annex is the table of the errands, errands how many of its keys are in use.
	annex   *hash.Table
	errands int
	// catalog is nil until a definer has opened it.
	catalog *catalog.Catalog
	// engine is the workload's; nil until one of its clients has opened it.
	engine  Engine
	opening bool
}

// A claim is a region in a configuration, of which a machine claims to be the primary.
type claim struct {
	configuration cluster.ID
	region        region.ID
}

const (
	// progressMax bounds the time until every machine has committed something
	// once all faults are healed.
	progressMax = 5 * time.Second
	// stopMax bounds the time that clients may take to end.
	stopMax = time.Minute
	// watchEvery is the interval between checks of claims.
	watchEvery = 100 * time.Microsecond
)

// Run runs a cluster with these options, and checks what must hold.
func Run(o Options) Result {
	r := newRun(o)
	w := r.world
	j := &injector{run: r, struck: r.outside.NewEvent()}
	faults := injectionOf(j)
	err := w.Run(func() { r.fail(r.phases(faults)) })
	if r.failure == nil {
		r.failure = err
	}
	if r.failure == nil {
		r.failure = r.checkHistory()
	}
	if r.failure == nil {
		r.failure = r.checkUnknown()
	}
	r.result.Seed, r.result.Events, r.result.Time = o.Seed, w.Events(), w.Now()
	r.result.Troubles = w.Troubles()
	r.result.Hash = w.Hash() ^ history.Digest(r.rec.Transactions())
	r.result.Err = r.failure
	if m, ok := r.cluster.(*members); ok {
		r.result.Moves, r.result.Orders, r.result.Handovers, r.result.Resizes, r.result.Regrown = m.moved, m.ordered, m.handedOver, m.resized, m.regrown
	}
	return r.result
}

// An injection injects the faults of a run.
type injection interface {
	onStep(machine int, s step.Step)
	onRecovering(machine int, s recovery.Step)
	// startAll starts all machines and returns when they serve.
	startAll() error
	// injectAll injects faults until the time is up; heal waits until their effects are
	// over.
	injectAll() error
	heal() error
	// healthOf returns the machines' health; nil if the cluster has none.
	healthOf() *health
}

// injectionOf makes the cluster of a run, and the injection of its faults.
func injectionOf(j *injector) (f injection) {
	o := &j.options
	j.cluster = o.New(j.world, o.Farm, Hooks{
		Prepare: j.prepare, Serving: j.serving,
		Step:         func(i int, s step.Step) { f.onStep(i, s) },
		Recovering:   func(i int, s recovery.Step) { f.onRecovering(i, s) },
		Reconfigured: func(i int, _ membership.Timeline) { j.reconfigured(i) },
	})
	if m, ok := j.cluster.(*members); ok {
		m.aside, m.patience, m.balance = m.aside || o.wedges(), o.Patience, o.Balance
		j.health = newHealth(j.run, m)
		if o.Overlap != nil {
			return newOverlapInjector(j)
		}
	}
	return j
}

// newRun returns a run whose machines are down, and which has no cluster yet.
func newRun(o Options) *run {
	calm := o.World
	calm.Loss = 0
	w := sim.New(calm)
	r := &run{
		options: o, world: w, outside: w.Outside(), rng: w.Rand(), rec: history.NewRecorder(),
		nodes: make([]*node, o.Farm.Machines), prepared: make([]*node, o.Farm.Machines), commits: make([]int, o.Farm.Machines), primaries: make(map[claim]int),
		work: (*client).anything, think: (*client).pause,
	}
	for i := range r.nodes {
		r.machine(i).SetDomain(i % o.Domains)
	}
	return r
}

// fail keeps the first error, and ends the clients.
func (r *run) fail(err error) {
	if err != nil && r.failure == nil {
		r.failure = err
		r.stopping = true
	}
}

func (r *run) all() (machines []int) {
	for i := range r.options.Farm.Machines {
		machines = append(machines, i)
	}
	return machines
}

// phases runs the phases of a run.
func (r *run) phases(j injection) error {
	if err := j.startAll(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := r.setUp(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	r.begun = r.world.Now()
	r.until = r.begun + r.options.Duration
	for _, n := range r.nodes {
		r.startClients(n)
	}
	r.outside.Go(r.watch)
	if h := j.healthOf(); h != nil {
		r.world.Every(boundsEvery, newBounds(r, h).watch)
	}
	r.world.Lose(r.options.World.Loss)
	r.world.Trouble(r.options.Trouble)
	r.world.Stale(r.options.Stale)
	r.world.Small(r.options.Small)
	err := j.injectAll()
	r.world.Trouble(0)
	r.world.Stale(0)
	r.world.Small(0)
	r.world.Lose(0)
	if err == nil {
		err = j.heal() // lost messages do damage even without an injected fault
	}
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	if err := r.progress(); err != nil {
		return err
	}
	if err := r.stop(); err != nil {
		return err
	}
	return r.finalCheck()
}

// start starts machines.
func (r *run) start(machines []int) error {
	for _, i := range machines {
		r.nodes[i] = nil
	}
	return r.cluster.Start(machines)
}

// prepare registers the handlers of a machine for shipped functions.
func (r *run) prepare(i int, m *txn.Machine) {
	r.prepared[i] = &node{id: i, process: r.world.Machine(rdma.MachineID(i)).Process(), m: m, server: hash.Serve(m)}
}

// serving records that a machine serves, and starts its clients if the workload has begun.
func (r *run) serving(i int, m *txn.Machine) {
	n := r.prepared[i]
	r.nodes[i] = n
	r.store.open(n)
	if r.until > 0 {
		r.startClients(n)
	}
}

func (r *run) startClients(n *node) {
	o := &r.options
	for k := range o.Clients + o.Readers {
		work := r.work
		if k >= o.Clients {
			work = (*client).readOwn
		}
		r.startClient(n, k, r.withTiming(n, work))
	}
	others := o.Clients + o.Readers
	if o.Errands {
		r.startClient(n, others, r.withTiming(n, (*client).errand))
		others++
	}
	if o.Tables > 0 { // not timed: a statement consists of several transactions
		r.startClient(n, others, (*client).define)
		others++
	}
	for range o.Sessions { // not timed: a statement of a session may wait for others
		r.startClient(n, others, (*client).runSession)
		others++
	}
}

// startClient starts client k of a machine. Its routine lowers r.running when it ends. If the
// process dies before the routine begins, OnDeath does that.
func (r *run) startClient(n *node, k int, work func(*client) error) {
	r.running++
	c := &client{run: r, node: n, label: fmt.Sprintf("client %d of machine %d", k, n.id), work: work}
	begun := false
	n.process.Go(func() {
		begun = true
		defer func() { r.running-- }()
		c.loop()
	})
	n.process.OnDeath(func() {
		if !begun {
			r.running--
		}
	})
}

// progress waits until every machine has committed something more.
func (r *run) progress() error {
	before := append([]int(nil), r.commits...)
	for end := r.world.Now() + progressMax; ; r.outside.Sleep(time.Millisecond) {
		late := -1
		for i := range before {
			if r.commits[i] == before[i] {
				late = i
			}
		}
		switch {
		case late < 0 || r.failure != nil:
			return nil
		case r.world.Now() > end:
			return fmt.Errorf("no progress: machine %d has committed nothing for %v after the last fault", late, progressMax)
		}
	}
}

// stop ends the clients.
func (r *run) stop() error {
	r.stopping = true
	for end := r.world.Now() + stopMax; r.running > 0; r.outside.Sleep(time.Millisecond) {
		if r.world.Now() > end {
			return fmt.Errorf("no progress: %d clients do not end within %v", r.running, stopMax)
		}
	}
	return nil
}

// watch looks for two primaries of one region.
func (r *run) watch() {
	for ; !r.stopping; r.outside.Sleep(watchEvery) {
		for i := range r.nodes {
			if r.cluster.Machine(i) == nil {
				continue
			}
			id, regions := r.cluster.Primaries(i)
			for _, reg := range regions {
				c := claim{id, reg}
				if other, taken := r.primaries[c]; taken && other != i {
					r.fail(fmt.Errorf("machines %d and %d are both primary of region %d in configuration %d", other, i, reg, id))
				}
				r.primaries[c] = i
			}
		}
	}
}

// finalCheck checks everything. It is called only after all clients have ended.
func (r *run) finalCheck() (err error) {
	if r.failure != nil {
		return r.failure
	}
	if r.options.Tables > 0 {
		if err := r.settle(r.store.catalog, r.catalogAt); err != nil {
			return err
		}
	}
	if r.options.Workload != nil {
		if err := r.settle(r.store.workload, r.workloadAt); err != nil {
			return err
		}
	}
	n := r.nodes[0]
	returned := n.process.Do(func() {
		c := &client{run: r, node: n, label: "last reader"}
		if err = c.readAll(); err == nil {
			err = c.lookAtAll()
		}
		if err == nil && r.options.Errands {
			err = c.lookAtRegisters()
		}
		if err == nil && r.options.Workload != nil {
			err = c.readWorkload()
		}
		if err == nil {
			err = r.checkStores(n)
		}
	})
	if !returned {
		return errDied
	}
	return err
}

// checkStores compares every store with the objects that are in use.
func (r *run) checkStores(n *node) error {
	reachable, err := r.store.reachable(n)
	if err != nil {
		return err
	}
	found, err := r.cluster.Check(func(yield func(region.Ptr) bool) {
		for _, p := range reachable {
			if !yield(p) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	var errs []error
	for _, f := range found {
		errs = append(errs, errors.New(f.String()))
	}
	return errors.Join(errs...)
}

// nameOf returns the name of an object of the history for reports.
func (r *run) nameOf(o history.Object) string {
	if kind, i := o>>16, int(o&0xffff); kind == inWorkload {
		return r.options.Workload.Name(i)
	}
	return r.store.name(o)
}

func (r *run) checkHistory() error {
	report := r.rec.Check(history.Options{Name: r.nameOf})
	r.result.Commits, r.result.Aborts, r.result.Unknown = report.Committed, report.Aborted, report.Unknown
	return report.Err()
}

var ctx = context.Background()
