package membership

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// ProbeKey is the registration of a machine's probe word: its incarnation.
const ProbeKey rdma.Key = 0xf0 << 56

// Config has a Machine's settings and the parts that it uses.
type Config struct {
	// Self is this life of the machine. Its Protocol is the range that the Endpoint speaks.
	Self cluster.Member
	// Cluster is the instance that the machine's memory belongs to; 0 if it has
	// none yet.
	Cluster uint64
	// Applied is the last configuration that the machine's memory has been in; 0 if there is none.
	Applied cluster.ID
	// Empty says that the machine's memory is new, and that no configuration has been applied
	// since: it has no replicas, whatever the stored configuration says.
	Empty bool
	// First is the configuration that begins the instance if there is none: everything except
	// machines and identifiers. Its settings are those of this machine, which cannot be part of
	// an instance with other settings.
	First *cluster.Configuration
	// Founders, if not empty, are the machines that begin the instance together if there is none.
	// The first of them waits until all have answered it, and then makes the configuration.
	Founders []rdma.MachineID
	Store    cluster.Store
	NIC      rdma.NIC
	// Worker is the queue for probes. It is the same at all machines, and nothing else uses it.
	Worker   int
	Endpoint *call.Endpoint
	Keeper   lease.Keeper
	Clock    clock.Clock
	Host     Host
	Events   Events
	// Step is called at each step of a reconfiguration at this machine, for tests. It must not
	// wait, and may be nil.
	Step func(recovery.Step)
	// HoldMoves says that no replicas move: see Machine.HoldMoves.
	HoldMoves bool
	// BalanceDelay, if not 0, is how long the members must have been the same before replicas
	// are moved, or primaries handed over, for the sake of balance. By default it is
	// balanceDelay lease times, and lossDelay lease times while members are missing.
	BalanceDelay time.Duration
	// RestartWait is how long machines that restart together wait for further machines; 10 s by
	// default.
	RestartWait time.Duration
}

// A Machine is one machine's part in the configurations of its instance: it applies those that the
// CM sends, suspects machines whose leases have run out or that have died, and, at the CM, moves
// the instance to the next configuration (SOSP'15 section 5.2). It is safe for concurrent use.
type Machine struct {
	cfg    Config
	self   call.Peer
	probes *prober

	// change is held while this machine makes the next configuration, apply while it applies one.
	// Both are held across waits. The order is change, apply, mu.
	change lockrank.Mutex[lockrank.Change]
	apply  lockrank.Mutex[lockrank.Apply]

	reportedOldCopy bool // Start has reported an old copy; used by Start only
	heard           heard

	mu struct {
		lockrank.Mutex[lockrank.Membership] // never held across a wait
		current                             *cluster.Configuration
		phase                               phase // how far this machine is in current, as a member
		stage                               stage // how far this machine is in replacing current
		failure                             error
		suspects                            []call.Peer
		since                               time.Time          // the time when the first of suspects was suspected
		renew                               bool               // another configuration is needed even without suspects, for example after a store whose outcome is unknown
		asked                               cluster.ID         // another machine has asked this one to suspect the CM of this configuration
		cut                                 bool               // while starting: the machine cannot reach the store
		announced                           time.Time          // when AnnounceLeave was called; zero: it was not
		leaving                             bool               // set by Leave
		finished                            bool               // set by AwaitLeavers: nothing runs here any more
		leavers                             map[call.Peer]bool // members that have announced that they leave: whether nothing runs there any more
		unanswered                          map[call.Peer]int  // how many LEAVINGs in a row a member has not answered
		handed                              bool               // current's CM has asked this machine to take its place
		reported                            cluster.ID         // the CM of this configuration has been told that this machine cannot reach another
		joiners                             []joinRequest
		roomy                               []roomRequest   // machines that have room for replicas again
		refusals                            []refusal       // members that have no room for replicas that they are being filled with (Refuse)
		forget                              []forgetRequest // requests to stop waiting for the memories of machines
		drains                              []drainRequest  // requests to drain machines, or to undo that
		resizes                             []resizeRequest // the last request for another number of replicas; empty if there is none
		orders                              []orderRequest  // moves that operators ask for
		moves                               moves
		unproven                            cluster.ID                        // this machine has made this configuration and all later ones, and has committed none of them; 0: there is none
		leads                               bool                              // the goroutine of lead is running
		incoming                            map[call.Peer]*incoming           // NEW-CONFIGs that have come in part, by sender
		told                                map[rdma.MachineID]cluster.Member // what members have reported of themselves; used at the CM
		floor                               cluster.ID                        // while starting: no configuration before this one is applied
		line                                cluster.Line                      // the line of the configuration floor, if floor is set
		refused                             []region.ID                       // replicas that Host.Apply of current refused
		leftOut                             []call.Peer                       // members left out by the configurations since the last committed one
		cancel                              func()                            // ends Host.Commit of current
		isActive                            map[rdma.MachineID]bool           // machines that have sent REGIONS-ACTIVE; at the CM
		isSettled                           map[rdma.MachineID]bool           // machines whose transactions are all decided; at the CM
		timeline                            Timeline                          // the times of the steps to current; only at the CM
		links                               links
		missing                             []rdma.MachineID // machines that do not answer, if there is no majority; otherwise nil
		waiters                             []clock.Event
		running                             int // how many goroutines run
	}
	idle clock.Event
}

const restartWaitDefault = 10 * time.Second

// New returns a machine's part in the instance. Start begins it, Close ends it.
func New(cfg Config) (*Machine, error) {
	if cfg.RestartWait == 0 {
		cfg.RestartWait = restartWaitDefault
	}
	m := &Machine{cfg: cfg, self: cfg.Endpoint.Self(), idle: cfg.Clock.NewEvent()}
	m.cfg.Self.Protocol = cfg.Endpoint.Speaks()
	m.mu.incoming = make(map[call.Peer]*incoming)
	m.heard.of = make(map[rdma.MachineID]heardOf)
	m.mu.told = make(map[rdma.MachineID]cluster.Member)
	m.mu.leavers = make(map[call.Peer]bool)
	m.mu.unanswered = make(map[call.Peer]int)
	m.mu.links.init()
	if cfg.HoldMoves {
		m.mu.moves.holds = 1
	}
	word, err := nvram.NewShared(probeBytes)
	if err != nil {
		return nil, err
	}
	word.Store(0, m.self.Incarnation)
	if err := cfg.NIC.Register(ProbeKey, word); err != nil {
		return nil, fmt.Errorf("membership: register the probe word: %w", err)
	}
	if m.probes, err = newProber(cfg, word); err != nil {
		cfg.NIC.Deregister(ProbeKey)
		return nil, err
	}
	for i, err := range known {
		cfg.Endpoint.Know(uint8(codeFirst+i), err)
	}
	m.handle()
	cfg.NIC.Deaths(m.onDeath)
	cfg.Endpoint.Watch(cfg.Keeper.Length(), func(p call.Peer) { m.noteApart(p, false) })
	return m, nil
}

// Close ends the machine's part, and returns when none of its goroutines runs any more. It leaves
// the endpoint, the keeper and the NIC open; their owner must close the endpoint first, so that no
// call is pending.
func (m *Machine) Close() {
	m.mu.Lock()
	m.enterLocked(closed)
	if m.mu.cancel != nil {
		m.mu.cancel()
	}
	running := m.mu.running
	m.wakeLocked()
	m.mu.Unlock()
	if running > 0 {
		m.idle.Wait()
	}
	m.cfg.NIC.Deaths(nil)
	m.cfg.Endpoint.Watch(0, nil)
	m.probes.close()
	m.cfg.NIC.Deregister(ProbeKey)
}

// spawn runs f on a goroutine that Close waits for. After Close has begun, it does nothing.
func (m *Machine) spawn(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.phase != closed {
		m.spawnLocked(f)
	}
}

// spawnLocked is spawn for a caller that holds the lock, before Close.
func (m *Machine) spawnLocked(f func()) {
	m.mu.running++
	m.cfg.Clock.Go(func() {
		defer m.ended()
		f()
	})
}

func (m *Machine) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.running--; m.mu.running == 0 && m.mu.phase == closed {
		m.idle.Set()
	}
}

// wakeLocked makes every waitFor check its condition again.
func (m *Machine) wakeLocked() {
	for _, e := range m.mu.waiters {
		e.Set()
	}
}

// waitFor calls f with mu held, again and again, until f returns true, for at most d. It
// returns f's last result, or false if the Machine was closed.
func (m *Machine) waitFor(d time.Duration, f func() bool) bool {
	deadline := m.cfg.Clock.Now().Add(d)
	e := m.cfg.Clock.NewEvent()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.waiters = append(m.mu.waiters, e)
	defer func() { m.mu.waiters = slices.DeleteFunc(m.mu.waiters, func(x clock.Event) bool { return x == e }) }()
	for {
		if m.mu.phase == closed {
			return false
		}
		left := deadline.Sub(m.cfg.Clock.Now())
		if f() || left <= 0 {
			return f()
		}
		m.unlocked(func() { e.WaitFor(left) })
	}
}

// unlocked runs f without mu.
func (m *Machine) unlocked(f func()) {
	m.mu.Unlock()
	defer m.mu.Lock()
	f()
}

// evict ends the machine's membership. reason says why: a configuration leaves the machine out, or
// the machine itself has failed.
func (m *Machine) evict(reason error) {
	m.mu.Lock()
	was := m.mu.phase
	if was.isOver() {
		m.mu.Unlock()
		return
	}
	m.endLocked(reason)
	m.mu.Unlock()
	m.cfg.Keeper.Configure(m.self.Machine, nil)
	m.cfg.Events.evicted(reason)
	if was.isMember() {
		m.cfg.Host.Evicted()
	}
}

// endLocked ends this life of the machine.
func (m *Machine) endLocked(reason error) {
	m.mu.failure = reason
	m.enterLocked(evicted)
	if m.mu.cancel != nil {
		m.mu.cancel()
	}
	m.wakeLocked()
}

// isMember reports whether c has this machine as a member, with its present life.
func (m *Machine) isMember(c *cluster.Configuration) bool { return recovery.IsMember(c, m.self) }

// patience is how long this machine waits for another to do something that takes about a lease time.
func (m *Machine) patience() time.Duration {
	return max(3*m.cfg.Keeper.Length(), 20*time.Millisecond)
}

// within returns a context that ends after d.
func (m *Machine) within(d time.Duration) context.Context {
	return recovery.WithDeadline(context.Background(), m.cfg.Clock.Now().Add(d))
}
