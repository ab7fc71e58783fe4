package simtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/step"
)

// leaseTime is the machines' lease time: SOSP'15 section 6.1.
const leaseTime = 10 * time.Millisecond

// members are machines that can fail one by one. Each is a farm.Member on a machine of the world. A
// member that is evicted begins a new life in its process.
type members struct {
	world  *sim.World
	config farm.Config
	hooks  Hooks
	store  *configurations
	up     []*farm.Member // serving members by machine; nil while a machine does not serve
	begun  []*farm.Member // latest life of each machine, from the time when it begins to open
	err    error          // the reason why a machine could not begin a life
	early  bool           // faults may come before all machines serve
	aside  bool           // leases are kept on a separate processor, so that they stay valid while a machine hangs
	// patience is farm.MemberConfig.Patience, and balance its BalanceDelay.
	patience, balance time.Duration
	// keptOut holds, by machine, the last time when it was told that it may not join because of its
	// links.
	keptOut []time.Duration
	// moved is how many replicas have moved from one machine to another.
	moved int
	// ordered is how many moves an operator has been granted.
	ordered int
	// handedOver is how many regions have been handed over to another primary.
	handedOver int
	// resized counts the changes of the number of replicas that an operator has been granted; regrown
	// counts the regions that got or lost replicas because of these changes.
	resized, regrown int
	// onMoved, if not nil, is called by the CM when it has stored a configuration that changes
	// replicas: moves begin or end, primaries are handed over, or a resize adds or removes replicas.
	onMoved func(now *cluster.Configuration, r cluster.Remapped)
	// exited holds, by machine, the last time when its process exited by itself.
	exited []time.Duration
	// wrapNIC and wrapClock, if not nil, replace the NIC and the clock of machines, for tests
	// that break them.
	wrapNIC     func(rdma.NIC) rdma.NIC
	wrapClock   func(clock.Clock) clock.Clock
	wrapExpired func(func(rdma.MachineID)) func(rdma.MachineID)
}

var errDied = errors.New("simtest: a process died")

// NewMembers returns machines that are down.
func NewMembers(w *sim.World, cfg farm.Config, h Hooks) Cluster {
	return &members{world: w, config: cfg, hooks: h, store: newConfigurations(w.Rand()), aside: w.HasProcessors(), up: make([]*farm.Member, cfg.Machines), begun: make([]*farm.Member, cfg.Machines), keptOut: make([]time.Duration, cfg.Machines), exited: make([]time.Duration, cfg.Machines)}
}

// Takes implements Cluster.
func (c *members) Takes(f Fault) bool {
	switch f {
	case PowerCutUnsaved:
		return c.config.Replicas > 1 && c.config.Machines > 2
	case Pause, Destroy, Kill, KillAtStep, FailDomain, Cut, CutOneWay:
		return c.config.Replicas > 1
	case KillInRecovery, CutInRecovery:
		return c.config.Replicas > 2
	}
	return true
}

// RecoverySteps implements Cluster.
func (c *members) RecoverySteps() (steps []recovery.Step) {
	for s := recovery.StepSuspected; s < recovery.Step(recovery.Steps); s++ {
		steps = append(steps, s)
	}
	return steps
}

// startMax bounds the time until started machines serve.
const startMax = time.Minute

// Start implements Cluster.
func (c *members) Start(machines []int) error {
	processes := make([]*sim.Process, len(machines))
	for k, i := range machines {
		processes[k] = c.boot(i)
	}
	outside := c.world.Outside()
	for end := c.world.Now() + startMax; ; outside.Sleep(100 * time.Microsecond) {
		waits := false
		for k, i := range machines {
			if processes[k].Dead() {
				return errDied
			}
			waits = waits || c.up[i] == nil
		}
		switch {
		case c.err != nil:
			return c.err
		case !waits:
			return nil
		case c.world.Now() > end:
			return fmt.Errorf("machines %v do not serve within %v", machines, startMax)
		}
	}
}

// boot begins a life of machine i, on a routine of its process, without waiting for its start.
func (c *members) boot(i int) *sim.Process {
	p := c.world.Machine(rdma.MachineID(i)).Boot()
	p.Go(func() { c.live(i, p) })
	return p
}

// live opens the machine, and opens it again each time that its life is over.
func (c *members) live(i int, p *sim.Process) {
	for !p.Dead() {
		over := p.NewEvent()
		m, nic, err := c.open(i, p, over)
		if p.Dead() { // the process died at a step of opening; later results of open do not count
			return
		}
		if err == nil {
			c.up[i] = m
			c.hooks.Serving(i, m.Transactions())
			over.Wait()
			c.up[i] = nil
			err = errors.Join(m.Close(), nic.Close())
		} else if nic != nil {
			err = errors.Join(err, nic.Close())
		}
		err = errors.Join(err, c.world.Machine(rdma.MachineID(i)).Memory().Close())
		switch {
		case err == nil, isPassing(err):
		case errors.Is(err, nvram.ErrNoSpace), errors.Is(err, membership.ErrNeeded): // a later life of the machine may succeed
			c.exit(i, err)
			return
		case c.err == nil:
			c.err = fmt.Errorf("machine %d: %w", i, err)
			return
		}
	}
}

// exit ends the process of machine i, which cannot open. Production does so in the first life of a
// process; the supervisor then starts another process, which may find room by that time. (In a
// later life production tries again in the same process, after a while.)
func (c *members) exit(i int, why error) {
	m := c.world.Machine(rdma.MachineID(i))
	c.note(m.Process(), "exits: %v", why)
	m.Kill()
	c.exited[i] = c.world.Now()
	outside := c.world.Outside()
	outside.Go(func() {
		outside.Sleep(restartPause)
		c.boot(i)
	})
}

// restartPause is how long the supervisor waits before it starts a process again.
const restartPause = 2 * time.Millisecond

// isPassing reports whether another life follows a life that ended with this error.
func isPassing(err error) bool {
	return errors.Is(err, membership.ErrEvicted) || errors.Is(err, membership.ErrRestart) || errors.Is(err, errStore)
}

// open begins a life of machine i in process p. It returns when the machine serves, and sets over when that
// life ends. If it fails after it has joined the network, it returns the NIC with the error.
func (c *members) open(i int, p *sim.Process, over clock.Event) (*farm.Member, rdma.NIC, error) {
	nic, err := p.Join()
	if err != nil {
		return nil, nil, err
	}
	machine := c.world.Machine(rdma.MachineID(i))
	settings := c.config
	settings.Clock = p
	if c.wrapClock != nil {
		settings.Clock = c.wrapClock(p)
	}
	if c.wrapNIC != nil {
		nic = c.wrapNIC(nic)
	}
	recovering := func(s recovery.Step) {
		if !p.Dead() {
			c.hooks.Recovering(i, s)
		}
	}
	m, err := farm.OpenMember(context.Background(), farm.MemberConfig{
		Self:     cluster.Member{Machine: rdma.MachineID(i), FailureDomain: machine.Domain()},
		Settings: settings,
		Memory:   machine.Memory(),
		Store:    storeClient{c.store, i, p},
		NIC:      nic,
		Keeper: func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			if c.wrapExpired != nil {
				expired = c.wrapExpired(expired)
			}
			if c.aside {
				return newAsideKeeper(e, p, expired), nil
			}
			return lease.NewCalls(e, farm.KindLease, lease.Config{Length: leaseTime, Clock: p, Expired: expired}), nil
		},
		Patience: c.patience, BalanceDelay: c.balance, Pace: c.pace(),
		Begun:   func(m *farm.Member) { c.begun[i] = m },
		Prepare: func(m *txn.Machine) { c.hooks.Prepare(i, m) },
		Ended:   func(error) { over.Set() },
		Steps: func(s step.Step) {
			if !p.Dead() {
				c.hooks.Step(i, s)
			}
		},
		Events: membership.Events{
			Suspected: func(x rdma.MachineID) { c.note(p, "suspects machine %d", x) },
			Stored:    func(now *cluster.Configuration, r cluster.Remapped) { c.stored(p, now, r) },
			Slow: func(_ *cluster.Configuration, since time.Duration, progress string) {
				c.note(p, "recovers for %v: %s", since, progress)
			},
			Waiting: func(missing []rdma.MachineID) { c.note(p, "waits for machines %v", missing) },
			Failed: func(what string, err error) {
				c.note(p, "%s: %v", what, err)
				if errors.Is(err, membership.ErrApart) {
					c.keptOut[i] = c.world.Now()
				}
			},
			Evicted: func(reason error) { c.note(p, "%v", reason) },
			Reconfigured: func(t membership.Timeline) {
				if !p.Dead() && c.hooks.Reconfigured != nil {
					c.hooks.Reconfigured(i, t)
				}
			},
		},
		Recovering: recovering,
	})
	return m, nic, err
}

// stored counts the changes of regions in a configuration that a machine has stored, and calls onMoved if replicas change,
// or begin to.
func (c *members) stored(p *sim.Process, now *cluster.Configuration, r cluster.Remapped) {
	c.note(p, "configuration %d of machines %v", now.ID, now.Machines)
	c.moved += len(r.Moved)
	c.handedOver += len(r.HandedOver)
	c.regrown += len(r.Growing) + len(r.Shrunk)
	if len(r.HandedOver) > 0 {
		c.note(p, "regions %v are handed over", r.HandedOver)
	}
	if len(r.Moving)+len(r.Moved)+len(r.HandedOver)+len(r.Growing)+len(r.Shrunk) > 0 && c.onMoved != nil {
		c.onMoved(now, r)
	}
	if len(r.Lost) > 0 {
		c.note(p, "regions %v are lost", r.Lost)
	}
}

// pace returns the pace at which replicas are filled. With balance set, machines that come back get
// their share of the primaries before the faults end; only filled replicas become primaries, so
// they are filled fast.
func (c *members) pace() data.Pace {
	if c.balance > 0 {
		return data.Aggressive
	}
	return data.Pace{}
}

// asideKeeper keeps leases on a processor of its own, with datagrams of its own. It passes expired
// leases to a routine of the process, as the C thread of a real process does.
type asideKeeper struct {
	lease.Keeper
	endpoint *call.Endpoint
}

// newAsideKeeper runs the lease protocol on a processor and an endpoint of its own.
func newAsideKeeper(e *call.Endpoint, p *sim.Process, expired func(rdma.MachineID)) asideKeeper {
	a := sim.Aside{Process: p}
	tell := func(x rdma.MachineID) { p.Go(func() { expired(x) }) }
	own := call.New(a.NIC(), a, e.Self().Incarnation)
	return asideKeeper{lease.NewCalls(own, farm.KindLease, lease.Config{Length: leaseTime, Clock: a, Expired: tell}), own}
}

func (k asideKeeper) Close() error {
	err := k.Keeper.Close()
	k.endpoint.Close()
	return err
}

// note adds a machine's message to the trace.
func (c *members) note(p *sim.Process, format string, args ...any) {
	if !p.Dead() {
		c.world.Note(fmt.Sprintf("%v: ", p) + fmt.Sprintf(format, args...))
	}
}

// Died implements Cluster.
func (c *members) Died(machines []int) {
	for _, i := range machines {
		c.up[i] = nil
	}
}

// Machine implements Cluster.
func (c *members) Machine(i int) *txn.Machine {
	if c.up[i] == nil {
		return nil
	}
	return c.up[i].Transactions()
}

// Whole implements Cluster.
func (c *members) Whole() bool {
	now, isWhole := c.whole()
	return isWhole && !slices.ContainsFunc(now.Regions, func(p cluster.Placement) bool { return p.Move != nil })
}

// whole returns the configuration, and reports whether the cluster is whole, apart from moves under way.
func (c *members) whole() (now *cluster.Configuration, isWhole bool) {
	now, _ = c.store.Load()
	if now == nil || slices.Contains(c.up, nil) || len(now.Machines) != len(c.up) {
		return now, false
	}
	for _, m := range c.up {
		if m.Membership().Status().Recovering || m.Transactions().Recovery().IsGoing() {
			return now, false
		}
	}
	return now, c.isSteady(now) && isFilled(now)
}

// isSteady reports whether none of the current configuration's machines is about to be evicted:
// they are in it, without suspicions or changes.
func (c *members) isSteady(now *cluster.Configuration) bool {
	if c.world.Breaking() { // a machine that finds its connection broken may get its peer evicted
		return false
	}
	return !slices.ContainsFunc(now.Machines, func(i rdma.MachineID) bool {
		m := c.up[i]
		if m == nil {
			return true
		}
		s := m.Membership().Status()
		return s.Configuration.ID != now.ID || s.Changing || len(s.Suspects) > 0 || len(s.Apart) > 0 || !isFresh(m.Leases())
	})
}

// state describes each machine's view, for the report of a cluster that makes no progress.
func (c *members) state() string {
	var b strings.Builder
	now, _ := c.store.Load()
	fmt.Fprintf(&b, "configuration %d of machines %v, regions %+v, lost %v", now.ID, now.Machines, now.Regions, now.Lost)
	for i, m := range c.up {
		if m == nil {
			fmt.Fprintf(&b, "; machine %d does not serve", i)
			continue
		}
		s := m.Membership().Status()
		fmt.Fprintf(&b, "; machine %d in configuration %d, recovering %v, changing %v, suspects %v", i, s.Configuration.ID, s.Recovering || m.Transactions().Recovery().IsGoing(), s.Changing, s.Suspects)
	}
	return b.String()
}

// isFilled reports whether every region has all of its replicas, and all of them are filled. It ignores
// the rest of a resize, which waits while replicas are compared.
func isFilled(c *cluster.Configuration) bool {
	return !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool {
		return len(p.Filling) > 0 || len(p.Backups)+1 < c.Least(&p)
	})
}

// isResized reports whether no region gets or loses replicas any more because their number has changed.
func (c *members) isResized() bool {
	now, _ := c.store.Load()
	return now == nil || len(now.Resizing()) == 0
}

// isFresh reports whether all leases have been renewed lately. Then no machine is about to be
// suspected because of an earlier fault.
func isFresh(k lease.Keeper) bool {
	return k.Valid() && !slices.ContainsFunc(k.Leases(), func(l lease.Lease) bool { return min(l.Left, l.Held) < leaseTime/2 })
}

// Primaries implements Cluster.
func (c *members) Primaries(i int) (cluster.ID, []region.ID) {
	m := c.up[i]
	if m == nil {
		return 0, nil
	}
	return m.Primaries()
}

// Lives implements Cluster.
func (c *members) Lives(i int) catalog.Lives { return c.up[i].Lives() }

// Check implements Cluster.
func (c *members) Check(reachable iter.Seq[region.Ptr]) ([]farm.Fault, error) {
	if i := slices.Index(c.up, nil); i >= 0 {
		return nil, fmt.Errorf("machine %d does not serve", i)
	}
	defer farm.HoldMoves(c.up)()
	now, err := c.awaitHeld()
	if err != nil {
		return nil, err
	}
	found, err := farm.CheckMembers(now, c.up, reachable)
	if c.early {
		found = slices.DeleteFunc(found, func(f farm.Fault) bool { return isSpareRoot(now.Root, f) })
	}
	return found, err
}

// awaitHeld returns the configuration once no move begins or ends, and each move that has begun
// has filled its replica. A move that began just before moves were held may not end.
func (c *members) awaitHeld() (*cluster.Configuration, error) {
	for begin := c.world.Now(); ; c.world.Outside().Sleep(heldPoll) {
		if now, isWhole := c.whole(); isWhole {
			return now, nil
		}
		if c.world.Now() > begin+heldPatience {
			return nil, fmt.Errorf("not whole after %v, though no replica moves any more: %s", heldPatience, c.state())
		}
	}
}

// heldPoll is the interval at which awaitHeld looks, heldPatience the time after which it gives up.
const (
	heldPoll     = time.Millisecond
	heldPatience = 20 * time.Second
)

// isSpareRoot reports whether a fault is an unused root object, which a machine may leave behind if
// it dies while an instance begins (farm.OpenMember).
func isSpareRoot(root region.Ptr, f farm.Fault) bool {
	return f.Kind == region.Leak && f.Ptr != root && f.Ptr.Class() == root.Class()
}
