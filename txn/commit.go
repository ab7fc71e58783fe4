package txn

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn/commitstate"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
	"github.com/farmsql/farmsql/txn/worker"
)

// commitPatience bounds how long a commit tries again for reasons that pass soon: unchanged objects
// that others have locked, and stale index objects. After that the commit fails with a conflict.
const commitPatience = 5 * time.Second

// logPatience bounds how long a commit waits for room in a participant's log.
const logPatience = 10 * time.Second

// A result is how one attempt to commit, or one phase of it, ended.
type result uint8

const (
	// committed: the attempt, or the phase, has succeeded.
	committed result = iota
	// again: try again, since an object was locked or stale, which may pass in a moment.
	again
)

// commit is the state of a transaction's commit phase.
type commit struct {
	worker.Commit
	// writes are all objects written, strict and late, in ascending order of address, so that of
	// two transactions that want the same locks, one gets all.
	writes []*set.Entry
	// detached says that the caller has stopped waiting, and a goroutine ends the commit. The
	// goroutine that runs the transaction owns this field.
	detached bool
	// bytes is the room that the commit's writes take in records. large is nil unless the
	// commit is large.
	bytes int
	large *largeCommit
}

func (c *commit) reset() {
	c.Commit.Reset()
	clear(c.writes)
	c.writes = c.writes[:0]
	c.detached = false
	c.bytes, c.large = 0, nil
}

// Commit ends the transaction: all of its effects become visible and durable together, or none
// does. outcome.ErrConflict means that another transaction came first: this one may succeed if it
// is run again. outcome.ErrTooLarge and outcome.ErrLogFull mean that its records do not fit the
// logs, outcome.ErrInDoubt that it may or may not have committed. ctx can stop Commit only before
// the commit is decided.
func (t *Tx) Commit(ctx context.Context) error {
	if err := t.usable(); err != nil {
		t.Abort()
		return err
	}
	t.ctx = ctx
	err := t.tryCommit(ctx)
	if err == nil {
		err = t.reportable()
	}
	switch {
	case t.commit.detached:
		t.detach()
	case err == nil:
		t.counts.commits.Add(1)
		t.end()
	case errors.Is(err, outcome.ErrInDoubt):
		t.end()
	default:
		t.doom(err)
		t.Abort()
	}
	return err
}

// tryCommit makes attempts to commit until one commits or fails for good.
func (s *state) tryCommit(ctx context.Context) error {
	b := wait.Backoff{Lease: &s.m.Lease, Patience: commitPatience}
	var since time.Time // the time since which a reconfiguration has blocked the commit
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := s.m.Routes.Load()
		out, err := s.attempt()
		if !s.commit.detached {
			s.dropAnnexes()
		}
		isMoved := errors.Is(err, worker.ErrMoved)
		switch {
		case s.commit.detached:
			return err
		case isMoved:
			since, err = s.m.AwaitMove(ctx, err, since)
		case err != nil:
			if err = s.m.AwaitReplacement(ctx, before, err); err == nil {
				out = again
				b.Restart() // the instance has moved on: the next pauses are short
			}
		}
		if err != nil || out == committed {
			return err
		}
		s.counts.retries.Add(1)
		s.late.discard(s)
		s.late.isAgain = true
		s.commit.reset()
		if isMoved {
			continue // AwaitMove has waited
		}
		since = time.Time{}
		if !b.Again() {
			return cmp.Or(s.m.ConfirmWithin(ctx), abort(ReasonLock, 0))
		}
	}
}

// detach is called when the caller of Commit has stopped waiting. It starts a goroutine that ends the
// commit, and releases its locks and reservations as soon as possible.
func (t *Tx) detach() {
	s := t.state
	t.state = nil
	s.m.Go(func() {
		s.settleDetached()
		s.dropAnnexes()
		rest := Tx{state: s}
		switch state := rest.commit.State(); {
		case state.IsWithoutEffect():
			rest.Abort()
		case state.IsCommitted():
			s.counts.commits.Add(1)
			rest.end()
		default: // in doubt for good
			rest.end()
		}
	})
}

// settleDetached ends a detached commit, however long that takes: it waits for the LOCK-REPLYs and
// abandons the commit, or waits for the lease and goes on with it, or waits for recovery's
// decision. It reports the outcome to no one.
func (s *state) settleDetached() {
	w, c := s.w, &s.commit
	c.detached = false
	for s.awaitsLease() {
		s.awaitLease()
		_ = s.expose()
		if !c.detached {
			return // the outcome is known, or will never be
		}
		c.detached = false // expose or recovered has given up waiting once more
	}
	if !w.IsLeftToRecovery(&c.Commit) {
		_ = w.Await(&c.Wait)
		w.EndLocking(&c.Commit)
		_ = s.abandon()
		if !c.detached {
			return
		}
	}
	_ = w.Await(&c.Wait) // fails immediately if a reconfiguration caught the commit before its LOCK-REPLYs
	_ = s.fate(w.Await(&c.Resolved))
}

// attempt runs the phases of SOSP'15 section 4 once.
func (s *state) attempt() (result, error) {
	if err := s.prepare(); err != nil {
		if errors.Is(err, ErrStale) {
			return again, nil
		}
		// To an evicted machine memory may look damaged, because the other machines reuse memory
		// without waiting for it. So report damage only while this machine is a member.
		return again, cmp.Or(s.m.Confirm(), err)
	}
	if err := s.plan(); err != nil {
		return again, err
	}
	if len(s.commit.writes) == 0 {
		return s.validateReadOnly()
	}
	if sabotage.LockedVersion.Skipped() {
		s.forgetVersions()
	}
	if sabotage.ValidationLast.Skipped() {
		if out, err := s.validate(readSize{}); err != nil || out != committed {
			return out, err
		}
	}
	if err := s.m.Servable(s.ctx); err != nil {
		return again, err // fail here rather than in doubt after something is written
	}
	if s.commit.large != nil {
		if err := s.makeAnnexes(); err != nil {
			return again, err
		}
	}
	if err := s.begin(); err != nil {
		return again, err
	}
	out, err := s.awaitLocks()
	if err == nil && out == committed {
		s.locked = true
		if out, err = s.validate(readSize{}); err == nil && out == committed {
			s.m.Replicas.Reached(step.Validate)
		}
	}
	if s.commit.detached {
		return again, err
	}
	if err != nil || out != committed {
		if lost := s.abandon(); lost != nil {
			return again, lost
		}
		if errors.Is(err, worker.ErrCaught) {
			return again, nil // the commit may succeed in the next configuration
		}
		return out, err
	}
	return committed, s.decide()
}

// prepare makes the indexes apply their pending operations to fresh copies.
func (s *state) prepare() error {
	if len(s.intents) > 0 {
		s.forgetAhead() // copies that were read ahead may be out of date: then everything would have to be prepared again
	}
	for _, i := range s.intents {
		if err := i.Prepare(&s.late); err != nil {
			return err
		}
	}
	return nil
}

// begin reserves log space at all participants and writes the LOCK records. If there is no space it
// waits, holding no reservation meanwhile.
func (s *state) begin() error {
	w, c := s.w, &s.commit
	b := wait.Backoff{Lease: &s.m.Lease, Patience: logPatience}
	c.planReservations()
	w.Lock()
	for {
		if err := w.AdmitLocked(&c.Commit); err != nil {
			w.Unlock()
			return err
		}
		if w.ReserveLocked(&c.Commit) {
			break
		}
		w.MakeRoomLocked(&c.Commit)
		w.RingPeersLocked()
		w.Unlock()
		if !b.Again() {
			return w.LogFull(&c.Commit, logPatience)
		}
		w.Lock()
	}
	w.JoinLocked(&c.Commit)
	s.writeLockRecordsLocked()
	if err := s.lockSelfLocked(); err != nil { // errSliced: only a large commit can fail here
		c.large.sliced = true
	}
	if !c.IsRemote() {
		c.EndLockingLocked()
	}
	w.RingPeersLocked()
	if c.IsRemote() {
		w.GatherLocked() // awaitLocks waits next
	}
	w.Unlock()
	return nil
}

// abandon releases the attempt's locks and lets its records be truncated. If a reconfiguration has
// caught the commit, maybe while abandon unlocked a slice, recovery aborts it instead; an error then
// means that this machine will not learn, or has not learned in time, that it is aborted.
func (s *state) abandon() error {
	w, c := s.w, &s.commit
	w.Lock()
	if c.State().IsInRecovery() || s.unlockSelfLocked() != nil {
		w.Unlock()
		return s.aborted()
	}
	w.LeaveLocked(&c.Commit, commitstate.Aborted)
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.LockWrites == 0 || p.Verdict != message.Same || p.IsOwn() {
			continue
		}
		if sabotage.AbortRecord.Skipped() {
			continue
		}
		// If the record does not reach a peer, recovery releases the peer's locks.
		_ = w.AppendLocked(p, s.encodeLocked(p, record.Abort))
	}
	w.ReleaseReservationsLocked(&c.Commit)
	w.FinishLocked(&c.Commit)
	w.RingPeersLocked()
	w.Unlock()
	s.locked = false
	return nil
}

// unlockSelfLocked unlocks the objects that the attempt has locked at this machine.
func (s *state) unlockSelfLocked() error {
	for i := range s.commit.Participants {
		if p := &s.commit.Participants[i]; p.IsOwn() && p.LockWrites > 0 && p.Verdict == message.Same {
			return s.unlockOwnLocked(p, p.LockWrites)
		}
	}
	return nil
}

// decide writes COMMIT-BACKUP to all backups, waits until all of them have it, and then writes
// COMMIT-PRIMARY. It returns once one primary has COMMIT-PRIMARY: from then on the transaction
// survives f failures. If a participant is lost before the first COMMIT-BACKUP, decide abandons the
// attempt instead.
//
// Once a backup may have COMMIT-BACKUP and another participant cannot be reached, only recovery can
// determine the outcome: the commit keeps its locks and its log space until then.
func (s *state) decide() error {
	w, c := s.w, &s.commit
	w.Lock()
	if err := c.BrokenLocked(); err != nil && !c.State().IsInRecovery() {
		w.Unlock()
		return cmp.Or(s.abandon(), err)
	}
	err := s.commitBackupsLocked()
	w.RingPeersLocked()
	w.Unlock()
	if err != nil {
		return s.recovered(err)
	}
	return s.expose()
}

// expose is called when all backups have COMMIT-BACKUP. It writes COMMIT-PRIMARY, and waits until one
// primary has it. If this machine gets no lease in time, the commit is detached but stays open: the lease may
// come back without a reconfiguration, and then no recovery would decide the commit.
func (s *state) expose() error {
	w, c := s.w, &s.commit
	w.Lock()
	err := s.applyOwnBackupsOfLargeLocked()
	if err == nil {
		err = s.commitPrimariesLocked()
	} else if errors.Is(err, wait.ErrUnavailable) && !c.State().IsInRecovery() {
		c.detached = true
	}
	w.RingPeersLocked()
	isPending := !c.detached && err == nil && !c.First.Settled() && !sabotage.FirstPrimary.Skipped()
	if isPending {
		w.GatherLocked()
	}
	w.Unlock()
	if c.detached {
		return outcome.InDoubt(err)
	}
	if isPending {
		err = w.Await(&c.First)
	}
	if err != nil {
		return s.recovered(err)
	}
	return nil
}

// commitBackupsLocked writes COMMIT-BACKUP to all backups and waits until all have it. It releases
// the worker's lock while it waits.
func (s *state) commitBackupsLocked() error {
	w, c := s.w, &s.commit
	if c.State().IsInRecovery() {
		return worker.ErrCaught
	}
	c.EnterLocked(commitstate.CommittingBackups)
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.BackupWrites == 0 || sabotage.Backups.Skipped() {
			continue
		}
		rec := s.encodeLocked(p, record.CommitBackup)
		if sabotage.BackupAcks.Skipped() {
			_ = w.AppendLocked(p, rec)
		} else {
			w.AppendAwaitedLocked(p, rec, &c.Wait)
		}
	}
	if sabotage.OwnBackup.Skipped() {
		s.applyOwnBackupsLocked()
	}
	return w.AwaitLocked(&c.Wait)
}

// applyOwnBackupsOfLargeLocked waits until the commit's writes may be exposed, and returns nil then. If
// the commit is large, it applies the writes to the backups at this machine in between.
func (s *state) applyOwnBackupsOfLargeLocked() error {
	err := s.mayExposeLocked()
	if s.commit.large == nil || err != nil {
		return err
	}
	if s.applyInSlicesLocked(false) != nil {
		return worker.ErrCaught
	}
	return s.mayExposeLocked() // the worker was unlocked meanwhile
}

// mayExposeLocked returns nil if the commit's writes may become visible: this machine has its
// lease, and no reconfiguration has caught the commit. Recovery may abort a caught commit, and may
// give replicas of this machine to others.
func (s *state) mayExposeLocked() error {
	if err := s.holdLeaseLocked(); err != nil {
		return err
	}
	if s.commit.State().IsInRecovery() && !sabotage.Caught.Skipped() {
		return worker.ErrCaught
	}
	return nil
}

// holdLeaseLocked waits until this machine holds its lease, and then returns nil; it releases the
// worker's lock while it waits. The lease shows that no configuration without this machine had been
// committed when the backups got their records, so draining the logs will find all of them. Without
// this check, a machine that was stopped for a while may have been evicted: its records may have
// arrived after the drain, and recovery may have aborted the transaction that it is about to
// expose.
func (s *state) holdLeaseLocked() error {
	for !s.commit.State().IsInRecovery() && !s.m.Held() {
		s.w.RingPeersLocked()
		s.w.Unlock()
		err := s.m.Confirm()
		s.w.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitsLease reports whether a detached commit waits only for the lease: its backups have their
// records, and no reconfiguration has caught it.
func (s *state) awaitsLease() bool {
	s.w.Lock()
	defer s.w.Unlock()
	return s.commit.State() == commitstate.CommittingBackups
}

// awaitLease waits until this machine has its lease, or can no longer get it.
func (s *state) awaitLease() {
	for s.m.Gone() == nil && !s.m.Held() && s.awaitsLease() {
		s.m.Clock().Sleep(wait.LapsePoll)
	}
}

// commitPrimariesLocked writes COMMIT-PRIMARY to the primaries, which exposes the writes.
func (s *state) commitPrimariesLocked() error {
	w, c := s.w, &s.commit
	c.EnterLocked(commitstate.CommittingPrimaries)
	acks := w.AwaitAcksLocked(&c.Commit)
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.LockWrites == 0 {
			continue
		}
		rec := s.encodeLocked(p, record.CommitPrimary)
		if p.IsOwn() {
			_ = w.AppendLocked(p, rec) // cannot fail: this machine's own log, with reserved space
			continue
		}
		w.AppendAckedLocked(p, rec, acks)
	}
	if s.applySelfLocked() != nil {
		return worker.ErrCaught
	}
	w.ReleaseReservationsLocked(&c.Commit)
	if c.IsPrimary() { // this machine is one of the primaries that have COMMIT-PRIMARY
		w.LeaveLocked(&c.Commit, commitstate.Truncating)
	}
	if sabotage.PrimaryAcks.Skipped() {
		w.FinishLocked(&c.Commit)
	}
	w.CountDownLocked(acks)
	return nil
}

// applySelfLocked applies the writes to the replicas at this machine. In the paper a backup applies
// them at truncation. The coordinator need not wait for that: it knows that every backup has
// COMMIT-BACKUP, so no recovery can abort the transaction. The backups of a large commit have
// applied theirs already.
func (s *state) applySelfLocked() error {
	if s.commit.large != nil {
		return s.applyInSlicesLocked(true)
	}
	for _, e := range s.commit.writes {
		s.applyToLocked(s.m.Route(e.Ptr.Addr.Region()), e)
	}
	return nil
}

func (s *state) applyToLocked(rt *route.Route, e *set.Entry) {
	wr := e.Write()
	if rt.PrimaryHere {
		s.m.Replicas.ApplyPrimary(&wr)
	} else if rt.Local != nil {
		if err := participant.ApplyReplica(rt.Local, &wr); err != nil {
			invariant.Violated("own replica takes what its primary has locked", err, nil)
		}
		s.m.Replicas.Reached(step.ApplyBackup)
	}
}

// applyInSlicesLocked applies the writes to this machine's primaries, or to its backups, in slices.
// Between two slices the worker is unlocked, and a reconfiguration may catch the commit. The
// backups must therefore be done before COMMIT-PRIMARY is written: after that, the first
// acknowledgement ends the commit.
func (s *state) applyInSlicesLocked(primaries bool) error {
	rt := func(e *set.Entry) *route.Route { return s.m.Route(e.Ptr.Addr.Region()) }
	return s.inSlicesLocked(
		func(e *set.Entry) bool { r := rt(e); return r != nil && r.PrimaryHere == primaries && r.Local != nil },
		func(e *set.Entry) bool { s.applyToLocked(rt(e), e); return true })
}
