package farm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/recovery/transactions"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// A MemberConfig is the config of one machine of an instance.
type MemberConfig struct {
	// Self names the machine and its failure domain. OpenMember draws its Incarnation; its Protocol
	// is what this program speaks, unless tests set it.
	Self cluster.Member
	// Settings has two kinds of settings. The settings of the instance (Replicas, Workers,
	// RegionBytes, LogBytes) count only when the machine begins a new instance. The others are this
	// machine's own (MessageBytes, RegionsMax, Clock, Logger).
	Settings Config
	Memory   Memories
	Store    cluster.Store
	NIC      rdma.NIC
	// Founders, if not empty, are the machines that begin the instance together if there is none;
	// see membership.Config.
	Founders []rdma.MachineID
	// Keeper makes the keeper of the machine's leases.
	Keeper func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error)
	// Pace is the speed at which this machine fills its replicas; data.Slow by default. A region
	// that has only one complete replica left is filled at data.Aggressive.
	Pace data.Pace
	// Patience is how long operations wait for other machines before they fail with
	// wait.ErrUnavailable: by default ten lease times, and at least 3 s.
	Patience time.Duration
	// Prepare, if not nil, is called with the machine's transactions to register the handlers of
	// shipped functions, before any machine can ship a function to it.
	Prepare func(*txn.Machine)
	// HoldMoves says that no replicas move, as after a call of HoldMoves, but from the
	// beginning: neither those that an earlier life has begun to move, nor those of machines
	// that are being drained.
	HoldMoves bool
	// BalanceDelay is membership.Config's.
	BalanceDelay time.Duration
	// Begun, if not nil, is called when the machine starts asking to become a member: from then on
	// Status and Membership report its progress.
	Begun func(*Member)
	// Ended is called when the machine is no longer part of the instance. The reason is
	// membership.ErrEvicted, or membership.ErrRestart if the machine has to restart together with
	// others or has no room for their logs. Ended must not wait. The owner then closes the machine,
	// and may open another one on the same memory.
	Ended func(reason error)
	// Unavailable and Available are called when operations begin to fail because there is no lease,
	// and when they succeed again. Both may be nil.
	Unavailable func(reason error)
	Available   func(after time.Duration)
	// Events are called when the machine's membership changes, Steps at each step of its
	// transactions, and Recovering at each step of recovery; all may be nil.
	Events     membership.Events
	Steps      func(step.Step)
	Recovering func(recovery.Step)
}

// Memories are one machine's ranges of non-volatile memory by name: an nvram.Folder, or its
// replacement in tests.
type Memories = memories

// A Member is one FaRM machine of an instance whose machines can fail one by one. It reaches the
// others only through its NIC, and the configuration through the store. It is safe for concurrent
// use.
type Member struct {
	machine
	// memories wraps cfg.Memory; machine.memory points to it.
	memories     remaining
	cfg          MemberConfig
	clock        clock.Clock
	log          *slog.Logger
	endpoint     *call.Endpoint
	keeper       lease.Keeper
	membership   *membership.Machine
	transactions *transactions.Recovery

	// settledFor is the last configuration for which recovery is settled here.
	settledFor atomic.Uint32
	// identity is the memory that names the machine; cluster is the instance it belongs to, 0 if
	// none.
	identity *nvram.Memory
	cluster  uint64
	// stored is the configuration in the store when the machine began; nil if there was none.
	stored  *cluster.Configuration
	reserve reserve
	room    awaiting

	ctx    context.Context // ends with the machine
	cancel context.CancelFunc
	// closing ends the wait between two beats, departure that of awaitDeparted.
	closing, departure clock.Event
	beats              beats
	// background counts the goroutines of data and allocator recovery.
	background group

	// relogged names the logs that were replaced in this life and whose ledgers are still needed;
	// guarded by replicas.
	relogged []string
	// oldAnnexes are the annexes of earlier lives that still exist; guarded by replicas.
	oldAnnexes map[uint64]*nvram.Memory

	// replicas guards machine.regions, stale, and the keys under which replicas receive block
	// headers; it is never held across a wait. stale says what is out of date in the replicas that
	// are being filled.
	replicas lockrank.Mutex[lockrank.Replicas]
	blocks   map[region.ID]rdma.Key
	stale    map[region.ID]*region.Stale
	// filling counts the goroutines that fill each replica. There may be several: a goroutine of an
	// earlier configuration may not have noticed the change yet.
	filling map[*region.Region]int
	// dropped holds the functions that free the memory of replicas that were dropped while a
	// goroutine still filled them.
	dropped map[*region.Region]func() error
	// departed are the replicas that have moved to other machines.
	departed []*departed
	// unread are the replicas that this machine began to fill in the given configurations and
	// has not registered for READs yet: see registerReads.
	unread map[region.ID]cluster.ID
	// read counts the bytes read so far for each replica that is being filled.
	read   map[region.ID]int
	root   region.Ptr
	epochs memberEpochs
}

// Kinds of calls between members; recovery and txn have theirs below.
const (
	// KindLease is the kind of calls between lease keepers (MemberConfig.Keeper).
	KindLease = 1 + iota
	kindAdvance
	kindReclaim
	kindMarked
	kindSums
)

// OpenMember starts a machine, and returns when it is a member and serves: see
// membership.Machine.Start. ctx ends the attempt.
func OpenMember(ctx context.Context, cfg MemberConfig) (*Member, error) {
	m := newMember(cfg)
	steps := []func(*Member, context.Context) error{
		(*Member).recognize, (*Member).recall, (*Member).prepare, (*Member).begin, (*Member).openRoot,
	}
	for _, step := range steps {
		if err := step(m, ctx); err != nil {
			return nil, errors.Join(m.opening(err), m.Close())
		}
	}
	return m, nil
}

// newMember returns a machine that has not started yet.
func newMember(cfg MemberConfig) *Member {
	cfg.Settings = cfg.Settings.withDefaults()
	m := &Member{cfg: cfg, clock: cfg.Settings.Clock, log: cfg.Settings.Logger}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.closing, m.departure, m.room.over = m.clock.NewEvent(), m.clock.NewEvent(), m.clock.NewEvent()
	m.background.init(m.clock)
	m.memories.Memories = cfg.Memory
	m.id, m.memory, m.nic = cfg.Self.Machine, &m.memories, cfg.NIC
	m.read = make(map[region.ID]int)
	m.regions, m.blocks = make(map[region.ID]*region.Region), make(map[region.ID]rdma.Key)
	m.filling, m.dropped = make(map[*region.Region]int), make(map[*region.Region]func() error)
	m.stale, m.unread = make(map[region.ID]*region.Stale), make(map[region.ID]cluster.ID)
	return m
}

// recognize draws the incarnation of this life, and reads the identity in the machine's memory and the
// instance's configuration from the store. It fails if these two are of different instances.
func (m *Member) recognize(ctx context.Context) (err error) {
	for m.cfg.Self.Incarnation == call.AnyLife {
		m.cfg.Self.Incarnation = m.clock.Uint64()
	}
	m.endpoint = call.New(m.nic, m.clock, m.cfg.Self.Incarnation)
	if m.cfg.Self.Protocol != (protocol.Range{}) {
		m.endpoint.Speak(m.cfg.Self.Protocol)
	}
	if err := m.identify(); err != nil {
		return err
	}
	if m.stored, err = m.load(ctx); err != nil || m.stored == nil {
		return err
	}
	if err := errors.Join(m.upgrade(m.stored), membership.SameCluster(m.cluster, m.stored)); err != nil {
		return err
	}
	m.adopt(m.stored)
	return nil
}

// recall makes the machine's txn.Machine, reads the logs of earlier lives into it, and frees the
// parts of these logs that hold no record.
func (m *Member) recall(context.Context) error {
	if err := m.openTransactions(); err != nil {
		return err
	}
	if m.cfg.Prepare != nil {
		m.cfg.Prepare(m.txn)
	}
	return m.recallLogs()
}

// prepare opens the machine's other parts. When it returns, the machine answers the others, but has
// not asked to become a member.
func (m *Member) prepare(context.Context) (err error) {
	if err := m.holdRoom(m.stored); err != nil {
		return err
	}
	if err := m.listenToSelf(); err != nil {
		return err
	}
	m.transactions = transactions.New(transactions.Config{
		Machine: m.txn, Endpoint: m.endpoint, Clock: m.clock,
		Blocks: m.compareBlocks, Settled: m.removeSettled, Step: m.cfg.Recovering,
	})
	expired := func(x rdma.MachineID) { m.membership.Suspect(x) }
	if m.keeper, err = m.cfg.Keeper(m.endpoint, expired); err != nil {
		return err
	}
	m.txn.WaitAtMost(cmp.Or(m.cfg.Patience, max(patienceLeases*m.keeper.Length(), patienceMin)))
	if m.membership, err = membership.New(m.membershipConfig()); err != nil {
		return err
	}
	m.handleCalls()
	m.background.run(m.beat)
	return nil
}

// begin makes the machine part of the instance.
func (m *Member) begin(ctx context.Context) error {
	if m.cfg.Begun != nil {
		m.cfg.Begun(m)
	}
	if err := m.membership.Start(ctx); err != nil {
		return err
	}
	m.storeIdentity()
	return nil
}

// opening wraps an error with which opening the machine failed. If the machine has left the instance
// meanwhile, the reason for that (ErrEvicted, for instance) comes first: err only follows from it.
func (m *Member) opening(err error) error {
	if m.membership != nil && m.membership.Err() != nil {
		err = fmt.Errorf("%w (%v)", m.membership.Err(), err)
	}
	return fmt.Errorf("farm: machine %d: %w", m.id, err)
}

// load returns the stored configuration. It tries again until the store answers or ctx ends.
func (m *Member) load(ctx context.Context) (*cluster.Configuration, error) {
	pause := loadRetry
	for hasWarned := false; ; pause = min(2*pause, loadRetryMax) {
		c, err := m.cfg.Store.Load()
		if err == nil || !membership.IsPassing(err) || ctx.Err() != nil {
			return c, err
		}
		if !hasWarned {
			m.log.Warn("the store of the configuration does not answer", "machine", m.id, "error", err)
		}
		hasWarned = true
		m.clock.Sleep(pause)
	}
}

// The time between two attempts to reach the store grows from loadRetry to loadRetryMax.
const (
	loadRetry    = 2 * time.Millisecond
	loadRetryMax = 100 * time.Millisecond
)

// The default of MemberConfig.Patience.
const (
	patienceLeases = 10
	patienceMin    = 3 * time.Second
)

// listenToSelf makes the log that this life of the machine writes to itself.
func (m *Member) listenToSelf() error {
	_, err := m.txn.Listen(m.id)
	return err
}

// adopt uses the settings of an existing instance.
func (m *Member) adopt(c *cluster.Configuration) {
	s := &m.cfg.Settings
	s.Replicas, s.Workers, s.RegionBytes, s.LogBytes = c.Replicas, c.Workers, c.RegionBytes, c.LogBytes
}

// heldBack is how many blocks the allocator keeps for transactions that free memory: even TRUNCATE
// TABLE needs room for objects of several sizes.
const heldBack = 4

// openTransactions makes the machine's transactions. Nobody can use them before the first
// configuration.
func (m *Member) openTransactions() (err error) {
	s := &m.cfg.Settings
	m.allocator = region.NewAllocator(region.AllocatorConfig{
		Workers:  s.Workers,
		HeldBack: heldBack,
		Clock:    m.clock,
		Config:   func() uint32 { return uint32(m.txn.Config()) },
		Replicate: func(t *region.Tenure, off uint64, data []byte, in uint32) error {
			return m.txn.WriteBackups(t, off, data, in)
		},
		Reserve:   func(t *region.Tenure, off, n uint64) (uint32, error) { return m.txn.ReserveBackups(t, off, n) },
		Discard:   func(t *region.Tenure, off, n uint64) (uint32, error) { return m.txn.Discard(m.ctx, t, off, n) },
		Emptied:   m.onEmptied,
		Grow:      m.grow,
		Colocated: m.colocated,
	})
	m.txn, err = txn.New(worker.Config{
		ID:           m.id,
		Workers:      s.Workers,
		NIC:          m.nic,
		Log:          m.logOf,
		LogBytes:     int(s.LogBytes),
		MessageBytes: int(s.MessageBytes),
		Allocator:    m.allocator,
		Clock:        m.clock,
		Relog:        m.relogOf,
		Park:         m.parkIn,
		Note:         m.noteIn,
		Annex:        func(number uint64, bytes int64) (*nvram.Memory, error) { return makeAnnex(m.memory, number, bytes) },
		DropAnnex:    func(number uint64, mem *nvram.Memory) error { return dropAnnex(m.memory, number, mem) },
		Settling:     m.settling,
		Alive:        func() bool { return m.keeper.Valid() },
		Locate:       m.locate,
		Patience:     m.cfg.Patience,
		Missing:      m.missing,
		Events: worker.Events{
			Fenced: func(peer rdma.MachineID, err error) {
				m.log.Warn("peer fenced", "machine", m.id, "peer", peer, "error", err)
				if errors.Is(err, rdma.ErrKey) || errors.Is(err, outcome.ErrLost) {
					m.membership.Disconnected(peer) // the peer lives, and has ended the connection
				} else {
					m.membership.Suspect(peer)
				}
			},
			Silent: func(peer rdma.MachineID) {
				m.log.Warn("peer owes an answer", "machine", m.id, "peer", peer)
				m.membership.Disconnected(peer)
			},
			Step:        m.cfg.Steps,
			Unavailable: m.cfg.Unavailable, Available: m.cfg.Available,
		},
	})
	return err
}

// logOf returns the log that a worker of another machine writes to in this life of this machine.
// All of its storage is reserved, so that a store never finds the file system full.
func (m *Member) logOf(sender rdma.MachineID, worker int) (*nvram.Memory, error) {
	mem, err := m.mapLog(m.lifeLogName(sender, worker))
	if err != nil {
		return nil, fmt.Errorf("farm: log of machine %d: %w", sender, err)
	}
	return mem, nil
}

// The memory called identityName identifies all of a machine's memory. Its words are:
//
//	0  the instance
//	1  the machine, its number plus one
//	2  1 once a configuration has been applied; until then the memory is new, and holds none of
//	   the replicas that the stored configuration gives to the machine
//	3  the token drawn when the memory was new (cluster.Memory)
//	4  the last configuration that was applied
//	5  the last configuration whose recovery of transactions was settled here
//	6  1 if there has been no room for a log since then
//	7  the last configuration that was committed (membership.Host), or committedUnknown
//	8  a copy of word 4; it differs once a program version that does not know words 7 to 9 has
//	   stored word 4
//	9  the number of lives that follow (cluster.Member.Lives): the last life that has applied a
//	   configuration, and the lives that have begun since
//
// The lives distinguish a memory from a copy of it: each of the two begins lives that the other
// does not have. Memory of earlier program versions has zeros in words 7 to 9.
const (
	identityName = "identity"
	// IdentityFile is that memory's file in an nvram.Folder.
	IdentityFile  = identityName + ".mem"
	identityBytes = 4096

	// Words of it.
	identityCluster   = 0
	identityMachine   = 8
	identityHolds     = 16
	identityToken     = 24
	identityApplied   = 32
	identitySettled   = 40
	identityCramped   = 48
	identityCommitted = 56
	identityLed       = 64
	identityLives     = 72

	committedUnknown = 1<<64 - 1

	livesMax = identityBytes/8 - identityLives/8 - 1
)

// identify reads the identity in the machine's memory, or begins one in new memory. It returns
// ErrOtherMachine if the memory belongs to another machine.
func (m *Member) identify() error {
	id, err := m.memory.Map(identityName, identityBytes)
	if err != nil {
		return err
	}
	if err := id.Reserve(0, id.Size()); err != nil {
		return err
	}
	m.identity = id
	m.cluster = id.Load(identityCluster)
	if was := id.Load(identityMachine); was != 0 && was != uint64(m.id)+1 {
		return fmt.Errorf("%w: it is machine %d's", ErrOtherMachine, was-1)
	}
	if id.Load(identityHolds) == 0 {
		id.Store(identityToken, 0) // no configuration was applied: treat the memory as new
		id.Store(identityLives, 0)
		id.Store(identityCommitted, 0)
	}
	for id.Load(identityToken) == 0 {
		id.Store(identityToken, m.clock.Uint64())
	}
	m.cfg.Self.Memory = id.Load(identityToken)
	m.beginLife()
	return nil
}

// beginLife records this life in the memory, before any configuration can contain it.
func (m *Member) beginLife() {
	id := m.identity
	slot := func(i uint64) uint64 { return identityLives + 8 + 8*i }
	n := id.Load(identityLives)
	switch {
	case id.Load(identityHolds) != 0 && id.Load(identityLed) != id.Load(identityApplied):
		// The memory was used by a program version that recorded neither lives nor commits.
		n = m.forgetLives(0)
	case n == livesMax:
		// There is no room for another life. Keep the first one, which wrote the memory. Without
		// the others, it is unknown which life was last a member or has committed anything.
		n = m.forgetLives(1)
	}
	id.Store(slot(n), m.cfg.Self.Incarnation)
	n++
	id.Store(identityLives, n)
	m.cfg.Self.Lives = nil
	for i := range n {
		m.cfg.Self.Lives = append(m.cfg.Self.Lives, id.Load(slot(i)))
	}
}

// forgetLives keeps the first n lives and replaces all others by one unknown life. It returns the new
// number of lives.
func (m *Member) forgetLives(n uint64) uint64 {
	m.identity.Store(identityCommitted, committedUnknown)
	m.identity.Store(identityLives+8+8*n, 0)
	m.identity.Store(identityLives, n+1)
	return n + 1
}

// leadLife records that this life is about to apply a configuration: it makes this life the first and
// only one in the list. It stores the life before the number of lives, so that a crash between the
// two leaves no number without its lives.
func (m *Member) leadLife() {
	if m.identity.Load(identityLives) != 1 {
		m.identity.Store(identityLives+8, m.cfg.Self.Incarnation)
		m.identity.Store(identityLives, 1)
	}
}

// storeIdentity stores in the machine's memory the machine and the instance that the memory belongs
// to. It is called once the machine is part of the instance.
func (m *Member) storeIdentity() {
	m.identity.Store(identityMachine, uint64(m.id)+1)
	m.identity.Store(identityCluster, m.membership.Configuration().Cluster)
}

// ErrOtherMachine means that the memory belongs to another machine.
var ErrOtherMachine = errors.New("farm: memory of another machine")

const logPrefix = "log-"

// lifeLogName is the name of the log for a worker of another machine in this life of this machine.
// The logs of earlier lives have other names, because recovery reads them.
func (m *Member) lifeLogName(sender rdma.MachineID, worker int) string {
	return fmt.Sprintf("%s%d-%d-%016x", logPrefix, sender, worker, m.cfg.Self.Incarnation)
}

// recallLogs maps the logs of this machine's earlier lives, the transactions that these lives have
// parked and their annexes, and gives them to recovery. Then it frees the parts that recovery does
// not need.
func (m *Member) recallLogs() error {
	names, err := m.memory.Names()
	if err != nil {
		return err
	}
	settled := cluster.ID(m.identity.Load(identitySettled))
	var logs, parked []*nvram.Memory
	for _, name := range names {
		if !m.isOldLog(name) {
			continue
		}
		mem, err := m.mapOld(name)
		if err != nil {
			return fmt.Errorf("farm: a log of an earlier life: %w", err)
		}
		logs = append(logs, mem)
	}
	for slices.Contains(names, parkedName(settled, len(parked))) {
		mem, err := m.mapOld(parkedName(settled, len(parked)))
		if err != nil {
			return fmt.Errorf("farm: transactions parked by an earlier life: %w", err)
		}
		parked = append(parked, mem)
	}
	annexes, err := openAnnexes(m.memory)
	if err != nil {
		return err
	}
	m.oldAnnexes = annexes
	if err := m.txn.Recovery().Recall(logs, parked, annexes, settled); err != nil {
		return fmt.Errorf("farm: machine %d: %w", m.id, err)
	}
	return m.makeRoom(logs)
}

// mapOld maps a memory of an earlier life. It asks for the size, since notes and parked transactions
// do not have the size of a log. A crash may have left the memory without a size; then mapOld gives
// it the size of a log.
func (m *Member) mapOld(name string) (*nvram.Memory, error) {
	size, err := m.memory.MemorySize(name)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = m.cfg.Settings.LogBytes
	}
	return m.memory.Map(name, size)
}

// isOldLog reports whether a memory is the log of an earlier life.
func (m *Member) isOldLog(name string) bool {
	return strings.HasPrefix(name, logPrefix) && !strings.HasSuffix(name, fmt.Sprintf("-%016x", m.cfg.Self.Incarnation))
}

func (m *Member) membershipConfig() membership.Config {
	s := &m.cfg.Settings
	return membership.Config{
		Self:     m.cfg.Self,
		Cluster:  m.cluster,
		Applied:  m.asOf(),
		Empty:    m.identity.Load(identityHolds) == 0,
		First:    &cluster.Configuration{Replicas: s.Replicas, Workers: s.Workers, RegionBytes: s.RegionBytes, LogBytes: s.LogBytes},
		Founders: m.cfg.Founders,
		Store:    m.cfg.Store,
		NIC:      m.nic,
		Worker:   s.Workers,
		Endpoint: m.endpoint,
		Keeper:   m.keeper,
		Clock:    m.clock,
		Host:     (*host)(m),
		Events:   m.cfg.Events,
		Step:     m.cfg.Recovering,

		HoldMoves: m.cfg.HoldMoves, BalanceDelay: m.cfg.BalanceDelay,
	}
}

// ID returns the machine's identifier.
func (m *Member) ID() rdma.MachineID { return m.id }

// Incarnation returns the number that distinguishes this life of the machine from others.
func (m *Member) Incarnation() uint64 { return m.cfg.Self.Incarnation }

// Transactions returns the machine's transactions.
func (m *Member) Transactions() *txn.Machine { return m.txn }

// Root returns the instance's root object.
func (m *Member) Root() region.Ptr { return m.root }

// Primaries returns this machine's configuration, and the regions whose primary the machine is in
// that configuration.
func (m *Member) Primaries() (cluster.ID, []region.ID) {
	ids := m.replicaIDs()
	return m.txn.Config(), slices.DeleteFunc(ids, func(id region.ID) bool { return !m.txn.IsPrimary(region.MakeAddr(id, 0)) })
}

// Membership returns the machine's part in the configurations.
func (m *Member) Membership() *membership.Machine { return m.membership }

// Leases returns the keeper of the machine's leases.
func (m *Member) Leases() lease.Keeper { return m.keeper }

// closePatience is how long closing waits for the last truncations, and for functions that
// run for peers. Tests make it long.
var closePatience = 10 * time.Second

// Close ends the machine's life. Its transactions in progress are recovered by the other machines,
// or by this machine when its memory is opened again. The NIC, the store and the memory stay open:
// they belong to the caller.
func (m *Member) Close() error {
	m.cancel()
	m.closing.Set()
	m.departure.Set()
	m.room.over.Set()
	if m.endpoint != nil {
		m.endpoint.Close()
	}
	var err error
	if m.keeper != nil {
		err = m.keeper.Close()
	}
	if m.membership != nil {
		m.membership.Close()
	}
	if m.transactions != nil {
		m.transactions.Close()
	}
	m.background.wait()
	if m.txn != nil {
		err = errors.Join(err, m.txn.Abandon(closePatience))
	}
	return errors.Join(err, m.freeDepartedIf(func(*departed) bool { return true }))
}
