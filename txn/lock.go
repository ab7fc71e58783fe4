package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
	"github.com/farmsql/farmsql/txn/worker"
)

// awaitLocks waits for the primaries' replies. It returns committed if all objects are locked, and again
// if another attempt may lock them. If the replies do not come in time, the commit is detached.
func (s *state) awaitLocks() (result, error) {
	w, c := s.w, &s.commit
	if c.IsRemote() {
		n := wait.Need{Lease: &s.m.Lease, Ctx: s.ctx, What: "the answer of a primary", More: c.allowance()}
		err := w.AwaitWithin(&c.Wait, &n)
		if err != nil && n.IsOver(err) {
			// Every participant has at most a LOCK record, so the transaction cannot commit any more.
			c.detached = true
			return again, err
		}
		w.EndLocking(&c.Commit)
		if err != nil {
			return again, err
		}
	}
	if c.large != nil && c.large.sliced {
		return again, worker.ErrCaught
	}
	// A refusal ends the transaction only if an object has changed that the transaction itself has
	// read or written. If an object was only locked, or is a stale index object (late), another
	// attempt may succeed.
	out := committed
	for i := range c.Participants {
		p := &c.Participants[i]
		if p.Verdict == message.Same {
			continue
		}
		e := c.nth(i, p.Refused)
		if p.Verdict == message.Changed && !e.Late {
			return again, abort(ReasonLock, e.Ptr.Addr)
		}
		out = again // locked by another transaction, or an index object to be read again
	}
	return out, nil
}

// lockSelfLocked locks the objects whose primary is this machine. It keeps the worker's lock, so that
// a reconfiguration finds either all of them locked or none; only in a large commit it may find some
// locked.
func (s *state) lockSelfLocked() error {
	for i := range s.commit.Participants {
		if p := &s.commit.Participants[i]; p.IsOwn() && p.LockWrites > 0 {
			return s.lockOwnLocked(p)
		}
	}
	return nil
}

// lockOwnLocked locks the objects of this machine. If one cannot be locked, it unlocks
// the others, and the participant's verdict says why.
func (s *state) lockOwnLocked(p *worker.Participant) error {
	if s.commit.large != nil {
		return s.lockInSlicesLocked(p)
	}
	n := 0
	for _, e := range s.commit.writes {
		if s.commit.Participants[e.Part].Machine != p.Machine {
			continue
		}
		if !s.lockOneLocked(p, e, n) {
			return s.unlockOwnLocked(p, n)
		}
		n++
	}
	return nil
}

// lockOneLocked locks the nth object of the participant, and reports whether it could: p.Verdict and
// p.Refused say why not.
func (s *state) lockOneLocked(p *worker.Participant, e *set.Entry, n int) bool {
	wr := e.Write()
	p.Verdict = s.m.Replicas.LockWrite(&wr)
	if p.Verdict != message.Same {
		p.Refused = n
	}
	return p.Verdict == message.Same
}

// lockInSlicesLocked is lockOwnLocked for a large commit: it releases the worker's lock between
// slices.
func (s *state) lockInSlicesLocked(p *worker.Participant) error {
	n := 0
	err := s.inSlicesLocked(s.locksIn(p), func(e *set.Entry) bool {
		if !s.lockOneLocked(p, e, n) {
			return false
		}
		n++
		return true
	})
	if err == nil && p.Verdict != message.Same {
		err = s.unlockOwnLocked(p, n)
	}
	return err
}

// unlockOwnLocked unlocks the first n objects of the participant.
func (s *state) unlockOwnLocked(p *worker.Participant, n int) error {
	if n == 0 {
		return nil
	}
	return s.inSlicesLocked(s.locksIn(p), func(e *set.Entry) bool {
		s.m.Route(e.Ptr.Addr.Region()).Local.Unlock(e.Ptr, e.Version)
		s.m.Replicas.Reached(step.Unlock)
		n--
		return n > 0
	})
}

// locksIn returns a function that selects the writes that a participant locks.
func (s *state) locksIn(p *worker.Participant) func(*set.Entry) bool {
	return func(e *set.Entry) bool { return s.commit.Participants[e.Part].Machine == p.Machine }
}

// nth returns the nth write of participant i.
func (c *commit) nth(i, n int) *set.Entry {
	for _, e := range c.writes {
		if int(e.Part) == i {
			if n == 0 {
				return e
			}
			n--
		}
	}
	invariant.Violated("refused write of a LOCK record", n, "in the record")
	return nil
}
