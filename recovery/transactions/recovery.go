package transactions

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Recovery is one machine's part in recovering the state of transactions. It is safe for
// concurrent use.
type Recovery struct {
	cfg  Config
	idle clock.Event

	mu struct {
		lockrank.Mutex[lockrank.Leaf] // never held across a wait
		run                           *run
		running                       int
		closed                        bool
		// exchanging are the members with which an exchange of greetings is in progress.
		exchanging map[rdma.MachineID]bool
		exchanges  map[rdma.MachineID]*exchange
		begun      uint64 // how many exchanges this machine has begun; numbers them
		// sent has the regions whose block tables this machine has sent to their backups. The value is
		// the configuration in which the region's primary or backups had last changed by then.
		sent map[region.ID]cluster.ID
	}
}

// Config has a Recovery's settings and the parts that it uses.
type Config struct {
	Machine  *txn.Machine
	Endpoint *call.Endpoint
	Clock    clock.Clock
	// Blocks is called when the block table of a replica that is being filled equals the primary's.
	// When it returns, the region may become active. It may be called again, also while it runs. It
	// may be nil.
	Blocks func(region.ID)
	// Settled is called when all transactions of earlier configurations are decided and forgotten
	// at this machine. It may be nil.
	Settled func(c *cluster.Configuration)
	// Step is called at each step at this machine, for tests. It may be nil.
	Step func(recovery.Step)
}

// New returns the recovery of a machine's transactions, which answers
// calls from now on.
func New(cfg Config) *Recovery {
	t := &Recovery{cfg: cfg, idle: cfg.Clock.NewEvent()}
	t.mu.exchanging, t.mu.exchanges = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]*exchange)
	t.mu.sent = make(map[region.ID]cluster.ID)
	t.handle()
	return t
}

func (t *Recovery) reached(s recovery.Step) {
	if t.cfg.Step != nil {
		t.cfg.Step(s)
	}
}

// Freeze is step 1, at NEW-CONFIG. It ends the recovery in progress: the next one starts over.
func (t *Recovery) Freeze(c *cluster.Configuration) {
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

// Commit runs the other steps for the configuration of the latest Freeze. Call it at
// NEW-CONFIG-COMMIT, after Machine.Remap. It returns when all regions whose primary is this machine
// are active; steps 5 to 8 go on in the background. It fails if the next Freeze or Close comes
// first, or ctx ends.
func (t *Recovery) Commit(ctx context.Context, c *cluster.Configuration) error {
	r := t.current(c.ID)
	if r == nil {
		return fmt.Errorf("%w: commit of configuration %d", recovery.ErrSuperseded, c.ID)
	}
	if err := r.activate(ctx); err != nil {
		return err
	}
	t.spawn(r.rest)
	return nil
}

// Close ends the recovery in progress and returns when it has ended.
func (t *Recovery) Close() {
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

// spawn runs f on a goroutine that Close waits for. After Close has begun, it does nothing.
func (t *Recovery) spawn(f func()) {
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
func (t *Recovery) current(id cluster.ID) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.mu.run; r != nil && r.c.ID == id {
		return r
	}
	return nil
}

func (t *Recovery) sentBlocks(id region.ID) cluster.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.sent[id]
}

// parallel runs f for each machine, all at once, and returns when all have
// returned.
func (t *Recovery) parallel(machines []rdma.MachineID, f func(rdma.MachineID)) {
	var mu lockrank.Mutex[lockrank.Leaf]
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

// Progress describes in words how far the recovery at this machine has come.
func (t *Recovery) Progress() string {
	t.mu.Lock()
	r := t.mu.run
	t.mu.Unlock()
	if r == nil {
		return "no recovery"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.state == frozen, r.mu.state == settled:
		return fmt.Sprintf("configuration %d: %v", r.c.ID, r.mu.state)
	case len(r.mu.deciders) > 0:
		return fmt.Sprintf("configuration %d: %d of %d machines have decided all, %v", r.c.ID, len(r.mu.deciders), len(r.c.Machines), r.mu.refused)
	case r.mu.state >= voted:
		return fmt.Sprintf("configuration %d: votes of %d machines for %d transactions, %v", r.c.ID, len(r.mu.voters), len(r.mu.ballots), r.mu.refused)
	}
	return fmt.Sprintf("configuration %d: NEED-RECOVERY of %d machines, %v", r.c.ID, len(r.mu.needs), r.mu.refused)
}
