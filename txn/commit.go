package txn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
)

// commitPatience bounds how long a commit goes on trying while others hold what
// it needs only for the moment: locks on objects that it would find unchanged,
// and index objects that it can read again. After that it is a conflict.
const commitPatience = 5 * time.Second

// logPatience bounds how long a commit waits for room in a participant's log.
const logPatience = 10 * time.Second

// An outcome is how one attempt to commit ended.
type outcome uint8

const (
	committed outcome = iota
	// again: something was locked or stale that may not be in a moment.
	again
)

// commit is a transaction's commit phase.
type commit struct {
	id ID
	// writes are all objects written, strict and late, ascending by address, so
	// that of two transactions that want the same locks one gets them all.
	writes  []*entry
	parts   []part
	regions []region.ID
	wait    waiter
	first   waiter
	acks    acks // of a commit in which no other machine takes part
	// locked says that all of writes are locked, decided that the transaction
	// has committed, inDoubt that it may have.
	locked, decided, inDoubt bool
}

// undone says that the transaction has had no effect, so that what was reserved
// for its new objects is free.
func (c *commit) undone() bool { return !c.decided && !c.inDoubt }

// A part is one machine's part in a commit.
type part struct {
	machine rdma.MachineID
	peer    *peer // nil for the coordinator's own machine
	// lockBytes and backupBytes are what its LOCK and COMMIT-BACKUP records
	// say about objects; lockWrites and backupWrites of how many.
	lockBytes, backupBytes   int
	lockWrites, backupWrites int
	// reserved is what is left of the reservation in its log.
	reserved uint64
	// replied, verdict and refused are the LOCK-REPLY.
	replied bool
	verdict verdict
	refused int
}

func (c *commit) init() {
	c.wait.wake = make(chan struct{}, 1)
	c.first.wake = make(chan struct{}, 1)
}

func (c *commit) reset() {
	clear(c.writes)
	c.writes = c.writes[:0]
	clear(c.parts)
	c.parts = c.parts[:0]
	c.regions = c.regions[:0]
	c.locked, c.decided, c.inDoubt = false, false, false
}

// Commit ends the transaction: all of its effects become visible and durable at
// once, or none does. An ErrConflict means that another transaction came first
// and running it again may succeed; ErrTooLarge and ErrLogFull that its records
// do not fit the logs; ErrInDoubt that it may have committed or not. ctx may stop
// it until it is decided, never after.
func (t *Tx) Commit(ctx context.Context) error {
	if err := t.usable(); err != nil {
		t.Abort()
		return err
	}
	err := t.tryCommit(ctx)
	switch {
	case err == nil:
		t.w.stats.commits.Add(1)
		t.end()
	case errors.Is(err, ErrInDoubt):
		t.end()
	default:
		t.doom(err)
		t.Abort()
	}
	return err
}

// tryCommit attempts to commit until something decides the matter.
func (s *state) tryCommit(ctx context.Context) error {
	b := backoff{w: s.w, patience: commitPatience}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		out, err := s.attempt()
		if err != nil || out == committed {
			return err
		}
		s.w.stats.retries.Add(1)
		s.late.discard(s)
		s.commit.reset()
		if !b.again() {
			return abort(ReasonLock, 0)
		}
	}
}

// attempt goes through the phases of SOSP'15 section 4 once.
func (s *state) attempt() (outcome, error) {
	if err := s.prepare(); err != nil {
		if errors.Is(err, ErrStale) {
			return again, nil
		}
		return again, err
	}
	if err := s.plan(); err != nil {
		return again, err
	}
	if len(s.commit.writes) == 0 {
		return s.validateReadOnly()
	}
	if sabotage.lockAnyVersion {
		s.forgetVersions()
	}
	if sabotage.validateFirst {
		if out, err := s.validate(); err != nil || out != committed {
			return out, err
		}
	}
	if err := s.begin(); err != nil {
		return again, err
	}
	out, err := s.lock()
	if err == nil && out == committed {
		s.commit.locked = true
		if out, err = s.validate(); err == nil && out == committed {
			s.m.reached(StepValidate)
		}
	}
	if err != nil || out != committed {
		s.abandon()
		return out, err
	}
	return committed, s.decide()
}

// prepare has the indexes apply their pending operations to fresh copies.
func (s *state) prepare() error {
	for _, i := range s.intents {
		if err := i.Prepare(&s.late); err != nil {
			return err
		}
	}
	return nil
}

// plan lists what is written, and who takes part.
func (s *state) plan() error {
	c := &s.commit
	for i := range s.writes.entries {
		if e := &s.writes.entries[i]; !e.dead {
			c.writes = append(c.writes, e)
		}
	}
	for i := range s.late.set.entries {
		if e := &s.late.set.entries[i]; e.written() {
			c.writes = append(c.writes, e)
		}
	}
	slices.SortFunc(c.writes, func(a, b *entry) int {
		if a.ptr.Addr < b.ptr.Addr {
			return -1
		}
		return 1
	})
	total := 0
	for _, e := range c.writes {
		n, err := s.planWrite(e)
		if err != nil {
			return err
		}
		total += n
	}
	if total > s.m.writeBytesMax {
		return s.m.tooLarge(total)
	}
	return nil
}

func (s *state) planWrite(e *entry) (bytes int, err error) {
	rt := s.m.route(e.ptr.Addr.Region())
	if rt == nil {
		return 0, s.m.noRegion(e.ptr.Addr)
	}
	c := &s.commit
	if n := len(c.regions); n == 0 || c.regions[n-1] != rt.Region {
		c.regions = append(c.regions, rt.Region)
	}
	w := e.write()
	bytes = writeBytes(&w)
	i := c.part(s.w, rt.Primary)
	e.part = int16(i)
	c.parts[i].lockBytes += bytes
	c.parts[i].lockWrites++
	for _, b := range rt.Backups {
		i := c.part(s.w, b)
		c.parts[i].backupBytes += bytes
		c.parts[i].backupWrites++
	}
	return bytes, nil
}

// part finds machine's part, or adds one.
func (c *commit) part(w *worker, machine rdma.MachineID) int {
	for i := range c.parts {
		if c.parts[i].machine == machine {
			return i
		}
	}
	p := part{machine: machine}
	if machine != w.m.cfg.ID {
		p.peer = w.peers[machine]
	}
	c.parts = append(c.parts, p)
	return len(c.parts) - 1
}

// truncateReserve is what telling a participant of one truncation can take.
var truncateReserve = ring.Space(recordBytes(1, 0))

// reservation is the log space that all records of the transaction can take at
// one participant: LOCK, COMMIT-PRIMARY or ABORT, COMMIT-BACKUP and TRUNCATE.
func (c *commit) reservation(p *part) uint64 {
	n := truncateReserve
	header := recordBytes(0, len(c.regions))
	if p.lockWrites > 0 {
		n += ring.Space(header+p.lockBytes) + ring.Space(recordBytes(0, 0))
	}
	if p.backupWrites > 0 {
		n += ring.Space(header + p.backupBytes)
	}
	return n
}

// begin reserves log space at all participants, or waits for it, and writes the
// LOCK records. Nothing is reserved while it waits.
func (s *state) begin() error {
	w, c := s.w, &s.commit
	b := backoff{w: w, patience: logPatience}
	w.lock()
	if w.stopped {
		w.unlock()
		return ErrClosed
	}
	for !w.reserve(c) {
		w.flushTruncations()
		for i := range c.parts {
			if p := c.parts[i].peer; p != nil {
				w.refresh(p)
			}
		}
		w.unlock()
		if !b.again() {
			return w.logFull(c)
		}
		w.lock()
	}
	c.id = ID{Config: s.m.cfg.Config, Machine: s.m.cfg.ID, Worker: w.id, Seq: w.window.begin()}
	w.writeLocks(c)
	w.unlock()
	return nil
}

// reserve reserves all that c needs, or nothing.
func (w *worker) reserve(c *commit) bool {
	for i := range c.parts {
		p := &c.parts[i]
		p.reserved = c.reservation(p)
		if !w.logOf(p).Reserve(p.reserved) {
			for j := range i {
				w.logOf(&c.parts[j]).Release(c.parts[j].reserved)
			}
			return false
		}
	}
	return true
}

func (w *worker) logOf(p *part) *ring.Sender {
	if p.peer == nil {
		return w.self.log
	}
	return p.peer.log
}

// writeLocks writes a LOCK record to each primary.
func (w *worker) writeLocks(c *commit) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.lockWrites == 0 {
			continue
		}
		if p.peer != nil {
			c.wait.add(1)
			w.commits[c.id.Seq] = c
			w.ring(p.peer)
		}
		w.encode(c, p, RecordLock)
		if err := w.append(p, RecordLock, nil); err != nil {
			c.lost(p.machine, err)
		}
	}
}

// encode stages one of the commit's records in the part's log.
func (w *worker) encode(c *commit, p *part, kind RecordKind) {
	var regions []region.ID
	writes, bytes := 0, 0
	switch kind {
	case RecordLock:
		regions, writes, bytes = c.regions, p.lockWrites, p.lockBytes
	case RecordCommitBackup:
		regions, writes, bytes = c.regions, p.backupWrites, p.backupBytes
	}
	var truncated []uint64
	if p.peer != nil {
		truncated = w.takeTruncated(p.peer)
	}
	w.piggybacked = 8 * len(truncated)
	w.staged = recordBytes(len(truncated), len(regions)) + bytes
	b := w.logOf(p).Stage(w.staged)[:0]
	b = appendRecordHeader(b, kind, c.id, w.window.low, truncated, regions, writes)
	if writes > 0 {
		b = c.appendWrites(b, w, p, kind)
	}
	if len(b) != w.staged {
		invariant.Violated("bytes of a record", len(b), w.staged)
	}
}

func (c *commit) appendWrites(b []byte, w *worker, p *part, kind RecordKind) []byte {
	for _, e := range c.writes {
		if kind == RecordLock && c.parts[e.part].machine == p.machine || kind == RecordCommitBackup && w.isBackup(e, p.machine) {
			wr := e.write()
			b = appendWrite(b, &wr)
		}
	}
	return b
}

func (w *worker) isBackup(e *entry, machine rdma.MachineID) bool {
	return slices.Contains(w.m.route(e.ptr.Addr.Region()).Backups, machine)
}

// append appends the staged record to the part's log, out of its reservation.
// op is told of its completion, or of its failure, which is returned too.
func (w *worker) append(p *part, kind RecordKind, op *pendingOp) error {
	w.stats.records.Add(1)
	need := ring.Space(w.staged - w.piggybacked)
	p.reserved -= need
	log := w.logOf(p)
	if extra := ring.Space(w.staged) - need; extra > 0 && !log.Reserve(extra) {
		invariant.Violated("room for what a truncation had reserved", extra, log.Available())
	}
	if p.peer != nil && p.peer.broken != nil {
		return w.settle(op, p.peer.broken)
	}
	tag := uint64(rdma.Unsignalled)
	if op != nil {
		tag = w.ops.add(*op)
	}
	_, done, err := log.PostReserved(tag)
	w.m.reached(recordSteps[kind])
	if p.peer != nil {
		p.peer.unrung += w.staged
	}
	if op != nil && (done || err != nil) {
		w.ops.drop(tag)
		return w.settle(op, err)
	}
	return err
}

// lock takes the local locks and waits for the primaries' replies.
func (s *state) lock() (outcome, error) {
	w, c := s.w, &s.commit
	for i := range c.parts {
		if p := &c.parts[i]; p.peer == nil && p.lockWrites > 0 {
			s.lockSelf(p)
		}
	}
	if c.isRemote() {
		err := w.await(&c.wait)
		w.lock()
		delete(w.commits, c.id.Seq)
		w.unlock()
		if err != nil {
			return again, err
		}
	}
	out := committed
	for i := range c.parts {
		p := &c.parts[i]
		if p.verdict == verdictSame {
			continue
		}
		e := c.nth(i, p.refused)
		if p.verdict == verdictChanged && !e.late {
			return again, abort(ReasonLock, e.ptr.Addr)
		}
		out = again
	}
	return out, nil
}

// lockSelf locks the objects of which this machine is the primary.
func (s *state) lockSelf(p *part) {
	n := 0
	for _, e := range s.commit.writes {
		if s.commit.parts[e.part].machine != p.machine {
			continue
		}
		wr := e.write()
		if p.verdict = s.m.lock(&wr); p.verdict != verdictSame {
			p.refused = n
			break
		}
		n++
	}
	if p.verdict != verdictSame {
		s.unlockSelf(p, n)
	}
}

// unlockSelf unlocks the first n of them.
func (s *state) unlockSelf(p *part, n int) {
	for _, e := range s.commit.writes {
		if n == 0 {
			return
		}
		if s.commit.parts[e.part].machine == p.machine {
			s.m.route(e.ptr.Addr.Region()).local.Unlock(e.ptr, e.version)
			s.m.reached(StepUnlock)
			n--
		}
	}
}

// nth returns the nth write of part i.
func (c *commit) nth(i, n int) *entry {
	for _, e := range c.writes {
		if int(e.part) == i {
			if n == 0 {
				return e
			}
			n--
		}
	}
	invariant.Violated("refused write of a LOCK record", n, "in the record")
	return nil
}

// lockReply takes a primary's reply. The worker is locked.
func (c *commit) lockReply(from rdma.MachineID, msg message) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.machine == from && p.lockWrites > 0 && !p.replied {
			p.replied, p.verdict, p.refused = true, verdict(msg.a), int(msg.c)
			if p.refused >= p.lockWrites || p.verdict > verdictChanged {
				p.refused, p.verdict = 0, verdictChanged
			}
			c.wait.done(nil)
		}
	}
}

// lost takes the news that a primary will not reply.
func (c *commit) lost(machine rdma.MachineID, err error) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.machine == machine && p.lockWrites > 0 && !p.replied {
			p.replied, p.verdict = true, verdictLocked
			c.wait.done(err)
		}
	}
}

// abandon releases what the attempt has locked and lets its records be
// truncated.
func (s *state) abandon() {
	w, c := s.w, &s.commit
	w.lock()
	for i := range c.parts {
		p := &c.parts[i]
		if p.lockWrites == 0 || p.verdict != verdictSame {
			continue
		}
		if p.peer == nil {
			s.unlockSelf(p, p.lockWrites)
			continue
		}
		w.encode(c, p, RecordAbort)
		// A peer that cannot be told is one whose locks recovery releases.
		_ = w.append(p, RecordAbort, nil)
		w.ring(p.peer)
	}
	w.releaseReservations(c)
	w.finish(c.id.Seq, c.peers())
	w.unlock()
	c.locked = false
}

// decide writes COMMIT-BACKUP to all backups, waits until all have it, and then
// writes COMMIT-PRIMARY. It returns once one primary has that, which makes sure
// that the transaction survives f failures.
//
// Once a backup may have a record, only recovery can tell the outcome if another
// cannot be reached: the locks and the log space stay taken until then.
func (s *state) decide() error {
	w, c := s.w, &s.commit
	w.lock()
	if err := c.broken(); err != nil {
		w.unlock()
		s.abandon()
		return err
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.backupWrites == 0 || sabotage.skipBackups {
			continue
		}
		w.encode(c, p, RecordCommitBackup)
		c.wait.add(1)
		// A failure is among what await returns.
		_ = w.append(p, RecordCommitBackup, &pendingOp{wait: &c.wait})
		if p.peer != nil && p.peer.unrung > ringAfterBytes {
			w.ring(p.peer)
		}
	}
	if !c.wait.settled() {
		w.unlock()
		if err := w.await(&c.wait); err != nil {
			c.inDoubt = true
			return inDoubtError(err)
		}
		w.lock()
	}
	return s.expose()
}

// broken says whether a participant is lost already.
func (c *commit) broken() error {
	for i := range c.parts {
		if p := c.parts[i].peer; p != nil && p.broken != nil {
			return p.broken
		}
	}
	return nil
}

// expose writes COMMIT-PRIMARY to the primaries, which exposes the writes. The
// worker is locked and gets unlocked.
func (s *state) expose() error {
	w, c := s.w, &s.commit
	c.decided = true
	pending := &c.acks
	if c.isRemote() {
		// Acknowledgements may come after this transaction's state is in use
		// by another.
		pending = &acks{peers: c.peers()}
	}
	*pending = acks{seq: c.id.Seq, peers: pending.peers, open: 1}
	own := c.isPrimary()
	if !own {
		c.first.add(1)
		pending.first = &c.first
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.lockWrites == 0 {
			continue
		}
		w.encode(c, p, RecordCommitPrimary)
		if p.peer == nil {
			_ = w.append(p, RecordCommitPrimary, nil) // reserved in memory of our own
			continue
		}
		pending.open++
		// A peer that does not get the record is recovery's business: the
		// transaction has committed.
		_ = w.append(p, RecordCommitPrimary, &pendingOp{acks: pending})
		w.ring(p.peer)
	}
	s.applySelf()
	w.releaseReservations(c)
	w.ackedOne(pending)
	w.unlock()
	if own {
		return nil
	}
	if err := w.await(&c.first); err != nil {
		return inDoubtError(err)
	}
	return nil
}

func (c *commit) isRemote() bool { return len(c.parts) > 1 || c.parts[0].peer != nil }

// isPrimary says whether the coordinator is itself primary of an object written.
func (c *commit) isPrimary() bool {
	for i := range c.parts {
		if c.parts[i].peer == nil && c.parts[i].lockWrites > 0 {
			return true
		}
	}
	return false
}

func (c *commit) peers() []*peer {
	peers := make([]*peer, 0, len(c.parts))
	for i := range c.parts {
		if p := c.parts[i].peer; p != nil {
			peers = append(peers, p)
		}
	}
	return peers
}

// applySelf gives the objects of this machine's replicas their new state. The
// paper has a backup wait for the truncation; the coordinator knows already that
// every backup has the COMMIT-BACKUP record, so that no recovery can abort the
// transaction any more.
func (s *state) applySelf() {
	for _, e := range s.commit.writes {
		wr := e.write()
		rt := s.m.route(e.ptr.Addr.Region())
		if rt.primary {
			s.m.applyPrimary(&wr)
		} else if rt.local != nil {
			if err := ApplyReplica(rt.local, &wr); err != nil {
				invariant.Violated("own replica takes what its primary has locked", err, nil)
			}
			s.m.reached(StepApplyBackup)
		}
	}
}

// releaseReservations releases what the commit's records did not need. What
// telling each peer of the truncation may take stays reserved.
func (w *worker) releaseReservations(c *commit) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.peer != nil {
			p.reserved -= truncateReserve
		}
		w.logOf(p).Release(p.reserved)
		p.reserved = 0
	}
}

// finish closes a transaction whose records are of no use any more: all of them
// may be truncated.
func (w *worker) finish(seq uint64, peers []*peer) {
	w.window.finish(seq)
	for _, p := range peers {
		p.truncated = append(p.truncated, seq)
	}
	if len(peers) > 0 {
		w.startTimer()
	}
	if err := w.self.free(w.m, &w.window); err != nil {
		invariant.Violated("own log is as it was written", err, nil)
	}
}
