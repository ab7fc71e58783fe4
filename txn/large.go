package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// A transaction is large if its records do not fit the logs. Before it begins to commit, it asks
// the participants for an annex for each record that is too long, and fills these annexes. Until
// then it has locked nothing and written to no log: if there is no memory, or a machine refuses, it
// has had no effect. From then on it commits like any other transaction, with short records.
// Locking and applying all the writes takes long, so both sides do it in slices.
//
// Other transactions pay nothing for this: Commit compares the size of their writes with a bound
// anyway.

// MayBeLarge lets the transaction write more than fits the logs, up to LargeBytesMax, from this
// call on. Callers that can use several transactions instead should not call it: a large
// transaction occupies memory at all participants until it is truncated.
func (t *Tx) MayBeLarge() {
	if t.state != nil && t.m.Replicas.Annex != nil {
		t.writtenMax, t.mayBeLarge = record.AnnexBytesMax, true
	}
}

// LargeBytesMax bounds the writes of a transaction that called MayBeLarge.
const LargeBytesMax = record.AnnexBytesMax

// A largeCommit is the additional state of a large commit. Its annexes are indexed by participant.
type largeCommit struct {
	parts []largeAnnexes
	// sliced says that a reconfiguration has come between two slices of locking.
	sliced bool
}

// largeAnnexes are the annexes at one participant, for its LOCK and its COMMIT-BACKUP record.
type largeAnnexes struct{ lock, backup ownAnnex }

// An ownAnnex is an annex that this coordinator has asked for. named says that a record that names
// it has been written: the annex is then freed with that record.
type ownAnnex struct {
	record.Annex
	connection uint32
	named      bool
}

const (
	// annexShare: in a large transaction, a record gets an annex if it is longer than this fraction
	// (one eighth) of a log.
	annexShare = 8
	// largePace is a rate, in bytes a second, at which any machine can process a large transaction.
	// The patience of a large commit grows accordingly.
	largePace = 16 << 20
)

// size determines whether the commit, whose writes take total bytes, is large. It fails if the
// transaction may not write that much.
func (s *state) size(total int) error {
	c := &s.commit
	if total > s.writtenMax {
		return s.m.tooLarge(total, s.writtenMax)
	}
	c.bytes = total
	if total > s.m.writeBytesMax || (s.mayBeLarge && total > 0 && s.m.Meets(clock.SmallLog)) { // SmallLog: in the simulator
		c.large, c.IsLarge = new(largeCommit), true
	}
	return nil
}

// allowance returns how much longer than usual other machines may take to answer this commit's
// requests.
func (c *commit) allowance() time.Duration {
	if c.large == nil {
		return 0
	}
	return time.Duration(c.bytes) * time.Second / largePace
}

// annexesOf returns the annexes of participant i, or nil if there are none yet.
func (c *commit) annexesOf(i int) *largeAnnexes {
	if i >= len(c.large.parts) {
		return nil
	}
	return &c.large.parts[i]
}

// annexFor returns the annex of a record of a large commit, or nil.
func (c *commit) annexFor(p *worker.Participant, kind record.Kind) *ownAnnex {
	for i := range c.Participants {
		a := c.annexesOf(i)
		if &c.Participants[i] != p || a == nil {
			continue
		}
		switch {
		case kind == record.Lock && !a.lock.IsNone():
			return &a.lock
		case kind == record.CommitBackup && !a.backup.IsNone():
			return &a.backup
		}
	}
	return nil
}

// writesBytes returns how much room a record needs for its writes: bytes, or, if they are in an annex, the
// room that naming the annex takes.
func (c *commit) writesBytes(p *worker.Participant, kind record.Kind, bytes int) int {
	if c.large == nil || c.annexFor(p, kind) == nil {
		return bytes
	}
	return record.AnnexedBytes
}

// makeAnnexes asks for all annexes that the commit needs, and fills them.
func (s *state) makeAnnexes() error {
	c := &s.commit
	c.large.parts = make([]largeAnnexes, len(c.Participants))
	for i := range c.Participants {
		p, a := &c.Participants[i], &c.large.parts[i]
		if err := s.annex(p, record.Lock, &a.lock, p.LockBytes, p.LockWrites); err != nil {
			return err
		}
		if err := s.annex(p, record.CommitBackup, &a.backup, p.BackupBytes, p.BackupWrites); err != nil {
			return err
		}
	}
	return nil
}

// annex makes and fills the annex of one record, if the record is too long for the log.
func (s *state) annex(p *worker.Participant, kind record.Kind, a *ownAnnex, bytes, writes int) error {
	isShort := bytes <= s.m.logBytes/annexShare
	isReallyLarge := s.commit.bytes > s.m.writeBytesMax // the simulator makes small commits large, too: see size
	if writes == 0 || (isShort && isReallyLarge) {
		return nil
	}
	if err := s.askAnnex(p, a, uint64(bytes)); err != nil {
		return err
	}
	a.Bytes, a.Writes = uint64(bytes), uint32(writes)
	return s.fill(p, kind, a)
}

// askAnnex asks the participant to make an annex.
func (s *state) askAnnex(p *worker.Participant, a *ownAnnex, bytes uint64) (err error) {
	m, w, machine := s.m, s.w, p.Machine // s and p may belong to another transaction when a late reply comes
	if machine == m.ID() {
		a.Number, err = m.MakeAnnex(bytes)
		return err
	}
	connection := w.ConnectionTo(machine)
	ask := message.AnnexRequest{Sender: m.ID(), Worker: w.ID, Connection: connection, Bytes: bytes}
	msg := message.Message{Kind: message.Request, B: uint16(worker.HandlerAnnex), Body: ask.Encode()}
	reply, err := w.LongCall(s.ctx, machine, msg, s.commit.allowance(), func(late message.Message) {
		if number, err := annexReply(late); err == nil {
			w.ReleaseAnnexLocked(machine, connection, number) // locked: see call.late
		}
	})
	if err == nil {
		a.connection = connection
		a.Number, err = annexReply(reply)
	}
	var shipped *outcome.ShippedError
	switch {
	case errors.As(err, &shipped) && shipped.Unwrap() == nil: // an unknown error, from another program version
		return fmt.Errorf("%w: machine %d refuses an annex of %d bytes: %w", outcome.ErrTooLarge, machine, bytes, err)
	case shipped != nil: // the peer's error says enough
		return err
	case err != nil:
		return fmt.Errorf("txn: an annex of %d bytes at machine %d: %w", bytes, machine, err)
	}
	return nil
}

func annexReply(reply message.Message) (number uint64, err error) {
	if err := outcome.Shipped(outcome.Code(reply.A), reply.Body); err != nil {
		return 0, err
	}
	if len(reply.Body) != 8 {
		return 0, fmt.Errorf("%w: reply about an annex of %d bytes", message.ErrBad, len(reply.Body))
	}
	number = binary.LittleEndian.Uint64(reply.Body)
	if number == 0 || number > record.AnnexNumberMax {
		return 0, fmt.Errorf("%w: annex %#x", message.ErrBad, number)
	}
	return number, nil
}

// fill writes the writes of the participant's record of the given kind to the record's annex, in pieces,
// and waits until they have arrived.
func (s *state) fill(p *worker.Participant, kind record.Kind, a *ownAnnex) error {
	pieceMax := s.m.Replicas.Smallest(worker.PieceBytes) // a longer write is a piece by itself
	f := filling{s: s, p: p, number: a.Number, piece: make([]byte, 0, pieceMax)}
	for _, e := range s.commit.writes {
		if !s.commit.belongs(e, p, kind == record.Lock) {
			continue
		}
		wr := e.Write()
		if len(f.piece) > 0 && len(f.piece)+record.WriteBytes(&wr) > pieceMax {
			if err := f.flush(); err != nil {
				return err
			}
		}
		f.piece = record.AppendWrite(f.piece, &wr)
	}
	if sabotage.AnnexFill.Skipped() && f.off > 0 {
		return nil
	}
	return f.flush()
}

// belongs reports whether a write belongs into the LOCK record of p, one of the participants, or into
// its COMMIT-BACKUP record.
func (c *commit) belongs(e *set.Entry, p *worker.Participant, isLock bool) bool {
	if isLock {
		return &c.Participants[e.Part] == p
	}
	return c.isBackup(e, p.Machine)
}

// A filling is the state of filling one annex.
type filling struct {
	s      *state
	p      *worker.Participant
	number uint64
	off    uint64
	piece  []byte
}

// flush writes the piece to the annex, waits until it has arrived, and begins an empty piece after it.
func (f *filling) flush() error {
	s, w := f.s, f.s.w
	if err := s.ctx.Err(); err != nil {
		return err
	}
	defer func() { f.off, f.piece = f.off+uint64(len(f.piece)), f.piece[:0] }()
	if f.p.Machine == s.m.ID() {
		s.m.Replicas.Reached(step.FillAnnex)
		return s.m.Replicas.Annexes.Write(f.number, f.off, f.piece)
	}
	wait := &s.commit.Wait
	w.Lock()
	err := w.PostWriteLocked(f.p.Machine, route.AnnexKey(f.number), f.off, f.piece, wait)
	w.Unlock()
	s.m.Replicas.Reached(step.FillAnnex)
	if sabotage.AnnexAcks.Skipped() {
		wait.Add(-1)
		return nil
	}
	return errors.Join(err, w.Await(wait))
}

// dropAnnexes releases the annexes that no record names.
func (s *state) dropAnnexes() {
	c, w := &s.commit, s.w
	if c.large == nil {
		return
	}
	for i := range c.large.parts {
		a := &c.large.parts[i]
		for _, x := range []*ownAnnex{&a.lock, &a.backup} {
			switch machine := c.Participants[i].Machine; {
			case x.IsNone() || x.named: // nothing to release
			case machine == s.m.ID():
				s.m.Replicas.Annexes.Drop(x.Number)
			default:
				w.Lock()
				w.ReleaseAnnexLocked(machine, x.connection, x.Number)
				w.RingPeersLocked()
				w.Unlock()
			}
			x.Annex = record.Annex{}
		}
	}
}

// errSliced ends sliced work on a commit that a reconfiguration has caught.
var errSliced = errors.New("txn: caught between two slices")

// inSlicesLocked calls f for each of the commit's writes that wanted selects, until f returns false. If
// the commit is large it releases the worker's lock between slices. It returns errSliced if a
// reconfiguration has caught the commit meanwhile: recovery then does the rest.
func (s *state) inSlicesLocked(wanted func(*set.Entry) bool, f func(*set.Entry) bool) error {
	w, c := s.w, &s.commit
	writes, bytes := 0, 0
	for _, e := range c.writes {
		if !wanted(e) {
			continue
		}
		if c.large != nil && writes > 0 && (writes >= s.m.Replicas.Smallest(participant.SliceWrites) || bytes > participant.SliceBytes) {
			w.RingPeersLocked()
			w.Unlock()
			writes, bytes = 0, 0
			s.m.Clock().Yield() // let waiters take the lock
			w.Lock()
			if c.State().IsInRecovery() && !sabotage.CaughtSlices.Skipped() {
				return errSliced
			}
		}
		if !f(e) {
			return nil
		}
		writes, bytes = writes+1, bytes+len(e.Payload)
	}
	return nil
}
