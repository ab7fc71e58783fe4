package worker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
)

// Config holds a machine's settings and the parts that it uses to run transactions.
type Config struct {
	// ID is the machine's. Config is the configuration it is part of.
	ID     rdma.MachineID
	Config uint32
	// Workers is the number of workers of each machine of the instance.
	Workers int
	NIC     rdma.NIC
	// Log returns the non-volatile memory of the log that a sibling worker writes to in this life
	// of this machine. All logs have LogBytes.
	Log      func(sender rdma.MachineID, worker int) (*nvram.Memory, error)
	LogBytes int
	// Relog, Park and Note make further memory like Log's. They are needed if machines are replaced.
	//
	// Relog makes the n'th further log, from 1 on, for a sibling worker in this life of this
	// machine: it replaces a log whose ledger is still needed. Park makes the n'th memory, from 0
	// on, for the transactions parked in a configuration, and clears the leftovers of a failed
	// attempt. Note makes memory for the notes of a configuration's recovery for which the
	// machine's own logs have no room; the next life recalls it among the logs, and it can be freed
	// once the recovery is over.
	Relog func(sender rdma.MachineID, worker, n int) (*nvram.Memory, error)
	// Park and Note must return at least the given number of bytes, even if that is more than
	// LogBytes.
	Park func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	Note func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	// Annex makes non-volatile memory for one record of a large transaction, with storage for all
	// of it, or fails: with nvram.ErrNoSpace if there is no room. number is random and names the
	// memory, also in the machine's next life: see Recall. DropAnnex frees it once nobody uses it
	// any more. Both are called with no locks held, and concurrently. If nil, no transaction can be
	// large at this machine.
	Annex     func(number uint64, bytes int64) (*nvram.Memory, error)
	DropAnnex func(number uint64, memory *nvram.Memory) error
	// Settling records durably, by one atomic step, that all transactions of configurations before
	// current are decided, or are parked in current: from then on nothing else of earlier configurations
	// counts.
	Settling func(current cluster.ID)
	// MessageBytes is the size of a message queue.
	MessageBytes int
	// Allocator allocates in those regions whose primary is this machine.
	Allocator *region.Allocator
	Clock     clock.Clock
	// Alive reports whether this machine holds its lease now. The results of a transaction are
	// reported only if Alive returns true afterwards (SOSP'15 section 5.2). If Alive is nil,
	// machines are never replaced, and operations that need a lost machine fail.
	Alive func() bool
	// Patience is how long an operation waits for something that only other machines can provide:
	// see UnavailableError. 30 s by default. It should be several times as long as it takes to
	// notice a failure and to recover from it.
	Patience time.Duration
	// Missing, if not nil, describes in words what is missing for a region, or for the whole
	// machine if the region is 0; UnavailableError.Why holds the text. It does not wait.
	Missing func(region.ID) string
	// Locate, if not nil, finds the placement of a region that this machine does not know. It may
	// wait.
	Locate func(region.ID) (cluster.Placement, error)
	Events Events
}

// Events are functions that the machine calls when something happens. Each may be nil.
type Events struct {
	// Fenced: a peer wrote something here that makes no sense, or the connection to it has ended
	// (rdma.ErrBroken, rdma.ErrKey, outcome.ErrLost). This machine ignores all further input from the peer.
	// Only another configuration ends the transactions in progress with it.
	Fenced func(peer rdma.MachineID, err error)
	// Silent: a peer has owed an answer for long; see Beat.
	Silent func(peer rdma.MachineID)
	// Unavailable: this machine has had no lease for longer than operations wait, and they fail
	// with reason. Available: it has a lease again, after the given time.
	Unavailable func(reason error)
	Available   func(after time.Duration)
	// Step: a transaction has reached this step. It is called with locks held and must not use the
	// machine. Tests stop the world in it.
	Step func(step.Step)
}

// A Machine is a machine below its transactions: its workers, with their connections to other
// machines' workers, its replicas, its epoch, and its part in reconfigurations. It is safe for
// concurrent use.
type Machine struct {
	// The fields up to the Pad hardly ever change, and every operation and transaction loads them.
	// So they share no cache line with the later fields, which many processors write.
	wait.Lease
	cfg      Config
	troubled clock.Troubled // nil in production
	workers  []*Worker
	stripes  []Stripe
	isReal   bool // the clock is the system's
	yields   int  // how many times a goroutine that waits for operations yields before it sleeps
	gathers  bool // goroutines gather their posts into one batch; see GatherLocked
	// Routes are the routes to all regions that this machine knows. Only package txn uses the field;
	// others call Route.
	Routes   route.Table
	epoch    atomic.Uint64
	raw      clock.Pool                            // a pool of *Buffer
	handlers atomic.Pointer[map[HandlerID]Handler] // replaced under mu, never changed
	// config is the current configuration's identifier.
	config  atomic.Uint32
	closed  atomic.Bool
	evicted atomic.Bool
	// Replicas are this machine's replicas of regions. Only package txn and tests use the field.
	Replicas participant.Replicas
	_        prefetch.Pad

	recovery evidence.Recovery
	// blocks is held while parts of block tables go to backups.
	blocks lockrank.Mutex[lockrank.Blocks]

	// reserving is held for reading while storage is reserved for a replica; Freeze waits for these
	// reservations.
	reserving lockrank.RWMutex[lockrank.Reserving]

	// draining says that the machine is to have no regions: see IsDraining.
	draining atomic.Bool
	// speaks is the version of the protocol that the instance speaks.
	speaks atomic.Uint32

	// serving counts the goroutines that run for peers, for detached commits, or in the background.
	serving atomic.Int64

	mu      lockrank.Mutex[lockrank.Machine]
	onEpoch []*func()
	_       prefetch.Pad
}

// Meets reports whether the simulator injects a trouble here; in production it never does.
func (m *Machine) Meets(t clock.Trouble) bool { return m.troubled != nil && m.troubled.Meets(t) }

// Open sets up m, which a machine with transactions embeds. It opens the workers' queues at the NIC;
// Listen and Connect then connect the machine to its peers.
func Open(m *Machine, cfg Config) error {
	m.cfg, m.troubled, m.yields = cfg, clock.TroublesOf(cfg.Clock), yieldsFor(cfg.NIC.Costs())
	m.gathers = entersKernel(cfg.NIC.Costs())
	m.handlers.Store(&map[HandlerID]Handler{})
	m.Routes.Init(cfg.ID)
	m.epoch.Store(1)
	m.config.Store(cfg.Config)
	m.initLease()
	m.initReplicas()
	for id := range cfg.Workers {
		w := newWorker(m, uint16(id))
		q, err := cfg.NIC.Open(id, w.kick)
		if err != nil {
			return fmt.Errorf("txn: open worker %d: %w", id, err)
		}
		w.q = &patientQueue{q, w}
		if w.credit, err = nvram.NewShared(route.CreditBytes); err != nil {
			return fmt.Errorf("txn: worker %d: %w", id, err)
		}
		if err := cfg.NIC.Register(route.CreditKey(w.ID), w.credit); err != nil {
			return fmt.Errorf("txn: worker %d: %w", id, err)
		}
		m.workers = append(m.workers, w)
	}
	m.initRecovery()
	m.stripes = newStripes(m)
	m.raw = cfg.Clock.NewPool(func() any { return &Buffer{Wait: wait.NewWaiter(m.cfg.Clock)} })
	m.handleInternally()
	return nil
}

// ID returns the machine's identifier.
func (m *Machine) ID() rdma.MachineID { return m.cfg.ID }

// Clock returns the machine's clock.
func (m *Machine) Clock() clock.Clock { return m.cfg.Clock }

// initReplicas sets up the machine's replicas.
func (m *Machine) initReplicas() {
	cfg, r := &m.cfg, &m.Replicas
	r.ID, r.Routes, r.Allocator, r.NIC, r.Clock = cfg.ID, &m.Routes, cfg.Allocator, cfg.NIC, cfg.Clock
	r.Annex, r.DropAnnex, r.Background = cfg.Annex, cfg.DropAnnex, m.inBackground
	r.Step, r.Troubles = cfg.Events.Step, m.troubled
	r.Init()
}

// initLease sets up the Lease, which bounds the waits of the machine's operations.
func (m *Machine) initLease() {
	cfg := &m.cfg
	wait.Start(&m.Lease, wait.Config{
		Clock: cfg.Clock, Patience: cfg.Patience, Alive: cfg.Alive, Missing: cfg.Missing, Gone: m.Gone, Background: m.inBackground,
		Unavailable: cfg.Events.Unavailable, Available: cfg.Events.Available,
	})
}

// inBackground runs f on a goroutine that Close waits for, unless the machine is closed.
func (m *Machine) inBackground(f func()) {
	m.serving.Add(1)
	defer m.serving.Add(-1)
	if !m.closed.Load() {
		m.Go(f)
	}
}

// Go runs f on a goroutine that Close waits for.
func (m *Machine) Go(f func()) {
	m.serving.Add(1)
	m.cfg.Clock.Go(func() {
		defer m.serving.Add(-1)
		f()
	})
}

// Close stops the machine once the commits that it has begun are truncated everywhere, waiting for
// at most patience. No transaction may be running. Transactions and other operations that begin
// later fail with outcome.ErrClosed.
//
// When Close returns, nothing in this package uses logs or regions any more.
func (m *Machine) Close(patience time.Duration) error {
	err := m.Quiesce(patience)
	m.shut()
	// Close the queues last: functions that still run for peers need them to reply.
	return errors.Join(err, m.awaitServed(patience), m.closeQueues())
}

// Abandon is like Close, for a machine that is no longer part of its instance: the other machines, or
// its next life, finish its transactions. It waits only for functions that run for peers. These do
// not wait for other machines, because closing the queues fails their pending operations.
func (m *Machine) Abandon(patience time.Duration) error {
	m.shut()
	err := m.closeQueues()
	return errors.Join(err, m.awaitServed(patience))
}

// shut makes everything that begins from now on fail.
func (m *Machine) shut() {
	m.closed.Store(true)
	for _, w := range m.workers {
		w.stop()
	}
	m.Routes.Close()
}

// awaitServed waits for the functions that run for peers.
func (m *Machine) awaitServed(patience time.Duration) error {
	b := wait.Backoff{Lease: &m.Lease, Patience: patience}
	for m.serving.Load() > 0 {
		if !b.Again() {
			return fmt.Errorf("txn: machine %d: functions shipped here still run after %v", m.cfg.ID, patience)
		}
	}
	return nil
}

// closeQueues ends the pending operations with other machines: after it the queues complete
// nothing.
func (m *Machine) closeQueues() (err error) {
	for _, w := range m.workers {
		err = errors.Join(err, w.q.Close())
		w.Lock()
		w.failOpsLocked(outcome.ErrClosed)
		w.Unlock()
	}
	return err
}

// Quiesce waits, for at most patience, until every commit that began here before the call has
// ended and is truncated, and so is applied at all replicas. It also waits until the slots and
// annexes that were returned to other machines have arrived at those.
func (m *Machine) Quiesce(patience time.Duration) error {
	for _, w := range m.workers {
		b := wait.Backoff{Lease: &w.m.Lease, Patience: patience}
		q := w.quiescence()
		for !q.reached(w) {
			if !b.Again() {
				return fmt.Errorf("txn: machine %d: worker %d: transactions still not truncated after %v", m.cfg.ID, w.ID, patience)
			}
		}
	}
	return nil
}
