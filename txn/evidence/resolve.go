package evidence

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
func (r *Recovery) LockRegions(in cluster.ID, ids []region.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
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
		if rt := r.Replicas.Routes.Of(id); rt != nil && rt.PrimaryHere {
			r.Replicas.Allocator.Attach(rt.Local)
		}
	}
	return nil
}

// lockPartLocked locks the objects of one transaction's part, or counts one more transaction for
// the locks that exist. A lock that LockRegions makes anew keeps the release mark of its
// predecessor.
func (r *Recovery) lockPartLocked(p *tracePart, before map[region.Addr]*recoveredLock) {
	rt := r.Replicas.Routes.Of(p.region)
	if p.locked || rt == nil || !rt.PrimaryHere {
		return
	}
	p.locked = true
	for i := range p.writes {
		ptr := p.writes[i].Ptr
		l := r.locks[ptr.Addr]
		if l == nil {
			l = &recoveredLock{ptr: ptr}
			l.release = r.Replicas.Allocator.Hold(ptr, func() {
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
func (r *Recovery) unlockObjectLocked(l *recoveredLock) {
	rt := r.Replicas.Routes.Of(l.ptr.Addr.Region())
	if rt == nil || !rt.PrimaryHere {
		return
	}
	if l.release && !rt.Local.Header(l.ptr.Addr.Offset()).Allocated() {
		r.Replicas.Allocator.Release(l.ptr) // the slot must be released before it is unlocked, as in ApplyPrimary
	}
	rt.Local.ClearLock(l.ptr)
}

// Decide applies the decision about a transaction (COMMIT-RECOVERY, ABORT-RECOVERY) to this
// machine's replicas, after noting it. Repeating it changes nothing; if the transaction has left no
// trace here, there is nothing to do. It fails with ring.ErrFull while there is no room for a note.
func (r *Recovery) Decide(in cluster.ID, id record.ID, commit bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
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
func (r *Recovery) finishPartLocked(p *tracePart, commit bool) error {
	rt := r.Replicas.Routes.Of(p.region)
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
func (r *Recovery) finishPrimaryLocked(local *region.Region, w *record.Write, commit bool) {
	l := r.locks[w.Ptr.Addr]
	v, allocated, incarnation := w.After()
	if commit && local.ApplyLocked(w.Ptr, w.Payload, v, allocated, incarnation) {
		switch w.Op {
		case record.OpAlloc:
			r.Replicas.Loans.Take(w.Ptr)
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
func (r *Recovery) Truncate(in cluster.ID, id record.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(in); err != nil {
		return err
	}
	delete(r.traces, id)
	r.over[id] = true
	if id.Machine == r.Replicas.ID || int(id.Worker) >= len(r.Workers) {
		return nil // Settle finishes this machine's own transactions
	}
	w := r.Workers[id.Worker]
	w.Locked(func() {
		if l := logFromLocked(w, id.Machine); l.Log != nil && !r.recalled.hasLocked(id) {
			if err := l.Release(id.Seq); err != nil {
				w.FencePeerLocked(l.From, err)
			}
		}
	})
	return nil
}

// Open returns what this machine knows of transactions that are not truncated.
func (r *Recovery) Open() []Evidence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evidenceLocked()
}

// Settle ends the recovery at this machine. Every transaction that it coordinates or knows of is by
// now decided and truncated, or waits for an unavailable region and is parked. Settle frees the log
// space that recovery has held, and the slots lent to machines that are not in c, or over
// connections that have ended. It fails if there is no room to park in.
func (r *Recovery) Settle(c *cluster.Configuration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Check(c.ID); err != nil {
		return err
	}
	parked, err := r.parkLocked(c.ID)
	if err != nil {
		return err
	}
	if r.Settling != nil { // Settling must be called before any storage is given back
		r.Settling(c.ID)
	}
	clear(r.traces)
	clear(r.over)
	r.settleRecalledLocked(c.ID, parked)
	r.notes.forget() // the recovery is over
	isWhole := !r.awaitsAny()
	for _, w := range r.Workers {
		w.Locked(func() { w.SettleLocked(isWhole) })
	}
	if !sabotage.LoansEnd.Skipped() {
		r.endLoansLocked()
	}
	r.going.Store(false)
	return nil
}
