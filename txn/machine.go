package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
)

// Config is what a machine's transactions stand on.
type Config struct {
	// ID is the machine's. Config is the configuration it is part of.
	ID     rdma.MachineID
	Config uint32
	// Workers is how many workers each machine of the instance has.
	Workers int
	NIC     rdma.NIC
	// Log returns the non-volatile memory of the log that a sibling worker writes to
	// this life of this machine. All logs have LogBytes.
	Log      func(sender rdma.MachineID, worker int) (*nvram.Memory, error)
	LogBytes int
	// Where machines are replaced, memory like Log's for what Log's cannot be used for.
	// Relog: for the n'th log, from 1 on, that the worker writes to this life of this
	// machine, because the ledger of the one before is still needed. Park: for the n'th
	// part, from 0 on, of the transactions parked in a configuration; what is left of an
	// attempt that failed is cleared. Note: likewise for notes of the recovery for a
	// configuration that the machine's own logs have no room for; the next life recalls
	// it among the logs, and it can go once the recovery is over.
	Relog func(sender rdma.MachineID, worker, n int) (*nvram.Memory, error)
	// They are asked for so many bytes at least, where those are more than LogBytes.
	Park func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	Note func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	// Annex makes non-volatile memory of its own for one record of a transaction that is
	// large, with storage for all of it, or fails: with nvram.ErrNoSpace if there is no
	// room. number is random and names it, also to the machine's next life: see Recall.
	// DropAnnex gives it back, when nobody uses it any more. Both are called with no locks
	// held, several at once. nil: no transaction is large here.
	Annex     func(number uint64, bytes int64) (*nvram.Memory, error)
	DropAnnex func(number uint64, memory *nvram.Memory) error
	// Settling makes durable, at one moment, that all transactions of configurations
	// before in are decided, or parked in in: of earlier ones nothing else counts.
	Settling func(in cluster.ID)
	// MessageBytes is the size of a message queue.
	MessageBytes int
	// Allocator allocates in the regions that this machine is primary of.
	Allocator *region.Allocator
	Clock     clock.Clock
	// Alive says whether this machine holds its lease now. What a transaction
	// did or saw is reported only if it does so afterwards (SOSP'15 section 5.2).
	// Without it, nil, machines are never replaced: what needs a lost one fails.
	Alive func() bool
	// Patience is how long an operation waits for what only the rest of the instance
	// can bring: see UnavailableError. 30 s by default. It should be several times as
	// long as it takes to notice a failure and to recover from it.
	Patience time.Duration
	// Missing, if not nil, says in words what is missing, for UnavailableError.Why: of
	// a region, or of the whole machine for region 0. It does not wait.
	Missing func(region.ID) string
	// Locate, if not nil, finds out where a region lives that this machine does not
	// know. It may wait.
	Locate func(region.ID) (cluster.Placement, error)
	Events Events
}

// Events are told of what happens. Each field may be nil.
type Events struct {
	// Fenced: what a peer wrote here makes no sense, or the connection to it has
	// ended (rdma.ErrBroken, rdma.ErrKey, ErrLost); nothing of it is believed any
	// more. Only another configuration ends what is under way with it.
	Fenced func(peer rdma.MachineID, err error)
	// Silent: a peer has owed an answer for long; see Beat.
	Silent func(peer rdma.MachineID)
	// Unavailable: this machine has had no lease for longer than operations wait. reason
	// is what they fail with. Available: it has one again, after so long.
	Unavailable func(reason error)
	Available   func(after time.Duration)
	// Step: a transaction has come this far. It is called with locks held, must
	// not use the machine, and is for tests, which stop the world in it.
	Step func(step.Step)
}

// validateByMessage is tr of SOSP'15 section 4: a primary of more than so many
// objects to validate is asked with one message instead of READs.
const validateByMessage = 4

// A Machine coordinates transactions and is a participant in others'. It is
// safe for concurrent use.
type Machine struct {
	cfg           Config
	troubled      clock.Troubled // nil in production
	workers       []*worker
	routes        route.Table
	epoch         atomic.Uint64
	states        clock.Pool // of *state
	txs           clock.Pool // of *Tx
	raw           clock.Pool // of *rawBuffer
	nextWorker    atomic.Uint32
	recalled      recalled // under recovery.mu
	writeBytesMax int
	// config is the current configuration's identifier.
	config   atomic.Uint32
	recovery recoveryState
	// blocks is held while parts of block tables go to backups.
	blocks lockrank.Mutex[lockrank.Blocks]
	frees  atomic.Bool // see Frees

	// reserving is held for reading by who gives a replica storage; Freeze waits for them.
	reserving lockrank.RWMutex[lockrank.Reserving]

	closed   atomic.Bool
	evicted  atomic.Bool
	replicas participant.Replicas
	// bound is how long operations wait, and lapse since when there has been no lease.
	bound atomic.Int64
	lapse atomic.Pointer[time.Time]
	// serving counts the goroutines that run for peers, or for commits that nobody
	// waits for any more.
	serving atomic.Int64

	mu       lockrank.Mutex[lockrank.Machine]
	onEpoch  []*func()
	handlers map[HandlerID]Handler
}

// Meets says whether a trouble of the simulator comes: in production none does.
func (m *Machine) Meets(t clock.Trouble) bool { return m.troubled != nil && m.troubled.Meets(t) }

// New makes a machine. It registers its logs and message queues with the NIC,
// so that peers can connect; Connect connects it to them.
func New(cfg Config) (*Machine, error) {
	m := &Machine{cfg: cfg, troubled: clock.TroublesOf(cfg.Clock), handlers: make(map[HandlerID]Handler)}
	m.routes.Init(cfg.ID)
	m.epoch.Store(1)
	m.config.Store(cfg.Config)
	m.bound.Store(int64(cmp.Or(cfg.Patience, patienceDefault)))
	m.recovery.init(m)
	m.initReplicas()
	// A machine is primary of an object or backup, so that its LOCK and its COMMIT-BACKUP
	// record have everything that the transaction writes once. Own logs keep an eighth free.
	m.writeBytesMax = cfg.LogBytes / 4 * 3
	for id := range cfg.Workers {
		w := newWorker(m, uint16(id))
		q, err := cfg.NIC.Open(id, w.kick)
		if err != nil {
			return nil, fmt.Errorf("txn: open worker %d: %w", id, err)
		}
		w.q = &patientQueue{q, w}
		if w.credit, err = nvram.NewShared(route.CreditBytes); err != nil {
			return nil, fmt.Errorf("txn: worker %d: %w", id, err)
		}
		if err := cfg.NIC.Register(route.CreditKey(w.id), w.credit); err != nil {
			return nil, fmt.Errorf("txn: worker %d: %w", id, err)
		}
		m.workers = append(m.workers, w)
	}
	m.states = cfg.Clock.NewPool(func() any { return newState(m) })
	m.txs = cfg.Clock.NewPool(func() any { return new(Tx) })
	m.raw = cfg.Clock.NewPool(func() any { return &rawBuffer{wait: m.newWaiter()} })
	m.handleInternally()
	return m, nil
}

// ID returns the machine's identifier.
func (m *Machine) ID() rdma.MachineID { return m.cfg.ID }

// Configuration returns the identifier of the configuration that it is in.
func (m *Machine) Configuration() uint32 { return m.cfg.Config }

// Clock returns the machine's clock.
func (m *Machine) Clock() clock.Clock { return m.cfg.Clock }

func (m *Machine) anyWorker() *worker {
	if len(m.workers) == 1 {
		return m.workers[0]
	}
	s := m.states.Get().(*state)
	w := s.w
	m.states.Put(s)
	return w
}

func newState(m *Machine) *state {
	w := m.workers[int(m.nextWorker.Add(1))%len(m.workers)]
	s := &state{m: m, w: w, ctx: context.Background(), writtenMax: m.writeBytesMax}
	s.late.s, s.fresh.s = s, s
	s.commit.init(m)
	return s
}

// initReplicas begins with the machine's replicas.
func (m *Machine) initReplicas() {
	cfg, r := &m.cfg, &m.replicas
	r.ID, r.Routes, r.Allocator, r.NIC, r.Clock = cfg.ID, &m.routes, cfg.Allocator, cfg.NIC, cfg.Clock
	r.Annex, r.DropAnnex, r.Background = cfg.Annex, cfg.DropAnnex, m.inBackground
	r.Step, r.Troubles = cfg.Events.Step, m.troubled
	r.Init()
}

// inBackground runs f on a goroutine that Close waits for, unless the machine is closed.
func (m *Machine) inBackground(f func()) {
	m.serving.Add(1)
	if m.closed.Load() {
		m.serving.Add(-1)
		return
	}
	m.cfg.Clock.Go(func() {
		defer m.serving.Add(-1)
		f()
	})
}

// Close stops the machine once what it has begun to commit is truncated
// everywhere, waiting for at most patience. No transaction may be running. One
// that begins later fails with ErrClosed, as every other operation does.
//
// When Close returns, nothing here looks at logs or regions any more.
func (m *Machine) Close(patience time.Duration) error {
	err := m.Quiesce(patience)
	m.shut()
	// What still runs for peers can answer them.
	return errors.Join(err, m.awaitServed(patience), m.closeQueues())
}

// Abandon is Close for a machine that has no part in its instance any more: what
// it has begun is left to the others, or to its next life. It waits only for
// functions that run for peers, and they for nothing of others: no operation that
// was under way with them completes.
func (m *Machine) Abandon(patience time.Duration) error {
	m.shut()
	err := m.closeQueues()
	return errors.Join(err, m.awaitServed(patience))
}

// shut has nothing begin here any more.
func (m *Machine) shut() {
	m.closed.Store(true)
	for _, w := range m.workers {
		w.stop()
	}
	m.routes.Close()
}

// awaitServed waits for the functions that run for peers.
func (m *Machine) awaitServed(patience time.Duration) error {
	b := backoff{w: m.workers[0], patience: patience}
	for m.serving.Load() > 0 {
		if !b.again() {
			return fmt.Errorf("txn: machine %d: functions shipped here still run after %v", m.cfg.ID, patience)
		}
	}
	return nil
}

// closeQueues ends what is under way with other machines: the queues complete nothing
// any more.
func (m *Machine) closeQueues() (err error) {
	for _, w := range m.workers {
		err = errors.Join(err, w.q.Close())
		w.lock()
		w.failOpsLocked(ErrClosed)
		w.unlock()
	}
	return err
}

// Quiesce waits, for at most patience, until every commit that has begun here
// before the call has ended and is truncated, and so applied at all replicas, and
// that slots given back to other machines have arrived there.
func (m *Machine) Quiesce(patience time.Duration) error {
	for _, w := range m.workers {
		b := backoff{w: w, patience: patience}
		q := w.quiescence()
		for !q.reached(w) {
			if !b.again() {
				return fmt.Errorf("txn: machine %d: worker %d: transactions still not truncated after %v", m.cfg.ID, w.id, patience)
			}
		}
	}
	return nil
}
