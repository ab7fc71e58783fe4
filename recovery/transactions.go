package recovery

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Transactions recovers the state of transactions at one machine when the
// configuration changes (SOSP'15 section 5.3), together with those of the other
// members:
//
//	1 block      Freeze: nothing of the old configuration proceeds
//	2 drain      Commit: all logs are processed                        txn.Drain
//	3 find       B --NEED-RECOVERY--> P   what B's logs say
//	4 lock       P READs records it lacks, locks what they write       txn.LockRegions
//	             P --BLOCKS--> B, which is being filled     before it is active
//	             P --REGIONS-ACTIVE--> all
//	5 replicate  P --REPLICATE-TX-STATE--> B, which READs what it lacks
//	6 vote       P --RECOVERY-VOTE--> C   for each transaction and region
//	             C --REQUEST-VOTE--> P    where none has come
//	7 decide     C --COMMIT-RECOVERY, ABORT-RECOVERY--> P, B
//	             C --TRUNCATE-RECOVERY--> P, B    once all have acknowledged
//	             C --PARK--> P, B                 where a region is unavailable
//	8 settle     C --DECIDED--> all
//
// P is a region's primary and B a backup, in the new configuration. C is the
// transaction's coordinator, if that is a member, or else a member that all
// agree on. Lists of transactions travel in one call.
//
// # Why it is right
//
// Nobody of configuration c acts before everybody has left c-1 (precise
// membership), so that the evidence, the records in the members' logs after they
// were drained, is fixed: nothing is added later. From there on:
//
// What was reported committed commits. Its coordinator had all acknowledgements
// for COMMIT-BACKUP and one for COMMIT-PRIMARY before it was frozen, or while it
// held its lease, that is before any member drained. So each region has a
// replica that votes commit-backup or more, or the primary's LOCK, or has
// truncated the transaction; and somewhere a vote is commit-backup or more, since
// before all were truncated there was nothing to recover.
//
// What was aborted, or reported to be, aborts: no COMMIT-BACKUP was ever written.
//
// The others have one outcome, however often recovery is interrupted. A region's
// vote is what all its replicas together have seen, and before it is cast each of
// them has noted as much in its own log (step 5). Decide looks at nothing but
// votes, so any later recovery, from whichever replicas are left, decides the
// same; and whatever has been carried out is noted first.
//
// Until a transaction is decided nobody reads or locks what it writes: its
// objects are locked at the primary before the region becomes active. Each lock
// counts the transactions that want it. Writes go by version, so that carrying a
// decision out twice, or late, changes nothing.
//
// A transaction that writes to an unavailable region is not decided, but parked: see
// txn.Machine.Park. It takes part in every recovery, with the same evidence, until all
// its regions are available. What the memory that is away has seen is fixed, too, and
// joins the evidence then. Votes are monotonic in evidence, so nothing that an earlier
// recovery has carried out (it decided only where all regions were available) can turn
// out otherwise.
//
// A truncated transaction is known as such where it has been truncated: each log
// has a ledger of them in its memory, which stays until no transaction of an
// earlier configuration is left anywhere (step 8, which is not in the paper: there
// memory is not lost together with power). So an unknown vote means that the
// record never came.
type Transactions struct {
	cfg  TransactionsConfig
	idle clock.Event

	mu struct {
		sync.Mutex // never held across a wait
		run        *run
		running    int
		closed     bool
		// exchanging are the members with which greetings are exchanged now.
		exchanging map[rdma.MachineID]bool
		exchanges  map[rdma.MachineID]*exchange
		begun      uint64 // exchanges; numbers them
		// sent is in which configuration a region had changed when its block table
		// was last sent to its backups.
		sent map[region.ID]cluster.ID
	}
}

// TransactionsConfig says what a Transactions works with.
type TransactionsConfig struct {
	Machine  *txn.Machine
	Endpoint *call.Endpoint
	Clock    clock.Clock
	// Blocks is told that the block table of a replica, one that is being filled, is the
	// primary's. When it returns, the region may become active. It may be called again,
	// also while it runs. It may be nil.
	Blocks func(region.ID)
	// Settled is told when all transactions of earlier configurations are decided
	// and forgotten at this machine. It may be nil.
	Settled func(c *cluster.Configuration)
	// Step is told of each step at this machine, for tests. It may be nil.
	Step func(Step)
}

// A Step is a point in recovery, at one machine.
type Step uint8

const (
	StepSuspected  Step = iota // a machine is suspected
	StepProbed                 // a majority has answered the CM's probe
	StepStored                 // the CM has made the next configuration, and told nobody
	StepApplied                // NEW-CONFIG is applied, and not acknowledged
	StepAcked                  // all have acknowledged, at the CM
	StepLeasesOver             // and old leases have run out
	StepCommitted              // NEW-CONFIG-COMMIT has come
	StepDrained                // from here to StepSettled: the recovery of transactions
	StepNeedRecovery
	StepFetched
	StepLocked
	StepActive
	StepReplicated
	StepVoted
	StepDecided
	StepOutcome // COMMIT-RECOVERY or ABORT-RECOVERY was carried out
	StepResolved
	StepTruncated
	StepSettled
	StepAllActive // ALL-REGIONS-ACTIVE has come
	StepFilling   // a piece of a replica has been copied
	StepFilled    // all of it, and the CM does not know
	StepScanning  // free lists are rebuilt in part
	StepScanned
	recoverySteps
)

// Steps is how many there are.
const Steps = int(recoverySteps)

var stepNames = [Steps]string{"suspected", "probed", "stored", "applied", "acknowledged", "leases over", "committed",
	"drained", "need-recovery", "fetched", "locked", "active", "replicated", "voted", "decided", "outcome", "resolved", "truncated", "settled",
	"all active", "filling", "filled", "scanning", "scanned"}

func (s Step) String() string { return stepNames[s] }

// NewTransactions returns the recovery of a machine's transactions, which answers
// calls from now on.
func NewTransactions(cfg TransactionsConfig) *Transactions {
	t := &Transactions{cfg: cfg, idle: cfg.Clock.NewEvent()}
	t.mu.exchanging, t.mu.exchanges = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]*exchange)
	t.mu.sent = make(map[region.ID]cluster.ID)
	t.handle()
	return t
}

func (t *Transactions) reached(s Step) {
	if t.cfg.Step != nil {
		t.cfg.Step(s)
	}
}

// Freeze is step 1, at NEW-CONFIG. It ends the recovery that is going on: the next
// starts over.
func (t *Transactions) Freeze(c *cluster.Configuration) {
	r := newRun(t, c)
	t.mu.Lock()
	last := t.mu.run
	t.mu.run = r
	if t.mu.closed {
		r.cancel()
	}
	t.mu.Unlock()
	if last != nil {
		last.cancel()
	}
	r.apart = t.cfg.Machine.Freeze(c)
}

// Commit does the rest, at NEW-CONFIG-COMMIT of the configuration of the latest
// Freeze, after Machine.Remap. It returns when the regions of which this machine
// is the primary are active; the rest goes on. It fails if the next Freeze or
// Close comes before that, or ctx ends.
func (t *Transactions) Commit(ctx context.Context, c *cluster.Configuration) error {
	r := t.current(c.ID)
	if r == nil {
		return fmt.Errorf("%w: commit of configuration %d", errSuperseded, c.ID)
	}
	if err := r.activate(ctx); err != nil {
		return err
	}
	t.spawn(r.rest)
	return nil
}

// Close ends what is going on and returns when it has.
func (t *Transactions) Close() {
	t.mu.Lock()
	t.mu.closed = true
	r, running := t.mu.run, t.mu.running
	t.mu.Unlock()
	if r != nil {
		r.cancel()
	}
	if running > 0 {
		t.idle.Wait()
	}
}

func (t *Transactions) spawn(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return
	}
	t.mu.running++
	t.cfg.Clock.Go(func() {
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mu.running--; t.mu.running == 0 && t.mu.closed {
			t.idle.Set()
		}
	})
}

// current returns the recovery for configuration id, or nil.
func (t *Transactions) current(id cluster.ID) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.mu.run; r != nil && r.c.ID == id {
		return r
	}
	return nil
}

func (t *Transactions) sentBlocks(id region.ID) cluster.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.sent[id]
}

// parallel runs f for each machine, all at once, and returns when all have
// returned.
func (t *Transactions) parallel(machines []rdma.MachineID, f func(rdma.MachineID)) {
	var mu sync.Mutex
	left, done := len(machines), t.cfg.Clock.NewEvent()
	for _, m := range machines {
		t.cfg.Clock.Go(func() {
			f(m)
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				done.Set()
			}
		})
	}
	if len(machines) > 0 {
		done.Wait()
	}
}

// coordinator returns who decides a transaction: its own coordinator if that is a
// member, and otherwise the member that wins when all draw for it (rendezvous
// hashing).
func coordinator(c *cluster.Configuration, id txn.ID) rdma.MachineID {
	if _, ok := c.Member(id.Machine); ok {
		return id.Machine
	}
	var winner rdma.MachineID
	best := uint64(0)
	for i, m := range c.Machines {
		if h := drawn(id, m); i == 0 || h > best {
			winner, best = m, h
		}
	}
	return winner
}

// drawn mixes a transaction and a machine (the finalizer of SplitMix64).
func drawn(id txn.ID, m rdma.MachineID) uint64 {
	x := id.Seq
	for _, v := range []uint64{uint64(id.Config), uint64(id.Machine), uint64(id.Worker), uint64(m)} {
		x += v + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// voteOf is what a region votes whose replicas have seen so much (step 6).
func voteOf(s txn.Seen) Vote {
	switch {
	case s&(txn.SeenCommitPrimary|txn.SeenCommitRecovery) != 0:
		return VoteCommitPrimary
	case s&txn.SeenAbortRecovery != 0:
		return VoteAbort
	case s&txn.SeenCommitBackup != 0:
		return VoteCommitBackup
	case s&txn.SeenLock != 0:
		return VoteLock
	case s&txn.SeenTruncated != 0:
		return VoteTruncated
	}
	return VoteUnknown
}

// replicasOf returns the machines that have a replica of one of the regions.
func replicasOf(c *cluster.Configuration, regions []region.ID) []rdma.MachineID {
	var all []rdma.MachineID
	for _, id := range regions {
		p, ok := c.Placement(id)
		if !ok {
			continue // lost
		}
		for _, m := range p.Replicas() {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Progress says how far the recovery at this machine has come.
func (t *Transactions) Progress() string {
	t.mu.Lock()
	r := t.mu.run
	t.mu.Unlock()
	if r == nil {
		return "no recovery"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.settled:
		return fmt.Sprintf("configuration %d: settled", r.c.ID)
	case len(r.mu.deciders) > 0:
		return fmt.Sprintf("configuration %d: %d of %d machines have decided all, %v", r.c.ID, len(r.mu.deciders), len(r.c.Machines), r.mu.refused)
	case r.mu.voted:
		return fmt.Sprintf("configuration %d: votes of %d machines for %d transactions, %v", r.c.ID, len(r.mu.voters), len(r.mu.ballots), r.mu.refused)
	case r.mu.drained:
		return fmt.Sprintf("configuration %d: NEED-RECOVERY of %d machines, %v", r.c.ID, len(r.mu.needs), r.mu.refused)
	}
	return fmt.Sprintf("configuration %d: frozen", r.c.ID)
}
