package membership

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/call/calltest"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// The scripts in testdata/interaction take machines from one configuration to the next,
// message by message, and show who does what in which order, and in what phase and stage
// (state.go) it is then. Leases run out when a script says so.
//
//	open machines=N replicas=N    each machine is the primary of one region
//	expire machine=N of=N         a lease: that of machine N runs out at the other one
//	kill machine=N [at=STEP]      at once, or when it comes to the step
//	boot machine=N [empty]        a new life, with its memory or without
//	leave machine=N               it is about to stop
//	slow machine=N                the store takes what it stores only at
//	store machine=N
//	cut machine=N                 the store does not answer it any more
//	hang machine=N                its recovery of transactions does not end
//	disconnect machine=N of=N     a connection breaks: machine N hears that the other is away
//	deliver, drop, run            as calltest.Script says; with id=N only messages about that
//	                              configuration
//	wait leases=N                 time passes
//	state                         where everybody is
//
// A message is held when it is sent and shown when it arrives, as "from > to: message".
// Below that is what the machines do then, and what they send, each as
// "machine phase[, stage]: ...": first what a machine does, in that order, and then what it
// sends, by addressee, with the phase and stage in which it was sent.
func TestInteraction(t *testing.T) {
	datadriven.Walk(t, "testdata/interaction", func(t *testing.T, path string) {
		for seed := range uint64(*worlds) {
			// In worlds of even seeds nobody is told of a death.
			x := &interaction{group: newGroup(t, sim.Options{Seed: 2 * seed, TimeMax: 1000 * time.Hour})}
			if err := x.world.Run(func() { datadriven.RunTest(t, path, x.run) }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// worlds is in how many worlds each script runs. It shows the same in all of them: the order
// is that of the protocol, and not of chance.
var worlds = flag.Int("worlds", 3, "in how many worlds each script of TestInteraction runs")

// scriptLease is how long leases last: longer than everything that a script does without
// waiting. scriptStep is how long machines are given to do all that they can.
const (
	scriptLease = 100 * time.Second
	scriptStep  = 20 * time.Millisecond
)

// An interaction is the group that a script drives, and what it does.
type interaction struct {
	*group
	wire     *calltest.Wire
	messages calltest.Script
	done     calltest.Transcript
	kills    map[rdma.MachineID]recovery.Step
	slow     map[rdma.MachineID]clock.Event // who stores only when it is set
	hangs    map[rdma.MachineID]bool
}

func (x *interaction) run(t *testing.T, d *datadriven.TestData) string {
	machine, has := rdma.MachineID(0), d.HasArg("machine")
	if has {
		machine = rdma.MachineID(argument(t, d, "machine"))
	}
	switch d.Cmd {
	case "open":
		x.open(argument(t, d, "machines"), argument(t, d, "replicas"))
	case "expire":
		x.expire(machine, rdma.MachineID(argument(t, d, "of")))
	case "kill":
		if !d.HasArg("at") {
			x.world.Machine(machine).Kill()
			break
		}
		x.kills[machine] = stepNamed(t, d)
	case "boot":
		if d.HasArg("empty") {
			x.wipe(machine)
		}
		x.boot(machine, nil)
	case "leave":
		x.nodes[machine].Leave()
	case "slow":
		x.slow[machine] = x.world.Outside().NewEvent()
	case "store":
		x.slow[machine].Set()
		delete(x.slow, machine)
	case "cut":
		x.store.cut[machine] = true
	case "hang":
		x.hangs[machine] = true
	case "disconnect":
		n := x.nodes[machine]
		n.process.Go(func() { n.Disconnected(rdma.MachineID(argument(t, d, "of"))) })
	case "deliver":
		return x.messages.Deliver(t, d, x.chosen(t, d))
	case "drop":
		return x.messages.Drop(x.chosen(t, d))
	case "run":
		return x.messages.Run(t, d)
	case "wait":
		x.world.Outside().Sleep(time.Duration(argument(t, d, "leases")) * scriptLease)
	case "state":
		return x.state()
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return x.settle()
}

func argument(t *testing.T, d *datadriven.TestData, name string) (n int) {
	d.ScanArgs(t, name, &n)
	return n
}

func stepNamed(t *testing.T, d *datadriven.TestData) recovery.Step {
	var name string
	d.ScanArgs(t, "at", &name)
	for s := range recovery.Step(recovery.Steps) {
		if strings.ReplaceAll(s.String(), " ", "-") == name {
			return s
		}
	}
	d.Fatalf(t, "no step %q", name)
	return 0
}

func (x *interaction) open(machines, replicas int) {
	x.wire, x.hangs = new(calltest.Wire), map[rdma.MachineID]bool{}
	x.kills, x.slow = map[rdma.MachineID]recovery.Step{}, map[rdma.MachineID]clock.Event{}
	x.wire.Sent = func(m calltest.Message) {
		x.done.Send(m.From, m.To, fmt.Sprintf("%ssends %s to %d", x.tagOfSend(m), messageText(m), m.To))
	}
	x.messages = calltest.Script{
		Wire: x.wire, Name: func(m calltest.Message) string { return callNames[m.Kind] }, Text: messageText, Settle: x.settle,
		IsDead: func(id rdma.MachineID) bool { return x.nodes[id].process.Dead() },
	}
	x.wrap = func(n rdma.NIC) rdma.NIC { return scriptNIC{x.wire.Wrap(n), x} }
	x.change = x.script
	for i := range machines {
		x.boot(rdma.MachineID(i), &cluster.Configuration{Replicas: replicas, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16})
		x.until("the machine is in", func() bool { return x.nodes[rdma.MachineID(i)].isUp })
	}
	x.settled(machines)
	for i := range machines {
		x.allocate(rdma.MachineID(i))
	}
	x.wire.Hold()
	x.settle()
	c := x.cmConfig()
	x.say(c.CM, "is the CM of configuration %d, of machines %v; backup CMs are %v", c.ID, c.Machines, successors(c, backupCMs))
	for _, p := range c.Regions {
		x.say(c.CM, "has placed region %d at primary %d and backups %v", p.Region, p.Primary, p.Backups)
	}
}

// script has a machine work with the script's leases and store, and note what it does.
func (x *interaction) script(cfg *Config) {
	id, n := cfg.Self.Machine, x.nodes[cfg.Self.Machine]
	keeper := &scriptKeeper{x: x, machine: id, isOver: true}
	n.keeper, cfg.Keeper = keeper, keeper
	cfg.Store = scriptStore{cfg.Store, x, id}
	cfg.Host = scriptHost{cfg.Host, x, id}
	cfg.RestartWait = 4 * scriptLease
	cfg.Step = func(s recovery.Step) {
		x.say(id, "step: %v", s)
		if at, ok := x.kills[id]; ok && at == s {
			delete(x.kills, id)
			x.done.End(id, x.tag(id)+"dies")
			x.world.Machine(id).Kill()
		}
	}
	cfg.Events.Suspected = func(m rdma.MachineID) { x.say(id, "suspects %d", m) }
	cfg.Events.Evicted = func(error) { x.say(id, "is evicted") }
	cfg.Events.Waiting = func(missing []rdma.MachineID) { x.say(id, "waits for a majority, without %v", missing) }
	cfg.Events.Failed = func(what string, err error) { x.Logf("machine %d: %s: %v", id, what, err) }
}

// waitFor waits on a routine of the machine.
func (x *interaction) waitFor(id rdma.MachineID, f func() bool) {
	for p := x.nodes[id].process; !f(); p.Sleep(time.Millisecond) {
	}
}

// tag says where a machine is.
func (x *interaction) tag(id rdma.MachineID) string {
	n := x.nodes[id]
	if n.Machine == nil {
		return "starting: "
	}
	if n.mu.stage == steady {
		return fmt.Sprintf("%v: ", n.mu.phase)
	}
	return fmt.Sprintf("%v, %v: ", n.mu.phase, n.mu.stage)
}

// tagOfSend is tag, without the phase where the sender does at the same time what it tells
// the others to do: how far it is then is left to chance.
func (x *interaction) tagOfSend(m calltest.Message) string {
	switch {
	case m.IsReply || m.Kind != kindNewConfigCommit && m.Kind != kindAllRegionsActive:
		return x.tag(m.From)
	case x.nodes[m.From].mu.stage == steady:
		return ""
	}
	return fmt.Sprintf("%v: ", x.nodes[m.From].mu.stage)
}

func (x *interaction) say(id rdma.MachineID, format string, args ...any) {
	if !x.nodes[id].process.Dead() {
		x.done.Do(id, x.tag(id)+fmt.Sprintf(format, args...))
	}
}

// settle lets the machines do what they can, and returns what they have done.
func (x *interaction) settle() string {
	x.world.Outside().Sleep(scriptStep)
	return x.done.Take()
}

// chosen are the held messages that the arguments name.
func (x *interaction) chosen(t *testing.T, d *datadriven.TestData) []calltest.Message {
	return slices.DeleteFunc(x.messages.Chosen(t, d), func(m calltest.Message) bool {
		return d.HasArg("id") && messageText(m) != fmt.Sprintf("%s %d", callNames[m.Kind], argument(t, d, "id"))
	})
}

func (x *interaction) expire(at, of rdma.MachineID) {
	n := x.nodes[at]
	if n.Configuration().CM == of { // it is its own that runs out
		n.keeper.(*scriptKeeper).isOver = true
	}
	n.process.Go(func() { n.Suspect(of) })
}

func (x *interaction) state() string {
	var b strings.Builder
	for _, m := range slices.Sorted(func(yield func(rdma.MachineID) bool) {
		for id := range x.nodes {
			if !yield(id) {
				return
			}
		}
	}) {
		n := x.nodes[m]
		switch c := (*cluster.Configuration)(nil); {
		case n.process.Dead():
			fmt.Fprintf(&b, "%d dead\n", m)
		case n.Machine == nil || n.Configuration() == nil:
			fmt.Fprintf(&b, "%d %sno configuration\n", m, x.tag(m))
		default:
			c = n.Configuration()
			fmt.Fprintf(&b, "%d %sconfiguration %d of %v, CM %d\n", m, x.tag(m), c.ID, c.Machines, c.CM)
		}
	}
	for _, p := range x.cmConfig().Regions {
		fmt.Fprintf(&b, "region %d: primary %d, backups %v, filling %v", p.Region, p.Primary, p.Backups, p.Filling)
		if !p.IsAvailable() {
			fmt.Fprintf(&b, "; unavailable, waits for %v", machinesOf(p.Away))
		}
		if len(p.Before) > 0 {
			fmt.Fprintf(&b, "; %v had all of it before", machinesOf(p.Before))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func machinesOf(memories []cluster.Memory) (machines []rdma.MachineID) {
	for _, m := range memories {
		machines = append(machines, m.Machine)
	}
	return machines
}

// callNames are the names of the calls in docs/internals/messages.md.
var callNames = map[uint8]string{
	kindNewConfig: "NEW-CONFIG", kindNewConfigCommit: "NEW-CONFIG-COMMIT", kindRegionsActive: "REGIONS-ACTIVE", kindAllRegionsActive: "ALL-REGIONS-ACTIVE",
	kindSuspect: "SUSPECT", kindJoin: "JOIN", kindHello: "HELLO", kindAllocate: "ALLOCATE", kindPrepare: "PREPARE", kindAnnounce: "ANNOUNCE",
	kindMapping: "MAPPING", kindFilled: "FILLED", kindRoot: "ROOT", kindSettled: "SETTLED", kindUnreachable: "UNREACHABLE", kindForget: "FORGET",
	kindApart: "APART", kindExcluded: "BANISHED", kindRoom: "ROOM", kindLeaving: "LEAVING",
}

func messageText(m calltest.Message) string {
	name := callNames[m.Kind]
	switch {
	case m.Failure != "":
		return fmt.Sprintf("%s refused: %s", name, m.Failure)
	case m.IsReply && m.Kind == kindNewConfig:
		return "NEW-CONFIG-ACK"
	case m.IsReply:
		return name + " answered"
	case m.Kind == kindNewConfig, len(m.Body) == 4:
		return fmt.Sprintf("%s %d", name, decodeID(m.Body[:4]))
	}
	return name
}

// A scriptKeeper keeps leases, of members at the CM and of the CM at members, until a script
// has them run out.
type scriptKeeper struct {
	x       *interaction
	machine rdma.MachineID
	cm      rdma.MachineID
	members []call.Peer
	isOver  bool
	last    time.Duration // when those run out that were granted to who has left
}

func (k *scriptKeeper) Configure(cm rdma.MachineID, members []call.Peer) {
	for _, p := range k.members {
		if !slices.Contains(members, p) && (k.cm == k.machine || k.cm == p.Machine) {
			k.last = k.x.world.Now() + scriptLease
		}
	}
	k.cm, k.members, k.isOver = cm, members, members == nil
	if members != nil {
		k.x.say(k.machine, "exchanges leases with CM %d", cm)
	}
}
func (k *scriptKeeper) Valid() bool                { return !k.isOver }
func (k *scriptKeeper) Beat()                      {}
func (k *scriptKeeper) Remind(func())              {}
func (k *scriptKeeper) Outstanding() time.Duration { return max(0, k.last-k.x.world.Now()) }
func (k *scriptKeeper) Leases() []lease.Lease      { return nil }
func (k *scriptKeeper) Length() time.Duration      { return scriptLease }
func (k *scriptKeeper) Shortest() time.Duration    { return scriptLease }
func (k *scriptKeeper) Variant() string            { return "of a script" }
func (k *scriptKeeper) Close() error               { return nil }

// A scriptStore notes what a machine asks of the store.
type scriptStore struct {
	cluster.Store
	x       *interaction
	machine rdma.MachineID
}

func (s scriptStore) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	if e := s.x.slow[s.machine]; e != nil {
		s.x.say(s.machine, "is about to store configuration %d", next.ID)
		e.Wait()
	}
	err := s.Store.CompareAndSwap(old, next)
	if err != nil {
		s.x.say(s.machine, "does not store configuration %d: %v", next.ID, err)
	} else {
		s.x.say(s.machine, "stores configuration %d of %v", next.ID, next.Machines)
	}
	return err
}

// A scriptHost notes what a machine's host is told.
type scriptHost struct {
	Host
	x       *interaction
	machine rdma.MachineID
}

func (h scriptHost) Freeze(c *cluster.Configuration) {
	h.x.say(h.machine, "freezes for configuration %d", c.ID)
	h.Host.Freeze(c)
}

func (h scriptHost) Apply(c *cluster.Configuration) ([]region.ID, error) {
	h.x.say(h.machine, "applies configuration %d", c.ID)
	return h.Host.Apply(c)
}

func (h scriptHost) Commit(ctx context.Context, c *cluster.Configuration) error {
	err := h.Host.Commit(ctx, c)
	if h.x.hangs[h.machine] {
		h.x.waitFor(h.machine, func() bool { return ctx.Err() != nil })
		h.x.say(h.machine, "gives up the recovery of transactions for configuration %d", c.ID)
		return ctx.Err()
	}
	return err
}

func (h scriptHost) Active(c *cluster.Configuration) {
	h.x.say(h.machine, "all regions are active: replicas may be filled")
	h.Host.Active(c)
}

func (h scriptHost) Restart() {
	h.x.say(h.machine, "restarts itself, to meet")
	h.Host.Restart()
}

// A scriptNIC notes the READs of probes.
type scriptNIC struct {
	rdma.NIC
	x *interaction
}

func (n scriptNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	return scriptQueue{q, n}, err
}

type scriptQueue struct {
	rdma.Queue
	nic scriptNIC
}

func (q scriptQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	q.nic.x.say(q.nic.Machine(), "READs the probe word of %d", to)
	return q.Queue.Read(to, k, off, dst, tag)
}
