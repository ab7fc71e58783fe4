package evidence

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// ErrConfiguration rejects a step of recovery for a configuration that is not the current one.
var ErrConfiguration = errors.New("txn: not the current configuration")

// A Recovery is a machine's part in the recovery of transactions. Its mutex is taken before a
// worker's lock, and never held across a wait.
type Recovery struct {
	Config
	// going says that a reconfiguration has begun and is not settled yet.
	going atomic.Bool

	mu     lockrank.Mutex[lockrank.Recovery]
	traces map[record.ID]*trace
	locks  map[region.Addr]*recoveredLock
	// left counts the undecided transactions that may have left a lock bit in a replica that is a
	// backup's: see countLeftLocked.
	left map[region.Addr]int
	// over holds the transactions that this recovery has truncated: a late copy of a call must not
	// begin a trace of them again.
	over     map[record.ID]bool
	recalled recalled
	// notes holds the notes for which this machine's own logs had no room.
	notes spill
	// found holds records from scanLocked, until takeFoundLocked adds them to traces.
	found []found
}

// Config holds the parts of a machine that its Recovery uses.
type Config struct {
	Replicas *participant.Replicas
	Workers  []Worker // indexed by number
	// Configuration is the identifier of the machine's current configuration. Begin changes it.
	Configuration *atomic.Uint32
	LogBytes      int
	// Read reads from a registration of another machine.
	Read func(from rdma.MachineID, k rdma.Key, off uint64, dst []byte) error
	// OpenParked and OpenNotes are worker.Config's Park and Note, Settling is that of worker.Config.
	OpenParked func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	OpenNotes  func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	Settling   func(current cluster.ID)
}

// A Worker is one of the machine's workers. Methods whose names end in Locked need its lock.
type Worker interface {
	// Locked calls f with the worker's lock held.
	Locked(f func())
	// LogsLocked returns the logs that the worker's siblings write to.
	LogsLocked() []Log
	// OwnLocked returns the log that the worker writes to its own machine, and the window of the
	// transactions that it coordinates.
	OwnLocked() (*participant.OwnLog, *record.Window)
	// FencePeerLocked ignores all further input from the sibling at a machine, because the sibling
	// has written garbage, and asks for another configuration.
	FencePeerLocked(from rdma.MachineID, err error)
	// SettleLocked ends the recovery at the worker: it frees the log space that recovery has held,
	// and ends the worker's commits that a reconfiguration has caught. isWhole says that no region
	// is unavailable.
	SettleLocked(isWhole bool)
}

// A Log is a log that a worker's sibling at another machine writes to.
type Log struct {
	*participant.Log
	From rdma.MachineID
	// Connection is the number of the connection over which the sibling writes.
	Connection uint32
	Memory     *nvram.Memory
	Key        rdma.Key // the key of Memory's registration
}

// Init sets up the recovery; Config must be set.
func (r *Recovery) Init() {
	r.notes = spill{r: r, open: r.OpenNotes, key: route.NotesKey}
	r.traces, r.locks, r.over = make(map[record.ID]*trace), make(map[region.Addr]*recoveredLock), make(map[record.ID]bool)
}

// IsGoing reports whether a reconfiguration has begun here and not been settled.
func (r *Recovery) IsGoing() bool { return r.going.Load() }

// Begin makes the given configuration the current one (NEW-CONFIG). From now on, all steps of
// earlier configurations fail with ErrConfiguration.
func (r *Recovery) Begin(in cluster.ID) {
	r.going.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Configuration.Store(uint32(in))
}

// During calls f if the given configuration is the current one, and holds off the next one until f
// returns.
func (r *Recovery) During(in cluster.ID, f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.Check(in)
	if err == nil {
		f()
	}
	return err
}

// Check returns ErrConfiguration unless the given configuration is the current one.
func (r *Recovery) Check(in cluster.ID) error {
	if now := r.Configuration.Load(); now != uint32(in) {
		return fmt.Errorf("%w: %d, this is %d", ErrConfiguration, in, now)
	}
	return nil
}

// WithLedgers calls f, which may replace logs and keep their ledgers (KeepLedgerLocked). It holds the
// mutex that Truncated needs, so that Truncated never misses a ledger on the way from its log to
// the kept ledgers.
func (r *Recovery) WithLedgers(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}
