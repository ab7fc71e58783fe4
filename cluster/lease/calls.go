package lease

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// Config has a Keeper's settings and the parts that it uses.
type Config struct {
	// Length is the lease time; 0 means the default of the variant.
	Length time.Duration
	Clock  clock.Clock
	// Expired is called with a machine each time that its lease runs out. It is called on any
	// goroutine, without a lock, and may wait.
	Expired func(rdma.MachineID)
	// Speaks is the range of protocol versions that the machine speaks, if not protocol.Own.
	// Messages of machines that share no version with it are ignored.
	Speaks protocol.Range
	// NormalPriority keeps a thread at normal priority even where real-time priority is permitted,
	// so that the two can be compared.
	NormalPriority bool
	// Log is for a keeper with a Line: it tells of machines that are not reached as they should be.
	Log *slog.Logger
}

// The default lease times, which cause no false alarms on a busy virtual machine
// (docs/benchmarks.md). A goroutine waits for its turn when all processors are busy. A thread at
// real-time priority could use a shorter time, but at a cost: machines renew more often, even idle
// ones, and with 100 ms five idle machines use 1 % of a core. The gain would be small, because
// only machines that hang or are cut off are noticed by their lease.
const (
	LengthThread       = 150 * time.Millisecond // the lease time of a thread with real-time priority
	LengthThreadNormal = 200 * time.Millisecond
	LengthLine         = 200 * time.Millisecond // the lease time of a thread with a Line, once it has the keys of all its peers
	LengthCalls        = 800 * time.Millisecond
)

// The requirements of a thread of C on the system.
const (
	// RealtimePriority is its priority among real-time threads, the highest but one (Linux has 1 to
	// 99): without CAP_SYS_NICE, RLIMIT_RTPRIO has to be as much.
	RealtimePriority = 98
	// PinnedBytesMax bounds the memory that it pins: its relations, its paths to other hosts, its stack and its code.
	PinnedBytesMax = 768 << 10
)

// New returns the best keeper of this build: a thread of C if the build has that, and otherwise a
// keeper that uses calls. All machines of a cluster must use the same kind.
func New(cluster uint64, e *call.Endpoint, kind uint8, cfg Config) (Keeper, error) {
	if HaveThread {
		if cfg.Speaks == (protocol.Range{}) {
			cfg.Speaks = e.Speaks()
		}
		return NewThread(cluster, e.Self(), cfg)
	}
	return NewCalls(e, kind, cfg), nil
}

// calls keeps leases with notices of an Endpoint, and timers.
type calls struct {
	endpoint *call.Endpoint
	kind     uint8
	clock    clock.Clock
	begin    time.Time // when the keeper's clock read 1
	expired  func(rdma.MachineID)
	length   time.Duration
	valid    atomic.Int64
	beat     atomic.Int64

	mu struct {
		lockrank.Mutex[lockrank.Leaf] // never held across a wait
		core                          core
		timer                         clock.Timer
		ticks                         uint64 // counts timers, so that a late timer is ignored
		closed                        bool
	}
}

// NewCalls returns a keeper that sends its messages as notices of the given kind. The simulator uses
// it, and builds without the thread of C. It takes the protocol versions from the endpoint.
func NewCalls(e *call.Endpoint, kind uint8, cfg Config) Keeper {
	if cfg.Length == 0 {
		cfg.Length = LengthCalls
	}
	k := &calls{endpoint: e, kind: kind, clock: cfg.Clock, begin: cfg.Clock.Now(), length: cfg.Length, expired: cfg.Expired}
	k.mu.core = core{self: e.Self().Machine, length: int64(cfg.Length)}
	e.Handle(kind, k.receive)
	return k
}

// now returns the keeper's time. It never returns 0, which stands for a time that never comes.
func (k *calls) now() int64 { return int64(k.clock.Now().Sub(k.begin)) + 1 }

func (k *calls) Configure(cm rdma.MachineID, members []call.Peer) {
	k.mu.Lock()
	k.mu.core.configure(k.now(), cm, members)
	k.publishLocked()
	ticks := k.mu.ticks
	k.mu.Unlock()
	k.tick(ticks)
}

func (k *calls) Valid() bool { return k.now() < k.valid.Load() }

func (k *calls) Beat() { k.beat.Store(k.now()) }

func (k *calls) Remind(func()) {}

func (k *calls) Outstanding() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.core.left(k.now())
}

func (k *calls) Leases() []Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.core.leases(k.now())
}

func (k *calls) Length() time.Duration   { return k.length }
func (k *calls) Shortest() time.Duration { return k.length }
func (k *calls) Variant() string         { return "goroutine" }

func (k *calls) Close() error {
	k.endpoint.Handle(k.kind, nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.closed = true
	if k.mu.timer != nil {
		k.mu.timer.Stop()
	}
	k.valid.Store(0)
	return nil
}

func (k *calls) publishLocked() { k.valid.Store(k.mu.core.valid) }

// tick does everything that is due and schedules its next call. It does nothing if it is called by an
// old timer: another tick has run since the ticks-th timer was set.
func (k *calls) tick(ticks uint64) {
	k.mu.Lock()
	if k.mu.closed || k.mu.ticks != ticks {
		k.mu.Unlock()
		return
	}
	k.mu.core.beat = k.beat.Load()
	now := k.now()
	isDue, expired := k.mu.core.tick(now, nil)
	var send []func()
	if isDue {
		send = k.messagesLocked(now)
	}
	if k.mu.timer != nil {
		k.mu.timer.Stop()
	}
	k.mu.ticks++
	ticks = k.mu.ticks
	k.mu.timer = k.clock.AfterFunc(time.Duration(k.mu.core.next(now)-now), func() { k.tick(ticks) })
	k.mu.Unlock()
	for _, f := range send {
		f()
	}
	for _, machine := range expired {
		k.expired(machine)
	}
}

// messagesLocked returns functions that send the CM's messages.
func (k *calls) messagesLocked(now int64) (send []func()) {
	for i := range k.mu.core.relations {
		to, m := k.mu.core.relations[i].peer, k.mu.core.message(now, i)
		send = append(send, func() { _ = k.endpoint.Notify(to, k.kind, m.encode()) }) // a failure is like a lost message
	}
	return send
}

// receive handles a message of another machine. An answer goes as a notification of its own, so the
// result is always empty.
func (k *calls) receive(from call.Peer, arg []byte) ([]byte, error) {
	m, ok := decode(arg)
	if !ok {
		return nil, nil
	}
	k.mu.Lock()
	if k.mu.closed {
		k.mu.Unlock()
		return nil, nil
	}
	k.mu.core.beat = k.beat.Load()
	reply, isReply := k.mu.core.receive(k.now(), from, m)
	k.publishLocked()
	k.mu.Unlock()
	if isReply {
		_ = k.endpoint.Notify(from, k.kind, reply.encode())
	}
	return nil, nil
}
