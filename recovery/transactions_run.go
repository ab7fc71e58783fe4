package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A run is the recovery for one configuration at one machine: straight-line code
// that calls the other members, and what their calls bring. Calls that are too
// early, or for another configuration, are refused, and made again.
type run struct {
	t      *Transactions
	m      *txn.Machine
	c      *cluster.Configuration
	self   rdma.MachineID
	ctx    context.Context
	cancel context.CancelFunc
	// apart are the members to which this machine was not connected at Freeze.
	apart []rdma.MachineID

	mu struct {
		sync.Mutex                         // never held across a wait
		drained    bool                    // step 2 is over
		voted      bool                    // step 6 is over
		settled    bool                    // all is
		connected  map[rdma.MachineID]bool // who has been connected to since Freeze
		refused    error                   // what a call was last refused for
		needs      map[rdma.MachineID]bool // who has sent all its NEED-RECOVERY
		claims     map[claimID]*claim      // about regions whose primary is here
		voters     map[rdma.MachineID]bool // who has sent all its RECOVERY-VOTE
		ballots    map[txn.ID]*ballot      // of transactions that this machine decides
		deciders   map[rdma.MachineID]bool // who has decided all of its
		tried      map[rdma.MachineID]bool // to whom connecting was tried: it is connected, or has to wait until all is settled
		waiters    []clock.Event           // of those in wait
	}
}

type claimID struct {
	tx     txn.ID
	region region.ID
}

// A claim is what the replicas of a region have seen of a transaction.
type claim struct {
	txn.Evidence // of all replicas together
	sources      map[rdma.MachineID]txn.Evidence
}

// A ballot collects the votes of the regions that a transaction writes to.
type ballot struct {
	regions []region.ID
	votes   map[region.ID]Vote
}

// retryDelay is the pause before a call that was refused is made again.
const retryDelay = 500 * time.Microsecond

func newRun(t *Transactions, c *cluster.Configuration) *run {
	r := &run{t: t, m: t.cfg.Machine, c: c, self: t.cfg.Machine.ID()}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.needs, r.mu.voters = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]bool)
	r.mu.connected, r.mu.deciders = make(map[rdma.MachineID]bool), make(map[rdma.MachineID]bool)
	r.mu.tried = make(map[rdma.MachineID]bool)
	r.mu.claims, r.mu.ballots = make(map[claimID]*claim), make(map[txn.ID]*ballot)
	return r
}

// either is a context that ends with a Commit's, or with the run if that comes
// first. Its Err is what is looked at, here and by calls; nobody waits for Done.
type either struct {
	context.Context
	run context.Context
}

func (e either) Err() error { return cmp.Or(e.run.Err(), e.Context.Err()) }

// wait waits until f, called with mu held, is true, or ctx, which ends with the run,
// ends.
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
		r.unlocked(func() { e.WaitFor(time.Millisecond) })
	}
	return nil
}

// unlocked runs f without mu.
func (r *run) unlocked(f func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	f()
}

// wake has all who wait look again.
func (r *run) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.waiters {
		e.Set()
	}
}

// call has a member answer a call, however long that takes.
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
			r.cancel() // this machine must not do alone what follows: nobody hears from this life any more
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
			return // the run is over
		}
	}
}

// activate goes through steps 2 to 4, unless ctx ends or the run is over.
func (r *run) activate(ctx context.Context) error {
	ctx = either{ctx, r.ctx}
	if sabotage.DrainFirst.Skipped() {
		_ = r.m.Resume(r.c.ID)
	}
	found, err := r.m.Drain(r.c.ID)
	if err != nil {
		return err
	}
	r.t.reached(StepDrained)
	if err := r.m.Resume(r.c.ID); err != nil {
		return err
	}
	r.mu.Lock()
	r.claimLocked(r.self, found)
	r.mu.drained = true
	r.mu.Unlock()
	r.t.spawn(func() { r.needRecovery(found) })
	r.t.spawn(func() { _ = r.connect(ctx) })
	return r.activateAll(ctx)
}

// sendBlocks sends the block tables of regions that have another primary, or new
// backups, than when this machine last did. Backups that are to be filled then look which
// blocks have changed hands since they were replicas last, before anybody can write there.
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
			return fmt.Errorf("recovery: block headers of region %d: %w", id, err)
		}
		sent[id] = changed
		for _, b := range p.Filling {
			lists[b] = append(lists[b], entry{Evidence: txn.Evidence{Region: id}})
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

// needRecovery tells the primaries of the regions that this machine backs up.
func (r *run) needRecovery(found []txn.Evidence) {
	lists := make(map[rdma.MachineID][]entry)
	for _, p := range r.c.Regions { // any order
		if r.backsUp(p) && lists[p.Primary] == nil {
			lists[p.Primary] = []entry{}
		}
	}
	for _, e := range found {
		if p, ok := r.c.Placement(e.Region); ok && r.backsUp(p) {
			lists[p.Primary] = append(lists[p.Primary], entry{Evidence: e})
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindNeedRecovery, lists[to]) })
	r.t.reached(StepNeedRecovery)
}

// backsUp says whether this machine has a backup of a region, and that a primary.
func (r *run) backsUp(p cluster.Placement) bool {
	return p.IsAvailable() && p.Primary != r.self && p.Has(r.self)
}

// claimLocked adds what a replica has seen of transactions of this machine's regions.
func (r *run) claimLocked(from rdma.MachineID, found []txn.Evidence) {
	for _, e := range found {
		p, ok := r.c.Placement(e.Region)
		if !ok || !p.IsPrimary(r.self) || !p.Has(from) {
			continue
		}
		if sabotage.Votes.Skipped() && from != r.self {
			e.Seen &= txn.SeenLock
		}
		id := claimID{e.ID, e.Region}
		c := r.mu.claims[id]
		if c == nil {
			c = &claim{Evidence: e, sources: make(map[rdma.MachineID]txn.Evidence)}
			r.mu.claims[id] = c
		}
		c.Seen |= e.Seen
		c.sources[from] = e
	}
}

// claimed returns the claims in order.
func (r *run) claimed() []*claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*claim
	for _, c := range r.mu.claims { // any order
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *claim) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Region, b.Region))
	})
	return all
}

// complete gets from the backups what the primary itself has not seen.
func (r *run) complete(ctx context.Context, c *claim) error {
	return r.again(ctx, func() error {
		writes, err := r.fetch(c)
		if err != nil {
			return err
		}
		return r.m.Learn(r.c.ID, c.Evidence, writes)
	})
}

// fetch reads a transaction's writes where they are, unless they are here. An
// earlier recovery that has come as far as truncation may have left notes alone.
func (r *run) fetch(c *claim) (writes []txn.Write, err error) {
	if own := c.sources[r.self]; !own.At.Empty() {
		return nil, nil
	}
	for _, from := range sortedKeys(c.sources) {
		if e := c.sources[from]; !e.At.Empty() {
			if writes, err = r.m.Fetch(from, e); err == nil {
				return writes, nil
			}
		}
	}
	return nil, err
}

// again does what fails while a machine cannot be reached, or its log is full,
// until it succeeds or ctx, which ends with the run, does.
func (r *run) again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		if over := ctx.Err(); over != nil || errors.Is(err, txn.ErrConfiguration) {
			return cmp.Or(over, err)
		}
		r.t.cfg.Clock.Sleep(retryDelay)
	}
}

// rest goes through steps 5 to 8, after this machine's regions are active.
func (r *run) rest() {
	if !sabotage.Replicate.Skipped() {
		r.replicate()
	}
	r.t.reached(StepReplicated)
	r.vote()
	r.t.reached(StepVoted)
	if r.decide() != nil {
		return
	}
	bounds := boundEntries(r.m.Bounds())
	r.t.parallel(r.c.Machines, func(to rdma.MachineID) { r.send(to, kindDecided, bounds) })
	err := r.wait(r.ctx, func() bool {
		return sabotage.AllDecided.Skipped() || len(r.mu.deciders) == len(r.c.Machines) && !r.isOpen()
	})
	if err != nil {
		return
	}
	if r.again(r.ctx, func() error { return r.m.Settle(r.c) }) != nil {
		return
	}
	r.mu.Lock()
	r.mu.settled = true
	r.mu.Unlock()
	r.t.spawn(func() { _ = r.connect(r.ctx) }) // what had to wait until the logs are not needed any more
	r.t.reached(StepSettled)
	if r.t.cfg.Settled != nil {
		r.t.cfg.Settled(r.c)
	}
}

// isOpen says whether a transaction of which this machine has records will be
// truncated yet: one whose regions are all lost will not, nor one that waits for a
// region.
func (r *run) isOpen() bool {
	for _, e := range r.m.Open() {
		if p, ok := r.c.Placement(e.Region); ok && p.Has(r.self) && !r.waits(e.Regions) {
			return true
		}
	}
	return false
}

func (r *run) others() []rdma.MachineID {
	return slices.DeleteFunc(slices.Clone(r.c.Machines), func(m rdma.MachineID) bool { return m == r.self })
}

// replicate is step 5: each backup is to know as much as all replicas together.
func (r *run) replicate() {
	lists := make(map[rdma.MachineID][]entry)
	for _, c := range r.claimed() {
		own, ok := r.m.Evidence(c.ID, c.Region)
		if !ok {
			continue
		}
		p, _ := r.c.Placement(c.Region)
		for _, b := range p.Backups {
			if e := c.sources[b]; e.At.Empty() || c.Seen&^e.Seen != 0 {
				known := c.Evidence
				known.At = own.At
				lists[b] = append(lists[b], entry{Evidence: known})
			}
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindReplicate, lists[to]) })
}

// vote is step 6. Everybody hears from everybody, so that a coordinator knows
// when no vote is still to come.
func (r *run) vote() {
	lists := make(map[rdma.MachineID][]entry)
	for _, c := range r.claimed() {
		to := coordinator(r.c, c.ID)
		e := c.Evidence
		e.At = txn.Extent{}
		lists[to] = append(lists[to], entry{Evidence: e})
	}
	r.mu.Lock()
	r.mu.voted = true
	r.mu.Unlock()
	r.t.parallel(r.c.Machines, func(to rdma.MachineID) { r.send(to, kindVote, lists[to]) })
}

// decide is step 7 for the transactions that this machine decides.
func (r *run) decide() error {
	err := r.wait(r.ctx, func() bool { return sabotage.AllVotes.Skipped() || len(r.mu.voters) == len(r.c.Machines) })
	if err != nil {
		return err
	}
	r.admitCaught()
	if !sabotage.RequestVote.Skipped() {
		r.requestVotes()
	}
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	r.park()
	lists := make(map[rdma.MachineID][]entry)
	decided := make(map[txn.ID]bool)
	for _, id := range r.ballotIDs() {
		b := r.mu.ballots[id]
		if r.waits(b.regions) {
			continue
		}
		commit := Decide(r.votes(b)) == Commit
		decided[id] = commit
		e := entry{Evidence: txn.Evidence{ID: id}}
		if commit {
			e.flag = 1
		}
		for _, m := range replicasOf(r.c, b.regions) {
			lists[m] = append(lists[m], e)
		}
	}
	r.t.reached(StepDecided)
	if sabotage.OutcomeFirst.Skipped() {
		r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindTruncateRecovery, lists[to]) })
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindOutcome, lists[to]) })
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	for _, c := range r.m.Caught() { // without a record anywhere it is aborted
		if !r.waits(c.Regions) {
			r.m.Resolve(c.ID, decided[c.ID])
		}
	}
	r.t.reached(StepResolved)
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) { r.send(to, kindTruncateRecovery, lists[to]) })
	return r.ctx.Err()
}

// ballotIDs returns the transactions to be decided, in order. All votes are in,
// so that nothing changes any more.
func (r *run) ballotIDs() []txn.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []txn.ID
	for id := range r.mu.ballots { // any order
		ids = append(ids, id)
	}
	slices.SortFunc(ids, txn.ID.Compare)
	return ids
}

// votes returns a vote for each region. One that has lost all its replicas is as
// if it had truncated the transaction: it cannot say that it never heard of it.
func (r *run) votes(b *ballot) []Vote {
	var votes []Vote
	for _, id := range b.regions {
		v := b.votes[id]
		if _, ok := r.c.Placement(id); !ok {
			v = VoteTruncated
		}
		votes = append(votes, v)
	}
	return votes
}

// requestVotes asks the primaries that have not voted what that means.
func (r *run) requestVotes() {
	lists := make(map[rdma.MachineID][]entry)
	for _, id := range r.ballotIDs() {
		b := r.mu.ballots[id]
		for _, reg := range b.regions {
			if _, voted := b.votes[reg]; voted {
				continue
			}
			if p, ok := r.c.Placement(reg); ok && p.IsAvailable() {
				lists[p.Primary] = append(lists[p.Primary], entry{Evidence: txn.Evidence{ID: id, Region: reg}})
			}
		}
	}
	r.t.parallel(sortedKeys(lists), func(to rdma.MachineID) {
		for _, b := range batches(r.c.ID, lists[to]) {
			reply, err := r.call(to, kindRequestVote, b)
			_, list, _, _ := decodeBatch(b)
			if err != nil || len(reply) != len(list) {
				return
			}
			for i, e := range list {
				r.mu.Lock()
				r.mu.ballots[e.ID].votes[e.Region] = Vote(reply[i])
				r.mu.Unlock()
			}
		}
	})
}

func sortedKeys[V any](m map[rdma.MachineID]V) []rdma.MachineID {
	keys := make([]rdma.MachineID, 0, len(m))
	for k := range m { // any order
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
