package txn

import (
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// A recoveredLock is the lock, at the primary, of an object that recovering transactions write. It
// is released when the last of them is decided (SOSP'15 section 5.3 step 4).
type recoveredLock struct {
	ptr   region.Ptr
	count int
	// release says that the allocator gets the slot if it holds no object in the end: the slot was
	// locked when the free lists were rebuilt, or one of the transactions has freed the object.
	release bool
}

// LockRegions locks every object that a recovering transaction writes in the given regions, as far
// as this machine is their primary, and whatever the object's version: no other transaction can
// lock the object before the recovering one is decided. Then the allocator takes over the regions
// that it does not have yet; it counts locked slots as in use. After that the regions can be
// activated. The locks are for the given configuration; once the next one's Freeze has begun,
// LockRegions does nothing, since that configuration may give a region to another machine.
func (m *Machine) LockRegions(in cluster.ID, ids []region.ID) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	before := r.locks
	r.locks = make(map[region.Addr]*recoveredLock)
	for addr, l := range before {
		if !slices.Contains(ids, addr.Region()) {
			r.locks[addr] = l
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.traces), record.ID.Compare) {
		for _, p := range r.traces[id].parts {
			if slices.Contains(ids, p.region) {
				r.lockPartLocked(p, before)
			}
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(before)) {
		if r.locks[addr] == nil { // no transaction wants this lock any more
			r.unlockObjectLocked(before[addr])
		}
	}
	for _, id := range ids {
		if rt := m.route(id); rt != nil && rt.PrimaryHere {
			m.cfg.Allocator.Attach(rt.Local)
		}
	}
	return nil
}

// lockPartLocked locks the objects of one transaction's part, or counts one more transaction for
// the locks that exist. A lock that LockRegions makes anew keeps the release mark of its
// predecessor.
func (r *recoveryState) lockPartLocked(p *tracePart, before map[region.Addr]*recoveredLock) {
	rt := r.m.route(p.region)
	if p.locked || rt == nil || !rt.PrimaryHere {
		return
	}
	p.locked = true
	for i := range p.writes {
		ptr := p.writes[i].Ptr
		l := r.locks[ptr.Addr]
		if l == nil {
			l = &recoveredLock{ptr: ptr}
			l.release = r.m.cfg.Allocator.Hold(ptr, func() {
				if !sabotage.LockRecovery.Skipped() {
					rt.Local.SetLock(ptr)
				}
			})
			if was := before[ptr.Addr]; was != nil && was.release {
				l.release = true
			}
			r.locks[ptr.Addr] = l
		}
		l.count++
	}
}

// unlockObjectLocked unlocks an object that no recovering transaction writes any more.
func (r *recoveryState) unlockObjectLocked(l *recoveredLock) {
	rt := r.m.route(l.ptr.Addr.Region())
	if rt == nil || !rt.PrimaryHere {
		return
	}
	if l.release && !rt.Local.Header(l.ptr.Addr.Offset()).Allocated() {
		r.m.cfg.Allocator.Release(l.ptr) // the slot must be released before it is unlocked, as in ApplyPrimary
	}
	rt.Local.ClearLock(l.ptr)
}

// Decide applies the decision about a transaction (COMMIT-RECOVERY, ABORT-RECOVERY) to this
// machine's replicas, after noting it. Repeating it changes nothing; if the transaction has left no
// trace here, there is nothing to do. It fails with ring.ErrFull while there is no room for a note.
func (m *Machine) Decide(in cluster.ID, id record.ID, commit bool) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	t := r.traces[id]
	if t == nil {
		return nil
	}
	rec, outcome := record.Record{Kind: record.AbortRecovery, ID: id}, SeenAbortRecovery
	if commit {
		rec.Kind, outcome = record.CommitRecovery, SeenCommitRecovery
	}
	if t.outcome&^outcome != 0 {
		invariant.Violated("a transaction is decided once", id, rec.Kind)
	}
	if t.outcome == 0 {
		if _, err := r.noteLocked(in, &rec); err != nil {
			return err
		}
		t.outcome = outcome
	}
	for _, p := range t.parts {
		if err := r.finishPartLocked(p, commit); err != nil {
			return err
		}
	}
	return nil
}

// finishPartLocked gives the objects of a part their final state.
func (r *recoveryState) finishPartLocked(p *tracePart, commit bool) error {
	rt := r.m.route(p.region)
	if rt == nil || rt.Local == nil {
		return nil
	}
	for i := range p.writes {
		w := &p.writes[i]
		switch {
		case rt.PrimaryHere && p.locked:
			r.finishPrimaryLocked(rt.Local, w, commit)
		case !rt.PrimaryHere && commit && !sabotage.BackupOutcome.Skipped():
			if err := participant.ApplyReplica(rt.Local, w); err != nil {
				return err
			}
		}
	}
	p.locked = false
	return nil
}

// finishPrimaryLocked gives one object its final state at the primary, and unlocks it after the
// last transaction that wants the lock.
func (r *recoveryState) finishPrimaryLocked(local *region.Region, w *record.Write, commit bool) {
	l := r.locks[w.Ptr.Addr]
	v, allocated, incarnation := w.After()
	if commit && local.ApplyLocked(w.Ptr, w.Payload, v, allocated, incarnation) {
		switch w.Op {
		case record.OpAlloc:
			r.m.replicas.Loans.Take(w.Ptr)
		case record.OpFree:
			l.release = true
		}
	}
	if l.count--; l.count == 0 {
		delete(r.locks, w.Ptr.Addr)
		r.unlockObjectLocked(l)
	}
}

// Truncate forgets a transaction whose outcome all participants know (TRUNCATE-RECOVERY).
func (m *Machine) Truncate(in cluster.ID, id record.ID) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(in); err != nil {
		return err
	}
	delete(r.traces, id)
	r.over[id] = true
	if id.Machine == m.cfg.ID || int(id.Worker) >= len(m.workers) {
		return nil // Settle finishes this machine's own transactions
	}
	w := m.workers[id.Worker]
	w.lock()
	defer w.unlock()
	if p := w.peerLocked(id.Machine); p != nil && !m.recalled.hasLocked(id) {
		if err := p.in.Release(id.Seq); err != nil {
			w.fenceLocked(p, err)
		}
	}
	return nil
}

// Open returns what this machine knows of transactions that are not truncated.
func (m *Machine) Open() []Evidence {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evidenceLocked()
}

// Settle ends the recovery at this machine. Every transaction that it coordinates or knows of is by
// now decided and truncated, or waits for an unavailable region and is parked. Settle frees the log
// space that recovery has held, and the slots lent to machines that are not in c, or over
// connections that have ended. It fails if there is no room to park in.
func (m *Machine) Settle(c *cluster.Configuration) error {
	r := &m.recovery
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(c.ID); err != nil {
		return err
	}
	parked, err := r.parkLocked(c.ID)
	if err != nil {
		return err
	}
	if m.cfg.Settling != nil { // Settling must be called before any storage is given back
		m.cfg.Settling(c.ID)
	}
	clear(r.traces)
	clear(r.over)
	m.recalled.settleLocked(m, c.ID, parked)
	r.notes.forget() // the recovery is over
	for _, w := range m.workers {
		w.lock()
		w.settleRecoveryLocked()
		w.unlock()
	}
	if !sabotage.LoansEnd.Skipped() {
		m.endLoansLocked()
	}
	r.going.Store(false)
	return nil
}

func (w *worker) settleRecoveryLocked() {
	isWhole := !w.m.awaitsAny()
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		if p.hasLeft { // later WRITEs of the peer find no log, or come too late
			w.m.replicas.Annexes.DropUnbound(p.in, false)
		}
		p.hasLeft = p.hasLeft && !isWhole
		for _, seq := range p.in.Transactions() {
			if err := p.in.Release(seq); err != nil { // the region of the transaction is lost
				w.fenceLocked(p, err)
				break
			}
		}
		if err := p.in.Free(); err != nil { // frees records that belong to no transaction, such as TRUNCATE
			w.fenceLocked(p, err)
		}
	}
	for seq := w.window.low; seq < w.boundary; seq++ {
		if !w.window.finished(seq) {
			w.window.finish(seq)
		}
	}
	w.self.notes = false
	if err := w.self.free(&w.m.replicas, &w.window); err != nil {
		invariant.Violated("own log is as it was written", err, nil)
	}
	w.self.restock()
}

// SendBlocks copies the block table of a region to all its backups. This machine must be the
// region's primary. A new primary does this before anybody allocates (SOSP'15 section 5.5): the old
// one may have failed halfway through a change, so that the table has to be repaired. A new backup
// has no table yet.
func (m *Machine) SendBlocks(in cluster.ID, id region.ID) error {
	m.cfg.Clock.Lock(&m.blocks)
	defer m.blocks.Unlock()
	if err := m.recovery.check(in); err != nil {
		return err
	}
	rt := m.route(id)
	if rt == nil || !rt.PrimaryHere {
		return m.noRegion(region.MakeAddr(id, 0))
	}
	if !m.cfg.Allocator.Has(id) {
		rt.Local.Repair()
	}
	off, n := rt.Local.Table()
	table := make([]byte, n)
	rt.Local.Memory().CopyOut(table, off)
	return m.writeBackups(rt, id, off, table)
}
