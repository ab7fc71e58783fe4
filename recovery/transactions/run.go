package transactions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// A run is the recovery for one configuration at one machine: straight-line code that calls the
// other members, and state that their calls change. A run refuses calls that come too early, or for
// another configuration; the caller tries again.
type run struct {
	t      *Recovery
	m      *txn.Machine
	c      *cluster.Configuration
	self   rdma.MachineID
	ctx    context.Context
	cancel context.CancelFunc
	// apart are the members to which this machine was not connected at Freeze.
	apart []rdma.MachineID

	mu struct {
		lockrank.Mutex[lockrank.Run] // never held across a wait
		state                        state
		connected                    map[rdma.MachineID]bool // members connected to since Freeze
		refused                      error                   // the error with which the latest call was refused
		needs                        map[rdma.MachineID]bool // members that have sent all their NEED-RECOVERY
		claims                       map[claimID]*claim      // about regions whose primary is here
		voters                       map[rdma.MachineID]bool // members that have sent all their RECOVERY-VOTE
		ballots                      map[record.ID]*ballot   // the votes about the transactions that this machine decides
		deciders                     map[rdma.MachineID]bool // members that have decided all their transactions
		tried                        map[rdma.MachineID]bool // members that have been connected, or whose connection waits until the recovery is settled
		waiters                      []clock.Event           // events of the callers of wait
	}
}

// retryDelay is the pause before a call that was refused is made again.
const retryDelay = 500 * time.Microsecond

func newRun(t *Recovery, c *cluster.Configuration) *run {
	r := &run{t: t, m: t.cfg.Machine, c: c, self: t.cfg.Machine.ID()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.needs, r.mu.voters = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]bool)
	r.mu.connected, r.mu.deciders = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]bool)
	r.mu.tried = make(map[rdma.MachineID]bool)
	r.mu.claims, r.mu.ballots = make(map[claimID]*claim), make(map[record.ID]*ballot)
	return r
}

// either is a context that ends when the context given to Commit ends, or the run does. Its
// users, including calls, poll Err. They must not wait for Done, which only says that Commit's
// context has ended.
type either struct {
	context.Context
	run context.Context
}

func (e either) Err() error { return cmp.Or(e.run.Err(), e.Context.Err()) }

// wait calls f with mu held, again after each wake, until f returns true. It fails when ctx ends,
// which is no later than the end of the run.
func (r *run) wait(ctx context.Context, f func() bool) error {
	e := r.t.cfg.Clock.NewEvent()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.waiters = append(r.mu.waiters, e)
	defer func() { r.mu.waiters = slices.DeleteFunc(r.mu.waiters, func(x clock.Event) bool { return x == e }) }()
	for !f() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.runUnlocked(func() { e.WaitFor(time.Millisecond) })
	}
	return nil
}

// runUnlocked runs f without mu.
func (r *run) runUnlocked(f func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	f()
}

// wake makes all callers of wait check their condition again.
func (r *run) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.waiters {
		e.Set()
	}
}

// call makes a call to a member again and again until it succeeds or the run is over.
func (r *run) call(to rdma.MachineID, kind uint8, arg []byte) ([]byte, error) {
	for {
		var reply []byte
		var err error
		if to == r.self {
			reply, err = r.t.answer(kind, call.Peer{Machine: r.self}, arg)
		} else {
			reply, err = r.ask(to, kind, arg)
		}
		if errors.Is(err, call.ErrClosed) {
			r.cancel() // the other members ignore this life of the machine now: it must not go on alone
		}
		if err == nil || r.ctx.Err() != nil {
			return reply, cmp.Or(err, r.ctx.Err())
		}
		r.mu.Lock()
		r.mu.refused = fmt.Errorf("call %d to machine %d: %w", kind, to, err)
		r.mu.Unlock()
		r.t.cfg.Clock.Sleep(retryDelay)
	}
}

// send sends a list to a member.
func (r *run) send(to rdma.MachineID, kind uint8, list []entry) {
	for _, b := range batches(r.c.ID, list) {
		if _, err := r.call(to, kind, b); err != nil {
			return // call fails only when the run is over
		}
	}
}

// activate runs steps 2 to 4, unless ctx ends or the run is over.
func (r *run) activate(ctx context.Context) error {
	ctx = either{ctx, r.ctx}
	if sabotage.DrainFirst.Skipped() {
		_ = r.m.Resume(r.c.ID)
	}
	found, err := r.m.Recovery().Drain(r.c.ID)
	if err != nil {
		return err
	}
	r.t.reached(recovery.StepDrained)
	if err := r.m.Resume(r.c.ID); err != nil {
		return err
	}
	r.mu.Lock()
	r.claimLocked(r.self, found)
	r.enterLocked(drained)
	r.mu.Unlock()
	r.t.spawn(func() { r.needRecovery(found) })
	r.t.spawn(func() { _ = r.connect(ctx) })
	if err := r.activateAll(ctx); err != nil {
		return err
	}
	r.enter(active)
	return nil
}

// sendBlocks sends the block table of each region whose primary or backups have changed since this
// machine last sent the table. A backup that is to be filled compares the table with its own, to find
// blocks that have passed to another slab since it was last a replica. It must do so before the
// region becomes active and transactions write there.
func (r *run) sendBlocks(ctx context.Context, mine []region.ID) error {
	sent, lists := make(map[region.ID]cluster.ID), make(map[rdma.MachineID][]entry)
	for _, id := range mine {
		p, _ := r.c.Placement(id)
		changed := max(p.LastPrimaryChange, p.LastReplicaChange)
		if r.t.sentBlocks(id) >= changed || sabotage.SendBlocks.Skipped() {
			continue
		}
		err := r.again(ctx, func() error { return r.m.SendBlocks(r.c.ID, id) })
		if err != nil {
			return fmt.Errorf("transactions: block headers of region %d: %w", id, err)
		}
		sent[id] = changed
		for _, b := range p.Filling {
			lists[b] = append(lists[b], entry{Evidence: evidence.Evidence{Region: id}})
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindBlocks, lists[to]) })
	if err := ctx.Err(); err != nil {
		return err
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	maps.Copy(r.t.mu.sent, sent)
	return nil
}

// again calls f until f succeeds or fails with evidence.ErrConfiguration, or until ctx ends. f may
// fail for a while because a machine cannot be reached or its log is full.
func (r *run) again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if over := ctx.Err(); over != nil || errors.Is(err, evidence.ErrConfiguration) {
			return cmp.Or(over, err)
		}
		r.t.cfg.Clock.Sleep(retryDelay)
	}
}

// rest runs steps 5 to 8, after this machine's regions are active.
func (r *run) rest() {
	if !sabotage.Replicate.Skipped() {
		r.replicate()
	}
	r.t.reached(recovery.StepReplicated)
	r.sendVotes()
	r.t.reached(recovery.StepVoted)
	if r.decide() != nil {
		return
	}
	r.enter(decided)
	bounds := boundEntries(r.m.Recovery().Bounds())
	r.t.parallel(r.c.Machines, func(to rdma.MachineID) { r.send(to, kindDecided, bounds) })
	err := r.wait(r.ctx, func() bool {
		return sabotage.AllDecided.Skipped() || (len(r.mu.deciders) == len(r.c.Machines) && !r.isOpen())
	})
	if err != nil {
		return
	}
	if r.again(r.ctx, func() error { return r.m.Recovery().Settle(r.c) }) != nil {
		return
	}
	r.enter(settled)
	r.t.spawn(func() { _ = r.connect(r.ctx) }) // the connections that were postponed while recovery needed the old logs
	r.t.reached(recovery.StepSettled)
	if r.t.cfg.Settled != nil {
		r.t.cfg.Settled(r.c)
	}
}

// isOpen reports whether this machine has records of a transaction that is still to be truncated. It
// does not count transactions that this recovery will never truncate: transactions of lost regions,
// and transactions that wait for an unavailable region.
func (r *run) isOpen() bool {
	for _, e := range r.m.Recovery().Open() {
		if p, ok := r.c.Placement(e.Region); ok && p.Has(r.self) && !r.waits(e.Regions) {
			return true
		}
	}
	return false
}

func (r *run) others() []rdma.MachineID {
	return slices.DeleteFunc(slices.Clone(r.c.Machines), func(m rdma.MachineID) bool { return m == r.self })
}

// sortedKeys returns the machines of a map in ascending order.
func sortedKeys[V any](m map[rdma.MachineID]V) []rdma.MachineID {
	keys := make([]rdma.MachineID, 0, len(m))
	for k := range m { // any order
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
