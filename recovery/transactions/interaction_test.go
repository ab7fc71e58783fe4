package transactions_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/call/calltest"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/transactions"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// The scripts in testdata/interaction recover the transactions that a failure has cut short,
// message by message, and show who does what in which order, and in which state (state.go) its
// recovery is then.
//
//	open machines=N replicas=N    one region and one object in it at each machine
//	write machine=N objects=(N,...) value=N [until=RECORD records=N]
//	                              a transaction; with until its coordinator writes no record
//	                              any more after so many of a kind; if it lives, they are written
//	                              when the logs have been drained
//	truncate                      what is committed is truncated everywhere
//	kill machine=N
//	new-config                    members apply the configuration without who is dead
//	forget machine=N              members apply one that waits for its memory no more
//	boot machine=N                a new life, with its memory, which the next new-config lets in
//	commit [machine=N]            NEW-CONFIG-COMMIT arrives, everywhere or there
//	deliver, drop, run            as calltest.Script says
//	call from=N to=N what=NAME region=N [tx=N] [of=N]
//	                              a machine calls another one, though it has no reason to
//	sees object=N machine=N       whether the machine looks at an object of its own
//	wait                          longer than machines wait to have all their regions active at
//	                              once
//	get object=N                  its value, at its primary
//
// A message is held when it is sent and shown when it arrives, as "from > to: message".
// Below that is what the machines do then, each as "machine state: ...": first what a machine
// does, in that order, and then what it sends and READs, by addressee.
func TestInteraction(t *testing.T) {
	datadriven.Walk(t, "testdata/interaction", func(t *testing.T, path string) {
		for seed := range uint64(*worlds) {
			x := &interaction{world: sim.New(sim.Options{Seed: 2 * seed}), numbers: map[record.ID]int{}, limits: map[rdma.MachineID]*limit{}}
			if err := x.world.Run(func() { datadriven.RunTest(t, path, x.run) }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// worlds is in how many worlds each script runs. It shows the same in all of them: the order
// is that of the protocol, and not of chance.
var worlds = flag.Int("worlds", 3, "in how many worlds each script of TestInteraction runs")

// scriptStep is how long machines are given to do all that they can: many times what a message
// takes, and shorter than the pause after which a call that was refused is made again.
// scriptPause is longer than that pause, scriptLong longer than what it takes until a recovery
// that was ended has, and until regions become active one by one.
const (
	scriptStep  = 300 * time.Microsecond
	scriptPause = 5 * time.Millisecond
	scriptLong  = 100 * time.Millisecond
)

// An interaction is the instance that a script drives, and what it does.
type interaction struct {
	t        *testing.T
	world    *sim.World
	wire     *calltest.Wire
	messages calltest.Script
	done     calltest.Transcript
	isQuiet  bool
	nodes    []*scripted
	ptrs     []region.Ptr
	c        *cluster.Configuration
	back     []rdma.MachineID  // booted, and not in c
	numbers  map[record.ID]int // of transactions, in the order in which they are heard of
	limits   map[rdma.MachineID]*limit
	late     []func()
}

// A limit stops a coordinator after a number of records of one kind. If the coordinator still lives, its
// further records come after the next NEW-CONFIG-COMMIT, in order: a ring has no holes.
type limit struct {
	kind    string
	records int
}

// A scripted is one life of a machine.
type scripted struct {
	id      rdma.MachineID
	process *sim.Process
	nic     rdma.NIC
	calls   *call.Endpoint
	m       *txn.Machine
	t       *transactions.Recovery
	alloc   *region.Allocator
	alive   bool // holds its lease
	// Of the memory, which outlives it:
	regions map[region.ID]*region.Region
	blocks  map[region.ID]rdma.Key
	logs    map[[2]int]*nvram.Memory
}

// A patientClock is a process's, without timers: nothing is truncated because time passes.
type patientClock struct{ *sim.Process }

func (patientClock) AfterFunc(time.Duration, func()) clock.Timer { return noTimer{} }

func (x *interaction) run(t *testing.T, d *datadriven.TestData) string {
	x.t = t
	switch d.Cmd {
	case "open":
		x.open(x.argument(d, "machines"), x.argument(d, "replicas"))
	case "write":
		x.write(d)
		x.world.Outside().Sleep(scriptPause)
	case "truncate":
		for _, n := range x.members() {
			n.process.Do(func() { _ = n.m.Quiesce(time.Second) })
		}
	case "kill":
		m := x.argument(d, "machine")
		x.world.Machine(rdma.MachineID(m)).Kill()
	case "new-config":
		x.newConfig()
	case "forget":
		x.c, _ = x.c.Forget(rdma.MachineID(x.argument(d, "machine")))
		x.enter(x.c)
	case "boot":
		x.reboot(rdma.MachineID(x.argument(d, "machine")))
	case "commit":
		x.commit(d)
		text := x.settle()
		for _, f := range x.late {
			f()
		}
		x.late = nil
		return text + x.settle()
	case "deliver":
		return x.messages.Deliver(t, d, x.messages.Chosen(t, d))
	case "drop":
		return x.messages.Drop(x.messages.Chosen(t, d))
	case "call":
		x.call(d)
	case "sees":
		return x.sees(x.nodes[x.argument(d, "machine")], x.ptrs[x.argument(d, "object")])
	case "run":
		return x.messages.Run(t, d)
	case "wait":
		x.world.Outside().Sleep(scriptLong)
	case "get":
		return x.get(x.argument(d, "object"))
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return x.settle()
}

func (x *interaction) argument(d *datadriven.TestData, name string) (n int) {
	d.ScanArgs(x.t, name, &n)
	return n
}

func (x *interaction) must(err error) {
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *interaction) open(machines, replicas int) {
	x.wire, x.isQuiet = new(calltest.Wire), true
	x.messages = calltest.Script{
		Wire: x.wire, Text: x.text, Settle: x.settle,
		Name:   func(m calltest.Message) string { return strings.ReplaceAll(transactions.CallName(m.Kind), " ", "-") },
		IsDead: func(id rdma.MachineID) bool { return x.nodes[id].process.Dead() },
		Pause: func() string { // a call may be made again
			x.world.Outside().Sleep(scriptPause)
			return x.settle()
		},
	}
	c := &cluster.Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: replicas, NextRegion: 1, Workers: 1, RegionBytes: region.MinSize, LogBytes: rigLogBytes}
	for i := range machines {
		c.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: uint64(100 + i), Memory: uint64(1 + i)})
	}
	for i := range machines {
		var err error
		c, _, err = c.Place(rdma.MachineID(i), 0)
		x.must(err)
	}
	x.c = c
	for i := range machines {
		x.nodes = append(x.nodes, x.boot(rdma.MachineID(i), uint64(100+i), 1, nil))
	}
	x.connect()
	for _, n := range x.nodes {
		n.process.Do(func() { x.populate(n) })
	}
	x.settle()
	for _, n := range x.nodes {
		n.process.Do(func() { x.must(n.m.Quiesce(time.Second)) })
	}
	x.settle()
	x.wire.Sent = x.sent
	x.wire.Hold()
	x.isQuiet = false
	clear(x.numbers)
	x.sayPlacements()
}

func (x *interaction) sayPlacements() {
	for i, p := range x.c.Regions {
		text := fmt.Sprintf("is the primary of region %d, with object %d; backups are %v", p.Region, i, p.Backups)
		if !p.IsAvailable() {
			text = fmt.Sprintf("is away with region %d, which is unavailable", p.Region)
		} else if len(p.Filling) > 0 {
			text += fmt.Sprintf(", of which %v are to be filled", p.Filling)
		}
		x.done.Do(p.Primary, text)
	}
}

// boot begins a life of a machine, in the given configuration or, if that is 0, in the first of
// which it is told. If the machine has its memory, was is its previous life.
func (x *interaction) boot(id rdma.MachineID, incarnation uint64, config uint32, was *scripted) *scripted {
	n := &scripted{id: id, process: x.world.Machine(id).Boot(), alive: true, regions: map[region.ID]*region.Region{}, blocks: map[region.ID]rdma.Key{}, logs: map[[2]int]*nvram.Memory{}}
	if was != nil {
		n.regions = was.regions
	}
	n.process.Do(func() {
		nic, err := n.process.Join()
		x.must(err)
		n.nic = tapNIC{x.wire.Wrap(nic), x}
		for _, r := range n.regions { // order does not show
			x.must(n.nic.Register(route.RegionKey(r.ID()), r.Memory()))
		}
		n.calls = call.New(n.nic, n.process, incarnation)
		n.alloc = region.NewAllocator(region.AllocatorConfig{Workers: 1, Clock: patientClock{n.process},
			Config: func() uint32 { return uint32(n.m.Config()) },
			Replicate: func(t *region.Tenure, off uint64, data []byte, in uint32) error {
				return n.m.WriteBackups(t, off, data, in)
			},
			Grow: func(region.ID) (*region.Region, error) { return nil, region.ErrFull },
		})
		n.m, err = txn.New(worker.Config{ID: id, Config: config, Workers: 1, NIC: n.nic, Log: n.log,
			Relog:    func(rdma.MachineID, int, int) (*nvram.Memory, error) { return nvram.NewMemory(rigLogBytes), nil },
			Park:     func(cluster.ID, int, int64) (*nvram.Memory, error) { return nvram.NewMemory(rigLogBytes), nil },
			LogBytes: rigLogBytes, MessageBytes: rigMessageBytes, Allocator: n.alloc, Clock: patientClock{n.process},
			Alive:  func() bool { return n.alive },
			Events: worker.Events{Step: func(s step.Step) { x.say(id, "transaction: %v", s) }}})
		x.must(err)
		n.t = transactions.New(transactions.Config{Machine: n.m, Endpoint: n.calls, Clock: n.process,
			Blocks: func(r region.ID) { x.say(id, "compares the blocks of region %d", r) },
			Step: func(s recovery.Step) {
				if s != recovery.StepNeedRecovery { // beside the others: when it comes is left to chance
					x.say(id, "step: %v", s)
				}
			}})
	})
	return n
}

func (n *scripted) log(sender rdma.MachineID, worker int) (*nvram.Memory, error) {
	k := [2]int{int(sender), worker}
	if n.logs[k] == nil {
		n.logs[k] = nvram.NewMemory(rigLogBytes)
	}
	return n.logs[k], nil
}

func (n *scripted) make(p cluster.Placement) (err error) {
	r := n.regions[p.Region]
	if r == nil {
		if r, err = region.Format(p.Region, nvram.NewMemory(region.MinSize)); err == nil {
			n.regions[p.Region] = r
			err = n.nic.Register(route.RegionKey(p.Region), r.Memory())
		}
	}
	if err == nil {
		n.blocks[p.Region], err = route.ReceiveBlocks(n.nic, p, r, n.blocks[p.Region])
	}
	return err
}

// connect connects every machine to every other, and gives them their replicas.
func (x *interaction) connect() {
	greetings := map[[2]int]message.Greeting{}
	each := func(f func(n, peer *scripted) error) {
		for _, n := range x.nodes {
			n.process.Do(func() {
				for _, peer := range x.nodes {
					x.must(f(n, peer))
				}
			})
		}
	}
	each(func(n, peer *scripted) (err error) {
		greetings[[2]int{int(n.id), int(peer.id)}], err = n.m.Listen(peer.id)
		return err
	})
	each(func(n, peer *scripted) error {
		if n == peer {
			return nil
		}
		return n.m.Connect(peer.id, greetings[[2]int{int(peer.id), int(n.id)}])
	})
	for _, n := range x.nodes {
		n.process.Do(func() {
			for _, p := range x.c.Regions {
				if p.Has(n.id) {
					x.must(n.make(p))
				}
				n.m.AddRegion(p, n.regions[p.Region])
				if p.Primary == n.id {
					n.alloc.Add(n.regions[p.Region])
				}
			}
		})
	}
}

func (x *interaction) populate(n *scripted) {
	x.must(n.m.Run(context.Background(), func(t *txn.Tx) error {
		p, _, err := t.Alloc(objectBytes, 0)
		x.ptrs = append(x.ptrs, p)
		return err
	}))
}

// members are the machines of the configuration that live.
func (x *interaction) members() (alive []*scripted) {
	for _, n := range x.nodes {
		if _, in := x.c.Member(n.id); in && !n.process.Dead() {
			alive = append(alive, n)
		}
	}
	return alive
}

func (x *interaction) write(d *datadriven.TestData) {
	machine := rdma.MachineID(x.argument(d, "machine"))
	var objects []int
	d.ScanArgs(x.t, "objects", &objects)
	value := uint64(x.argument(d, "value"))
	if d.HasArg("until") {
		l := &limit{records: x.argument(d, "records")}
		d.ScanArgs(x.t, "until", &l.kind)
		x.limits[machine] = l
	}
	n := x.nodes[machine]
	n.process.Go(func() {
		t := n.m.Begin()
		defer t.Abort()
		for _, i := range objects {
			b, err := t.Write(x.ptrs[i])
			if err != nil {
				x.say(machine, "cannot write object %d: %v", i, err)
				return
			}
			binary.LittleEndian.PutUint64(b, value)
		}
		if err := t.Commit(context.Background()); err != nil {
			x.say(machine, "its client is told: aborted")
			return
		}
		x.say(machine, "its client is told: committed")
	})
}

// newConfig is NEW-CONFIG: dead machines leave, and booted ones join.
func (x *interaction) newConfig() {
	var dead []rdma.MachineID
	for _, m := range x.c.Machines {
		if x.nodes[m].process.Dead() {
			dead = append(dead, m)
		}
	}
	next := x.c
	if len(dead) > 0 {
		next, _ = next.Without(dead, x.members()[0].id)
	}
	for _, m := range x.back {
		next, _ = next.With(cluster.Member{Machine: m, FailureDomain: int(m), Incarnation: 200 + uint64(m), Memory: uint64(1 + m)}, x.holds(m))
	}
	if len(dead)+len(x.back) == 0 {
		next = next.Succeed()
	}
	for _, m := range dead {
		x.nodes[m].alive = false
	}
	x.enter(next)
}

// enter has the members apply a configuration.
func (x *interaction) enter(next *cluster.Configuration) {
	defer x.world.Outside().Sleep(scriptLong)
	x.c, x.back, x.limits = next, nil, map[rdma.MachineID]*limit{}
	for _, n := range x.members() {
		n.process.Do(func() {
			n.t.Freeze(next)
			for _, p := range next.Regions {
				if p.Has(n.id) {
					x.must(n.make(p))
				}
			}
			n.m.Remap(next, func(id region.ID) *region.Region { return n.regions[id] })
			x.say(n.id, "has applied configuration %d", next.ID)
		})
	}
	x.sayPlacements()
}

func (x *interaction) holds(m rdma.MachineID) (ids []region.ID) {
	for id := range x.nodes[m].regions { // sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// reboot begins a new life of a machine with the memory that it had.
func (x *interaction) reboot(m rdma.MachineID) {
	was := x.nodes[m]
	n := x.boot(m, 200+uint64(m), 0, was)
	n.process.Do(func() {
		_, err := n.m.Listen(m)
		x.must(err)
		var logs []*nvram.Memory
		for sender := range x.nodes {
			logs = append(logs, was.logs[[2]int{sender, 0}])
		}
		x.must(n.m.Recovery().Recall(logs, nil, nil, 0))
	})
	x.nodes[m], x.back = n, append(x.back, m)
}

// commit is NEW-CONFIG-COMMIT.
func (x *interaction) commit(d *datadriven.TestData) {
	c := x.c
	for _, n := range x.members() {
		if d.HasArg("machine") && x.argument(d, "machine") != int(n.id) {
			continue
		}
		n.process.Go(func() {
			if err := n.t.Commit(context.Background(), c); err != nil {
				x.say(n.id, "gives up configuration %d", c.ID)
			}
		})
	}
}

func (x *interaction) say(id rdma.MachineID, format string, args ...any) {
	if !x.isQuiet && !x.nodes[id].process.Dead() {
		x.done.Do(id, x.nodes[id].t.State()+": "+fmt.Sprintf(format, args...))
	}
}

func (x *interaction) sent(m calltest.Message) {
	state := x.nodes[m.From].t.State() + ": "
	if !m.IsReply && transactions.CallName(m.Kind) == "REGION-ACTIVE" {
		state = "" // while the machine goes on: how far it is then is left to chance
	}
	x.done.Send(m.From, m.To, fmt.Sprintf("%ssends %s to %d", state, x.text(m), m.To))
}

func (x *interaction) text(m calltest.Message) string {
	switch {
	case m.Failure != "":
		return fmt.Sprintf("%s refused: %s", transactions.CallName(m.Kind), m.Failure)
	case m.IsReply:
		return transactions.AnswerText(m.Kind, m.Body)
	}
	return transactions.CallText(m.Kind, m.Body, x.number)
}

// number returns that of a transaction.
func (x *interaction) number(id record.ID) int {
	if x.numbers[id] == 0 {
		x.numbers[id] = len(x.numbers) + 1
	}
	return x.numbers[id]
}

// settle lets the machines do what they can, and returns what they have done.
func (x *interaction) settle() string {
	x.world.Outside().Sleep(scriptStep)
	return x.done.Take()
}

// call makes a machine call another one, and report that the transaction has come as far as it can.
func (x *interaction) call(d *datadriven.TestData) {
	var what string
	d.ScanArgs(x.t, "what", &what)
	var tx int
	d.MaybeScanArgs(x.t, "tx", &tx)
	var id record.ID
	for of, n := range x.numbers { // one has it
		if n == tx {
			id = of
		}
	}
	n, to := x.nodes[x.argument(d, "from")], rdma.MachineID(x.argument(d, "to"))
	arg := transactions.Batch(x.c.ID, id, region.ID(x.argument(d, "region")), evidence.SeenCommitPrimary)
	if what == "RELAYED" {
		arg = transactions.Relayed(rdma.MachineID(x.argument(d, "of")), arg)
	}
	n.process.Go(func() {
		_, _ = n.calls.Call(context.Background(), recovery.PeerIn(x.c, to), transactions.KindNamed(what), arg)
	})
}

func (x *interaction) sees(n *scripted, p region.Ptr) (text string) {
	n.process.Do(func() {
		o := n.m.Start()
		defer o.End()
		_, ok := o.Look(p)
		text = fmt.Sprintf("%v\n", ok)
	})
	return text
}

// get returns the content of an object, without showing how it is read.
func (x *interaction) get(object int) (text string) {
	p := x.ptrs[object]
	placement, _ := x.c.Placement(p.Addr.Region())
	n := x.nodes[placement.Primary]
	x.isQuiet = true
	defer func() { x.isQuiet = false }()
	n.process.Do(func() {
		b := make([]byte, p.Capacity())
		_, err := n.m.Read(p, b)
		text = fmt.Sprintf("%d %v\n", binary.LittleEndian.Uint64(b), err)
	})
	return text
}

// A tapNIC shows what a machine writes and READs, and stops a coordinator.
type tapNIC struct {
	rdma.NIC
	x *interaction
}

func (n tapNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	return tapQueue{q, n}, err
}

type tapQueue struct {
	rdma.Queue
	nic tapNIC
}

// controlBytes is how much is read of a log's head, and written of credits.
const controlBytes = 8

func (q tapQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	if len(dst) > controlBytes {
		q.nic.show(to, "READs %d bytes of %d", len(dst), to)
	}
	return q.Queue.Read(to, k, off, dst, tag)
}

func (q tapQueue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.write(q.Queue.Write, to, k, off, src, tag)
}

func (q tapQueue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.write(q.Queue.WriteRing, to, k, off, src, tag)
}

// A post is rdma.Queue's Write or WriteRing.
type post func(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error)

func (q tapQueue) write(post post, to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	r, isRecord := recordIn(k, src)
	if l := q.nic.x.limits[q.nic.Machine()]; isRecord && l != nil {
		if l.records <= 0 {
			late := slices.Clone(src)
			q.nic.x.late = append(q.nic.x.late, func() {
				if n := q.nic.x.nodes[q.nic.Machine()]; !n.process.Dead() {
					n.process.Do(func() {
						_, _ = post(to, k, off, late, tag)
						q.Flush()
					})
				}
			})
			return false, nil
		}
		if r.Kind.String() == l.kind {
			l.records--
		}
	}
	switch {
	case isRecord && r.Kind == record.Truncate:
		q.nic.show(to, "writes TRUNCATE to %d", to)
	case isRecord:
		q.nic.show(to, "writes %v of tx %d to %d", r.Kind, q.nic.x.number(r.ID), to)
	case k>>56 == route.RegionKey(0)>>56, len(src) > 1<<10:
		q.nic.show(to, "writes block headers to %d", to)
	}
	return post(to, k, off, src, tag)
}

func (n tapNIC) show(to rdma.MachineID, format string, args ...any) {
	if !n.x.isQuiet {
		n.x.done.Send(n.Machine(), to, n.x.nodes[n.Machine()].t.State()+": "+fmt.Sprintf(format, args...))
	}
}

// recordIn returns the record that is written to a log.
func recordIn(k rdma.Key, b []byte) (r record.Record, is bool) {
	const frames = 16 // of package ring, before and after
	if k>>56 != route.RegionKey(0)>>56+1 || len(b) < 2*frames {
		return r, false
	}
	return r, record.Decode(b[frames:len(b)-frames], &r) == nil
}
