package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
)

// A Host is the rest of a machine, which a Membership tells what configuration
// it is part of. Unless it says otherwise a method returns when it is done, and
// is called by one goroutine at a time.
type Host interface {
	// Freeze begins NEW-CONFIG (SOSP'15 section 5.2 step 6): from here until Commit
	// no transaction of this machine commits, it sends nothing to machines that
	// are not in c, and takes neither data nor acknowledgements from them. It is
	// quick.
	//
	// The paper holds the requests of clients back from the suspicion on. Here
	// nothing is to be gained by that: what deals with the suspected machine waits
	// for its replacement, and the rest has nothing to do with it.
	Freeze(c *cluster.Configuration)
	// Apply is the rest of NEW-CONFIG: it makes room for the replicas that c gives
	// to this machine and drops those that it takes away. It returns the replicas
	// to be filled for which there is no room. Any other error is fatal for the
	// machine: it leaves the configuration.
	Apply(c *cluster.Configuration) (refused []region.ID, err error)
	// Commit is NEW-CONFIG-COMMIT (step 7): drain the logs and recover the state of
	// transactions. It returns when all regions whose primary is here are active. It may be
	// called for c while, or after, it is called for the next configuration.
	// ctx ends when the next configuration begins. An error with ctx still good is
	// fatal for the machine.
	Commit(ctx context.Context, c *cluster.Configuration) error
	// Settle returns when every transaction of the configurations before c is
	// decided here and its records are of no use any more. It is called when
	// Commit has returned; ctx ends when the next configuration begins.
	Settle(ctx context.Context, c *cluster.Configuration) error
	// Active is ALL-REGIONS-ACTIVE: all regions of c are active, everywhere. It
	// starts data and allocator recovery and does not wait for them.
	Active(c *cluster.Configuration)
	// Evicted says that this machine is no member any more: what it has is of no
	// use to anybody. It may come back with another Membership, as a new machine.
	// It does not wait: it must not Close the Membership itself.
	Evicted()
	// Restart says that this machine ends its life and begins another one with its
	// memory: to meet others that have lost their processes, but not their memory, or
	// for the reason that Membership.Restart was called for. It does not wait either.
	Restart()
	// Holds returns the regions of which the machine's memory has a replica, in whatever
	// state.
	Holds() ([]region.ID, error)
	// Committed returns the last configuration that Commit was called for with the
	// machine's memory, in this life or an earlier one. It is not known if a program did
	// so that did not note it.
	Committed() (last cluster.ID, isKnown bool)

	// Prepare makes room for a replica of a region that is being made. What is
	// there of a region of that name is left from an attempt that came to nothing.
	Prepare(p cluster.Placement) error
	// Announce says that the region of which this machine has a replica exists.
	Announce(p cluster.Placement)
}

// Why a machine cannot be, or stay, part of an instance.
var (
	// ErrEvicted: the configuration has moved on without this machine.
	ErrEvicted = errors.New("recovery: this machine has been evicted from the configuration")
	// ErrOtherCluster: the machine's memory belongs to another instance.
	ErrOtherCluster = errors.New("recovery: the memory of this machine belongs to another cluster")
	// ErrTaken: another process runs as the machine of this name.
	ErrTaken = errors.New("recovery: a machine with this id is running already")
	// ErrClosed: the Membership is closed.
	ErrClosed = errors.New("recovery: closed")
)

// What calls of this package fail with, at the caller as at the called.
var (
	errNotCM      = errors.New("recovery: not the configuration manager")
	errNotMember  = errors.New("recovery: the caller is not a member")
	errSuperseded = errors.New("recovery: there is a newer configuration")
	errChanging   = errors.New("recovery: the configuration is changing")
	// ErrNoRegion: there is no such region.
	ErrNoRegion = errors.New("recovery: no such region")
	// ErrLost: an operator has given the region up.
	ErrLost = errors.New("recovery: the region is lost with all its replicas")
	// ErrNeeded: regions wait for the memory that the machine had; what it has come
	// with is another one.
	ErrNeeded = errors.New("recovery: regions wait for the memory that this machine had before")
	// ErrNotAwaited: nobody waits for the machine, or for other regions than said.
	ErrNotAwaited = errors.New("recovery: not what the regions wait for")
)

// IsPassing says that err comes from a configuration that is changing, or from a
// store that does not answer: trying again may help. Who is told that it is no member
// will learn from the store that it was evicted, if that is so.
func IsPassing(err error) bool {
	return slices.ContainsFunc([]error{
		cluster.ErrMoved, cluster.ErrUnreachable, errNotCM, errNotMember, errSuperseded, errChanging, errNoMajority, ErrApart,
		context.DeadlineExceeded, call.ErrOtherLife,
	}, func(passing error) bool { return errors.Is(err, passing) })
}

// Kinds of calls, and codes of errors, of this package.
const (
	kindNewConfig = 16 + iota
	kindNewConfigCommit
	kindRegionsActive
	kindAllRegionsActive
	kindSuspect
	kindJoin
	kindHello
	kindAllocate
	kindPrepare
	kindAnnounce
	kindMapping
	kindFilled
	kindRoot
	kindSettled
	kindUnreachable
	kindForget
	kindApart
	kindBanished
	kindRoom
)

const codeFirst = 16

var known = []error{
	errNotCM, errNotMember, errSuperseded, errChanging, ErrTaken, ErrOtherCluster, ErrNoRegion, ErrLost,
	cluster.ErrNoRoom, cluster.ErrMoved, cluster.ErrUnreachable, region.ErrFull, context.DeadlineExceeded,
	nvram.ErrNoSpace, call.ErrOtherLife, ErrNeeded, ErrNotAwaited, ErrApart,
}

// ProbeKey is the registration of a machine's probe word: its incarnation, and
// the last configuration for which it has drained its logs.
const ProbeKey rdma.Key = 0xf0 << 56

// MembershipConfig says what a Membership works with.
type MembershipConfig struct {
	// Self is this life of the machine.
	Self cluster.Member
	// Cluster is the instance that the machine's memory belongs to; 0 if it has
	// none yet.
	Cluster uint64
	// Empty says that the machine's memory is new, and that no configuration has been
	// applied since: whatever the stored one says, it has no replicas.
	Empty bool
	// First is the configuration that begins the instance, should there be none:
	// all but machines and identifiers.
	First *cluster.Configuration
	// Founders, if not empty, are the machines that begin the instance together, should
	// there be none: the first of them makes the configuration, of all, once it hears them.
	Founders []rdma.MachineID
	Store    cluster.Store
	NIC      rdma.NIC
	// Worker is the queue that probes use. It is the same at all machines, and
	// nobody else's.
	Worker   int
	Endpoint *call.Endpoint
	Keeper   lease.Keeper
	Clock    clock.Clock
	Host     Host
	Events   Events
	// Step is told of each step of a reconfiguration at this machine, for tests. It
	// does not wait, and may be nil.
	Step func(Step)
	// Meeting is how long machines that have all been restarted wait for those
	// that are missing; 10 s by default.
	Meeting time.Duration
}

// A Membership is one machine's part in the configurations of its instance: it
// applies those that the CM sends, suspects machines whose leases have run out
// or that have died, and, at the CM, moves the instance on (SOSP'15 section 5.2). It is safe for
// concurrent use.
type Membership struct {
	cfg    MembershipConfig
	self   call.Peer
	probes *prober

	// change is held by who moves the configuration on, apply by who applies one.
	// Both are held across waits; change comes first.
	change, apply sync.Mutex

	toldOfCopy bool // Start has reported that; used by Start only

	mu struct {
		sync.Mutex // never held across a wait
		current    *cluster.Configuration
		phase      phase
		failure    error
		suspects   []call.Peer
		since      time.Time  // when the first of them was suspected
		renew      bool       // the stored configuration may not be current: a change may have been stored or not
		asked      cluster.ID // to suspect the CM of this configuration, by another machine
		cut        bool       // does not reach the store; while starting
		leaving    bool       // is about to stop, and suspects nobody
		handed     bool       // asked to take the place of current's CM, by the CM itself
		reported   cluster.ID // the CM of this configuration has been told that this machine cannot reach another
		joiners    []joinRequest
		roomy      []roomRequest           // who has room for replicas again
		forget     []rdma.MachineID        // whose memories nobody is to wait for any more
		unproven   cluster.ID              // this machine has made that configuration and those since, and had nobody commit one; 0: none
		leads      bool                    // lead runs
		incoming   map[call.Peer]*incoming // by sender
		floor      cluster.ID              // while starting: nothing before this one is applied
		refused    []region.ID             // by Host.Apply of current
		leftOut    []call.Peer             // by configurations since the last that was committed
		committing bool                    // Host.Commit runs, or has run, for current
		cancel     func()                  // ends Host.Commit of current
		isActive   map[rdma.MachineID]bool // who has sent REGIONS-ACTIVE; at the CM
		recovering bool                    // not all have; at the CM
		isSettled  map[rdma.MachineID]bool // whose transactions are all decided; at the CM
		timeline   Timeline                // of current; at the CM
		links      links
		missing    []rdma.MachineID // without whom there is no majority; nil if there is one
		waiters    []clock.Event
		running    int // goroutines
	}
	idle clock.Event
}

// A phase of a machine's life.
type phase uint8

const (
	starting phase = iota // no configuration applied
	member
	evicted
	closed
)

const defaultMeeting = 10 * time.Second

// NewMembership returns a machine's part in the instance, which Start begins.
// Close ends it.
func NewMembership(cfg MembershipConfig) (*Membership, error) {
	if cfg.Meeting == 0 {
		cfg.Meeting = defaultMeeting
	}
	m := &Membership{cfg: cfg, self: cfg.Endpoint.Self(), idle: cfg.Clock.NewEvent()}
	m.mu.incoming = make(map[call.Peer]*incoming)
	m.mu.links.init()
	word, err := nvram.NewShared(probeBytes)
	if err != nil {
		return nil, err
	}
	word.Store(0, m.self.Incarnation)
	if err := cfg.NIC.Register(ProbeKey, word); err != nil {
		return nil, fmt.Errorf("recovery: register the probe word: %w", err)
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
	cfg.Endpoint.Watch(cfg.Keeper.Length(), func(p call.Peer) { m.estranged(p, false) })
	return m, nil
}

// handle has the machine answer the calls of the others.
func (m *Membership) handle() {
	for kind, h := range map[uint8]call.Handler{ // order does not show
		kindNewConfig:        m.onNewConfig,
		kindNewConfigCommit:  m.onNewConfigCommit,
		kindRegionsActive:    m.onRegionsActive,
		kindAllRegionsActive: m.onAllRegionsActive,
		kindSuspect:          m.onSuspect,
		kindJoin:             m.onJoin,
		kindHello:            m.onHello,
		kindAllocate:         m.onAllocate,
		kindPrepare:          m.onPrepare,
		kindAnnounce:         m.onAnnounce,
		kindMapping:          m.onMapping,
		kindFilled:           m.onFilled,
		kindRoot:             m.onRoot,
		kindSettled:          m.onSettled,
		kindUnreachable:      m.onUnreachable,
		kindForget:           m.onForget,
		kindApart:            m.onApart,
		kindBanished:         m.onBanished,
		kindRoom:             m.onRoom,
	} {
		m.cfg.Endpoint.Handle(kind, h)
	}
}

// Close ends the machine's part. It returns when nothing of it runs any more. The
// endpoint, the keeper and the NIC stay open; their owner closes the endpoint
// first, so that no call is pending.
func (m *Membership) Close() {
	m.mu.Lock()
	m.mu.phase = closed
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

// spawn runs f on a goroutine that Close waits for, unless it has begun.
func (m *Membership) spawn(f func()) {
	m.mu.Lock()
	isClosed := m.mu.phase == closed
	if !isClosed {
		m.mu.running++
	}
	m.mu.Unlock()
	if isClosed {
		return
	}
	m.cfg.Clock.Go(func() {
		defer m.ended()
		f()
	})
}

func (m *Membership) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.running--; m.mu.running == 0 && m.mu.phase == closed {
		m.idle.Set()
	}
}

// wakeLocked has all who wait in waitFor look again.
func (m *Membership) wakeLocked() {
	for _, e := range m.mu.waiters {
		e.Set()
	}
}

// waitFor waits until f, called with mu held, is true, for no longer than d. It
// returns what f said last; false if the Membership was closed.
func (m *Membership) waitFor(d time.Duration, f func() bool) bool {
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
func (m *Membership) unlocked(f func()) {
	m.mu.Unlock()
	defer m.mu.Lock()
	f()
}

// Configuration returns the configuration that this machine has applied last, or
// nil. It is not to be changed. Mappings of regions made since then may be
// missing: Placement asks for them.
func (m *Membership) Configuration() *cluster.Configuration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.current
}

// A Status is how far a machine is, for display.
type Status struct {
	Configuration *cluster.Configuration // nil before the first
	// Suspects are machines that are suspected to have failed; Joining those that wait to
	// be admitted, at the CM.
	Suspects, Joining []rdma.MachineID
	// Apart are members that this machine does not reach and, at the CM, those that
	// others have reported: if it stays so, one of two is evicted.
	Apart []rdma.MachineID
	// Missing are machines that do not answer, without whom there is no majority. nil if
	// there is one.
	Missing []rdma.MachineID
	// Recovering says that not all regions are active yet. Changing says that this
	// machine is changing the configuration, or has asked the CM to: another one
	// follows, though nobody may be suspected.
	Recovering, Changing bool
	// Err is why the machine is no member any more.
	Err error
}

// Status returns the machine's status.
func (m *Membership) Status() Status {
	err := m.Err()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{Configuration: m.mu.current, Missing: slices.Clone(m.mu.missing), Recovering: m.mu.recovering, Err: err}
	s.Changing = m.mu.leads || m.mu.current != nil && m.mu.reported == m.mu.current.ID
	for _, p := range m.mu.suspects {
		s.Suspects = append(s.Suspects, p.Machine)
	}
	for _, j := range m.mu.joiners {
		s.Joining = append(s.Joining, j.Member.Machine)
	}
	s.Apart = m.mu.links.reported(m.cfg.Clock.Now(), m.cfg.Keeper.Length())
	return s
}

// Err returns why this machine has no part any more: ErrEvicted, ErrClosed, or
// what the host failed with. nil if it has.
func (m *Membership) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.failure != nil:
		return m.mu.failure
	case m.mu.phase == closed:
		return ErrClosed
	}
	return nil
}

// evict ends the machine's membership: the configuration c, or an error of its
// own, leaves it out.
func (m *Membership) evict(reason error) {
	m.mu.Lock()
	if m.mu.phase == evicted || m.mu.phase == closed {
		m.mu.Unlock()
		return
	}
	was := m.mu.phase
	m.mu.phase, m.mu.failure = evicted, reason
	if m.mu.cancel != nil {
		m.mu.cancel()
	}
	m.wakeLocked()
	m.mu.Unlock()
	m.cfg.Keeper.Configure(m.self.Machine, nil)
	m.cfg.Events.evicted(reason)
	if was == member {
		m.cfg.Host.Evicted()
	}
}

// isMember says whether this life of this machine is part of c.
func (m *Membership) isMember(c *cluster.Configuration) bool { return memberIn(c, m.self) }

func memberIn(c *cluster.Configuration, p call.Peer) bool {
	x, ok := c.Member(p.Machine)
	return ok && x.Incarnation == p.Incarnation
}

func peerIn(c *cluster.Configuration, m rdma.MachineID) call.Peer {
	x, _ := c.Member(m)
	return call.Peer{Machine: m, Incarnation: x.Incarnation}
}

// patience is how long this machine waits for what another should do within a
// lease time or so.
func (m *Membership) patience() time.Duration {
	return max(3*m.cfg.Keeper.Length(), 20*time.Millisecond)
}
