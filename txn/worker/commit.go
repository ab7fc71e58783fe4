package worker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/commitstate"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// A Commit is a worker's view of a transaction's commit phase: its identifier, its participants,
// and how far it has come. It belongs to the transaction until JoinLocked. From then on the
// worker's lock guards it, until the commit has left the worker's lists. Its waiters may be used
// without the lock.
type Commit struct {
	ID           record.ID
	Participants []Participant
	Regions      []region.ID // regions that it writes to
	// Routes are the routes by which the commit was planned.
	Routes *route.List
	// IsLarge says that the commit is large: locking its objects may take long.
	IsLarge bool
	// Wait is open while LOCK-REPLYs, acknowledgements of COMMIT-BACKUP or READs are missing, First
	// until one primary has COMMIT-PRIMARY, and Resolved while the commit is stranded or caught.
	Wait, First, Resolved wait.Waiter

	state commitstate.State
	// next and prev link the worker's commits that have begun.
	next, prev *Commit
	since      uint64 // the beat at which the wait for LOCK-REPLYs began
	own        Acks   // acks of a commit without other participants
	// pending counts the acknowledgements of the COMMIT-PRIMARY records, once they are written.
	pending *Acks
}

// Init sets up a commit.
func (c *Commit) Init(clk clock.Clock) {
	c.Wait, c.First, c.Resolved = wait.NewWaiter(clk), wait.NewWaiter(clk), wait.NewWaiter(clk)
}

// Reset returns the commit to its state before it began. It must be in no worker's lists.
func (c *Commit) Reset() {
	clear(c.Participants)
	c.Participants = c.Participants[:0]
	c.Regions = c.Regions[:0]
	c.EnterLocked(commitstate.Planned) // locked: nothing else has the commit any more
	c.pending, c.Routes = nil, nil
	c.IsLarge = false
}

// State returns how far the commit has come. Its caller holds the worker's lock while the commit is in
// progress.
func (c *Commit) State() commitstate.State { return c.state }

// EnterLocked moves the commit to another state. It needs the worker's lock, except for
// commitstate.Planned, which only the transaction that owns the commit's memory enters.
func (c *Commit) EnterLocked(to commitstate.State) {
	if invariant.Enabled && !c.state.MayPrecede(to) {
		invariant.Violated(fmt.Sprintf("states of commit %v follow each other", c.ID), fmt.Sprintf("%v, then %v", c.state, to), "another")
	}
	c.state = to
}

// AdmitLocked returns nil if a planned commit may begin, and sets its participants' peers.
func (w *Worker) AdmitLocked(c *Commit) error {
	switch err := w.m.Gone(); {
	case err != nil:
		return err
	case w.stopped:
		return outcome.ErrClosed
	case w.frozen && !sabotage.FrozenBegin.Skipped():
		return ErrMoved
	case w.m.Routes.Load() != c.Routes && !sabotage.OldRoutes.Skipped():
		return ErrMoved
	}
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.Machine == w.m.cfg.ID {
			continue
		}
		if p.peer = w.peerLocked(p.Machine); p.peer == nil || p.peer.log == nil {
			return notAPeer(p.Machine)
		}
	}
	return nil
}

// JoinLocked gives a commit its identifier, and adds it to the commits that the worker has begun.
func (w *Worker) JoinLocked(c *Commit) {
	c.ID = record.ID{Config: w.config, Machine: w.m.cfg.ID, Worker: w.ID, Seq: w.window.Begin()}
	c.EnterLocked(commitstate.Locking)
	c.prev, c.next = nil, w.begun
	if w.begun != nil {
		w.begun.prev = c
	}
	w.begun = c
}

// LeaveLocked removes a commit from the list of begun commits, and moves it to a state in which it
// does not belong to that list.
func (w *Worker) LeaveLocked(c *Commit, to commitstate.State) {
	c.EnterLocked(to)
	if c.prev == nil && w.begun != c {
		return // the commit was not among them
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		w.begun = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}

// catchLocked leaves an open commit to recovery, and ends all of its waits.
func (w *Worker) catchLocked(c *Commit) {
	if c.state != commitstate.Stranded { // otherwise Strand has opened Resolved
		c.Resolved.Add(1)
	}
	w.LeaveLocked(c, commitstate.Caught)
	w.caught[c.ID.Seq] = c
	for i := range c.Participants {
		p := &c.Participants[i]
		p.Reserved = 0
		if p.peer != nil {
			c.LostLocked(p.Machine, ErrCaught)
		}
	}
	delete(w.commits, c.ID.Seq)
	if a := c.pending; a != nil && a.first != nil {
		a.first = nil
		c.First.DoneLocked(ErrCaught)
	}
}

// failAllLocked fails all waits, both for recovery and for peers.
func (w *Worker) failAllLocked(err error) {
	for w.begun != nil {
		w.catchLocked(w.begun)
	}
	for _, seq := range slices.Sorted(maps.Keys(w.caught)) {
		w.caught[seq].Resolved.DoneLocked(err)
	}
	clear(w.caught)
	for _, p := range w.peers {
		if p != nil {
			w.failWaitsLocked(p.id, err)
		}
	}
}

// Strand leaves a commit to recovery, because of the error why, and opens Resolved until recovery
// has decided. It returns an error if this machine will not learn the decision, because it is gone or
// because machines are never replaced; the commit is then in doubt. For a commit that a
// reconfiguration has caught, it returns nil immediately.
func (w *Worker) Strand(c *Commit, why error) error {
	w.Lock()
	defer w.Unlock()
	err := w.m.Gone()
	if w.stopped {
		err = outcome.ErrClosed
	}
	switch {
	case c.state.IsInRecovery():
		return nil
	case err == nil && w.m.cfg.Alive == nil: // there will be no recovery
		err = why
	case err == nil:
		c.EnterLocked(commitstate.Stranded)
		c.Resolved.Add(1)
		return nil
	}
	w.LeaveLocked(c, commitstate.InDoubt)
	return err
}

// IsLeftToRecovery reports whether only recovery can end the commit.
func (w *Worker) IsLeftToRecovery(c *Commit) bool {
	w.Lock()
	defer w.Unlock()
	return c.state == commitstate.Stranded || c.state.IsInRecovery()
}

// Resolve tells the coordinator of a transaction what recovery has decided.
func (m *Machine) Resolve(id record.ID, committed bool) {
	if id.Machine != m.cfg.ID || int(id.Worker) >= len(m.workers) {
		return
	}
	w := m.workers[id.Worker]
	w.Lock()
	defer w.Unlock()
	c := w.caught[id.Seq]
	if c == nil || c.ID != id {
		return
	}
	delete(w.caught, id.Seq)
	if committed {
		c.EnterLocked(commitstate.RecoveredCommitted)
	} else {
		c.EnterLocked(commitstate.RecoveredAborted)
	}
	c.Resolved.DoneLocked(nil)
}

// A Caught is a transaction of this machine that waits for recovery, with the regions that it
// writes to.
type Caught struct {
	ID      record.ID
	Regions []region.ID
}

// Caught returns the transactions of this machine that wait for recovery.
func (m *Machine) Caught() (all []Caught) {
	for _, w := range m.workers {
		w.Lock()
		for _, seq := range slices.Sorted(maps.Keys(w.caught)) {
			c := w.caught[seq]
			all = append(all, Caught{c.ID, slices.Clone(c.Regions)})
		}
		w.Unlock()
	}
	return all
}

// ExpectReplyLocked opens the wait for a primary's LOCK-REPLY.
func (w *Worker) ExpectReplyLocked(c *Commit) {
	c.Wait.Add(1)
	w.commits[c.ID.Seq], c.since = c, w.beats
}

// EndLocking ends the commit's wait for LOCK-REPLYs.
func (w *Worker) EndLocking(c *Commit) {
	w.Lock()
	delete(w.commits, c.ID.Seq)
	c.EndLockingLocked()
	w.Unlock()
}

// EndLockingLocked moves the commit to validation if all primaries have replied that they locked
// its writes.
func (c *Commit) EndLockingLocked() {
	if c.state == commitstate.Locking && c.isGranted() {
		c.EnterLocked(commitstate.Validating)
	}
}

// isGranted reports whether all objects are locked. It is called only after all primaries have
// replied: until then a participant counts as having locked.
func (c *Commit) isGranted() bool {
	for i := range c.Participants {
		if c.Participants[i].Verdict != message.Same {
			return false
		}
	}
	return true
}

// lockReplyLocked records a primary's LOCK-REPLY.
func (c *Commit) lockReplyLocked(from rdma.MachineID, msg message.Message) {
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.Machine == from && p.LockWrites > 0 && (!p.replied || sabotage.SecondReply.Skipped()) {
			p.replied, p.Verdict, p.Refused = true, message.Verdict(msg.A), int(msg.C)
			if p.Refused >= p.LockWrites || p.Verdict > message.Changed { // makes no sense: take it for a refusal
				p.Refused, p.Verdict = 0, message.Changed
			}
			c.Wait.DoneLocked(nil)
		}
	}
}

// LostLocked records that a primary will not reply, because of err: its objects count as locked by others.
func (c *Commit) LostLocked(machine rdma.MachineID, err error) {
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.Machine == machine && p.LockWrites > 0 && !p.replied {
			p.replied, p.Verdict = true, message.Locked
			c.Wait.DoneLocked(err)
		}
	}
}

// owingLocked adds to a set the primaries that have not sent their LOCK-REPLY.
func (c *Commit) owingLocked(owing map[rdma.MachineID]bool) {
	for i := range c.Participants {
		if p := &c.Participants[i]; p.LockWrites > 0 && !p.replied && p.peer != nil {
			owing[p.Machine] = true
		}
	}
}

// FinishLocked marks a transaction as finished: its records are no longer needed, and all
// participants may truncate them.
func (w *Worker) FinishLocked(c *Commit) { w.finishLocked(c.ID.Seq, c.peers()) }

func (w *Worker) finishLocked(seq uint64, peers []*peer) {
	w.window.Finish(seq)
	for _, p := range peers {
		p.truncated = append(p.truncated, seq)
	}
	if len(peers) > 0 {
		w.startTimerLocked()
	}
	if err := w.self.Free(&w.m.Replicas, &w.window); err != nil {
		invariant.Violated("own log is as it was written", err, nil)
	}
}

// commitsWithLocked reports whether a peer takes part in a commit in progress.
func (w *Worker) commitsWithLocked(p *peer) bool {
	for c := w.begun; c != nil; c = c.next {
		if slices.ContainsFunc(c.Participants, func(x Participant) bool { return x.peer == p }) {
			return true
		}
	}
	return false
}
