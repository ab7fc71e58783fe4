package txn

import (
	"context"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/worker"
)

// A Machine coordinates transactions and is a participant in others'. It is
// safe for concurrent use.
type Machine struct {
	worker.Machine
	states        clock.Pool // a pool of *state
	txs           clock.Pool // a pool of *Tx
	counts        []counts   // indexed by stripe
	logBytes      int
	writeBytesMax int
	// validateReads is tr of SOSP'15 section 4: if more than this many objects of a primary are to be
	// validated, the coordinator sends one message instead of READs.
	validateReads int
	costs         rdma.Costs
	_             prefetch.Pad

	frees     atomic.Bool   // set by Frees
	elsewhere atomic.Uint64 // counts calls of allocElsewhere
	_         prefetch.Pad
}

// New makes a machine, with its workers and their message queues: see Open of package worker.
func New(cfg worker.Config) (*Machine, error) {
	m := &Machine{logBytes: cfg.LogBytes}
	// A machine is either primary or backup of an object, so its LOCK and its COMMIT-BACKUP record
	// together hold every write of the transaction at most once. The bound leaves room in the log for
	// the rest of the records, and for the eighth that own logs keep free (participant.OwnLog).
	m.writeBytesMax = cfg.LogBytes / 4 * 3
	m.costs = cfg.NIC.Costs()
	m.validateReads = m.costs.ReadsPerMessage()
	if err := worker.Open(&m.Machine, cfg); err != nil {
		return nil, err
	}
	m.counts = make([]counts, m.Stripes())
	m.states = cfg.Clock.NewPool(func() any { return newState(m) })
	m.txs = cfg.Clock.NewPool(func() any { return &Tx{keeps: !invariant.Enabled} })
	return m, nil
}

// Costs returns what operations of this machine's NIC cost.
func (m *Machine) Costs() rdma.Costs { return m.costs }

func newState(m *Machine) *state {
	s := &state{m: m, ctx: context.Background(), writtenMax: m.writeBytesMax}
	s.late.s, s.fresh.s = s, s
	s.commit.Init(m.Clock())
	return s
}
