package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/commitstate"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
)

// awaitLocks waits for the primaries' replies.
func (s *state) awaitLocks() (outcome, error) {
	w, c := s.w, &s.commit
	if c.isRemote() {
		n := wait.Need{Lease: &s.m.Lease, Ctx: s.ctx, What: "the answer of a primary", More: c.allowance()}
		err := w.awaitWithin(&c.wait, &n)
		if err != nil && n.IsOver(err) {
			// No participant has more than a LOCK record: the transaction cannot commit any more.
			c.outlived = true
			return again, err
		}
		w.endLocking(c)
		if err != nil {
			return again, err
		}
	}
	if c.large != nil && c.large.sliced {
		return again, errCaught
	}
	out := committed
	for i := range c.parts {
		p := &c.parts[i]
		if p.verdict == message.Same {
			continue
		}
		e := c.nth(i, p.refused)
		if p.verdict == message.Changed && !e.Late {
			return again, abort(ReasonLock, e.Ptr.Addr)
		}
		out = again
	}
	return out, nil
}

// endLocking ends the commit's wait for LOCK-REPLYs.
func (w *worker) endLocking(c *commit) {
	w.lock()
	delete(w.commits, c.id.Seq)
	c.endLockingLocked()
	w.unlock()
}

// endLockingLocked moves the commit to validation if all primaries have replied that they locked
// its writes.
func (c *commit) endLockingLocked() {
	if c.state == commitstate.Locking && c.isGranted() {
		c.enterLocked(commitstate.Validating)
	}
}

// isGranted reports whether all objects are locked. It is called only after all primaries have
// replied: until then a part counts as locked.
func (c *commit) isGranted() bool {
	for i := range c.parts {
		if c.parts[i].verdict != message.Same {
			return false
		}
	}
	return true
}

// lockSelfLocked locks the objects whose primary is this machine, with the worker's lock held, so
// that a reconfiguration finds either all of them locked or none; in a large commit it may find
// some locked.
func (s *state) lockSelfLocked() error {
	for i := range s.commit.parts {
		if p := &s.commit.parts[i]; p.peer == nil && p.lockWrites > 0 {
			return s.lockOwnLocked(p)
		}
	}
	return nil
}

// lockOwnLocked locks the objects of this machine's own part. If one cannot be locked, it unlocks
// the others, and the part's verdict says why.
func (s *state) lockOwnLocked(p *part) error {
	if s.commit.large != nil {
		return s.lockInSlicesLocked(p)
	}
	n := 0
	for _, e := range s.commit.writes {
		if s.commit.parts[e.Part].machine != p.machine {
			continue
		}
		if !s.lockOneLocked(p, e, n) {
			return s.unlockPartLocked(p, n)
		}
		n++
	}
	return nil
}

// lockOneLocked locks the nth object of the part, or records why it cannot.
func (s *state) lockOneLocked(p *part, e *set.Entry, n int) bool {
	wr := e.Write()
	if p.verdict = s.m.replicas.LockWrite(&wr); p.verdict != message.Same {
		p.refused = n
	}
	return p.verdict == message.Same
}

// lockInSlicesLocked is lockOwnLocked for a large commit: it gives the worker's lock away between
// slices.
func (s *state) lockInSlicesLocked(p *part) error {
	n := 0
	err := s.inSlicesLocked(s.locksIn(p), func(e *set.Entry) bool {
		if !s.lockOneLocked(p, e, n) {
			return false
		}
		n++
		return true
	})
	if err == nil && p.verdict != message.Same {
		err = s.unlockPartLocked(p, n)
	}
	return err
}

// unlockPartLocked unlocks the first n objects of the part.
func (s *state) unlockPartLocked(p *part, n int) error {
	if n == 0 {
		return nil
	}
	return s.inSlicesLocked(s.locksIn(p), func(e *set.Entry) bool {
		s.m.route(e.Ptr.Addr.Region()).Local.Unlock(e.Ptr, e.Version)
		s.m.replicas.Reached(step.Unlock)
		n--
		return n > 0
	})
}

// locksIn returns a function that selects the writes that a part locks.
func (s *state) locksIn(p *part) func(*set.Entry) bool {
	return func(e *set.Entry) bool { return s.commit.parts[e.Part].machine == p.machine }
}

// nth returns the nth write of part i.
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

// lockReplyLocked records a primary's LOCK-REPLY.
func (c *commit) lockReplyLocked(from rdma.MachineID, msg message.Message) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.machine == from && p.lockWrites > 0 && (!p.replied || sabotage.SecondReply.Skipped()) {
			p.replied, p.verdict, p.refused = true, message.Verdict(msg.A), int(msg.C)
			if p.refused >= p.lockWrites || p.verdict > message.Changed {
				p.refused, p.verdict = 0, message.Changed
			}
			c.wait.DoneLocked(nil)
		}
	}
}

// lostLocked records that a primary will not reply.
func (c *commit) lostLocked(machine rdma.MachineID, err error) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.machine == machine && p.lockWrites > 0 && !p.replied {
			p.replied, p.verdict = true, message.Locked
			c.wait.DoneLocked(err)
		}
	}
}
